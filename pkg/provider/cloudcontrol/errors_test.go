package cloudcontrol

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/cloudcontrol/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/slipway-cdk/slipway/pkg/provider"
)

// exceptions are all that the client's API model knows.
var exceptions = map[smithy.APIError]provider.Kind{
	&types.AlreadyExistsException{}:          provider.KindAlreadyExists,
	&types.ClientTokenConflictException{}:    provider.KindTokenConflict,
	&types.ConcurrentModificationException{}: provider.KindConflict,
	&types.ConcurrentOperationException{}:    provider.KindConflict,
	&types.GeneralServiceException{}:         provider.KindFailed,
	&types.HandlerFailureException{}:         provider.KindFailed,
	&types.HandlerInternalFailureException{}: provider.KindUnavailable,
	&types.InvalidCredentialsException{}:     provider.KindAccessDenied,
	&types.InvalidRequestException{}:         provider.KindInvalid,
	&types.NetworkFailureException{}:         provider.KindUnavailable,
	&types.NotStabilizedException{}:          provider.KindTimeout,
	&types.NotUpdatableException{}:           provider.KindImmutable,
	&types.PrivateTypeException{}:            provider.KindUnsupported,
	&types.RequestTokenNotFoundException{}:   provider.KindFailed,
	&types.ResourceConflictException{}:       provider.KindDependencyViolation,
	&types.ResourceNotFoundException{}:       provider.KindNotFound,
	&types.ServiceInternalErrorException{}:   provider.KindUnavailable,
	&types.ServiceLimitExceededException{}:   provider.KindFailed,
	&types.ThrottlingException{}:             provider.KindThrottled,
	&types.TypeNotFoundException{}:           provider.KindUnsupported,
	&types.UnsupportedActionException{}:      provider.KindUnsupported,
}

func response(status int, requestID string, err error) error {
	return &smithy.OperationError{ServiceID: "CloudControl", OperationName: "CreateResource", Err: &awshttp.ResponseError{
		RequestID:     requestID,
		ResponseError: &smithyhttp.ResponseError{Response: &smithyhttp.Response{Response: &http.Response{StatusCode: status}}, Err: err},
	}}
}

func TestEveryExceptionHasItsKind(t *testing.T) {
	for exception, want := range exceptions {
		code := exception.ErrorCode()
		t.Run(code, func(t *testing.T) {
			if _, listed := apiKinds[code]; !listed {
				t.Error("it is in no table")
			}
			reflect.ValueOf(exception).Elem().FieldByName("Message").Set(reflect.ValueOf(ptr("what the service says")))
			err := wrap(response(http.StatusBadRequest, "request-1", exception))
			var e *provider.Error
			if !errors.As(err, &e) || e.Kind != want || e.Code != code || e.Message != "what the service says" || e.RequestID != "request-1" {
				t.Errorf("%+v, want kind %s", e, want)
			}
			if !errors.Is(err, exception) {
				t.Error("the cause is lost")
			}
		})
	}
}

func ptr[T any](v T) *T { return &v }

