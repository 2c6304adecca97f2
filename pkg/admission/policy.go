// Package admission decides who may have what deployed by a control plane, and makes runs of the uploads that may.
//
// Who has put an upload into the bucket is proven by where it is: IAM lets each caller write below its own prefix only
// (uploads/{aws:userid}/…), and whoever may write below inbox/{name}/ stands for that inbox. What they may ask for is
// said by one document on the server, slipway/policy.json in the state bucket, which no caller can reach. What an
// upload says itself can only ask for less.
package admission

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/objectstore"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// PolicyKey is the object of the state bucket that holds the policy.
const PolicyKey = "slipway/policy.json"

// policyVersion is the version of policies that this release reads.
const policyVersion = 1

// Policy is a list of rules. A stack may be worked on if one rule allows all of it: who, what, where, and how.
type Policy struct {
	Version int    `json:"version"`
	Rules   []Rule `json:"rules"`
}

// Rule allows. In its lists "*" stands for any characters, "?" for one.
type Rule struct {
	// Name is for people.
	Name string `json:"name,omitempty"`
	// Principals are callers by their aws:userid: "AIDA…" is a user, "AROA…:*" all sessions of a role. Inboxes are the
	// names of inboxes. A rule without both is for nobody.
	Principals []string `json:"principals,omitempty"`
	Inboxes    []string `json:"inboxes,omitempty"`
	// Stacks are names of stacks. A rule without any allows none.
	Stacks []string `json:"stacks"`
	// Accounts are where the stacks may go: the control plane's own when there are none.
	Accounts []string `json:"accounts,omitempty"`
	// Regions are those of the stacks: any when there are none.
	Regions []string `json:"regions,omitempty"`
	// Commands are deploy, destroy, rollback, plan and cancel; deploy, plan and cancel when there are none. Who may do
	// something may plan and cancel it as well.
	Commands []string `json:"commands,omitempty"`
	// Roles are execution roles that the stacks may be worked on with; the first that fits the account is taken, unless
	// the upload names another one of them. Without any the control plane's own permissions are used.
	Roles []Role `json:"roles,omitempty"`
	// Options are switches that destroy data or pass a protection, which are not allowed unless they are named here, or
	// all of them by "*".
	Options []string `json:"options,omitempty"`
}

// Role is an execution role; in JSON its ARN alone will do.
type Role struct {
	ARN        string `json:"arn"`
	ExternalID string `json:"externalId,omitempty"`
}

// UnmarshalJSON implements json.Unmarshaler.
func (r *Role) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		*r = Role{}
		return json.Unmarshal(b, &r.ARN)
	}
	type plain Role
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	return dec.Decode((*plain)(r))
}

// account is the account of the role.
func (r Role) account() string {
	parts := strings.SplitN(r.ARN, ":", 6)
	if len(parts) != 6 {
		return ""
	}
	return parts[4]
}

// commands that a policy can name.
func knownCommands() []string {
	return []string{string(runlog.CommandDeploy), string(runlog.CommandDestroy), string(runlog.CommandRollback), string(runlog.CommandPlan), string(runlog.CommandCancel)}
}

// guarded are the options that a rule has to name, with what tells that a request has them.
func guarded(o run.Options) map[string]bool {
	return map[string]bool{
		"forceStatefulRecreation": o.ForceStatefulRecreation,
		"replace":                 o.Replace,
		"removeProtection":        o.RemoveProtection,
		"deleteRetained":          o.DeleteRetained,
		"skipFinalSnapshot":       o.SkipFinalSnapshot,
		"force":                   o.Force,
		"recreateVia":             len(o.RecreateVia) > 0,
		"noRollback":              o.NoRollback,
	}
}

// Open is the policy of a control plane that was given none: everybody whom IAM lets upload may do everything, in the
// control plane's own account. No inbox is open.
func Open() Policy {
	return Policy{Version: policyVersion, Rules: []Rule{{
		Name: "there is no " + PolicyKey, Principals: []string{"*"}, Stacks: []string{"*"}, Commands: knownCommands(), Options: []string{"*"},
	}}}
}

// ReadPolicy reads the policy. One that can't be understood allows nothing: it is a refusal, diag.Diagnostics.
func ReadPolicy(ctx context.Context, objects objectstore.Store) (Policy, error) {
	obj, err := objects.Get(ctx, PolicyKey)
	if errors.Is(err, objectstore.ErrNotFound) {
		return Open(), nil
	}
	if err != nil {
		return Policy{}, fmt.Errorf("reading the policy: %w", err)
	}
	p, err := ParsePolicy(obj.Body)
	if err != nil {
		return Policy{}, diag.Diagnostics{{
			Severity: diag.Error, Summary: "this control plane admits nothing: its policy can't be used", Detail: err.Error(),
			Next: "Whoever administers the control plane has to correct " + PolicyKey + " in its state bucket.",
		}}
	}
	return p, nil
}

// ParsePolicy parses and checks a policy. A member that is not known is an error: it might have been meant to narrow.
func ParsePolicy(b []byte) (Policy, error) {
	var p Policy
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&p); err != nil {
		return Policy{}, fmt.Errorf("it is not a policy: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return Policy{}, errors.New("something follows the policy")
	}
	if p.Version != policyVersion {
		return Policy{}, fmt.Errorf("its version is %d, and this release reads version %d", p.Version, policyVersion)
	}
	for i, r := range p.Rules {
		if err := r.check(); err != nil {
			return Policy{}, fmt.Errorf("rule %d: %w", i+1, err)
		}
	}
	return p, nil
}

