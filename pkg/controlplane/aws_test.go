package controlplane

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	cc "github.com/aws/aws-sdk-go-v2/service/cloudcontrol"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/secret"
)

// service answers the calls of every client: by host and, where there is one, target.
type service struct {
	mu      sync.Mutex
	asked   []string
	answers map[string]reply
}

type reply struct {
	status int
	header map[string]string
	body   string
}

func (s *service) RoundTrip(r *http.Request) (*http.Response, error) {
	body := []byte{}
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	name := r.Method + " " + r.URL.Host + r.URL.Path
	if target := r.Header.Get("X-Amz-Target"); target != "" {
		name = r.URL.Host + " " + target
	}
	if owner := r.Header.Get("X-Amz-Expected-Bucket-Owner"); owner != "" {
		name += " of " + owner
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, name+" "+string(body))
	a, ok := s.answers[name]
	if !ok {
		return nil, fmt.Errorf("nobody answers %s", name)
	}
	header := http.Header{}
	for k, v := range a.header {
		header.Set(k, v)
	}
	return &http.Response{
		StatusCode: a.status, Header: header, Body: io.NopCloser(strings.NewReader(a.body)), Request: r,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}, nil
}

func (s *service) config() aws.Config {
	return aws.Config{
		Region: "eu-west-1", Credentials: credentials.NewStaticCredentialsProvider("AKID", "secret", ""),
		HTTPClient: &http.Client{Transport: s}, Retryer: func() aws.Retryer { return aws.NopRetryer{} },
	}
}

// plane is a plane in account 111111111111 and eu-west-1 whose calls are answered.
func plane(t *testing.T, answers map[string]reply) (*Plane, *service) {
	t.Helper()
	s := &service{answers: answers}
	return New(s.config(), environment(t, nil), nil), s
}

func TestZonesAreSortedAndOfTheStacksRegion(t *testing.T) {
	p, s := plane(t, map[string]reply{"POST ec2.us-west-2.amazonaws.com/": {200, nil, `<DescribeAvailabilityZonesResponse><availabilityZoneInfo>` +
		`<item><zoneName>us-west-2b</zoneName></item><item><zoneName>us-west-2a</zoneName></item></availabilityZoneInfo></DescribeAvailabilityZonesResponse>`}})
	zones, err := p.Engine.Facts.Zones(t.Context(), "111111111111", "us-west-2")
	if err != nil || !slices.Equal(zones, []string{"us-west-2a", "us-west-2b"}) {
		t.Fatalf("Zones = %v, %v", zones, err)
	}
	if !strings.Contains(s.asked[0], "availability-zone") {
		t.Errorf("local zones are not left out: %s", s.asked[0])
	}
}

func TestSSMParametersAreReadAndSecretOnesAreNot(t *testing.T) {
	const call = "ssm.eu-west-1.amazonaws.com AmazonSSM.GetParameter"
	p, _ := plane(t, map[string]reply{call: {200, nil, `{"Parameter":{"Type":"String","Value":"ami-1"}}`}})
	if v, err := p.Engine.Facts.SSMParameter(t.Context(), "111111111111", "eu-west-1", "/ami"); err != nil || v != "ami-1" {
		t.Fatalf("SSMParameter = %q, %v", v, err)
	}
	p, _ = plane(t, map[string]reply{call: {200, nil, `{"Parameter":{"Type":"SecureString","Value":"AQICsecret"}}`}})
	if v, err := p.Engine.Facts.SSMParameter(t.Context(), "111111111111", "eu-west-1", "/password"); err == nil || strings.Contains(err.Error(), "AQICsecret") {
		t.Fatalf("SSMParameter of a SecureString = %q, %v", v, err)
	}
	p, _ = plane(t, map[string]reply{call: {400, nil, `{"__type":"ParameterNotFound"}`}})
	if _, err := p.Engine.Facts.SSMParameter(t.Context(), "111111111111", "eu-west-1", "/absent"); err == nil || !strings.Contains(err.Error(), "/absent") {
		t.Fatalf("error is %v", err)
	}
}

