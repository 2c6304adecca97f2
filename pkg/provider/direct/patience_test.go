package direct

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

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
