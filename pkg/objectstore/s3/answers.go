package s3

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/objectstore"
)

// A call is repeated at most attempts times; the waits grow from firstWait, 50 ms, to 1.6 s.
const (
	attempts  = 7
	firstWait = 50 * time.Millisecond
)

// repeat calls f again while again says so of its error.
func (s *Store) repeat(ctx context.Context, again func(error) bool, f func() error) error {
	clk := s.Clock
	if clk == nil {
		clk = clock.Real{}
	}
	for n := 0; ; n++ {
		err := f()
		if err == nil || n == attempts-1 || !again(err) {
			return err
		}
		// Between half the wait and all of it, so that contenders spread out.
		wait := firstWait << n
		wait = wait/2 + rand.N(wait/2)
		if sleepErr := clk.Sleep(ctx, wait); sleepErr != nil {
			return errors.Join(err, sleepErr)
		}
	}
}

// inFlight reports S3's refusal of a conditional request because of another one in flight: nothing has been
// decided, and the request may be repeated as it is.
func inFlight(err error) bool {
	return status(err) == http.StatusConflict &&
		(code(err) == "ConditionalRequestConflict" || code(err) == "OperationAborted")
}

// bodyError is a body that could not be read to its end.
type bodyError struct{ err error }

func (e *bodyError) Error() string { return "reading its body: " + e.err.Error() }
func (e *bodyError) Unwrap() error { return e.err }

func brokenBody(err error) bool {
	var broken *bodyError
	return errors.As(err, &broken) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
}

// translate gives an answer of S3 the error of the contract, keeping the cause.
func translate(err error) error {
	switch status(err) {
	case http.StatusPreconditionFailed:
		return fmt.Errorf("%w: %w", objectstore.ErrPrecondition, err)
	case http.StatusNotFound:
		// "NotFound" is what the SDK calls an answer without a body: that of a HEAD.
		if c := code(err); c == "NoSuchKey" || c == "NotFound" {
			return fmt.Errorf("%w: %w", objectstore.ErrNotFound, err)
		}
	}
	return err
}

func status(err error) int {
	var response *smithyhttp.ResponseError
	if errors.As(err, &response) {
		return response.HTTPStatusCode()
	}
	return 0
}

func code(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return ""
}

// decodeKey undoes the encoding that a listing says it has.
func decodeKey(key string, encoding types.EncodingType) (string, error) {
	if encoding != types.EncodingTypeUrl {
		return key, nil
	}
	decoded, err := url.QueryUnescape(key)
	if err != nil {
		return "", fmt.Errorf("decoding a key: %w", err)
	}
	return decoded, nil
}
