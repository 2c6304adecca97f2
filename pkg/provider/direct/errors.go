package direct

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"

	"github.com/slipway-cdk/slipway/pkg/provider"
)

// Errors are the kinds of a service's own error codes. They come before those that all services share (commonErrors).
type Errors map[string]provider.Kind

// commonErrors are codes that mean the same wherever they occur.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
// https://docs.aws.amazon.com/IAM/latest/APIReference/CommonErrors.html and the same page of the other services.
var commonErrors = Errors{
	"Throttling":                             provider.KindThrottled,
	"ThrottlingException":                    provider.KindThrottled,
	"ThrottledException":                     provider.KindThrottled,
	"RequestThrottled":                       provider.KindThrottled,
	"RequestThrottledException":              provider.KindThrottled,
	"TooManyRequestsException":               provider.KindThrottled,
	"TooManyRequests":                        provider.KindThrottled,
	"RequestLimitExceeded":                   provider.KindThrottled,
	"BandwidthLimitExceeded":                 provider.KindThrottled,
	"ProvisionedThroughputExceededException": provider.KindThrottled,
	"TransactionInProgressException":         provider.KindThrottled,
	"PriorRequestNotComplete":                provider.KindThrottled,
	"SlowDown":                               provider.KindThrottled,
	"EC2ThrottledException":                  provider.KindThrottled,

	"InternalError":               provider.KindUnavailable,
	"InternalFailure":             provider.KindUnavailable,
	"InternalServerError":         provider.KindUnavailable,
	"InternalServerException":     provider.KindUnavailable,
	"InternalServiceError":        provider.KindUnavailable,
	"InternalServiceException":    provider.KindUnavailable,
	"ServiceFailure":              provider.KindUnavailable,
	"ServiceFailureException":     provider.KindUnavailable,
	"ServiceException":            provider.KindUnavailable,
	"ServiceUnavailable":          provider.KindUnavailable,
	"ServiceUnavailableException": provider.KindUnavailable,
	"Unavailable":                 provider.KindUnavailable,
	"RequestTimeout":              provider.KindUnavailable,
	"RequestTimeoutException":     provider.KindUnavailable,
	"RequestExpired":              provider.KindUnavailable,

	"AccessDenied":                provider.KindAccessDenied,
	"AccessDeniedException":       provider.KindAccessDenied,
	"NotAuthorized":               provider.KindAccessDenied,
	"AuthorizationError":          provider.KindAccessDenied,
	"UnauthorizedOperation":       provider.KindAccessDenied,
	"AuthFailure":                 provider.KindAccessDenied,
	"Blocked":                     provider.KindAccessDenied,
	"ExpiredToken":                provider.KindAccessDenied,
	"ExpiredTokenException":       provider.KindAccessDenied,
	"InvalidClientTokenId":        provider.KindAccessDenied,
	"UnrecognizedClientException": provider.KindAccessDenied,
	"IncompleteSignature":         provider.KindAccessDenied,
	"SignatureDoesNotMatch":       provider.KindAccessDenied,
	"OptInRequired":               provider.KindAccessDenied,

	"ResourceNotFoundException": provider.KindNotFound,
	"ResourceNotFound":          provider.KindNotFound,
	"NotFoundException":         provider.KindNotFound,
	"NotFound":                  provider.KindNotFound,
	"NoSuchEntity":              provider.KindNotFound,

	"AlreadyExistsException":         provider.KindAlreadyExists,
	"ResourceAlreadyExistsException": provider.KindAlreadyExists,
	"ResourceExistsException":        provider.KindAlreadyExists,
	"EntityAlreadyExists":            provider.KindAlreadyExists,

	"DependencyViolation":     provider.KindDependencyViolation,
	"DeleteConflict":          provider.KindDependencyViolation,
	"DeleteConflictException": provider.KindDependencyViolation,
	"ResourceInUseException":  provider.KindDependencyViolation,
	"ResourceInUse":           provider.KindDependencyViolation,

	"ConcurrentModification":          provider.KindConflict,
	"ConcurrentModificationException": provider.KindConflict,
	"ConcurrentUpdateException":       provider.KindConflict,
	"ConcurrentAccessException":       provider.KindConflict,
	"OperationAborted":                provider.KindConflict,
	"OperationInProgressException":    provider.KindConflict,

	"IdempotentParameterMismatch":           provider.KindTokenConflict,
	"IdempotentParameterMismatchException":  provider.KindTokenConflict,
	"IdempotencyParameterMismatchException": provider.KindTokenConflict,

	"ValidationError":                provider.KindInvalid,
	"ValidationException":            provider.KindInvalid,
	"InvalidParameter":               provider.KindInvalid,
	"InvalidParameterException":      provider.KindInvalid,
	"InvalidParameterValue":          provider.KindInvalid,
	"InvalidParameterValueException": provider.KindInvalid,
	"InvalidParameterCombination":    provider.KindInvalid,
	"InvalidInput":                   provider.KindInvalid,
	"InvalidRequest":                 provider.KindInvalid,
	"InvalidRequestException":        provider.KindInvalid,
	"MissingParameter":               provider.KindInvalid,
	"MalformedQueryString":           provider.KindInvalid,
	"MalformedPolicyDocument":        provider.KindInvalid,
	"BadRequestException":            provider.KindInvalid,
	"SerializationException":         provider.KindInvalid,

	"UnsupportedOperation":          provider.KindUnsupported,
	"UnsupportedOperationException": provider.KindUnsupported,
}

