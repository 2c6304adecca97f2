package oracle

import (
	"encoding/json"
	"testing"
)

func TestMadeUpNamesDoNotDiffer(t *testing.T) {
	stack := func(name, gateway string, delay int) Stack {
		arn := "arn:aws:sqs:us-east-1:123456789012:" + name
		return Stack{
			Resources: map[string]Resource{
				"Queue": {
					Type: "AWS::SQS::Queue", ID: "http://sqs/123456789012/" + name, Ref: "http://sqs/123456789012/" + name,
					Properties: map[string]any{"QueueName": name, "DelaySeconds": json.Number(text(delay))},
					Attributes: map[string]any{"Arn": arn},
				},
				"Policy": {
					Type: "AWS::SQS::QueuePolicy", ID: "http://sqs/123456789012/" + name,
					Properties: map[string]any{"PolicyDocument": map[string]any{"Statement": []any{map[string]any{"Resource": arn}}}},
				},
				"Gateway": {Type: "AWS::EC2::InternetGateway", ID: gateway, Attributes: map[string]any{"InternetGatewayId": gateway}},
			},
			Outputs: map[string]string{"Arn": arn, "Gateway": gateway},
		}
	}
	values, same := Compare("create", stack("App-Queue-1", "igw-0123456789abcdef0", 1), stack("other-Queue-XYZ", "igw-fedcba98", 1))
	if len(same) != 0 || values != 10 {
		t.Errorf("%d values, these differ: %+v", values, same)
	}
	_, differ := Compare("create", stack("App-Queue-1", "igw-0123456789abcdef0", 1), stack("other-Queue-XYZ", "igw-fedcba98", 2))
	want := Difference{Stage: "create", LogicalID: "Queue", Type: "AWS::SQS::Queue", What: "property DelaySeconds", Ours: "1", Theirs: "2"}
	if len(differ) != 1 || differ[0] != want {
		t.Errorf("these differ: %+v", differ)
	}
}

func TestAnIDOfAnotherShapeDiffers(t *testing.T) {
	role := func(id string) Stack {
		return Stack{Resources: map[string]Resource{"Role": {
			Type: "AWS::IAM::Role", ID: last(id), Ref: id, Properties: map[string]any{"RoleName": last(id)},
			Attributes: map[string]any{"Arn": "arn:aws:iam::123456789012:role/" + last(id), "RoleId": "AROAABCDEFGHIJKLMNOP"},
		}}}
	}
	_, differ := Compare("create", role("App-Role-1"), role("arn:aws:iam::123456789012:role/Other-Role"))
	if len(differ) != 1 || differ[0].What != "Ref" || differ[0].Ours != `"<Role>"` {
		t.Errorf("these differ: %+v", differ)
	}
}

func TestAtomsGoThereAndBack(t *testing.T) {
	ours, theirs := Atoms{"vpc-11111111": "<Net>", "App-Role-1": "<Role>"}, Atoms{"vpc-22222222": "<Net>", "stack-Role-X": "<Role>"}
	v := map[string]any{"VpcId": "vpc-11111111", "Roles": []any{"App-Role-1"}, "Count": json.Number("3")}
	if got := text(theirs.Own(ours.Plain(v))); got != `{"Count":3,"Roles":["stack-Role-X"],"VpcId":"vpc-22222222"}` {
		t.Error(got)
	}
}

func TestTheChangeIsAMergePatch(t *testing.T) {
	trial := Trial{
		Template: map[string]any{"Resources": map[string]any{"A": map[string]any{"Type": "T", "Properties": map[string]any{"X": "1", "Y": "2"}}}},
		Change:   map[string]any{"Resources": map[string]any{"A": map[string]any{"Properties": map[string]any{"X": nil, "Y": "3"}}, "B": map[string]any{"Type": "U"}}},
	}
	if got := text(trial.Changed()); got != `{"Resources":{"A":{"Properties":{"Y":"3"},"Type":"T"},"B":{"Type":"U"}}}` {
		t.Error(got)
	}
	if got := text(trial.Types()); got != `["T","U"]` {
		t.Error(got)
	}
}
