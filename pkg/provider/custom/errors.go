package custom

import (
	"errors"
	"net/http"

	"github.com/aws/smithy-go"

	"github.com/slipway-cdk/slipway/pkg/provider"
)

// kinds are those of the codes with which Lambda and SNS refuse a request before it reaches the handler
// (https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html#API_Invoke_Errors,
// https://docs.aws.amazon.com/sns/latest/api/API_Publish.html#API_Publish_Errors).
var kinds = map[string]provider.Kind{
	"ResourceNotFoundException":      provider.KindNotFound,
	"NotFound":                       provider.KindNotFound,
	"NotFoundException":              provider.KindNotFound,
	"AccessDenied":                   provider.KindAccessDenied,
	"AccessDeniedException":          provider.KindAccessDenied,
	"AuthorizationError":             provider.KindAccessDenied,
	"AuthorizationErrorException":    provider.KindAccessDenied,
	"KMSAccessDeniedException":       provider.KindAccessDenied,
	"KMSAccessDenied":                provider.KindAccessDenied,
	"TooManyRequestsException":       provider.KindThrottled,
	"Throttling":                     provider.KindThrottled,
	"ThrottlingException":            provider.KindThrottled,
	"KMSThrottling":                  provider.KindThrottled,
	"KMSThrottlingException":         provider.KindThrottled,
	"ResourceConflictException":      provider.KindConflict,
	"ResourceNotReadyException":      provider.KindConflict,
	"SnapStartNotReadyException":     provider.KindConflict,
	"EC2ThrottledException":          provider.KindThrottled,
	"ENILimitReachedException":       provider.KindFailed,
	"ServiceException":               provider.KindUnavailable,
	"InternalError":                  provider.KindUnavailable,
	"InternalErrorException":         provider.KindUnavailable,
	"InvalidParameter":               provider.KindInvalid,
	"InvalidParameterException":      provider.KindInvalid,
	"InvalidParameterValueException": provider.KindInvalid,
	"RequestTooLargeException":       provider.KindInvalid,
	"InvalidRequestContentException": provider.KindInvalid,
}

// wrap classifies an error of a call to Lambda or SNS. Where the service has not taken the call, or its answer is lost,
// it is undecided: the same request is delivered again, under the same id, to whoever may have got it already.
func wrap(err error) *provider.Error {
	e := classified(err)
	e.Undecided = e.Kind == provider.KindUnavailable || e.Kind == provider.KindThrottled
	return e
}

func classified(err error) *provider.Error {
	e := &provider.Error{Kind: provider.KindUnavailable, Err: err}
	var api smithy.APIError
	if errors.As(err, &api) {
		e.Code, e.Message, e.Kind = api.ErrorCode(), api.ErrorMessage(), provider.KindFailed
	}
	var rid interface{ ServiceRequestID() string }
	if errors.As(err, &rid) {
		e.RequestID = rid.ServiceRequestID()
	}
	if kind, known := kinds[e.Code]; known {
		e.Kind = kind
		return e
	}
	var status interface{ HTTPStatusCode() int }
	if errors.As(err, &status) {
		switch code := status.HTTPStatusCode(); {
		case code == http.StatusTooManyRequests:
			e.Kind = provider.KindThrottled
		case code >= http.StatusInternalServerError:
			e.Kind = provider.KindUnavailable
		}
	}
	return e
}