func (r Rule) check() error {
	for _, list := range [][]string{r.Principals, r.Inboxes, r.Stacks, r.Accounts, r.Regions} {
		for _, pattern := range list {
			if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
				return fmt.Errorf("%q is not a pattern", pattern)
			}
		}
	}
	for _, c := range r.Commands {
		if !slices.Contains(knownCommands(), c) {
			return fmt.Errorf("there is no command %q", c)
		}
	}
	known := guarded(run.Options{})
	for _, o := range r.Options {
		if _, ok := known[o]; !ok && o != "*" {
			return fmt.Errorf("there is no option %q to allow", o)
		}
	}
	for _, role := range r.Roles {
		if a := role.account(); len(a) != 12 || !strings.Contains(role.ARN, ":iam::") || !strings.Contains(role.ARN, ":role/") {
			return fmt.Errorf("%q is not the ARN of a role", role.ARN)
		}
	}
	return nil
}

// Who is a caller: a principal, or an inbox.
type Who struct{ Principal, Inbox string }

func (w Who) String() string {
	if w.Inbox != "" {
		return "inbox/" + w.Inbox
	}
	return w.Principal
}

// Ask is one stack that somebody wants something done to.
type Ask struct {
	Who     Who
	Command runlog.Command
	// Of is the command whose plan, or whose cancellation, is wanted.
	Of      runlog.Command
	Stack   runlog.StackRef
	Options run.Options
	// Role is the ARN of the role that the upload names, "" for the policy's choice.
	Role string
	// Own is the control plane's account.
	Own string
}

// Decide returns the role under which an ask is granted, nil for the control plane's own permissions, or what refuses
// it. The refusal names what is missing, and nothing of rules that are for others.
func (p Policy) Decide(a Ask) (*run.Role, *diag.Diagnostic) {
	rules := slices.DeleteFunc(slices.Clone(p.Rules), func(r Rule) bool { return !r.concerns(a.Who) })
	if len(rules) == 0 {
		return nil, denied(a, "no rule of this control plane's policy is for "+a.Who.String())
	}
	for _, step := range []struct {
		allows func(Rule) bool
		lacks  string
	}{
		{func(r Rule) bool { return matches(r.Stacks, a.Stack.Name) }, "none of your rules is for stack " + a.Stack.Name},
		{func(r Rule) bool { return r.allowsCommand(a) }, "none of your rules for the stack allows " + doing(a)},
		{func(r Rule) bool { return r.allowsAccount(a) }, "none of your rules for it allows account " + a.Stack.Account},
		{func(r Rule) bool { return len(r.Regions) == 0 || matches(r.Regions, a.Stack.Region) }, "none of your rules for it allows region " + a.Stack.Region},
		{func(r Rule) bool { return a.Role == "" || r.role(a) != nil }, "none of your rules for it allows role " + a.Role},
		{func(r Rule) bool { return len(r.Roles) == 0 || r.role(a) != nil }, "none of your rules for it has a role of account " + a.Stack.Account},
	} {
		if rules = slices.DeleteFunc(rules, func(r Rule) bool { return !step.allows(r) }); len(rules) == 0 {
			return nil, denied(a, step.lacks)
		}
	}
	missing := ""
	for _, r := range rules {
		option := r.missingOption(a.Options)
		if option == "" {
			if role := r.role(a); role != nil {
				return &run.Role{ARN: role.ARN, ExternalID: role.ExternalID}, nil
			}
			return nil, nil
		}
		missing = option
	}
	return nil, denied(a, "none of your rules for it allows the option "+missing)
}

func (r Rule) concerns(w Who) bool {
	if w.Inbox != "" {
		return matches(r.Inboxes, w.Inbox)
	}
	return w.Principal != "" && matches(r.Principals, w.Principal)
}

func (r Rule) allowsCommand(a Ask) bool {
	commands := r.Commands
	if len(commands) == 0 {
		commands = []string{string(runlog.CommandDeploy), string(runlog.CommandPlan), string(runlog.CommandCancel)}
	}
	return slices.Contains(commands, string(a.Command)) || a.Of != "" && slices.Contains(commands, string(a.Of))
}

func (r Rule) allowsAccount(a Ask) bool {
	if len(r.Accounts) == 0 {
		return a.Stack.Account == a.Own
	}
	return matches(r.Accounts, a.Stack.Account)
}

// role chooses the role for an ask, nil when the rule has none that fits.
func (r Rule) role(a Ask) *Role {
	for _, role := range r.Roles {
		if role.account() == a.Stack.Account && (a.Role == "" || a.Role == role.ARN) {
			return &role
		}
	}
	return nil
}

// missingOption is an option that a request has and the rule does not allow.
func (r Rule) missingOption(o run.Options) string {
	if slices.Contains(r.Options, "*") {
		return ""
	}
	var missing []string
	for name, set := range guarded(o) {
		if set && !slices.Contains(r.Options, name) {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return ""
	}
	return slices.Min(missing)
}

func matches(patterns []string, s string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, err := path.Match(p, s)
		return err == nil && ok
	})
}

func doing(a Ask) string {
	switch {
	case a.Of != "" && a.Command == runlog.CommandPlan:
		return string(runlog.CommandPlan) + " (of " + string(a.Of) + ")"
	case a.Of != "":
		return string(a.Command) + " (of a " + string(a.Of) + ")"
	}
	return string(a.Command)
}

func denied(a Ask, why string) *diag.Diagnostic {
	return &diag.Diagnostic{
		Severity: diag.Error, Stack: a.Stack.Name, Summary: "the control plane does not allow this", Detail: why,
		Next: "Whoever administers the control plane can add a rule to " + PolicyKey + "; you are " + a.Who.String() + " to it.",
	}
}
