package schema

import (
	"encoding/json"
	"strings"
	"testing"
)

func problems(t *testing.T, name, properties string, options Options) []string {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(properties))
	decoder.UseNumber()
	var value map[string]any
	if err := decoder.Decode(&value); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, problem := range Validate(mustLookup(t, name), value, options) {
		line := strings.Join(problem.Path, "/") + " " + string(problem.Kind)
		if problem.Suggestion != "" {
			line += " " + problem.Suggestion
		}
		out = append(out, line)
	}
	return out
}

func TestValidate(t *testing.T) {
	lenient := Options{Lenient: true, Opaque: intrinsic}
	for _, c := range []struct {
		title, name, properties string
		options                 Options
		want                    string
	}{
		{"nothing is required of a queue", "AWS::SQS::Queue", `{}`, lenient, ""},
		{"a whole queue", "AWS::SQS::Queue", `{"QueueName":"q","VisibilityTimeout":30,"Tags":[{"Key":"a","Value":"b"}],"RedrivePolicy":{"maxReceiveCount":3}}`, Options{}, ""},
		{"required", "AWS::Lambda::Function", `{"Code":{"ZipFile":"x"}}`, lenient, "Role required"},
		{"required and null", "AWS::Lambda::Function", `{"Code":{},"Role":null}`, lenient, "Role required"},
		{"optional and null", "AWS::SQS::Queue", `{"QueueName":null}`, lenient, ""},
		{"required inside a list", "AWS::SQS::Queue", `{"Tags":[{"Key":"a"}]}`, lenient, "Tags/0/Value required"},
		{"unknown", "AWS::SQS::Queue", `{"VisibilityTimeOut":1}`, lenient, "VisibilityTimeOut unknown VisibilityTimeout"},
		{"unknown inside", "AWS::S3::Bucket", `{"VersioningConfiguration":{"State":"Enabled","Status":"Enabled"}}`, lenient, "VersioningConfiguration/State unknown Status"},
		{"read-only", "AWS::SQS::Queue", `{"Arn":"a"}`, lenient, "Arn readonly"},
		{"text for a number", "AWS::SQS::Queue", `{"DelaySeconds":"5","FifoQueue":"true","QueueName":7}`, lenient, ""},
		{"text for a number, strictly", "AWS::SQS::Queue", `{"DelaySeconds":"5","FifoQueue":"true","QueueName":7}`, Options{}, "DelaySeconds type; FifoQueue type; QueueName type"},
		{"words for a number", "AWS::SQS::Queue", `{"DelaySeconds":"soon","FifoQueue":"maybe"}`, lenient, "DelaySeconds type; FifoQueue type"},
		{"a fraction for a whole number", "AWS::SQS::Queue", `{"DelaySeconds":1.5}`, lenient, "DelaySeconds type"},
		{"a number for a boolean", "AWS::SQS::Queue", `{"FifoQueue":1}`, lenient, "FifoQueue type"},
		{"a scalar for a list", "AWS::Lambda::Function", `{"Code":{},"Role":{"Ref":"R"},"Layers":"one"}`, lenient, "Layers type"},
		{"a list for an object", "AWS::Lambda::Function", `{"Code":[],"Role":{"Ref":"R"}}`, lenient, "Code type"},
		{"an object for a scalar", "AWS::SQS::Queue", `{"QueueName":{"a":1,"b":2}}`, lenient, "QueueName type"},
		{"above the range", "AWS::SQS::Queue", `{"DelaySeconds":901}`, lenient, "DelaySeconds range"},
		{"below the range, as text", "AWS::SQS::Queue", `{"MaximumMessageSize":"12"}`, lenient, "MaximumMessageSize range"},
		{"too long", "AWS::SQS::Queue", `{"Tags":[{"Key":"` + strings.Repeat("k", 129) + `","Value":"v"}]}`, lenient, "Tags/0/Key range"},
		{"a pattern", "AWS::Lambda::Function", `{"Code":{},"Role":"not an arn"}`, lenient, "Role pattern"},
		{"an enum", "AWS::S3::Bucket", `{"AccessControl":"private"}`, lenient, "AccessControl enum Private"},
		{"values that are not known yet", "AWS::SQS::Queue", `{"DelaySeconds":{"Ref":"P"},"Tags":{"Fn::If":["C",[],[]]},"RedrivePolicy":{"deadLetterTargetArn":{"Fn::GetAtt":["D","Arn"]}}}`, lenient, ""},
		{"properties that are not known yet", "AWS::Lambda::Function", `{"Fn::Transform":{"Name":"AWS::Include"}}`, lenient, ""},
		{"a loop beside properties", "AWS::SQS::Queue", `{"QueueName":"q","Fn::ForEach::L":["x",["A"],{}]}`, lenient, ""},
		{"without a caller's notion of them", "AWS::SQS::Queue", `{"DelaySeconds":{"Ref":"P"}}`, Options{}, "DelaySeconds type"},
		{"a dynamic reference", "AWS::RDS::DBInstance", `{"AllocatedStorage":"{{resolve:ssm:size}}","Port":"{{resolve:ssm:port}}","MonitoringInterval":"{{resolve:ssm:i}}"}`, Options{}, ""},
		{"a map's values", "AWS::ECS::TaskDefinition", `{"ContainerDefinitions":[{"Name":"a","Image":"b","LogConfiguration":{"LogDriver":"awslogs","Options":{"a":1,"b":["x"]}}}]}`, lenient, "ContainerDefinitions/0/LogConfiguration/Options/b type"},
		{"free JSON", "AWS::IAM::Role", `{"AssumeRolePolicyDocument":{"Statement":[{"Any":{"Thing":1}}]}}`, lenient, ""},
		{"the closest alternative speaks", "AWS::DynamoDB::Table", `{"KeySchema":[{"AttributeName":"id","KeyType":"HASH"}]}`, lenient, ""},
		{"a custom resource", "Custom::Thing", `{"ServiceToken":"arn","Any":[1,{"x":true}]}`, lenient, ""},
		{"a custom resource without a handler", "AWS::CloudFormation::CustomResource", `{"Any":1}`, lenient, "ServiceToken required"},
		{"the CDK's metadata", "AWS::CDK::Metadata", `{"Analytics":"v2:deflate64:x","More":1}`, lenient, ""},
		{"a nested stack", "AWS::CloudFormation::Stack", `{"TemplateURL":"https://x/y","Parameters":{"A":"1"}}`, lenient, ""},
		{"a wait condition handle", "AWS::CloudFormation::WaitConditionHandle", `{}`, lenient, ""},
	} {
		t.Run(c.title, func(t *testing.T) {
			if got := strings.Join(problems(t, c.name, c.properties, c.options), "; "); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestMessagesNeverHoldTheValue(t *testing.T) {
	const secret = "hunter2-hunter2"
	for name, properties := range map[string]string{
		"AWS::SQS::Queue":       `{"DelaySeconds":"` + secret + `","FifoQueue":"` + secret + `","Tags":"` + secret + `"}`,
		"AWS::Lambda::Function": `{"Code":"` + secret + `","Role":"` + secret + `"}`,
		"AWS::S3::Bucket":       `{"AccessControl":"` + secret + `","BucketName":"` + strings.Repeat(secret, 20) + `"}`,
	} {
		var value map[string]any
		if err := json.Unmarshal([]byte(properties), &value); err != nil {
			t.Fatal(err)
		}
		found := Validate(mustLookup(t, name), value, Options{Lenient: true})
		if len(found) == 0 {
			t.Errorf("%s: nothing is wrong with it", name)
		}
		for _, problem := range found {
			if strings.Contains(problem.String()+problem.Suggestion, secret) {
				t.Errorf("%s shows the value: %s", name, problem)
			}
		}
	}
}

func FuzzValidate(f *testing.F) {
	f.Add("AWS::SQS::Queue", `{"Tags":[{"Key":"a","Value":1}],"DelaySeconds":"5"}`)
	f.Add("AWS::DynamoDB::Table", `{"KeySchema":[[null,{"AttributeName":{}}]]}`)
	f.Add("Custom::X", `{"ServiceToken":null}`)
	f.Fuzz(func(t *testing.T, name, properties string) {
		resourceType, found := Lookup(name)
		if !found {
			return
		}
		decoder := json.NewDecoder(strings.NewReader(properties))
		decoder.UseNumber()
		var value map[string]any
		if decoder.Decode(&value) != nil {
			return
		}
		lenient := Validate(resourceType, value, Options{Lenient: true})
		strict := Validate(resourceType, value, Options{})
		if len(lenient) > 0 && len(strict) == 0 {
			t.Errorf("leniency refuses what strictness accepts: %v", lenient)
		}
	})
}