func TestDynamicReferencesAreReadInTheStacksRegion(t *testing.T) {
	p, _ := plane(t, map[string]reply{
		"ssm.us-west-2.amazonaws.com AmazonSSM.GetParameter":                   {200, nil, `{"Parameter":{"Type":"SecureString","Value":"v"}}`},
		"secretsmanager.us-west-2.amazonaws.com secretsmanager.GetSecretValue": {200, nil, `{"SecretString":"s"}`},
	})
	in := secret.Where{Account: "111111111111", Region: "us-west-2"}
	if v, err := p.Engine.Secrets.Parameter(t.Context(), in, "/password", ""); err != nil || v.Value != "v" || !v.Secure {
		t.Errorf("Parameter = %+v, %v", v, err)
	}
	if s, err := p.Engine.Secrets.SecretString(t.Context(), in, "db", "", ""); err != nil || s != "s" {
		t.Errorf("SecretString = %q, %v", s, err)
	}
	in.Account = "222222222222"
	if _, err := p.Engine.Secrets.SecretString(t.Context(), in, "db", "", ""); err == nil {
		t.Error("a secret of another account was read")
	}
}

func TestThereIsAVaultIfThereIsAKey(t *testing.T) {
	if p, _ := plane(t, nil); p.Engine.Vault != nil {
		t.Error("there is a vault without a key")
	}
	env := environment(t, map[string]string{VaultKeyVariable: "alias/slipway"})
	if p := New((&service{}).config(), env, nil); p.Engine.Vault == nil || p.Engine.Vault.Sealer.(*secret.KMS).KeyID != "alias/slipway" {
		t.Error("there is no vault under the key")
	}
}

func TestAnotherAccountIsRefusedWithoutACall(t *testing.T) {
	p, s := plane(t, nil)
	_, zonesErr := p.Engine.Facts.Zones(t.Context(), "222222222222", "eu-west-1")
	_, ssmErr := p.Engine.Facts.SSMParameter(t.Context(), "222222222222", "eu-west-1", "/ami")
	_, ccErr := (&Accounts{Base: aws.Config{Region: "eu-west-1"}, Own: "111111111111"}).cloudControl("222222222222", "eu-west-1").
		GetResource(t.Context(), &cc.GetResourceInput{TypeName: aws.String("AWS::SQS::Queue"), Identifier: aws.String("q")})
	for _, err := range []error{zonesErr, ssmErr, ccErr} {
		if err == nil || !strings.Contains(err.Error(), "222222222222") || !strings.Contains(err.Error(), "111111111111") {
			t.Errorf("error is %v", err)
		}
	}
	if len(s.asked) != 0 {
		t.Errorf("it was called: %v", s.asked)
	}
}

