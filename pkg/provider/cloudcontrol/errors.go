package cloudcontrol

import (
	"errors"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/service/cloudcontrol/types"
	"github.com/aws/smithy-go"

	"github.com/slipway-cdk/slipway/pkg/provider"
)

// HandlerKind is the kind of a handler error code that an operation ("CREATE", "UPDATE", "DELETE") failed with,
// KindFailed for an unknown one.
//
// ResourceConflict means that the resource can't be acted upon at the moment. What stands in the way of a deletion
// is somebody who uses the resource; of anything else, another operation that will be over.
func HandlerKind(operation, code string) provider.Kind {
	if code == string(types.HandlerErrorCodeResourceConflict) && operation != string(types.OperationDelete) {
		return provider.KindConflict
	}
	if k, ok := handlerKinds[types.HandlerErrorCode(code)]; ok {
		return k
	}
	return provider.KindFailed
}

// APIKind is the kind of an exception of the API itself, KindFailed for one that is not known.
func APIKind(code string) provider.Kind {
	if k, ok := apiKinds[code]; ok {
		return k
	}
	return provider.KindFailed
}

// handlerKinds maps the handler error codes of a failed request.
// https://docs.aws.amazon.com/cloudformation-cli/latest/userguide/resource-type-test-contract-errors.html
var handlerKinds = map[types.HandlerErrorCode]provider.Kind{
	types.HandlerErrorCodeNotUpdatable:                 provider.KindImmutable,
	types.HandlerErrorCodeInvalidRequest:               provider.KindInvalid,
	types.HandlerErrorCodeAccessDenied:                 provider.KindAccessDenied,
	types.HandlerErrorCodeUnauthorizedTaggingOperation: provider.KindAccessDenied,
	types.HandlerErrorCodeInvalidCredentials:           provider.KindAccessDenied,
	types.HandlerErrorCodeAlreadyExists:                provider.KindAlreadyExists,
	types.HandlerErrorCodeNotFound:                     provider.KindNotFound,
	types.HandlerErrorCodeResourceConflict:             provider.KindDependencyViolation,
	types.HandlerErrorCodeThrottling:                   provider.KindThrottled,
	types.HandlerErrorCodeServiceLimitExceeded:         provider.KindFailed,
	types.HandlerErrorCodeNotStabilized:                provider.KindTimeout,
	types.HandlerErrorCodeGeneralServiceException:      provider.KindFailed,
	types.HandlerErrorCodeServiceInternalError:         provider.KindUnavailable,
	types.HandlerErrorCodeServiceTimeout:               provider.KindUnavailable,
	types.HandlerErrorCodeNetworkFailure:               provider.KindUnavailable,
	types.HandlerErrorCodeInternalFailure:              provider.KindUnavailable,
}

// apiKinds maps the exceptions of the Cloud Control API and those common to all services.
// https://docs.aws.amazon.com/cloudcontrolapi/latest/APIReference/API_CreateResource.html#API_CreateResource_Errors
// https://docs.aws.amazon.com/cloudcontrolapi/latest/APIReference/CommonErrors.html
//
// A request token that is not known says nothing about the resource: it is not KindNotFound.
var apiKinds = map[string]provider.Kind{
	"AlreadyExistsException":          provider.KindAlreadyExists,
	"ClientTokenConflictException":    provider.KindTokenConflict,
	"ConcurrentModificationException": provider.KindConflict,
	"ConcurrentOperationException":    provider.KindConflict,
	"GeneralServiceException":         provider.KindFailed,
	"HandlerFailureException":         provider.KindFailed,
	"HandlerInternalFailureException": provider.KindUnavailable,
	"InvalidCredentialsException":     provider.KindAccessDenied,
	"InvalidRequestException":         provider.KindInvalid,
	"NetworkFailureException":         provider.KindUnavailable,
	"NotStabilizedException":          provider.KindTimeout,
	"NotUpdatableException":           provider.KindImmutable,
	"PrivateTypeException":            provider.KindUnsupported,
	"RequestTokenNotFoundException":   provider.KindFailed,
	"ResourceConflictException":       provider.KindDependencyViolation,
	"ResourceNotFoundException":       provider.KindNotFound,
	"ServiceInternalErrorException":   provider.KindUnavailable,
	"ServiceLimitExceededException":   provider.KindFailed,
	"ThrottlingException":             provider.KindThrottled,
	"TypeNotFoundException":           provider.KindUnsupported,
	"UnsupportedActionException":      provider.KindUnsupported,
	"ValidationException":             provider.KindInvalid,

	"AccessDenied":                provider.KindAccessDenied,
	"AccessDeniedException":       provider.KindAccessDenied,
	"ExpiredToken":                provider.KindAccessDenied,
	"ExpiredTokenException":       provider.KindAccessDenied,
	"IncompleteSignature":         provider.KindAccessDenied,
	"InvalidClientTokenId":        provider.KindAccessDenied,
	"InvalidSignatureException":   provider.KindAccessDenied,
	"MissingAuthenticationToken":  provider.KindAccessDenied,
	"NotAuthorized":               provider.KindAccessDenied,
	"OptInRequired":               provider.KindAccessDenied,
	"SignatureDoesNotMatch":       provider.KindAccessDenied,
	"UnrecognizedClientException": provider.KindAccessDenied,
	"RequestLimitExceeded":        provider.KindThrottled,
	"Throttling":                  provider.KindThrottled,
	"TooManyRequestsException":    provider.KindThrottled,
	"InternalFailure":             provider.KindUnavailable,
	"InternalServerError":         provider.KindUnavailable,
	"RequestExpired":              provider.KindUnavailable,
	"RequestTimeout":              provider.KindUnavailable,
	"ServiceUnavailable":          provider.KindUnavailable,
	"ServiceUnavailableException": provider.KindUnavailable,
	"SerializationException":      provider.KindInvalid,
	"ValidationError":             provider.KindInvalid,
	"InvalidAction":               provider.KindUnsupported,
	"UnknownOperationException":   provider.KindUnsupported,
}

// wrap classifies an error of the API call itself. Where the service has not taken the call, or its answer is lost, the
// error is undecided: there is no request under the token that has failed, and there may be one that goes on.
func wrap(err error) error {
	e := classified(err)
	e.Undecided = e.Kind == provider.KindUnavailable || e.Kind == provider.KindThrottled
	return e
}

// classified tells an error by its code, else by the HTTP status, else as a service that did not answer: the connection
// failed, or the deadline ended the call.
func classified(err error) *provider.Error {
	e := &provider.Error{Kind: provider.KindUnavailable, Err: err}
	var api smithy.APIError
	if errors.As(err, &api) {
		e.Code, e.Message = api.ErrorCode(), api.ErrorMessage()
		e.Kind = APIKind(e.Code)
	}
	var rid interface{ ServiceRequestID() string }
	if errors.As(err, &rid) {
		e.RequestID = rid.ServiceRequestID()
	}
	if _, known := apiKinds[e.Code]; known {
		return provider.Refined(e)
	}
	var response interface{ HTTPStatusCode() int }
	if errors.As(err, &response) {
		switch status := response.HTTPStatusCode(); {
		case status == http.StatusTooManyRequests:
			e.Kind = provider.KindThrottled
		case status >= http.StatusInternalServerError:
			e.Kind = provider.KindUnavailable
		}
	}
	var params smithy.InvalidParamsError
	if errors.As(err, &params) {
		e.Kind, e.Code = provider.KindInvalid, "InvalidParams"
	}
	return provider.Refined(e)
}
