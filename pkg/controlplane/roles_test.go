package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	cc "github.com/aws/aws-sdk-go-v2/service/cloudcontrol"

	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// tokenService is STS, and Cloud Control and S3 beside it. It denies the first calls, as IAM does for a new role, and gives
// each session an access key of its own.
type tokenService struct {
	clock   *clock.Fake
	denials int
	asked   []url.Values
	// signers are the access keys of the callers of other services.
	signers []string
	// owners are the accounts whose buckets were meant.
	owners []string
}

func (s *tokenService) RoundTrip(r *http.Request) (*http.Response, error) {
	var b []byte
	if r.Body != nil {
		var err error
		if b, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	status, body := http.StatusOK, `{"ResourceDescription":{"Identifier":"q","Properties":"{}"}}`
	if strings.HasPrefix(r.URL.Host, "sts.") {
		form, err := url.ParseQuery(string(b))
		if err != nil {
			return nil, err
		}
		s.asked = append(s.asked, form)
		if len(s.asked) <= s.denials {
			status, body = http.StatusForbidden, `<ErrorResponse><Error><Code>AccessDenied</Code><Message>User: someone is not authorized</Message></Error></ErrorResponse>`
		} else {
			body = fmt.Sprintf(`<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>ASIA%d</AccessKeyId><SecretAccessKey>s</SecretAccessKey>`+
				`<SessionToken>t</SessionToken><Expiration>%s</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>`, len(s.asked), time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
		}
	} else {
		_, signer, _ := strings.Cut(r.Header.Get("Authorization"), "Credential=")
		signer, _, _ = strings.Cut(signer, "/")
		s.signers = append(s.signers, signer)
		if owner := r.Header.Get("X-Amz-Expected-Bucket-Owner"); owner != "" {
			s.owners = append(s.owners, owner)
		}
	}
	return &http.Response{StatusCode: status, Header: http.Header{"X-Amz-Bucket-Region": {"eu-west-1"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r, ProtoMajor: 1, ProtoMinor: 1}, nil
}

// theirs is an account whose role this control plane assumes.
const theirs = "222222222222"

func rolesWorld(denials int) (*Accounts, *tokenService) {
	s := &tokenService{clock: clock.NewFake(time.Unix(1e9, 0)), denials: denials}
	s.clock.AutoAdvance = true
	return &Accounts{Own: "111111111111", Clock: s.clock, Base: aws.Config{
		Region: "eu-west-1", Credentials: credentials.NewStaticCredentialsProvider("AKID", "secret", ""),
		HTTPClient: &http.Client{Transport: s}, Retryer: func() aws.Retryer { return aws.NopRetryer{} },
	}}, s
}

func acting(ctx context.Context, runID, stack string) context.Context {
	return run.WithActing(ctx, run.Acting{
		RunID: runID, Stack: runlog.StackRef{Account: theirs, Region: "eu-west-1", Name: stack},
		Role: run.Role{ARN: "arn:aws:iam::" + theirs + ":role/deployers/slipway-execution-web", ExternalID: "acme-7"},
	})
}

func get(ctx context.Context, a *Accounts, account string) error {
	_, err := a.cloudControl(account, "eu-west-1").GetResource(ctx, &cc.GetResourceInput{TypeName: aws.String("AWS::SQS::Queue"), Identifier: aws.String("q")})
	return err
}

func TestAStackIsWorkedOnUnderItsRole(t *testing.T) {
	a, s := rolesWorld(0)
	web, api := acting(t.Context(), "run-1", "Web"), acting(t.Context(), "run-1", "Api")
	for _, ctx := range []context.Context{web, web, api, web} {
		if err := get(ctx, a, theirs); err != nil {
			t.Fatal(err)
		}
	}
	if err := get(t.Context(), a, a.Own); err != nil {
		t.Fatal(err)
	}
	// One client, and each stack's own session, assumed once.
	if got := strings.Join(s.signers, " "); got != "ASIA1 ASIA1 ASIA2 ASIA1 AKID" {
		t.Errorf("the calls were signed by %s", got)
	}
	if len(s.asked) != 2 {
		t.Fatalf("STS was asked %d times", len(s.asked))
	}
	for name, want := range map[string]string{
		"Action": "AssumeRole", "RoleArn": "arn:aws:iam::222222222222:role/deployers/slipway-execution-web", "ExternalId": "acme-7", "RoleSessionName": "run-1",
		"DurationSeconds": "3600", "Tags.member.1.Key": "slipway:stack", "Tags.member.1.Value": "Web", "Tags.member.2.Key": "slipway:run", "Tags.member.2.Value": "run-1",
	} {
		if got := s.asked[0].Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if err := get(acting(t.Context(), "run-2", "Web"), a, theirs); err != nil || len(s.asked) != 3 {
		t.Errorf("another run has not its own session: %v", err)
	}
}

func TestASessionIsAssumedAgainBeforeItEnds(t *testing.T) {
	a, s := rolesWorld(0)
	ctx := acting(t.Context(), "run-1", "Web")
	if err := get(ctx, a, theirs); err != nil {
		t.Fatal(err)
	}
	a.roles.session(run.ActingOf(ctx)).cache.Invalidate()
	if err := get(ctx, a, theirs); err != nil || s.signers[1] != "ASIA2" {
		t.Errorf("%v: the second call was signed by %s", err, s.signers[1])
	}
	for i := range maxSessions + 5 {
		a.roles.session(run.ActingOf(acting(t.Context(), fmt.Sprint("run-", i+10), "Web")))
	}
	if len(a.roles.kept) != maxSessions || len(a.roles.order) != maxSessions {
		t.Errorf("%d sessions are kept", len(a.roles.kept))
	}
}

func TestARoleThatIsNewIsWaitedFor(t *testing.T) {
	a, s := rolesWorld(3)
	began := s.clock.Now()
	if err := get(acting(t.Context(), "run-1", "Web"), a, theirs); err != nil {
		t.Fatal(err)
	}
	if waited := s.clock.Now().Sub(began); waited != 7*time.Second || s.signers[0] != "ASIA4" {
		t.Errorf("it waited %s and signed with %v", waited, s.signers)
	}
}

func TestARoleThatIsDeniedIsARefusalWithANextStep(t *testing.T) {
	a, s := rolesWorld(1000)
	ctx := acting(t.Context(), "run-1", "Web")
	p, _, err := a.Providers(s.clock, nil).For("AWS::Athena::WorkGroup", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Read(ctx, provider.Request{Type: "AWS::Athena::WorkGroup", LogicalID: "W", PhysicalID: "w", Account: theirs, Region: "eu-west-1"})
	var denied *RoleError
	if !provider.IsAccessDenied(err) || provider.IsUndecided(err) || !errors.As(err, &denied) {
		t.Fatalf("the error is %v", err)
	}
	for _, want := range []string{"slipway-execution-web", theirs, "sts:TagSession", "external ID", "ExecutionRoleNames"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not tell of %q: %v", want, err)
		}
	}
	if len(s.signers) != 0 {
		t.Error("Cloud Control was called")
	}
	asked := len(s.asked)
	if asked != 1+len(patience()) {
		t.Errorf("STS was asked %d times", asked)
	}
	// The next calls do not wait: they ask once, and take STS's word.
	if err := get(ctx, a, theirs); err == nil || len(s.asked) != asked+1 {
		t.Errorf("STS was asked %d times more: %v", len(s.asked)-asked, err)
	}
	problem, err := a.Check(ctx, theirs)
	if err != nil || problem == nil || !strings.Contains(problem.Detail, "slipway-execution-web") || problem.Next == "" {
		t.Errorf("%+v: %v", problem, err)
	}
}

func TestWhatNeedsNoSTSIsToldAtOnce(t *testing.T) {
	a, s := rolesWorld(0)
	if problem, err := a.Check(t.Context(), a.Own); problem != nil || err != nil {
		t.Errorf("%v: %v", problem, err)
	}
	for name, ctx := range map[string]context.Context{"no role": t.Context(), "a role of another account": acting(t.Context(), "run-1", "Web")} {
		problem, err := a.Check(ctx, "333333333333")
		if err != nil || problem == nil || !strings.Contains(problem.Detail, "333333333333") || !strings.Contains(problem.Next, "333333333333") {
			t.Errorf("%s: %+v: %v", name, problem, err)
		}
	}
	if len(s.asked) != 0 {
		t.Errorf("STS was asked: %v", s.asked)
	}
}

func TestAFailureOfSTSIsNotADenial(t *testing.T) {
	a, _ := rolesWorld(0)
	a.Base.HTTPClient = &http.Client{Transport: &service{answers: map[string]reply{"POST sts.eu-west-1.amazonaws.com/": {500, nil, `<ErrorResponse><Error><Code>InternalFailure</Code></Error></ErrorResponse>`}}}}
	problem, err := a.Check(acting(t.Context(), "run-1", "Web"), theirs)
	var denied *RoleError
	if err == nil || problem != nil || errors.As(err, &denied) || !strings.Contains(err.Error(), "slipway-execution-web") {
		t.Errorf("%+v: %v", problem, err)
	}
}

func TestAssetsGoToTheStacksAccountUnderItsRole(t *testing.T) {
	a, s := rolesWorld(0)
	ctx := acting(t.Context(), "run-1", "Web")
	there, err := a.AssetBuckets().Exists(ctx, "cdk-hnb659fds-assets-"+theirs+"-eu-west-1", "key.zip")
	// The bucket, then the object.
	if err != nil || !there || len(s.asked) != 1 || strings.Join(s.signers, " ") != "ASIA1 ASIA1" || strings.Join(s.owners, " ") != theirs+" "+theirs {
		t.Errorf("%v: STS was asked %d times, S3's callers are %v, the owners %v", err, len(s.asked), s.signers, s.owners)
	}
}