func TestCloudControlIsAskedInTheStacksRegionByOneClient(t *testing.T) {
	p, s := plane(t, map[string]reply{"cloudcontrolapi.ap-south-1.amazonaws.com CloudApiService.GetResource": {200, nil,
		`{"TypeName":"AWS::Athena::WorkGroup","ResourceDescription":{"Identifier":"q","Properties":"{\"Name\":\"q\"}"}}`}})
	prov, route, err := p.Engine.Providers.For("AWS::Athena::WorkGroup", "", nil)
	if err != nil || route != provider.RouteCloudControl {
		t.Fatalf("the provider of a work group: %s, %v", route, err)
	}
	req := provider.Request{Type: "AWS::Athena::WorkGroup", LogicalID: "W", PhysicalID: "q", Account: "111111111111", Region: "ap-south-1"}
	if _, err := prov.Read(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	if len(s.asked) != 1 {
		t.Errorf("calls are %v", s.asked)
	}
	a := &Accounts{Own: "1"}
	if a.cloudControl("1", "r") != a.cloudControl("1", "r") || a.cloudControl("1", "r") == a.cloudControl("1", "s") {
		t.Error("there is not one client for each account and region")
	}
}

func TestATypeThatCloudControlCannotProvisionIsRefused(t *testing.T) {
	p, _ := plane(t, nil)
	for _, typeName := range []string{"AWS::No::Such", "AWS::CloudFormation::Stack"} {
		if _, _, err := p.Engine.Providers.For(typeName, "", nil); err == nil {
			t.Errorf("%s has a provider", typeName)
		}
	}
}

func TestAnExecutionRunsAsStepFunctionsSays(t *testing.T) {
	const call = "states.eu-west-1.amazonaws.com AWSStepFunctions.DescribeExecution"
	for _, c := range []struct {
		name    string
		reply   reply
		running bool
		failed  bool
	}{
		{"running", reply{200, nil, `{"status":"RUNNING"}`}, true, false},
		{"to be redriven", reply{200, nil, `{"status":"PENDING_REDRIVE"}`}, true, false},
		{"succeeded", reply{200, nil, `{"status":"SUCCEEDED"}`}, false, false},
		{"aborted", reply{200, nil, `{"status":"ABORTED"}`}, false, false},
		{"unknown", reply{400, nil, `{"__type":"com.amazonaws.swf.service.v2.model#ExecutionDoesNotExist"}`}, false, false},
		{"not to be seen", reply{400, nil, `{"__type":"AccessDeniedException"}`}, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, s := plane(t, map[string]reply{call: c.reply})
			running, err := p.Engine.Executions.Running(t.Context(), "App-deploy-1")
			if running != c.running || (err != nil) != c.failed {
				t.Fatalf("Running = %t, %v", running, err)
			}
			if !strings.Contains(s.asked[0], "execution:slipway-run:App-deploy-1") || !strings.Contains(s.asked[0], "METADATA_ONLY") {
				t.Errorf("it asks %s", s.asked[0])
			}
		})
	}
	p, _ := plane(t, nil)
	if running, err := p.Engine.Executions.Running(t.Context(), ""); running || err != nil {
		t.Errorf("an execution without a name: %t, %v", running, err)
	}
	if !p.Engine.Executions.HolderAlive(t.Context(), "somebody") {
		t.Error("a holder that nobody can ask about counts as dead")
	}
}

func TestAssetsGoToTheBucketsRegionIfTheAccountOwnsIt(t *testing.T) {
	const owned = " of 111111111111"
	west := map[string]string{"X-Amz-Bucket-Region": "us-west-2"}
	s := &service{answers: map[string]reply{
		"HEAD assets.s3.eu-west-1.amazonaws.com/" + owned:        {301, west, ""},
		"HEAD assets.s3.us-west-2.amazonaws.com/new.zip" + owned: {404, nil, ""},
		"HEAD assets.s3.us-west-2.amazonaws.com/old.zip" + owned: {200, nil, ""},
		"PUT assets.s3.us-west-2.amazonaws.com/new.zip" + owned:  {200, nil, ""},
		"HEAD foreign.s3.eu-west-1.amazonaws.com/" + owned:       {403, west, ""},
	}}
	b := &assetBuckets{aws: &Accounts{Base: s.config(), Own: "111111111111"}}
	ctx := context.Background()
	for key, want := range map[string]bool{"new.zip": false, "old.zip": true} {
		if got, err := b.Exists(ctx, "assets", key); err != nil || got != want {
			t.Errorf("Exists(%s) = %t, %v", key, got, err)
		}
	}
	if err := b.Put(ctx, "assets", "new.zip", bytes.NewReader([]byte("zip")), 3); err != nil {
		t.Error(err)
	}
	if n := len(slices.DeleteFunc(slices.Clone(s.asked), func(a string) bool { return !strings.HasPrefix(a, "HEAD assets.s3.eu-west-1") })); n != 1 {
		t.Errorf("the region was asked for %d times", n)
	}
	if _, err := b.Exists(ctx, "foreign", "k"); err == nil {
		t.Error("a bucket of another account was looked into")
	}
	if err := b.Put(ctx, "assets", "k", nil, maxAsset+1); err == nil {
		t.Error("an asset that is too large was accepted")
	}
}
