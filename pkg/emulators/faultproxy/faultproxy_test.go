package faultproxy_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/slipway-cdk/slipway/pkg/emulators/faultproxy"
)

// service is a server that counts what reaches it.
type service struct {
	mu  sync.Mutex
	got []string
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	content, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.got = append(s.got, string(content))
	_, _ = io.WriteString(w, "the answer to "+string(content))
}

func (s *service) heard() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.got)
}

func start(t *testing.T) (*service, *faultproxy.Proxy, *http.Client) {
	t.Helper()
	s := new(service)
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	p, err := faultproxy.Start(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return s, p, &http.Client{Transport: p.Transport(transport)}
}

// post is one call; without an idempotency key net/http does not repeat it.
func post(t *testing.T, c *http.Client, to, content string) (status int, answer string, err error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, to, io.NopCloser(&once{content: content}))
	if err != nil {
		t.Fatal(err)
	}
	response, err := c.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	return response.StatusCode, string(raw), err
}

// once can be read once, so that no transport sends it again.
type once struct {
	content string
	done    bool
}

func (o *once) Read(p []byte) (int, error) {
	if o.done {
		return 0, io.EOF
	}
	o.done = true
	return copy(p, o.content), io.EOF
}

func nth(n int, f faultproxy.Fault) func(faultproxy.Call) faultproxy.Fault {
	return func(c faultproxy.Call) faultproxy.Fault {
		if c.N == n {
			return f
		}
		return faultproxy.None
	}
}

func TestEachFaultReachesTheServiceAsOftenAsItSays(t *testing.T) {
	for _, test := range []struct {
		fault  faultproxy.Fault
		status int  // 0: there is no answer
		half   bool // there is some of one
		heard  []string
	}{
		{fault: faultproxy.None, status: 200, heard: []string{"one", "two"}},
		{fault: faultproxy.Throttled, status: 400, heard: []string{"two"}},
		{fault: faultproxy.Failing, status: 500, heard: []string{"two"}},
		{fault: faultproxy.Unavailable, status: 503, heard: []string{"two"}},
		{fault: faultproxy.Lost, heard: []string{"one", "two"}},
		{fault: faultproxy.Held, heard: []string{"two"}},
		{fault: faultproxy.Late, heard: []string{"two", "one"}},
		{fault: faultproxy.Twice, status: 200, heard: []string{"one", "two", "one"}},
		{fault: faultproxy.Cut, status: 200, half: true, heard: []string{"one", "two"}},
	} {
		t.Run(string(test.fault), func(t *testing.T) {
			s, p, c := start(t)
			p.Use(nth(1, test.fault))
			status, answer, err := post(t, c, p.URL(), "one")
			switch {
			case status != test.status:
				t.Errorf("the first call is answered with %d, %v", status, err)
			case test.half && (!errors.Is(err, io.ErrUnexpectedEOF) || answer != "the answ"):
				t.Errorf("half an answer is %q, %v", answer, err)
			case !test.half && (err == nil) != (test.status != 0):
				t.Errorf("the first call: %v", err)
			}
			if _, answer, err := post(t, c, p.URL(), "two"); err != nil || answer != "the answer to two" {
				t.Errorf("the second call: %q, %v", answer, err)
			}
			p.Use(nil)
			if heard := s.heard(); !slices.Equal(heard, test.heard) {
				t.Errorf("the service has heard %q, want %q", heard, test.heard)
			}
			if err := p.Err(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestWhatIsLateArrivesAtTheLatestWithTheNextRule(t *testing.T) {
	s, p, c := start(t)
	p.Use(nth(1, faultproxy.Late))
	if _, _, err := post(t, c, p.URL(), "one"); err == nil {
		t.Error("a late call is answered")
	}
	if heard := s.heard(); len(heard) != 0 {
		t.Errorf("the service has heard %q", heard)
	}
	p.Use(nil)
	if heard := s.heard(); !slices.Equal(heard, []string{"one"}) {
		t.Errorf("the service has heard %q", heard)
	}
}

func TestEveryServiceRefusesInItsOwnWords(t *testing.T) {
	_, p, c := start(t)
	cfg := aws.Config{
		Region: "us-east-1", BaseEndpoint: aws.String(p.URL()), HTTPClient: c,
		Credentials: credentials.NewStaticCredentialsProvider("testing", "testing", ""),
		Retryer:     func() aws.Retryer { return aws.NopRetryer{} },
	}
	for _, test := range []struct {
		service, operation, throttled, failing string
		call                                   func(context.Context) error
	}{
		{"sqs", "ListQueues", "RequestThrottled", "InternalFailure", func(ctx context.Context) error {
			_, err := sqs.NewFromConfig(cfg).ListQueues(ctx, &sqs.ListQueuesInput{})
			return err
		}},
		{"iam", "ListRoles", "Throttling", "InternalFailure", func(ctx context.Context) error {
			_, err := iam.NewFromConfig(cfg).ListRoles(ctx, &iam.ListRolesInput{})
			return err
		}},
		{"ec2", "DescribeVpcs", "RequestLimitExceeded", "InternalError", func(ctx context.Context) error {
			_, err := ec2.NewFromConfig(cfg).DescribeVpcs(ctx, &ec2.DescribeVpcsInput{})
			return err
		}},
		{"s3", "GET /", "SlowDown", "InternalError", func(ctx context.Context) error {
			_, err := s3.NewFromConfig(cfg).ListBuckets(ctx, &s3.ListBucketsInput{})
			return err
		}},
		{"lambda", "GET /2015-03-31/functions", "TooManyRequestsException", "ServiceException", func(ctx context.Context) error {
			_, err := lambda.NewFromConfig(cfg).ListFunctions(ctx, &lambda.ListFunctionsInput{})
			return err
		}},
		{"dynamodb", "ListTables", "ThrottlingException", "InternalFailure", func(ctx context.Context) error {
			_, err := dynamodb.NewFromConfig(cfg).ListTables(ctx, &dynamodb.ListTablesInput{})
			return err
		}},
		{"monitoring", "ListDashboards", "ThrottlingException", "InternalFailure", func(ctx context.Context) error {
			_, err := cloudwatch.NewFromConfig(cfg).ListDashboards(ctx, &cloudwatch.ListDashboardsInput{})
			return err
		}},
	} {
		for fault, want := range map[faultproxy.Fault]string{faultproxy.Throttled: test.throttled, faultproxy.Failing: test.failing} {
			p.Use(func(faultproxy.Call) faultproxy.Fault { return fault })
			err := test.call(t.Context())
			var api smithy.APIError
			var response *smithyhttp.ResponseError
			if !errors.As(err, &api) || api.ErrorCode() != want || !errors.As(err, &response) {
				t.Errorf("%s, %s: %v", test.service, fault, err)
			}
			calls := p.Calls()
			if want := (faultproxy.Call{N: 1, Service: test.service, Operation: test.operation, Fault: fault}); len(calls) != 1 || calls[0] != want {
				t.Errorf("the calls are %+v, want %+v", calls, want)
			}
		}
	}
}
