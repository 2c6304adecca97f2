package conformance

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/provider/direct"
	"github.com/slipway-cdk/slipway/pkg/provider/services"
	"github.com/slipway-cdk/slipway/pkg/provider/simulated"
	"github.com/slipway-cdk/slipway/pkg/sandbox"
	"github.com/slipway-cdk/slipway/pkg/schema"
)

// sandboxLab is a lab whose resources are the sandbox's.
func sandboxLab(t *testing.T) *lab {
	t.Helper()
	clk := clock.NewFake(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	s, err := sandbox.Open(context.Background(), t.TempDir(), sandbox.Options{Seed: 5, Clock: clk})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	endpoint, err := s.Serve()
	if err != nil {
		t.Fatal(err)
	}
	shared := sandbox.NewHTTPClient()
	t.Cleanup(shared.CloseIdleConnections)
	one := provider.Named{Provider: &simulated.Direct{Clock: clk, Client: func(account, region string) *sandbox.Client {
		return &sandbox.Client{Endpoint: endpoint, Account: account, Region: region, HTTP: shared}
	}}}
	all := map[string]provider.Provider{}
	for _, name := range schema.Names() {
		all[name] = one
	}
	l := &lab{
		clock: clk, wire: new(direct.Recorder), account: "123456789012", region: "us-east-1", seed: "5eed5eed",
		breathe: func(time.Duration) {},
		open:    func() map[string]provider.Provider { return all },
	}
	l.plain = map[string]func(map[string]any) (string, func() error, error){
		// Objects in buckets are nothing that the sandbox has.
		"Archive": func(properties map[string]any) (string, func() error, error) {
			return direct.Text(properties["BucketName"]), func() error { return nil }, nil
		},
		"Definition": func(properties map[string]any) (string, func() error, error) {
			return direct.Text(properties["Key"]), func() error { return nil }, nil
		},
		"Stream": func(properties map[string]any) (string, func() error, error) {
			arn := "arn:aws:dynamodb:us-east-1:123456789012:table/" + direct.Text(properties["TableName"]) + "/stream/2026-03-01T12:00:00.000"
			return arn, func() error { return nil }, nil
		},
		"NextVersion": func(properties map[string]any) (string, func() error, error) {
			one := &life{lab: l}
			r, err := one.make(one.request("AWS::Lambda::Version", "Next", properties))
			if err != nil {
				return "", nil, err
			}
			return direct.Text(r.attributes["Version"]), func() error {
				_, err := l.settle(all["AWS::Lambda::Version"].Delete, one.removal("AWS::Lambda::Version", r))
				return err
			}, nil
		},
	}
	return l
}

// implied are properties that the plain calls at the emulators give what cases need of these types.
var implied = map[string]map[string]any{
	"AWS::ApiGatewayV2::Authorizer": {"AuthorizerType": "REQUEST", "Name": "implied"},
	"AWS::EC2::PrefixList":          {"AddressFamily": "IPv4", "PrefixListName": "implied"},
	"AWS::EC2::VPNGateway":          {"Type": "ipsec.1"},
}

// TestTheSandboxAnswersAsTheDirectProviders: physical ids, Ref and attributes of every direct type have in the sandbox the shapes that are
// recorded of its direct provider.
func TestTheSandboxAnswersAsTheDirectProviders(t *testing.T) {
	cases, err := Cases()
	if err != nil {
		t.Fatal(err)
	}
	recorded, err := readShapes()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range services.Coverage() {
		if !slices.ContainsFunc(cases, func(k Case) bool { return k.Type == c.Type && len(recorded[k.Name]) > 0 }) {
			t.Errorf("no shape of %s is recorded: run TestShapes at the emulators with SLIPWAY_TEST_UPDATE=1", c.Type)
		}
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			if len(recorded[c.Name]) == 0 {
				t.Fatal("no shape is recorded: run TestShapes at the emulators with SLIPWAY_TEST_UPDATE=1")
			}
			one := &life{lab: sandboxLab(t), c: c}
			for i, n := range c.Needs {
				properties := maps.Clone(implied[n.Type])
				if properties == nil {
					continue
				}
				maps.Copy(properties, n.Properties)
				one.c.Needs[i].Properties = properties
			}
			if err := one.prepare(); err != nil {
				t.Fatal(err)
			}
			s, err := one.shapeOf("https://sqs.us-east-1.amazonaws.com")
			if err != nil {
				t.Fatal(err)
			}
			if err := one.clear(); err != nil {
				t.Error(err)
			}
			for _, d := range s.differences(recorded[c.Name]) {
				t.Error(d)
			}
		})
	}
}