// wrap is err as the engine reads it. The code decides; where it is unknown, the status.
func (e Errors) wrap(err error) *provider.Error {
	var done *provider.Error
	if errors.As(err, &done) {
		return done
	}
	failure := &provider.Error{Kind: provider.KindFailed, Err: err}
	var response *awshttp.ResponseError
	status := 0
	if errors.As(err, &response) {
		status, failure.RequestID = response.HTTPStatusCode(), response.ServiceRequestID()
		if response.Response != nil {
			failure.RetryAfter = retryAfter(response.Response.Header)
		}
	}
	var api smithy.APIError
	if !errors.As(err, &api) {
		var refused smithy.InvalidParamsError
		var malformed *smithy.SerializationError
		switch {
		case errors.As(err, &refused) || errors.As(err, &malformed):
			failure.Kind, failure.Code = provider.KindInvalid, "InvalidParams"
		default:
			// The call was made, or was not, and there is no answer.
			failure.Kind, failure.Code = provider.KindUnavailable, "NoAnswer"
		}
		return failure
	}
	failure.Code, failure.Message = api.ErrorCode(), api.ErrorMessage()
	kind, known := e[failure.Code]
	if !known {
		kind, known = commonErrors[failure.Code]
	}
	switch {
	case known:
		failure.Kind = kind
	case status >= http.StatusInternalServerError && status != http.StatusNotImplemented:
		failure.Kind = provider.KindUnavailable
	case status == http.StatusTooManyRequests:
		failure.Kind = provider.KindThrottled
	case status == http.StatusForbidden:
		failure.Kind = provider.KindAccessDenied
	case strings.HasSuffix(failure.Code, ".NotFound"): // all of EC2's
		failure.Kind = provider.KindNotFound
	}
	return provider.Refined(failure)
}

// retryAfter is the service's hint in seconds, 0 when there is none.
func retryAfter(h http.Header) time.Duration {
	if n, err := strconv.Atoi(h.Get("Retry-After")); err == nil && n > 0 {
		return time.Duration(n) * time.Second
	}
	return 0
}

// NotFound is the error of a Read whose answer says that there is no such resource.
func NotFound(what, id string) error {
	return &provider.Error{Kind: provider.KindNotFound, Code: "NotFound", Message: "there is no " + what + " " + id}
}

// Invalid is the error of properties that can't be sent. It must not repeat a value.
func Invalid(message string) error {
	return &provider.Error{Kind: provider.KindInvalid, Code: "InvalidProperties", Message: message}
}

// Unless is err, or nil when it is of a kind: what is to be removed may be gone.
func (e Errors) Unless(err error, kind provider.Kind) error {
	if e.IsKind(err, kind) {
		return nil
	}
	return err
}

// IsKind reports whether a call failed with a kind, by the codes that all services share and those given.
func (e Errors) IsKind(err error, kind provider.Kind) bool {
	return err != nil && e.wrap(err).Kind == kind
}
