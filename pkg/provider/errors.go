package provider

import (
	"errors"
	"fmt"
	"time"
)

// Kind classifies a provider failure. The engine decides on kinds only, never on message text.
type Kind string

// The kinds. Anything that fits none of them is KindFailed: it is not retried.
const (
	KindFailed              Kind = "Failed"
	KindNotFound            Kind = "NotFound"
	KindAlreadyExists       Kind = "AlreadyExists"
	KindThrottled           Kind = "Throttled"
	KindUnavailable         Kind = "Unavailable" // 5xx, network, handler internal failure: worth repeating
	KindAccessDenied        Kind = "AccessDenied"
	KindImmutable           Kind = "Immutable"           // a create-only property was to be changed
	KindDependencyViolation Kind = "DependencyViolation" // something still uses the resource
	KindConflict            Kind = "Conflict"            // another operation runs on the resource
	KindInvalid             Kind = "Invalid"             // the request itself is wrong
	KindUnsupported         Kind = "Unsupported"         // this route cannot do it for this type
	KindTimeout             Kind = "Timeout"             // it did not stabilise in time
	KindTokenConflict       Kind = "TokenConflict"       // the client token was used for another request
	KindPropagation         Kind = "Propagation"         // a role, policy or key that the call relies on is not in effect everywhere yet, or is wrong
	KindProtected           Kind = "Protected"           // the resource's own protection keeps it from being deleted
	KindRecentlyDeleted     Kind = "RecentlyDeleted"     // the name is free, but only a while after its last owner was deleted
)

// Error is a failed step. Message is masked by the caller before it leaves the process.
type Error struct {
	Kind      Kind
	Code      string // the service's own code: "ThrottlingException", "AlreadyExists"
	Message   string
	RequestID string
	// PhysicalID names what the failed step left behind, if it did.
	PhysicalID string
	// RetryAfter is the service's hint, zero when it gave none.
	RetryAfter time.Duration
	// Undecided: nobody knows whether the step has had its effect, or the service has not taken it at all: its answer
	// was lost, or it was too busy to give one. The same step under the same token finds out; under another token it
	// could be done twice. A failure that the service has recorded for the token is not of this kind.
	Undecided bool
	Err       error
}

// Error implements error: "code: message".
func (e *Error) Error() string {
	msg := e.Message
	if msg == "" && e.Err != nil {
		msg = e.Err.Error()
	}
	code := e.Code
	if code == "" {
		code = string(e.Kind)
	}
	return fmt.Sprintf("%s: %s", code, msg)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// KindOf returns the kind of the first *Error in err's chain, KindFailed for any other error and "" for nil.
func KindOf(err error) Kind {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return KindFailed
}

// IsNotFound reports whether the resource does not exist.
func IsNotFound(err error) bool { return KindOf(err) == KindNotFound }

// IsAlreadyExists reports whether the name is taken by another resource.
func IsAlreadyExists(err error) bool { return KindOf(err) == KindAlreadyExists }

// IsThrottled reports whether the service asked to slow down.
func IsThrottled(err error) bool { return KindOf(err) == KindThrottled }

// IsUnavailable reports whether the same call may succeed when it is simply repeated.
func IsUnavailable(err error) bool { return KindOf(err) == KindUnavailable }

// IsAccessDenied reports whether the caller lacks a permission.
func IsAccessDenied(err error) bool { return KindOf(err) == KindAccessDenied }

// IsImmutable reports whether a create-only property was to be changed in place.
func IsImmutable(err error) bool { return KindOf(err) == KindImmutable }

// IsDependencyViolation reports whether something still uses the resource.
func IsDependencyViolation(err error) bool { return KindOf(err) == KindDependencyViolation }

// IsConflict reports whether another operation is running on the resource.
func IsConflict(err error) bool { return KindOf(err) == KindConflict }

// IsPropagation reports whether the service can't use a role, policy or key yet. One that was made or changed a
// moment ago will do in a while; of any other this is a refusal.
func IsPropagation(err error) bool { return KindOf(err) == KindPropagation }

// IsRecentlyDeleted reports whether the name can't be taken yet because its last owner was deleted a moment ago.
func IsRecentlyDeleted(err error) bool { return KindOf(err) == KindRecentlyDeleted }

// IsProtected reports whether the resource's own protection keeps it from being deleted: until somebody turns that off, no
// repetition helps.
func IsProtected(err error) bool { return KindOf(err) == KindProtected }

// IsUnsupported reports whether this route cannot do the step for this type.
func IsUnsupported(err error) bool { return KindOf(err) == KindUnsupported }

// IsUndecided reports whether the step is to be repeated under its token: see Error.Undecided.
func IsUndecided(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Undecided
}

// Retryable reports whether repeating the step, later and with the next attempt, may succeed without
// anybody changing anything. Of KindPropagation that is true only while what the call relies on is new.
func Retryable(err error) bool { return RetryableKind(KindOf(err)) }

// RetryableKind is Retryable for a recorded failure.
func RetryableKind(k Kind) bool {
	switch k {
	case KindThrottled, KindUnavailable, KindConflict, KindPropagation, KindRecentlyDeleted:
		return true
	}
	return false
}
