package cloud

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/smithy-go"
)

// NotFoundError: what was asked for is not there.
type NotFoundError struct{ What string }

// Error implements error.
func (e *NotFoundError) Error() string { return "there is no " + e.What }

// Next says what to do.
func (e *NotFoundError) Next() string {
	return "Check what the app asks for, and the account and region of its stack; or make what is missing."
}

// AmbiguousError: more than one thing is what was asked for.
type AmbiguousError struct {
	What  string
	Count int
	// More: there may be more than Count, which were not looked at.
	More bool
}

// Error implements error.
func (e *AmbiguousError) Error() string {
	least := ""
	if e.More {
		least = "at least "
	}
	return fmt.Sprintf("%s%d match where one is wanted: %s", least, e.Count, e.What)
}

// Next says what to do.
func (e *AmbiguousError) Next() string { return "Ask for something that only one of them has." }

// DeniedError: AWS refuses the call.
type DeniedError struct {
	// Action is the IAM action that is needed.
	Action string
	Code   string // AWS's own: "UnauthorizedOperation", "AccessDeniedException"
	Err    error
}

// Error implements error. AWS's own message is left out: EC2's is an encoded document.
func (e *DeniedError) Error() string { return fmt.Sprintf("%s is not allowed (%s)", e.Action, e.Code) }

// Next says what to do.
func (e *DeniedError) Next() string {
	return "Allow " + e.Action + " to who looks, look with other credentials (--profile), or take over a cdk.context.json that has the value."
}

// Unwrap returns what the SDK said.
func (e *DeniedError) Unwrap() error { return e.Err }

// CredentialsError: there is nobody who could ask.
type CredentialsError struct {
	// Instance: nothing is configured, and the last resort, the role of an EC2 instance, has failed.
	Instance bool
	Err      error
}

// Error implements error.
func (e *CredentialsError) Error() string {
	switch {
	case e.Instance:
		return "no AWS credentials are configured here, and this machine has no instance role that gives any"
	case e.Err == nil:
		return "no AWS credentials are configured here"
	}
	return "no AWS credentials that work can be had here: " + e.Err.Error()
}

// Next says what to do.
func (e *CredentialsError) Next() string {
	return "Configure AWS credentials (`aws sts get-caller-identity` must work; --profile names others), or take over a cdk.context.json that has the value."
}

// Unwrap returns the cause.
func (e *CredentialsError) Unwrap() error { return e.Err }

// AccountError: the credentials are of another account, and the app names no role to look with.
type AccountError struct{ Account, Own string }

// Error implements error.
func (e *AccountError) Error() string {
	return fmt.Sprintf("account %s is asked, but the AWS credentials here are of account %s and the app names no lookup role", e.Account, e.Own)
}

// Next says what to do.
func (e *AccountError) Next() string {
	return "Use credentials of account " + e.Account + " (--profile), give the stack's synthesizer a lookupRoleArn, or take over a cdk.context.json that has the value."
}

// RoleError: the lookup role can't be assumed, and the credentials are no substitute for it.
type RoleError struct {
	Role    string
	Account string // the one that is asked
	Own     string // that of the credentials
	Err     error
}

// Error implements error.
func (e *RoleError) Error() string {
	return fmt.Sprintf("lookup role %s, for account %s, can't be assumed with the credentials of account %s (%s)", e.Role, e.Account, e.Own, reason(e.Err))
}

// Next says what to do.
func (e *RoleError) Next() string {
	if isExpired(e.Err) {
		return "Renew the AWS credentials."
	}
	return "Check that the role exists and trusts account " + e.Own + " (`cdk bootstrap --trust-for-lookup " + e.Own + "` makes CDK's), use credentials of account " +
		e.Account + " (--profile), or take over a cdk.context.json that has the value."
}

// Unwrap returns what STS said.
func (e *RoleError) Unwrap() error { return e.Err }

// called wraps the error of a call that needs an action.
func called(action string, err error) error {
	if code := code(err); isDenial(code) {
		return &DeniedError{Action: action, Code: code, Err: err}
	}
	return fmt.Errorf("calling %s: %w", action, err)
}

// code is AWS's code of an error, "" where AWS has not answered.
func code(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return ""
}

// isDenial knows the codes by which services refuse: https://docs.aws.amazon.com/IAM/latest/UserGuide/troubleshoot_access-denied.html
// and, for EC2, https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html.
func isDenial(code string) bool {
	return slices.Contains([]string{"AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "NotAuthorized"}, code)
}

// isExpired reports whether the caller's credentials are over. Looking with them would only fail later.
func isExpired(err error) bool { return strings.HasPrefix(code(err), "ExpiredToken") }

// reason says in a few words why a role could not be had.
func reason(err error) string {
	switch c := code(err); {
	case isDenial(c):
		return "access is denied, or there is no such role"
	case isExpired(err):
		return "the credentials have expired"
	case c != "":
		return c
	}
	return err.Error()
}
