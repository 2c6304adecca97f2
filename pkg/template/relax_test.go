package template_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/template"
)

const vpcTemplate = `{"Resources": {
 "Route": {"Type": "AWS::EC2::Route"}, "Association": {"Type": "AWS::EC2::SubnetRouteTableAssociation"}, "Queue": {"Type": "AWS::SQS::Queue"},
 "Role": {"Type": "AWS::IAM::Role", "DependsOn": ["Route", "Association", "Queue"]},
 "Policy": {"Type": "AWS::IAM::Policy", "DependsOn": "Route"},
 "Function": {"Type": "AWS::Lambda::Function", "DependsOn": ["Route", "Association"], "Properties": {"Description": {"Fn::Sub": "${Route}"}}},
 "Url": {"Type": "AWS::Lambda::Url", "DependsOn": "Association"},
 "Mapping": {"Type": "AWS::Lambda::EventSourceMapping", "DependsOn": "Route"},
 "Instance": {"Type": "AWS::EC2::Instance", "DependsOn": ["Route", "Association"]},
 "Custom": {"Type": "Custom::Thing", "DependsOn": "Route"}
}}`

func targets(edges map[string][]template.Reference) map[string][]string {
	out := map[string][]string{}
	for id, refs := range edges {
		for _, ref := range refs {
			out[id] = append(out[id], ref.Target)
		}
	}
	return out
}

func TestStatedDependenciesOnRoutesAreDroppedOnlyWhenAskedFor(t *testing.T) {
	tmpl, err := template.Parse([]byte(vpcTemplate))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{
		"Role": {"Route", "Association", "Queue"}, "Policy": {"Route"}, "Function": {"Route", "Association", "Route"}, "Url": {"Association"}, "Mapping": {"Route"},
		"Instance": {"Route", "Association"}, "Custom": {"Route"},
	}
	if diff := cmp.Diff(all, targets(template.Dependencies(tmpl, nil))); diff != "" {
		t.Errorf("by default (-want +got):\n%s", diff)
	}
	relaxed := map[string][]string{
		"Role": {"Queue"}, "Function": {"Route"}, // a reference as well: it stays
		"Instance": {"Route", "Association"}, "Custom": {"Route"}, // other types wait
	}
	if diff := cmp.Diff(relaxed, targets(template.Dependencies(tmpl, nil, template.RelaxVPCRoutes()))); diff != "" {
		t.Errorf("relaxed (-want +got):\n%s", diff)
	}
}