func TestErrorsWithoutAnExceptionOfTheAPI(t *testing.T) {
	generic := func(code string) error { return &smithy.GenericAPIError{Code: code, Message: "m"} }
	cases := []struct {
		name string
		err  error
		want provider.Kind
		code string
	}{
		{"a model that does not fit the schema", response(400, "", generic("ValidationException")), provider.KindInvalid, "ValidationException"},
		{"no permission", response(400, "", generic("AccessDeniedException")), provider.KindAccessDenied, "AccessDeniedException"},
		{"credentials that have run out", response(403, "", generic("ExpiredTokenException")), provider.KindAccessDenied, "ExpiredTokenException"},
		{"credentials of nobody", response(403, "", generic("UnrecognizedClientException")), provider.KindAccessDenied, "UnrecognizedClientException"},
		{"a bad signature", response(403, "", generic("InvalidSignatureException")), provider.KindAccessDenied, "InvalidSignatureException"},
		{"too many calls", response(400, "", generic("TooManyRequestsException")), provider.KindThrottled, "TooManyRequestsException"},
		{"throttled without a known code", response(429, "", generic("Whatever")), provider.KindThrottled, "Whatever"},
		{"a fault without a known code", response(503, "", generic("UnknownError")), provider.KindUnavailable, "UnknownError"},
		{"a fault of a load balancer", response(502, "", errors.New("no JSON")), provider.KindUnavailable, ""},
		{"an exception that is not known", response(400, "", generic("SomethingNewException")), provider.KindFailed, "SomethingNewException"},
		{"a known exception keeps its kind whatever the status", response(500, "", generic("ResourceNotFoundException")), provider.KindNotFound, "ResourceNotFoundException"},
		{"no connection", &smithy.OperationError{Err: errors.New("connection refused")}, provider.KindUnavailable, ""},
		{"a deadline", fmt.Errorf("calling: %w", context.DeadlineExceeded), provider.KindUnavailable, ""},
		{"a request that the client does not send", &smithy.OperationError{Err: smithy.InvalidParamsError{Context: "GetResourceInput"}}, provider.KindInvalid, "InvalidParams"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var e *provider.Error
			if err := wrap(c.err); !errors.As(err, &e) || e.Kind != c.want || e.Code != c.code {
				t.Errorf("kind %s, code %q; want %s, %q", e.Kind, e.Code, c.want, c.code)
			}
			if !errors.Is(wrap(c.err), c.err) {
				t.Error("the cause is lost")
			}
		})
	}
}

func TestEveryHandlerCodeHasItsKind(t *testing.T) {
	want := map[types.HandlerErrorCode]provider.Kind{
		"NotUpdatable": provider.KindImmutable, "InvalidRequest": provider.KindInvalid, "AccessDenied": provider.KindAccessDenied,
		"UnauthorizedTaggingOperation": provider.KindAccessDenied, "InvalidCredentials": provider.KindAccessDenied,
		"AlreadyExists": provider.KindAlreadyExists, "NotFound": provider.KindNotFound, "ResourceConflict": provider.KindConflict,
		"Throttling": provider.KindThrottled, "ServiceLimitExceeded": provider.KindFailed, "NotStabilized": provider.KindTimeout,
		"GeneralServiceException": provider.KindFailed, "ServiceInternalError": provider.KindUnavailable, "ServiceTimeout": provider.KindUnavailable,
		"NetworkFailure": provider.KindUnavailable, "InternalFailure": provider.KindUnavailable,
	}
	for _, code := range types.HandlerErrorCode("").Values() {
		kind, ok := want[code]
		if !ok {
			t.Errorf("%s is a code that this test does not know", code)
		}
		for _, operation := range []string{"CREATE", "UPDATE"} {
			if got := HandlerKind(operation, string(code)); got != kind {
				t.Errorf("%s of a %s is %s, want %s", code, operation, got, kind)
			}
		}
	}
	if got := HandlerKind("DELETE", "ResourceConflict"); got != provider.KindDependencyViolation {
		t.Errorf("a conflict of a deletion is %s", got)
	}
	if got := HandlerKind("CREATE", "SomethingNew"); got != provider.KindFailed {
		t.Errorf("an unknown code is %s", got)
	}
}

// Whatever a service says is in Message, which the caller masks; nothing else of it is in the text.
func TestTheTextIsCodeAndMessage(t *testing.T) {
	err := wrap(response(400, "request-1", &types.InvalidRequestException{Message: ptr("bad size")}))
	if got := err.Error(); got != "InvalidRequestException: bad size" {
		t.Errorf("%q", got)
	}
	if got := wrap(errors.New("connection refused")).Error(); !strings.Contains(got, "connection refused") || !strings.HasPrefix(got, "Unavailable") {
		t.Errorf("%q", got)
	}
}
