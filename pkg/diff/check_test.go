package diff

import (
	"strings"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/diag"
)

func TestCheck(t *testing.T) {
	for _, tt := range []struct {
		name, source string
		want         []string // one substring per diagnostic, in order
	}{
		{"all is well", `{"Q":{"Type":"AWS::SQS::Queue","Properties":{"DelaySeconds":"5"}}}`, nil},
		{"an unknown type", `{"Q":{"Type":"AWS::SQS::Queu"}}`, []string{"error Q Type: unknown resource type AWS::SQS::Queu: did you mean AWS::SQS::Queue"}},
		{"an unknown property", `{"Q":{"Type":"AWS::SQS::Queue","Properties":{"DelaySecond":5}}}`,
			[]string{"error Q Properties.DelaySecond: AWS::SQS::Queue has no property DelaySecond: did you mean DelaySeconds?"}},
		{"a missing property", `{"S":{"Type":"AWS::SNS::Subscription","Properties":{"Protocol":"sqs"}}}`,
			[]string{"error S Properties.TopicArn: TopicArn is required"}},
		{"a wrong type", `{"Q":{"Type":"AWS::SQS::Queue","Properties":{"DelaySeconds":"soon"}}}`,
			[]string{"error Q Properties.DelaySeconds: must be a whole number"}},
		{"a property that only AWS sets", `{"Q":{"Type":"AWS::SQS::Queue","Properties":{"QueueUrl":"x"}}}`,
			[]string{"error Q Properties.QueueUrl: QueueUrl is set by AWS"}},
		{"a property that AWS sets and a template may", `{"K":{"Type":"AWS::AppSync::ApiKey","Properties":{"ApiId":"a","ApiKeyId":"x"}}}`,
			[]string{"warning K Properties.ApiKeyId: ApiKeyId is set by AWS: the value in the template may be ignored"}},
		{"an unknown value of an enumeration", `{"F":{"Type":"AWS::Lambda::Function","Properties":{"Code":{"ImageUri":"x"},"Role":"arn:aws:iam::123456789012:role/x","PackageType":"Imag"}}}`,
			[]string{"warning F Properties.PackageType: must be one of Image, Zip: did you mean Image?"}},
		{"an intrinsic is accepted anywhere", `{"Q":{"Type":"AWS::SQS::Queue"},"R":{"Type":"AWS::SQS::Queue","Properties":{"DelaySeconds":{"Ref":"Q"},"Tags":{"Fn::GetAtt":["Q","Arn"]}}}}`, nil},
		{"the chosen branch is checked", `{"Q":{"Type":"AWS::SQS::Queue","Properties":{"DelaySeconds":{"Fn::If":["Yes","soon",5]}}}}`,
			[]string{"error Q Properties.DelaySeconds"}},
		{"a required property that is AWS::NoValue", `{"S":{"Type":"AWS::SNS::Subscription","Properties":{"Protocol":"sqs","TopicArn":{"Ref":"AWS::NoValue"}}}}`,
			[]string{"error S Properties.TopicArn: TopicArn is required"}},
		{"an unknown attribute", `{"Q":{"Type":"AWS::SQS::Queue"},"P":{"Type":"AWS::SSM::Parameter","Properties":{"Type":"String","Value":{"Fn::Sub":"${Q.Arm}"}}}}`,
			[]string{"error P Properties.Value: AWS::SQS::Queue Q has no attribute Arm: did you mean Arn?"}},
		{"custom resources answer anything", `{"C":{"Type":"Custom::X","Properties":{"ServiceToken":"t","A":{"B":1}}},"P":{"Type":"AWS::SSM::Parameter","Properties":{"Type":"String","Value":{"Fn::GetAtt":"C.Any.Thing"}}}}`, nil},
		{"a circle", `{"A":{"Type":"AWS::SQS::Queue","Properties":{"QueueName":{"Ref":"B"}}},"B":{"Type":"AWS::SQS::Queue","DependsOn":"C"},"C":{"Type":"AWS::SQS::Queue","Properties":{"Tags":[{"Key":"a","Value":{"Fn::Sub":"${A}"}}]}}}`,
			[]string{"error A: the resources A, B, C depend on each other: A.Properties.QueueName → B, B.DependsOn → C, C.Properties.Tags.0.Value → A"}},
		{"a circle of one", `{"A":{"Type":"AWS::SQS::Queue","Properties":{"QueueName":{"Ref":"A"}}}}`,
			[]string{"error A: the resource A depends on itself: A.Properties.QueueName → A"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := parse(t, `{"Conditions":{"Yes":{"Fn::Equals":["a","a"]}},"Resources":`+tt.source+`}`)
			diags := Check(in)
			if len(diags) != len(tt.want) {
				t.Fatalf("%d diagnostics: %v", len(diags), diags)
			}
			for i, d := range diags {
				if got := string(d.Severity) + " " + d.Error(); !strings.Contains(got, tt.want[i]) {
					t.Errorf("got %s, want %s", got, tt.want[i])
				}
			}
		})
	}
}

func TestCheckLooksAtTheOutputsThatExist(t *testing.T) {
	in := parse(t, `{"Conditions":{"No":{"Fn::Equals":["a","b"]}},
		"Resources":{"Q":{"Type":"AWS::SQS::Queue"}},
		"Outputs":{"A":{"Value":{"Fn::GetAtt":["Q","Nope"]}},"B":{"Condition":"No","Value":{"Fn::GetAtt":["Q","Nope"]}}}}`)
	diags := Check(in)
	if len(diags) != 1 || diags[0].Path != "Outputs.A.Value" || diags[0].Severity != diag.Error {
		t.Errorf("diagnostics %v", diags)
	}
}

func TestComputeOfACircleIsThatError(t *testing.T) {
	in := resources(t, `{"A":{"Type":"AWS::SQS::Queue","DependsOn":"B"},"B":{"Type":"AWS::SQS::Queue","DependsOn":"A"}}`)
	result, diags := Compute(in)
	if !diags.HasErrors() || len(result.Changes) > 0 {
		t.Errorf("%v, %v", result.Changes, diags)
	}
}
