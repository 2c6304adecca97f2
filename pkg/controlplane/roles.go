package controlplane

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/aws-sdk-go-v2/service/sts/types"
	"github.com/aws/smithy-go"

	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/run"
)

// The session tags under which a role is assumed. A role's policies can refer to them, as
// ${aws:PrincipalTag/slipway:stack}, and the trail of its account shows them.
const (
	StackTag = "slipway:stack" // the stack's name
	RunTag   = "slipway:run"   // the run's id, which is the session's name as well
)

// RoleError is a role that cannot be used. It stands in place of the answer of whichever service was to be called, as
// a refusal: it is a smithy.APIError with the code AccessDenied, so that nobody takes the call for one that was made.
type RoleError struct {
	// Role is the ARN of the role, "" where the stack's account is not the control plane's own and no role was chosen.
	Role    string
	Account string // the stack's
	Own     string // the control plane's
	// ExternalID says that the role was assumed with an external ID.
	ExternalID bool
	// Foreign: the role is of another account than the stack.
	Foreign bool
	Err     error // what STS said, if it was asked
}

var _ smithy.APIError = (*RoleError)(nil)

// Error implements error.
func (e *RoleError) Error() string {
	switch {
	case e.Role == "":
		return fmt.Sprintf("this control plane has no role in account %s: it works in account %s", e.Account, e.Own)
	case e.Foreign:
		return fmt.Sprintf("role %s is not of account %s, which the stack goes to", e.Role, e.Account)
	}
	return fmt.Sprintf("role %s in account %s can't be assumed: access is denied", e.Role, e.Account)
}

// Next is what to do about it.
func (e *RoleError) Next() string {
	switch {
	case e.Role == "":
		return "Make an execution role in account " + e.Account + " and name it for the stack in the control plane's policy."
	case e.Foreign:
		return "Name a role of account " + e.Account + " for the stack in the control plane's policy."
	}
	next := "Check that the role exists, that its trust policy lets this control plane's function roles assume it (sts:AssumeRole and sts:TagSession"
	if e.ExternalID {
		next += ", with the external ID of the control plane's policy"
	}
	return next + "), and that its name is one that the control plane's ExecutionRoleNames allow. A role that was made a moment ago needs a while."
}

// Unwrap returns the cause.
func (e *RoleError) Unwrap() error { return e.Err }

// ErrorCode implements smithy.APIError.
func (e *RoleError) ErrorCode() string { return "AccessDenied" }

// ErrorMessage implements smithy.APIError. STS's own message names the caller's session and nothing that helps more.
func (e *RoleError) ErrorMessage() string { return e.Error() + ". " + e.Next() }

// ErrorFault implements smithy.APIError.
func (e *RoleError) ErrorFault() smithy.ErrorFault { return smithy.FaultClient }

// patience are the pauses before STS is asked again for a role that it has denied: IAM takes some seconds to tell
// of a new role, or of a changed policy, everywhere
// (https://docs.aws.amazon.com/IAM/latest/UserGuide/troubleshoot.html#troubleshoot_general_eventual-consistency).
func patience() []time.Duration {
	return []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second}
}

const (
	// denialStands is for how long a denial is taken for STS's word: the many calls of a run do not each wait.
	denialStands = time.Minute
	// maxSessions is how many sessions are kept; one is of a role and of a run of a stack.
	maxSessions = 64
	// early is how long before its end a session is renewed: a call that begins under it has time to end.
	early = 5 * time.Minute
)

// sessions are the credentials of roles. Each is of a role in a run of a stack, because its tags name them; it is
// shared by all calls of the run, and assumed again before it ends. An hour is the longest that a role which is
// assumed by another role gives, and the default
// (https://docs.aws.amazon.com/IAM/latest/UserGuide/id_roles.html#iam-term-role-chaining).
type sessions struct {
	client stscreds.AssumeRoleAPIClient
	clock  clock.Clock

	mu   sync.Mutex
	kept map[run.Acting]*session
	// order are the keys of kept, the oldest first.
	order []run.Acting
}

type session struct {
	cache *aws.CredentialsCache

	mu     sync.Mutex
	denied error
	until  time.Time
}

