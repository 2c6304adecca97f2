package diff

import (
	"strings"
	"testing"
)

func TestAFixedNameCanNotBeReplacedInPlace(t *testing.T) {
	for _, tt := range []struct {
		name, from, to, collides string
	}{
		{"the name stays",
			`{"T":{"Type":"AWS::DynamoDB::Table","Properties":{"TableName":"t","KeySchema":[{"AttributeName":"a","KeyType":"HASH"}]}}}`,
			`{"T":{"Type":"AWS::DynamoDB::Table","Properties":{"TableName":"t","KeySchema":[{"AttributeName":"b","KeyType":"HASH"}]}}}`, "TableName"},
		{"the name changes too",
			`{"T":{"Type":"AWS::DynamoDB::Table","Properties":{"TableName":"t","KeySchema":[{"AttributeName":"a","KeyType":"HASH"}]}}}`,
			`{"T":{"Type":"AWS::DynamoDB::Table","Properties":{"TableName":"u","KeySchema":[{"AttributeName":"b","KeyType":"HASH"}]}}}`, ""},
		{"the name is generated",
			`{"T":{"Type":"AWS::DynamoDB::Table","Properties":{"KeySchema":[{"AttributeName":"a","KeyType":"HASH"}]}}}`,
			`{"T":{"Type":"AWS::DynamoDB::Table","Properties":{"KeySchema":[{"AttributeName":"b","KeyType":"HASH"}]}}}`, ""},
		{"a name that is no part of the identifier",
			`{"L":{"Type":"AWS::ElasticLoadBalancingV2::LoadBalancer","Properties":{"Name":"l","Scheme":"internal"}}}`,
			`{"L":{"Type":"AWS::ElasticLoadBalancingV2::LoadBalancer","Properties":{"Name":"l","Scheme":"internet-facing"}}}`, "Name"},
		{"a queue",
			`{"Q":{"Type":"AWS::SQS::Queue","Properties":{"QueueName":"q"}}}`,
			`{"Q":{"Type":"AWS::SQS::Queue","Properties":{"QueueName":"q","FifoQueue":true}}}`, "QueueName"},
		{"a rule that moves to another bus",
			`{"R":{"Type":"AWS::Events::Rule","Properties":{"Name":"r","EventBusName":"a"}}}`,
			`{"R":{"Type":"AWS::Events::Rule","Properties":{"Name":"r","EventBusName":"b"}}}`, ""},
		{"a service that moves to another cluster",
			`{"S":{"Type":"AWS::ECS::Service","Properties":{"ServiceName":"s","Cluster":"a"}}}`,
			`{"S":{"Type":"AWS::ECS::Service","Properties":{"ServiceName":"s","Cluster":"b"}}}`, ""},
		{"a service that stays in its cluster",
			`{"S":{"Type":"AWS::ECS::Service","Properties":{"ServiceName":"s","Cluster":"a","SchedulingStrategy":"REPLICA"}}}`,
			`{"S":{"Type":"AWS::ECS::Service","Properties":{"ServiceName":"s","Cluster":"a","SchedulingStrategy":"DAEMON"}}}`, "ServiceName"},
		{"a security group in its VPC",
			`{"G":{"Type":"AWS::EC2::SecurityGroup","Properties":{"GroupName":"g","GroupDescription":"a"}}}`,
			`{"G":{"Type":"AWS::EC2::SecurityGroup","Properties":{"GroupName":"g","GroupDescription":"b"}}}`, "GroupName"},
		{"a family has revisions",
			`{"T":{"Type":"AWS::ECS::TaskDefinition","Properties":{"Family":"f","Cpu":"1"}}}`,
			`{"T":{"Type":"AWS::ECS::TaskDefinition","Properties":{"Family":"f","Cpu":"2"}}}`, ""},
		{"a layer has versions",
			`{"L":{"Type":"AWS::Lambda::LayerVersion","Properties":{"LayerName":"l","Content":{"S3Bucket":"b","S3Key":"1"}}}}`,
			`{"L":{"Type":"AWS::Lambda::LayerVersion","Properties":{"LayerName":"l","Content":{"S3Bucket":"b","S3Key":"2"}}}}`, ""},
		{"record sets of one name",
			`{"R":{"Type":"AWS::Route53::RecordSet","Properties":{"Name":"a.","Type":"A","HostedZoneId":"x"}}}`,
			`{"R":{"Type":"AWS::Route53::RecordSet","Properties":{"Name":"a.","Type":"A","HostedZoneId":"y"}}}`, ""},
		{"a renamed resource that keeps its name",
			`{"A":{"Type":"AWS::SQS::Queue","Properties":{"QueueName":"q"}}}`,
			`{"B":{"Type":"AWS::SQS::Queue","Properties":{"QueueName":"q"}}}`, "QueueName"},
		{"a renamed resource with a generated name",
			`{"A":{"Type":"AWS::SQS::Queue"}}`, `{"B":{"Type":"AWS::SQS::Queue"}}`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, diags := change(t, tt.from, tt.to)
			if tt.collides == "" {
				if len(diags) > 0 {
					t.Errorf("refused: %v", diags)
				}
				return
			}
			if len(diags) != 1 || diags[0].Path != "Properties."+tt.collides || diags[0].Next == "" {
				t.Fatalf("diagnostics %v", diags)
			}
			if text := diags[0].Error() + diags[0].Next; strings.Contains(text, `"q"`) {
				t.Errorf("quotes a value: %s", text)
			}
		})
	}
}

