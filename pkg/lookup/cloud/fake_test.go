package cloud

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/lookup"
)

const (
	own     = "111122223333"
	foreign = "444455556666"
	region  = "eu-west-1"
)

// call is one request as the fake has understood it.
type call struct {
	action string
	key    string // the access key that has signed it
	region string // that it is signed for
	form   url.Values
	body   map[string]any
}

// fakeAWS speaks the wire of the services that are asked: Query (EC2, Elastic Load Balancing, STS), JSON (SSM, KMS,
// Cloud Control), and the REST of Route 53.
type fakeAWS struct {
	// answers gives, by action, the body of an answer, or a failure.
	answers map[string]func(call) (string, error)

	mu    sync.Mutex
	calls []call
}

// failure is an answer that is an error of AWS.
type failure struct{ code string }

func (f failure) Error() string { return f.code }

func fails(code string) func(call) (string, error) {
	return func(call) (string, error) { return "", failure{code} }
}

func says(body string) func(call) (string, error) {
	return func(call) (string, error) { return body, nil }
}

var signed = regexp.MustCompile(`Credential=([^/]+)/[^/]+/([^/]+)/`)

func (f *fakeAWS) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	c := call{form: r.URL.Query()}
	if m := signed.FindStringSubmatch(r.Header.Get("Authorization")); m != nil {
		c.key, c.region = m[1], m[2]
	}
	failed := "<ErrorResponse><Error><Code>%[1]s</Code><Message>told</Message></Error></ErrorResponse>"
	switch target := r.Header.Get("X-Amz-Target"); {
	case target != "":
		_, c.action, _ = strings.Cut(target, ".")
		_ = json.Unmarshal(b, &c.body)
		failed = `{"__type": "%[1]s", "message": "told"}`
	case strings.HasPrefix(r.URL.Path, "/2013-04-01/hostedzonesbyname"):
		c.action = "ListHostedZonesByName"
	case strings.HasPrefix(r.URL.Path, "/2013-04-01/hostedzone/"):
		c.action = "GetHostedZone"
		c.form.Set("id", strings.TrimPrefix(r.URL.Path, "/2013-04-01/hostedzone/"))
	default:
		c.form, _ = url.ParseQuery(string(b))
		c.action = c.form.Get("Action")
	}
	f.mu.Lock()
	f.calls = append(f.calls, c)
	answer := f.answers[c.action]
	f.mu.Unlock()
	if answer == nil {
		answer = fails("InvalidAction")
	}
	body, err := answer(c)
	var fail failure
	if errors.As(err, &fail) {
		if c.form.Get("Version") == ec2Version {
			failed = "<Response><Errors><Error><Code>%[1]s</Code><Message>told</Message></Error></Errors></Response>"
		}
		w.WriteHeader(http.StatusBadRequest)
		body = fmt.Sprintf(failed, fail.code)
	}
	_, _ = io.WriteString(w, body)
}

// ec2Version is the version of EC2's API: its errors are wrapped in their own way.
const ec2Version = "2016-11-15"

// actions are what was called, in order.
func (f *fakeAWS) actions() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	for _, c := range f.calls {
		out = append(out, c.action)
	}
	return out
}

// last is the latest call of an action.
func (f *fakeAWS) last(t *testing.T, action string) call {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range slices.Backward(f.calls) {
		if c.action == action {
			return c
		}
	}
	t.Fatalf("%s was not called", action)
	return call{}
}

// identityAnswer is STS's word on whose credentials those of the tests are.
const identityAnswer = `<GetCallerIdentityResponse><GetCallerIdentityResult><Arn>arn:aws-cn:iam::` + own + `:user/ann</Arn><Account>` + own + `</Account></GetCallerIdentityResult></GetCallerIdentityResponse>`

// world is a fake with lookups on it, and the notices that they have given.
type world struct {
	*fakeAWS
	*Lookups
	told []string
}

func newWorld(t *testing.T, answers map[string]func(call) (string, error)) *world {
	t.Helper()
	w := &world{fakeAWS: &fakeAWS{answers: answers}}
	if answers["GetCallerIdentity"] == nil {
		answers["GetCallerIdentity"] = says(identityAnswer)
	}
	server := httptest.NewServer(w.fakeAWS)
	t.Cleanup(server.Close)
	w.Lookups = New(Options{
		Config: func(context.Context) (aws.Config, error) {
			return aws.Config{
				Region: "us-west-2", BaseEndpoint: &server.URL, HTTPClient: server.Client(),
				Credentials: credentials.NewStaticCredentialsProvider("CALLER", "secret", ""),
			}, nil
		},
		Notice: func(text string) { w.told = append(w.told, text) },
	})
	return w
}

// ask looks up a query whose properties are JSON, in the caller's own account.
func (w *world) ask(t *testing.T, kind, props string) (any, error) {
	t.Helper()
	return w.askIn(t, own, kind, props)
}

func (w *world) askIn(t *testing.T, account, kind, props string) (any, error) {
	t.Helper()
	q := lookup.Query{Kind: kind, Account: account, Region: region}
	d := json.NewDecoder(strings.NewReader(props))
	d.UseNumber()
	if err := d.Decode(&q.Props); err != nil {
		t.Fatal(err)
	}
	return w.Lookup(t.Context(), q)
}

// wants compares an answer with JSON.
func wants(t *testing.T, got any, err error, want string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	var expected any
	d := json.NewDecoder(strings.NewReader(want))
	d.UseNumber()
	if err := d.Decode(&expected); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(expected, got); diff != "" {
		t.Error(diff)
	}
}

// refuses demands an error that says all of the texts, and what to do next.
func refuses(t *testing.T, got any, err error, texts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("it was answered: %v", got)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("the error is %q and does not say %q", err, text)
		}
	}
	var advice interface{ Next() string }
	if !errors.As(err, &advice) || advice.Next() == "" {
		t.Errorf("%q does not say what next", err)
	}
}
