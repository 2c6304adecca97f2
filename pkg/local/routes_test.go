package local

import (
	"context"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/state"
)

// routedApp has a resource for every way that a route is chosen.
func routedApp(t *testing.T, text string) map[string]object {
	t.Helper()
	return map[string]object{"Routes": {"Resources": object{
		"Topic":     resource("AWS::SNS::Topic", object{"DisplayName": text}),
		"Encrypted": resource("AWS::EC2::VPC", object{"CidrBlock": "10.0.0.0/16", "VpcEncryptionControl": object{"Mode": "monitor"}}),
		"Plain":     resource("AWS::EC2::VPC", object{"CidrBlock": "10.1.0.0/16"}),
		"Gateway":   resource("AWS::EC2::InternetGateway", object{}),
		"Attached":  resource("AWS::EC2::VPCGatewayAttachment", object{"VpcId": ref("Plain"), "InternetGatewayId": ref("Gateway")}),
		"Group":     resource("AWS::Athena::WorkGroup", object{"Name": "wg", "Description": text}),
		"Policy": resource("AWS::IAM::Policy", object{
			"PolicyName": "inline", "PolicyDocument": object{"Version": "2012-10-17"}, "Roles": []any{"outside"},
		}),
		"Api":    resource("AWS::ApiGatewayV2::Api", object{"Name": "api", "ProtocolType": "HTTP"}),
		"Prod":   resource("AWS::ApiGatewayV2::Stage", object{"ApiId": ref("Api"), "StageName": "prod", "Description": text}),
		"Other":  resource("AWS::ApiGatewayV2::Api", object{"Name": "other", "ProtocolType": "HTTP"}),
		"Second": resource("AWS::ApiGatewayV2::Stage", object{"ApiId": ref("Other"), "StageName": "prod"}),
		"Third":  resource("AWS::ApiGatewayV2::Stage", object{"ApiId": ref("Other"), "StageName": "third", "AccessPolicyId": "p"}),
	}}}
}

func records(t *testing.T, p *Plane, stack string) map[string]*state.Resource {
	t.Helper()
	rec, _, err := p.States().Load(context.Background(), stack, p.region)
	if err != nil {
		t.Fatal(err)
	}
	return rec.Resources
}

func TestRoutesAreThoseOfAWSAndStay(t *testing.T) {
	p := openPlane(t, Options{Dir: t.TempDir()})
	deploy := func(text string, opts run.Options) {
		t.Helper()
		asm := writeApp(t, routedApp(t, text), nil)
		if h := deployWith(t, p, asm, opts); h.Result != runlog.ResultSucceeded {
			t.Fatal(story(t, p, h))
		}
		sound(t, p, asm, text)
	}
	via := func(want map[string]provider.Route) {
		t.Helper()
		have := records(t, p, "Routes")
		for id, route := range want {
			if have[id] == nil || have[id].ProvisionedBy != string(route) {
				t.Errorf("%s is recorded as %+v, want %s", id, have[id], route)
			}
		}
	}
	routes := map[string]provider.Route{
		"Topic": provider.RouteSDK, "Plain": provider.RouteSDK, "Attached": provider.RouteSDK, "Policy": provider.RouteSDK, "Prod": provider.RouteSDK,
		"Encrypted": provider.RouteCloudControl, "Group": provider.RouteCloudControl, "Third": provider.RouteCloudControl,
	}
	deploy("one", run.Options{})
	via(routes)
	have := records(t, p, "Routes")
	for id, want := range map[string]string{
		"Policy": "inline", "Prod": "prod", "Second": "prod",
		"Topic":    "arn:aws:sns:us-east-1:123456789012:Routes-Topic",
		"Attached": have["Gateway"].PhysicalID + "|" + have["Plain"].PhysicalID,
		"Third":    have["Other"].PhysicalID + "|third",
	} {
		if have[id].PhysicalID != want {
			t.Errorf("%s is called %s, want %s", id, have[id].PhysicalID, want)
		}
	}
	if have["Second"].Attributes["ApiId"] != nil || have["Topic"].Attributes["TopicName"] != "Routes-Topic" || len(have["Topic"].Attributes) != 2 {
		t.Errorf("attributes: %v, %v", have["Second"].Attributes, have["Topic"].Attributes)
	}

	// What another layer has made again stays with it, through a deploy that changes it.
	deploy("one", run.Options{RecreateVia: map[string]provider.Route{"Topic": provider.RouteCloudControl}})
	routes["Topic"] = provider.RouteCloudControl
	via(routes)
	deploy("two", run.Options{})
	via(routes)
	deploy("two", run.Options{RecreateVia: map[string]provider.Route{"Topic": provider.RouteSDK}})
	routes["Topic"] = provider.RouteSDK
	via(routes)

	destroyAll(t, p, writeApp(t, routedApp(t, "two"), nil))
}
