package schema

import "testing"

func TestLookupKnowsServiceTypesAndCustomResources(t *testing.T) {
	for _, name := range []string{"AWS::SQS::Queue", "AWS::CloudFormation::Stack", "AWS::CloudFormation::WaitConditionHandle",
		"AWS::CloudFormation::CustomResource", "Custom::Anything", "AWS::CDK::Metadata"} {
		if got, found := Lookup(name); !found || got.Name != name {
			t.Errorf("Lookup(%q) = %v, %v", name, got, found)
		}
	}
	for _, name := range []string{"", "AWS::SQS::Queu", "Custom::", "aws::sqs::queue"} {
		if _, found := Lookup(name); found {
			t.Errorf("Lookup(%q) found a type", name)
		}
	}
}
