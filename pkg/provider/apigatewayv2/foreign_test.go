package apigatewayv2

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

// service answers calls by method and path, and notes them.
type service struct {
	answers map[string]string // "GET /v2/apis/a/routes"
	calls   []string
}

func (s *service) Do(r *http.Request) (*http.Response, error) {
	call := r.Method + " " + r.URL.Path
	s.calls = append(s.calls, call)
	answer, ok := s.answers[call]
	out := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: r}
	if !ok {
		out.StatusCode, answer = http.StatusConflict, `{"message":"Route with key GET /orders already exists for this API"}`
		out.Header.Set("X-Amzn-Errortype", "ConflictException")
	}
	out.Body = io.NopCloser(strings.NewReader(answer))
	return out, nil
}

func (s *service) provider(typeName string) provider.Provider {
	return Service().Providers(direct.Env{
		Clock: clock.NewFake(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)),
		Config: func(string, string) aws.Config {
			return aws.Config{Region: "eu-west-1", HTTPClient: s, Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")}
		},
	})[typeName]
}

func orders(repeat bool) provider.Request {
	return provider.Request{
		Account: "123456789012", Region: "eu-west-1", Stack: "App", LogicalID: "Orders", Type: "AWS::ApiGatewayV2::Route",
		Properties: map[string]any{"ApiId": "a", "RouteKey": "GET /orders", "Target": "integrations/i", "AuthorizationType": "NONE"},
		Token:      "token", Operation: "operation", Attempt: 1, Repeat: repeat,
	}
}

// TestARouteOfSomebodyElseIsNeverAdopted: it may have the key, and everything else that the template says.
func TestARouteOfSomebodyElseIsNeverAdopted(t *testing.T) {
	theirs := &call{Request: orders(true)}
	theirs.Operation = "another operation"
	for _, name := range []string{"", "list", theirs.Marked("", maxOperationName)} {
		for _, repeat := range []bool{false, true} {
			s := &service{answers: map[string]string{
				"GET /v2/apis/a/routes": fmt.Sprintf(`{"items":[{"routeId":"r","routeKey":"GET /orders","target":"integrations/i","authorizationType":"NONE","operationName":%q}]}`, name),
			}}
			if p, err := s.provider("AWS::ApiGatewayV2::Route").Create(t.Context(), orders(repeat)); !provider.IsAlreadyExists(err) {
				t.Errorf("operation name %q, repeated %v: %+v, %v", name, repeat, p, err)
			}
		}
	}
}

func TestARouteThatAnEarlierCallHasMadeIsFound(t *testing.T) {
	c := &call{Request: orders(true)}
	item := fmt.Sprintf(`{"routeId":"r","routeKey":"GET /orders","target":"integrations/i","authorizationType":"NONE","operationName":%q}`, c.Marked("", maxOperationName))
	s := &service{answers: map[string]string{"GET /v2/apis/a/routes": `{"items":[` + item + `]}`, "GET /v2/apis/a/routes/r": item}}
	p, err := s.provider("AWS::ApiGatewayV2::Route").Create(t.Context(), orders(true))
	if err != nil || !p.Done || p.PhysicalID != "r" || p.Observed["OperationName"] != nil {
		t.Errorf("%+v, %v", p, err)
	}
	if got := strings.Join(s.calls, ", "); got != "GET /v2/apis/a/routes, GET /v2/apis/a/routes/r" {
		t.Errorf("the calls are %s", got)
	}
}

// TestOnlyTheIntegrationWithTheMarkIsOurs: an API may have many that are the same.
func TestOnlyTheIntegrationWithTheMarkIsOurs(t *testing.T) {
	req := provider.Request{
		Account: "123456789012", Region: "eu-west-1", Stack: "App", LogicalID: "Orders", Type: "AWS::ApiGatewayV2::Integration",
		Properties: map[string]any{"ApiId": "a", "IntegrationType": "AWS_PROXY", "Description": "orders"},
		Token:      "token", Operation: "operation", Attempt: 1, Repeat: true,
	}
	ours, theirs := &call{Request: req}, &call{Request: req}
	theirs.Operation = "another operation"
	item := func(id string, c *call) string {
		return fmt.Sprintf(`{"integrationId":%q,"integrationType":"AWS_PROXY","description":%q}`, id, c.Marked("orders", maxDescription))
	}
	const same = `{"integrationId":"same","integrationType":"AWS_PROXY","description":"orders"}`
	s := &service{answers: map[string]string{
		"GET /v2/apis/a/integrations":      `{"items":[` + same + "," + item("theirs", theirs) + "," + item("ours", ours) + `]}`,
		"GET /v2/apis/a/integrations/ours": item("ours", ours),
	}}
	p, err := s.provider(req.Type).Create(t.Context(), req)
	if err != nil || !p.Done || p.PhysicalID != "ours" || p.Observed["Description"] != "orders" {
		t.Errorf("%+v, %v", p, err)
	}
}