// retrieve returns the credentials of the role that a is to act under.
func (s *sessions) retrieve(ctx context.Context, a run.Acting) (aws.Credentials, error) {
	c, err := s.session(a).retrieve(ctx, s.clock)
	if isDenied(err) {
		return c, &RoleError{Role: a.Role.ARN, Account: a.Stack.Account, ExternalID: a.Role.ExternalID != "", Err: err}
	}
	if err != nil {
		return c, fmt.Errorf("assuming role %s: %w", a.Role.ARN, err)
	}
	return c, nil
}

func (s *sessions) session(a run.Acting) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	if kept, ok := s.kept[a]; ok {
		return kept
	}
	if s.kept == nil {
		s.kept = map[run.Acting]*session{}
	}
	if len(s.order) == maxSessions {
		delete(s.kept, s.order[0])
		s.order = s.order[1:]
	}
	assume := stscreds.NewAssumeRoleProvider(s.client, a.Role.ARN, func(o *stscreds.AssumeRoleOptions) {
		o.RoleSessionName = a.RunID
		o.Tags = []types.Tag{{Key: aws.String(StackTag), Value: &a.Stack.Name}, {Key: aws.String(RunTag), Value: &a.RunID}}
		o.Duration = time.Hour
		if a.Role.ExternalID != "" {
			o.ExternalID = &a.Role.ExternalID
		}
	})
	made := &session{cache: aws.NewCredentialsCache(assume, func(o *aws.CredentialsCacheOptions) { o.ExpiryWindow = early })}
	s.kept[a] = made
	s.order = append(s.order, a)
	return made
}

// retrieve asks the cache, which asks STS once for all that wait. A denial is asked about again for some seconds, by
// one caller; the others learn what came of it.
func (s *session) retrieve(ctx context.Context, clk clock.Clock) (aws.Credentials, error) {
	c, err := s.cache.Retrieve(ctx)
	if !isDenied(err) {
		return c, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.denied != nil && clk.Now().Before(s.until) {
		return c, s.denied
	}
	for _, pause := range patience() {
		if err := clk.Sleep(ctx, pause); err != nil {
			return c, err
		}
		if c, err = s.cache.Retrieve(ctx); !isDenied(err) {
			s.denied = nil
			return c, err
		}
	}
	s.denied, s.until = err, clk.Now().Add(denialStands)
	return c, err
}

// isDenied reports whether STS has refused to give the role's credentials. It does not tell a role that does not exist
// from one that must not be assumed.
func isDenied(err error) bool {
	var api smithy.APIError
	return errors.As(err, &api) && (api.ErrorCode() == "AccessDenied" || api.ErrorCode() == "AccessDeniedException")
}

// rolesOf makes the sessions of a configuration: its own credentials assume the roles, in its own region.
func rolesOf(cfg aws.Config, clk clock.Clock) *sessions {
	return &sessions{client: sts.NewFromConfig(cfg), clock: clk}
}

// Check implements run.Roles: it has the role of the context's stack assumed.
func (a *Accounts) Check(ctx context.Context, account string) (*diag.Diagnostic, error) {
	_, err := a.credentials(ctx, account)
	var role *RoleError
	switch {
	case err == nil:
		return nil, nil
	case errors.As(err, &role):
		return &diag.Diagnostic{Severity: diag.Error, Summary: "account " + account + " can't be worked in", Detail: role.Error(), Next: role.Next()}, nil
	}
	return nil, err
}

// credentials are those to work with in an account: of the role that the context's stack was given, or the process's
// own in its own account.
func (a *Accounts) credentials(ctx context.Context, account string) (aws.Credentials, error) {
	acting := run.ActingOf(ctx)
	if acting.Role.ARN == "" {
		if account != a.Own {
			return aws.Credentials{}, &RoleError{Account: account, Own: a.Own}
		}
		if a.Base.Credentials == nil {
			return aws.Credentials{}, errors.New("there are no AWS credentials")
		}
		return a.Base.Credentials.Retrieve(ctx)
	}
	role, err := arn.Parse(acting.Role.ARN)
	if err != nil || role.AccountID != account {
		return aws.Credentials{}, &RoleError{Role: acting.Role.ARN, Account: account, Own: a.Own, Foreign: true, Err: err}
	}
	a.once.Do(func() {
		clk := a.Clock
		if clk == nil {
			clk = clock.Real{}
		}
		a.roles = rolesOf(a.Base, clk)
	})
	return a.roles.retrieve(ctx, acting)
}
