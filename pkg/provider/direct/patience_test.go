package direct

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go/middleware"

	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/provider"
)

// silent is a network that says nothing.
type silent struct{ calls int }

func (s *silent) Do(r *http.Request) (*http.Response, error) {
	s.calls++
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func TestACallThatIsNeverAnsweredIsGivenUpAndRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := new(silent)
		service := Service[*sqs.Client]{
			New: func(cfg aws.Config) *sqs.Client { return sqs.NewFromConfig(cfg) },
			Kinds: []Kind[*sqs.Client]{{
				Type: "AWS::SQS::Queue", Identity: ByName,
				Delete: func(ctx context.Context, c *Call[*sqs.Client]) error {
					_, err := c.Client.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: aws.String("https://queue")})
					return err
				},
			}},
		}
		p := service.Providers(Env{Clock: clock.Real{}, Config: func(string, string) aws.Config {
			return aws.Config{Region: "eu-west-1", HTTPClient: network, Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")}
		}})["AWS::SQS::Queue"]
		begun := time.Now()
		progress, err := p.Delete(t.Context(), provider.Request{Type: "AWS::SQS::Queue", PhysicalID: "https://queue"})
		if err != nil || progress.Done || progress.Handle == nil {
			t.Errorf("a call without an answer is %+v, %v: it is to be made again", progress, err)
		}
		if took := time.Since(begun); took != patience || network.calls != 1 {
			t.Errorf("%d calls were given up after %s", network.calls, took)
		}
	})
}

// streaming answers with a body that can be read as long as its request stands, as a connection's can.
type streaming struct{}

type body struct{ ctx context.Context }

func (streaming) Do(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(body{r.Context()})}, nil
}

func (b body) Read(p []byte) (int, error) {
	if err := context.Cause(b.ctx); err != nil {
		return 0, err
	}
	return copy(p, "text"), io.EOF
}

func TestAnAnswerCanBeReadAfterTheCallHasReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := s3.NewFromConfig(aws.Config{
			Region: "eu-west-1", HTTPClient: streaming{}, Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""),
			APIOptions: []func(*middleware.Stack) error{impatient},
		})
		get := func() io.Reader {
			out, err := client.GetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String("bucket"), Key: aws.String("key")})
			if err != nil {
				t.Fatal(err)
			}
			return out.Body
		}
		if text, err := io.ReadAll(get()); err != nil || string(text) != "text" {
			t.Errorf("the answer reads %q, %v", text, err)
		}
		late := get()
		time.Sleep(patience) // of the test's own clock
		synctest.Wait()
		if _, err := io.ReadAll(late); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("an answer that is not read in time ends with %v", err)
		}
	})
}
