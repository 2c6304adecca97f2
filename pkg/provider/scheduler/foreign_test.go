package scheduler

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

// taken is a service in which the name is taken by a schedule with this description.
type taken struct {
	description string
	calls       []string
}

func (s *taken) Do(r *http.Request) (*http.Response, error) {
	s.calls = append(s.calls, strings.TrimSuffix(r.Method+" "+r.URL.Query().Get("groupName"), " "))
	out := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: r}
	answer := `{}`
	switch r.Method {
	case http.MethodPost:
		out.StatusCode, answer = http.StatusConflict, `{"Message":"Schedule nightly already exists."}`
		out.Header.Set("X-Amzn-Errortype", "ConflictException")
	case http.MethodGet:
		answer = fmt.Sprintf(`{"Name":"nightly","Arn":"arn:nightly","Description":%q,"ScheduleExpression":"rate(1 day)","FlexibleTimeWindow":{"Mode":"OFF"},"Target":{"Arn":"arn:t","RoleArn":"arn:r"}}`, s.description)
	}
	out.Body = io.NopCloser(strings.NewReader(answer))
	return out, nil
}

func (s *taken) provider() provider.Provider {
	return Service().Providers(direct.Env{
		Clock: clock.NewFake(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)),
		Config: func(string, string) aws.Config {
			return aws.Config{Region: "eu-west-1", HTTPClient: s, Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")}
		},
	})["AWS::Scheduler::Schedule"]
}

func nightly(with map[string]any) provider.Request {
	properties := map[string]any{
		"Name": "nightly", "ScheduleExpression": "rate(1 day)", "FlexibleTimeWindow": map[string]any{"Mode": "OFF"},
		"Target": map[string]any{"Arn": "arn:t", "RoleArn": "arn:r"},
	}
	for name, value := range with {
		properties[name] = value
	}
	return provider.Request{
		Account: "123456789012", Region: "eu-west-1", Stack: "App", LogicalID: "Nightly", Type: "AWS::Scheduler::Schedule",
		Properties: properties, Token: "token", Operation: "operation", Attempt: 1,
	}
}

func mark(operation, text string) string {
	c := &call{Request: nightly(nil)}
	c.Operation = operation
	return c.Marked(text, maxDescription)
}

// TestAScheduleOfSomebodyElseIsNeverAdopted: it may have the name, and everything else that the template says.
func TestAScheduleOfSomebodyElseIsNeverAdopted(t *testing.T) {
	for _, description := range []string{"", "every night", mark("another operation", "")} {
		for _, repeat := range []bool{false, true} {
			s := &taken{description: description}
			req := nightly(map[string]any{"Description": direct.Unmarked(description)})
			if req.Repeat = repeat; description == "" {
				delete(req.Properties, "Description")
			}
			if p, err := s.provider().Create(t.Context(), req); !provider.IsAlreadyExists(err) {
				t.Errorf("%q, repeated %v: %+v, %v", description, repeat, p, err)
			}
		}
	}
}

func TestAScheduleThatAnEarlierCallHasMadeIsFound(t *testing.T) {
	s := &taken{description: mark("operation", "every night")}
	req := nightly(map[string]any{"Description": "every night"})
	req.Repeat = true
	p, err := s.provider().Create(t.Context(), req)
	if err != nil || !p.Done || p.PhysicalID != "nightly" || p.Observed["Description"] != "every night" {
		t.Errorf("%+v, %v", p, err)
	}
	if got := strings.Join(s.calls, ", "); got != "GET default, GET default" {
		t.Errorf("the calls are %s", got)
	}
}

// TestAScheduleMovesOnlyOntoItself: the group may already have a schedule of the name.
func TestAScheduleMovesOnlyOntoItself(t *testing.T) {
	move := func(with map[string]any) provider.Request {
		req := nightly(with)
		req.PhysicalID, req.Previous = "nightly", nightly(nil).Properties
		req.Properties["GroupName"] = "new"
		return req
	}
	s := &taken{}
	if p, err := s.provider().Update(t.Context(), move(nil)); !provider.IsAlreadyExists(err) || strings.Contains(strings.Join(s.calls, " "), "DELETE") {
		t.Errorf("onto another one: %+v, %v, %v", p, err, s.calls)
	}
	s = &taken{description: mark("operation", "")}
	if p, err := s.provider().Update(t.Context(), move(nil)); err != nil || !p.Done || strings.Join(s.calls, ", ") != "POST, GET new, DELETE default, GET new" {
		t.Errorf("onto what an earlier call has made: %+v, %v, %v", p, err, s.calls)
	}
	s = &taken{}
	if _, err := s.provider().Update(t.Context(), move(map[string]any{"Description": strings.Repeat("x", maxDescription)})); !provider.IsImmutable(err) || len(s.calls) > 0 {
		t.Errorf("with no room for the mark: %v, %v", err, s.calls)
	}
}