func TestAFixedNameIsDeletedFirstWhereThatIsAllowed(t *testing.T) {
	in := resources(t, `{"Q":{"Type":"AWS::SQS::Queue","Properties":{"QueueName":"q","FifoQueue":true}}}`)
	in.Record = mustDeploy(t, resources(t, `{"Q":{"Type":"AWS::SQS::Queue","Properties":{"QueueName":"q"}}}`))
	in.DeleteFirst = true
	result, diags := Compute(in)
	if len(diags) > 0 || !result.Changes[0].DeleteFirst {
		t.Errorf("%v, %+v", diags, result.Changes)
	}
	in.Template.Resources["Q"].UpdateReplacePolicy = "Retain"
	if _, diags = Compute(in); !diags.HasErrors() {
		t.Error("the old one is retained and keeps the name: that can't work")
	}
}

func TestStatefulReplacements(t *testing.T) {
	for _, tt := range []struct {
		name, from, to string
		want           bool
	}{
		{"a table",
			`{"T":{"Type":"AWS::DynamoDB::Table","Properties":{"KeySchema":[{"AttributeName":"a","KeyType":"HASH"}]}}}`,
			`{"T":{"Type":"AWS::DynamoDB::Table","Properties":{"KeySchema":[{"AttributeName":"b","KeyType":"HASH"}]}}}`, true},
		{"a table that stays behind",
			`{"T":{"Type":"AWS::DynamoDB::Table","Properties":{"KeySchema":[{"AttributeName":"a","KeyType":"HASH"}]}}}`,
			`{"T":{"Type":"AWS::DynamoDB::Table","UpdateReplacePolicy":"Retain","Properties":{"KeySchema":[{"AttributeName":"b","KeyType":"HASH"}]}}}`, false},
		{"a table that turns into something else",
			`{"T":{"Type":"AWS::DynamoDB::Table","Properties":{"KeySchema":[{"AttributeName":"a","KeyType":"HASH"}]}}}`,
			`{"T":{"Type":"AWS::SNS::Topic"}}`, true},
		{"a log group that keeps its lines",
			`{"L":{"Type":"AWS::Logs::LogGroup","Properties":{"LogGroupName":"a","RetentionInDays":7}}}`,
			`{"L":{"Type":"AWS::Logs::LogGroup","Properties":{"LogGroupName":"b","RetentionInDays":7}}}`, true},
		{"a log group that does not",
			`{"L":{"Type":"AWS::Logs::LogGroup","Properties":{"LogGroupName":"a"}}}`,
			`{"L":{"Type":"AWS::Logs::LogGroup","Properties":{"LogGroupName":"b"}}}`, false},
		{"a role",
			`{"R":{"Type":"AWS::IAM::Role","Properties":{"Path":"/a/"}}}`, `{"R":{"Type":"AWS::IAM::Role","Properties":{"Path":"/b/"}}}`, false},
		{"a table that is only updated",
			`{"T":{"Type":"AWS::DynamoDB::Table","Properties":{"BillingMode":"PROVISIONED"}}}`,
			`{"T":{"Type":"AWS::DynamoDB::Table","Properties":{"BillingMode":"PAY_PER_REQUEST"}}}`, false},
	} {
		result, diags := change(t, tt.from, tt.to)
		if len(diags) > 0 {
			t.Fatal(diags)
		}
		if got := len(StatefulReplacements(result.Changes)) == 1; got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}
