package simulated_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/provider/providertest"
	"github.com/slipway-cdk/slipway/pkg/provider/simulated"
	"github.com/slipway-cdk/slipway/pkg/sandbox"
)

const (
	account = "123456789012"
	region  = "us-east-1"
)

func props(t testing.TB, text string) map[string]any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var out map[string]any
	if err := d.Decode(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

func serve(t testing.TB, opts sandbox.Options) (*sandbox.Sandbox, simulated.Client) {
	t.Helper()
	opts.Seed = 11
	s, err := sandbox.Open(context.Background(), t.TempDir(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	endpoint, err := s.Serve()
	if err != nil {
		t.Fatal(err)
	}
	shared := sandbox.NewHTTPClient()
	return s, func(account, region string) *sandbox.Client {
		return &sandbox.Client{Endpoint: endpoint, Account: account, Region: region, HTTP: shared}
	}
}

func TestDirectConforms(t *testing.T) {
	p := func(text string) map[string]any { return props(t, text) }
	const policy = `{"Version":"2012-10-17","Statement":[]}`
	cases := []providertest.Case{
		{
			Name: "inline policy", Named: true, Type: "AWS::IAM::Policy", Properties: p(`{"PolicyName":"p","PolicyDocument":` + policy + `,"Roles":["outside"]}`),
			Change: p(`{"PolicyName":"q","Users":["u"],"Roles":["outside","other"]}`), Optional: []string{"Roles"},
			Invalid: p(`{"Roles":"outside-of-everything"}`), Attributes: []string{"Id"},
		},
		{
			Name: "queue policy", Named: true, Type: "AWS::SQS::QueuePolicy", Properties: p(`{"Queues":["https://sqs.us-east-1.amazonaws.com/123456789012/q"],"PolicyDocument":` + policy + `}`),
			Change: p(`{"PolicyDocument":{"Version":"2012-10-17","Statement":[{"Effect":"Deny"}]}}`), Invalid: p(`{"Nope":1}`),
		},
		{
			Name: "topic policy", Named: true, Type: "AWS::SNS::TopicPolicy", Properties: p(`{"Topics":["arn:aws:sns:us-east-1:123456789012:t"],"PolicyDocument":` + policy + `}`),
			Change: p(`{"Topics":["arn:aws:sns:us-east-1:123456789012:u"]}`),
		},
		{
			Name: "access key", Type: "AWS::IAM::AccessKey", Properties: p(`{"UserName":"u","Status":"Active"}`),
			Change: p(`{"Status":"Inactive"}`), CreateOnly: p(`{"UserName":"v","Serial":"2"}`), Attributes: []string{"SecretAccessKey"},
		},
		{
			Name: "network ACL entry", Type: "AWS::EC2::NetworkAclEntry",
			Properties: p(`{"NetworkAclId":"acl-outside","RuleNumber":"100","Protocol":"-1","RuleAction":"allow","CidrBlock":"0.0.0.0/0"}`),
			Change:     p(`{"RuleAction":"deny","PortRange":{"From":"1","To":2}}`), CreateOnly: p(`{"RuleNumber":101}`), Invalid: p(`{"PortRange":"all"}`),
		},
		{
			Name: "records", Type: "AWS::Route53::RecordSetGroup", Properties: p(`{"HostedZoneId":"Z0000000000000","RecordSets":[{"Name":"a.example.com.","Type":"A","TTL":300}]}`),
			Change: p(`{"RecordSets":[{"Name":"b.example.com.","Type":"A","TTL":"60"}]}`), Optional: []string{"RecordSets"},
		},
	}
	for _, mode := range []struct {
		name  string
		speed float64
	}{{"operations take time", 1}, {"operations are instant", 0}} {
		t.Run(mode.name, func(t *testing.T) {
			clk := clock.NewFake(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
			_, client := serve(t, sandbox.Options{Speed: mode.speed, Clock: clk})
			providertest.Run(t, providertest.Subject{
				Open:    func(*testing.T) provider.Provider { return &simulated.Direct{Client: client, Clock: clk} },
				Account: account, Region: region, Pass: clk.Advance, Unsupported: "AWS::CloudFormation::Stack",
			}, cases)
		})
	}
}

func TestCustomConforms(t *testing.T) {
	s, client := serve(t, sandbox.Options{})
	look := func(t *testing.T, req provider.Request) (map[string]any, bool) {
		r, err := s.Show(context.Background(), sandbox.Caller{Account: req.Account, Region: req.Region}, req.Type, req.PhysicalID)
		return r.Properties, err == nil
	}
	const token = `"ServiceToken":"arn:aws:lambda:us-east-1:123456789012:function:outside"`
	providertest.Run(t, providertest.Subject{
		Open:    func(*testing.T) provider.Provider { return &simulated.Custom{Client: client} },
		Account: account, Region: region, Unsupported: "AWS::SQS::Queue", Look: look,
	}, []providertest.Case{
		{
			Name: "custom type", Type: "Custom::Thing", Properties: props(t, `{`+token+`,"Size":1,"On":true,"Deep":{"List":["a",{"b":"c"}]}}`),
			Change: props(t, `{"Size":"2","Deep":{"List":[]},"New":"x"}`), Optional: []string{"On"},
			Invalid: props(t, `{"ServiceToken":{"not":"text"}}`), Attributes: []string{"Arn", "Some.Thing"},
		},
		{
			Name: "the general type", Type: "AWS::CloudFormation::CustomResource", Properties: props(t, `{`+token+`}`),
			Change: props(t, `{"A":"b"}`), Attributes: []string{"Endpoint"},
		},
	})
}
