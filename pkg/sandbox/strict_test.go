package sandbox

import (
	"context"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudcontrol"
	cctypes "github.com/aws/aws-sdk-go-v2/service/cloudcontrol/types"
)

// world is what the refused requests of TestRefusals start from.
type world struct {
	*bench
	vpc, subnet, group, queue, bucket, role, api string
}

func newWorld(t *testing.T) *world {
	w := &world{bench: newBench(t, Options{})}
	w.vpc, _ = w.mustCreate("AWS::EC2::VPC", `{"CidrBlock":"10.0.0.0/16"}`)
	w.subnet, _ = w.mustCreate("AWS::EC2::Subnet", `{"VpcId":"`+w.vpc+`","CidrBlock":"10.0.0.0/24"}`)
	w.group, _ = w.mustCreate("AWS::EC2::SecurityGroup", `{"VpcId":"`+w.vpc+`","GroupDescription":"d"}`)
	w.queue, _ = w.mustCreate("AWS::SQS::Queue", `{"QueueName":"orders"}`)
	w.bucket, _ = w.mustCreate("AWS::S3::Bucket", `{"BucketName":"one-of-a-kind"}`)
	w.role, _ = w.mustCreate("AWS::IAM::Role", `{"RoleName":"worker","AssumeRolePolicyDocument":{"Version":"2012-10-17","Statement":[]}}`)
	w.api, _ = w.mustCreate("AWS::ApiGateway::RestApi", `{"Name":"api"}`)
	return w
}

const lambdaModel = `{"FunctionName":"fn","Role":"ROLE","Runtime":"nodejs22.x","Handler":"index.handler","Code":{"ZipFile":"x"}}`

// Requests that AWS refuses, each with the code that it answers: an exception at once, or the error code of a
// failed operation.
func TestRefusals(t *testing.T) {
	create := func(typeName, model string) func(*world) string {
		return func(w *world) string { return w.refusedCreate(typeName, model) }
	}
	update := func(typeName string, id func(*world) string, patch string) func(*world) string {
		return func(w *world) string {
			e, err := w.update(typeName, id(w), patch)
			if err != nil {
				return codeOf(err)
			}
			return string(e.ErrorCode)
		}
	}
	remove := func(typeName string, id func(*world) string) func(*world) string {
		return func(w *world) string { return string(w.delete(typeName, id(w)).ErrorCode) }
	}
	text := func(s string) func(*world) string { return func(*world) string { return s } }
	queue := func(w *world) string { return w.queue }
	bucket := func(w *world) string { return w.bucket }
	cases := []struct {
		name string
		do   func(*world) string
		want string
	}{
		{"a property that the type does not have", create("AWS::SQS::Queue", `{"QueueNam":"x"}`), codeValidation},
		{"a nested property that does not exist", create("AWS::S3::Bucket", `{"VersioningConfiguration":{"State":"Enabled"}}`), codeValidation},
		{"a required property left out", create("AWS::EC2::Subnet", `{}`), codeValidation},
		{"a required nested property left out", create("AWS::SQS::Queue", `{"Tags":[{"Key":"a"}]}`), codeValidation},
		{"text where a number belongs", create("AWS::SQS::Queue", `{"DelaySeconds":"5"}`), codeValidation},
		{"text where a boolean belongs", create("AWS::SQS::Queue", `{"FifoQueue":"true"}`), codeValidation},
		{"a number where text belongs", create("AWS::SQS::Queue", `{"QueueName":5}`), codeValidation},
		{"an object where a list belongs", create("AWS::SQS::Queue", `{"Tags":{"a":"b"}}`), codeValidation},
		{"one item where a list belongs", create("AWS::SQS::Queue", `{"Tags":"a"}`), codeValidation},
		{"a fraction where an integer belongs", create("AWS::SQS::Queue", `{"DelaySeconds":1.5}`), codeValidation},
		{"a number above the maximum", create("AWS::SQS::Queue", `{"DelaySeconds":901}`), codeValidation},
		{"a number below the minimum", create("AWS::SQS::Queue", `{"MaximumMessageSize":1}`), codeValidation},
		{"a value outside of the enumeration", create("AWS::S3::Bucket", `{"AccessControl":"Everybody"}`), codeValidation},
		{"a nested value outside of the enumeration", create("AWS::S3::Bucket", `{"VersioningConfiguration":{"Status":"On"}}`), codeValidation},
		{"text that does not match the pattern", create("AWS::Lambda::Function", strings.Replace(lambdaModel, "ROLE", "not an arn", 1)), codeValidation},
		{"text that is too long", create("AWS::SecretsManager::Secret", `{"Tags":[{"Key":"`+strings.Repeat("k", 200)+`","Value":""}],"Bogus":1}`), codeValidation},
		{"a read-only property in a create", create("AWS::SQS::Queue", `{"Arn":"arn:aws:sqs:us-east-1:123456789012:x"}`), codeValidation},
		{"a desired state that is no JSON", create("AWS::SQS::Queue", `{"QueueName"`), codeInvalidRequest},
		{"a desired state that is no object", create("AWS::SQS::Queue", `["QueueName"]`), codeInvalidRequest},
		{"a type that does not exist", create("AWS::SQS::Quewe", `{}`), codeTypeNotFound},
		{"a type that Cloud Control can't provision", create("AWS::IAM::Policy", `{"PolicyName":"p","PolicyDocument":{}}`), codeUnsupported},
		{"a type that Cloud Control can't provision, read", func(w *world) string { _, err := w.get("AWS::IAM::Policy", "p"); return codeOf(err) }, codeUnsupported},
		{"a custom resource", create("Custom::Thing::X", `{}`), codeUnsupported},
		{"a nested stack", create("AWS::CloudFormation::Stack", `{"TemplateURL":"https://x"}`), codeUnsupported},
		{"a type name of the wrong form", create("Queue", `{}`), codeValidation},
		{"a name that is taken", create("AWS::SQS::Queue", `{"QueueName":"orders"}`), failureAlreadyExists},
		{"a role name that is taken in another region", func(w *world) string {
			w.cc = w.client("AKIAIOSFODNN7EXAMPLE", "eu-west-1")
			return w.refusedCreate("AWS::IAM::Role", `{"RoleName":"worker","AssumeRolePolicyDocument":{"Version":"2012-10-17","Statement":[]}}`)
		}, failureAlreadyExists},
		{"a bucket name that another account has in another region", func(w *world) string {
			w.cc = w.client("999999999999", "eu-west-1")
			return w.refusedCreate("AWS::S3::Bucket", `{"BucketName":"one-of-a-kind"}`)
		}, failureAlreadyExists},
		{"a load balancer name that is taken", func(w *world) string {
			w.mustCreate("AWS::ElasticLoadBalancingV2::LoadBalancer", `{"Name":"front","Subnets":["`+w.subnet+`"]}`)
			return w.refusedCreate("AWS::ElasticLoadBalancingV2::LoadBalancer", `{"Name":"front","Subnets":["`+w.subnet+`"]}`)
		}, failureAlreadyExists},
		{"a secret name that is taken", func(w *world) string {
			w.mustCreate("AWS::SecretsManager::Secret", `{"Name":"s"}`)
			return w.refusedCreate("AWS::SecretsManager::Secret", `{"Name":"s"}`)
		}, failureAlreadyExists},
		{"a create-only property changed", update("AWS::SQS::Queue", queue, `[{"op":"replace","path":"/QueueName","value":"other"}]`), codeNotUpdatable},
		{"a create-only property removed", update("AWS::SQS::Queue", queue, `[{"op":"remove","path":"/QueueName"}]`), codeNotUpdatable},
		{"a create-only property added", update("AWS::SQS::Queue", queue, `[{"op":"add","path":"/FifoQueue","value":true}]`), codeNotUpdatable},
		{"a bucket renamed", update("AWS::S3::Bucket", bucket, `[{"op":"replace","path":"/BucketName","value":"other-bucket"}]`), codeNotUpdatable},
		{"a subnet moved", update("AWS::EC2::Subnet", func(w *world) string { return w.subnet }, `[{"op":"replace","path":"/CidrBlock","value":"10.0.1.0/24"}]`), codeNotUpdatable},
		{"a read-only property patched", update("AWS::SQS::Queue", queue, `[{"op":"replace","path":"/Arn","value":"arn:aws:sqs:us-east-1:123456789012:y"}]`), codeValidation},
		{"an unknown property patched in", update("AWS::SQS::Queue", queue, `[{"op":"add","path":"/Nope","value":1}]`), codeValidation},
		{"a wrong type patched in", update("AWS::SQS::Queue", queue, `[{"op":"add","path":"/DelaySeconds","value":"5"}]`), codeValidation},
		{"a patch that removes what is not there", update("AWS::SQS::Queue", queue, `[{"op":"remove","path":"/DelaySeconds"}]`), codeValidation},
		{"a patch whose test fails", update("AWS::SQS::Queue", queue, `[{"op":"test","path":"/QueueName","value":"nope"}]`), codeValidation},
		{"a patch that is no patch", update("AWS::SQS::Queue", queue, `{"QueueName":"x"}`), codeValidation},
		{"a required write-only property not sent again", func(w *world) string {
			id, _ := w.mustCreate("AWS::Lambda::Function", strings.Replace(lambdaModel, "ROLE", "arn:aws:iam::123456789012:role/worker", 1))
			e, err := w.update("AWS::Lambda::Function", id, `[{"op":"add","path":"/Timeout","value":9}]`)
			if err != nil {
				return codeOf(err)
			}
			return string(e.ErrorCode)
		}, codeValidation},
		{"an update of a type without update handler", func(w *world) string {
			table, _ := w.mustCreate("AWS::EC2::RouteTable", `{"VpcId":"`+w.vpc+`"}`)
			id, _ := w.mustCreate("AWS::EC2::SubnetRouteTableAssociation", `{"SubnetId":"`+w.subnet+`","RouteTableId":"`+table+`"}`)
			_, err := w.update("AWS::EC2::SubnetRouteTableAssociation", id, `[]`)
			return codeOf(err)
		}, codeUnsupported},
		{"an update of nothing", update("AWS::SQS::Queue", text("https://sqs.us-east-1.amazonaws.com/123456789012/none"), `[]`), codeNotFound},
		{"a read of nothing", func(w *world) string { _, err := w.get("AWS::SQS::Queue", "none"); return codeOf(err) }, codeNotFound},
		{"a read from another account", func(w *world) string {
			w.cc = w.client("999999999999", "us-east-1")
			_, err := w.get("AWS::SQS::Queue", w.queue)
			return codeOf(err)
		}, codeNotFound},
		{"a read from another region", func(w *world) string {
			w.cc = w.client("AKIAIOSFODNN7EXAMPLE", "eu-west-1")
			_, err := w.get("AWS::SQS::Queue", w.queue)
			return codeOf(err)
		}, codeNotFound},
		{"a delete of nothing", remove("AWS::SQS::Queue", text("none")), failureNotFound},
		{"a delete of a VPC with a subnet", remove("AWS::EC2::VPC", func(w *world) string { return w.vpc }), failureConflict},
		{"a delete of a subnet in use", func(w *world) string {
			w.mustCreate("AWS::ElasticLoadBalancingV2::LoadBalancer", `{"Subnets":["`+w.subnet+`"]}`)
			return string(w.delete("AWS::EC2::Subnet", w.subnet).ErrorCode)
		}, failureConflict},
		{"a delete of a security group that a function uses", func(w *world) string {
			model := strings.Replace(lambdaModel, "ROLE", "arn:aws:iam::123456789012:role/worker", 1)
			w.mustCreate("AWS::Lambda::Function", strings.Replace(model, `"Code"`, `"VpcConfig":{"SubnetIds":["`+w.subnet+`"],"SecurityGroupIds":["`+w.group+`"]},"Code"`, 1))
			return string(w.delete("AWS::EC2::SecurityGroup", w.group).ErrorCode)
		}, failureConflict},
		{"a delete of a role that a function has", func(w *world) string {
			w.mustCreate("AWS::Lambda::Function", strings.Replace(lambdaModel, "ROLE", "arn:aws:iam::123456789012:role/worker", 1))
			return string(w.delete("AWS::IAM::Role", w.role).ErrorCode)
		}, failureConflict},
		{"a delete of a role in an instance profile", func(w *world) string {
			w.mustCreate("AWS::IAM::InstanceProfile", `{"Roles":["worker"]}`)
			return string(w.delete("AWS::IAM::Role", w.role).ErrorCode)
		}, failureConflict},
		{"a delete of a REST API with a resource", func(w *world) string {
			api, _ := w.get("AWS::ApiGateway::RestApi", w.api)
			w.mustCreate("AWS::ApiGateway::Resource", `{"RestApiId":"`+w.api+`","ParentId":"`+api["RootResourceId"].(string)+`","PathPart":"p"}`)
			return string(w.delete("AWS::ApiGateway::RestApi", w.api).ErrorCode)
		}, failureConflict},
		{"a cluster deleted under its service", func(w *world) string {
			w.mustCreate("AWS::ECS::Cluster", `{"ClusterName":"c"}`)
			w.mustCreate("AWS::ECS::Service", `{"Cluster":"c"}`)
			return string(w.delete("AWS::ECS::Cluster", "c").ErrorCode)
		}, failureConflict},
		{"a reference to a subnet that is gone", func(w *world) string {
			w.delete("AWS::EC2::Subnet", w.subnet)
			return w.refusedCreate("AWS::EC2::NatGateway", `{"SubnetId":"`+w.subnet+`","ConnectivityType":"private"}`)
		}, failureNotFound},
		{"a function with a role that is gone", func(w *world) string {
			w.delete("AWS::IAM::Role", w.role)
			return w.refusedCreate("AWS::Lambda::Function", strings.Replace(lambdaModel, "ROLE", "arn:aws:iam::123456789012:role/worker", 1))
		}, failureInvalidRequest},
		{"an update to a security group that is gone", func(w *world) string {
			id, _ := w.mustCreate("AWS::EC2::SecurityGroup", `{"VpcId":"`+w.vpc+`","GroupDescription":"d"}`)
			w.delete("AWS::EC2::SecurityGroup", w.group)
			e, err := w.update("AWS::EC2::SecurityGroup", id, `[{"op":"add","path":"/SecurityGroupIngress","value":[{"IpProtocol":"-1","SourceSecurityGroupId":"`+w.group+`"}]}]`)
			if err != nil {
				return codeOf(err)
			}
			return string(e.ErrorCode)
		}, failureNotFound},
		{"a client token used for another model", func(w *world) string {
			return w.twice("token", `{"QueueName":"a"}`, `{"QueueName":"b"}`)
		}, codeTokenConflict},
		{"a client token with illegal characters", func(w *world) string {
			_, err := w.cc.CreateResource(context.Background(), &cloudcontrol.CreateResourceInput{TypeName: aws.String("AWS::SQS::Queue"), DesiredState: aws.String(`{}`), ClientToken: aws.String("a_b c")})
			return codeOf(err)
		}, codeValidation},
		{"a request token that nobody was given", func(w *world) string {
			_, err := w.cc.GetResourceRequestStatus(context.Background(), &cloudcontrol.GetResourceRequestStatusInput{RequestToken: aws.String("none")})
			return codeOf(err)
		}, codeRequestNotFound},
		{"a cancelled request that is over", func(w *world) string {
			out, err := w.cc.CreateResource(context.Background(), &cloudcontrol.CreateResourceInput{TypeName: aws.String("AWS::SQS::Queue"), DesiredState: aws.String(`{}`)})
			if err != nil {
				return codeOf(err)
			}
			_, err = w.cc.CancelResourceRequest(context.Background(), &cloudcontrol.CancelResourceRequestInput{RequestToken: out.ProgressEvent.RequestToken})
			return codeOf(err)
		}, codeConcurrentModify},
		{"more results than a page holds", func(w *world) string {
			_, err := w.cc.ListResources(context.Background(), &cloudcontrol.ListResourcesInput{TypeName: aws.String("AWS::SQS::Queue"), MaxResults: aws.Int32(101)})
			return codeOf(err)
		}, codeValidation},
		{"a page token that nobody gave", func(w *world) string {
			_, err := w.cc.ListResources(context.Background(), &cloudcontrol.ListResourcesInput{TypeName: aws.String("AWS::SQS::Queue"), NextToken: aws.String("none")})
			return codeOf(err)
		}, codeInvalidRequest},
		{"an identifier for which there is no resource in the direct API", func(w *world) string {
			_, err := w.direct().Get(context.Background(), "AWS::IAM::Policy", "none", nil)
			return codeOf(err)
		}, codeNotFound},
		{"a nested stack through the direct API", func(w *world) string {
			_, err := w.direct().Create(context.Background(), nestedStackType, "", map[string]any{"TemplateURL": "https://example.com"}, "")
			return codeOf(err)
		}, codeUnsupported},
		{"an unknown property through the direct API", func(w *world) string {
			_, err := w.direct().Create(context.Background(), "AWS::IAM::Policy", "", map[string]any{"PolicyName": "p", "PolicyDocument": map[string]any{}, "Nope": "x"}, "")
			return codeOf(err)
		}, codeValidation},
	}
	if len(cases) < 40 {
		t.Fatalf("only %d refusals are tested", len(cases))
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := c.do(newWorld(t)); got != c.want {
				t.Errorf("got %q, AWS answers %q", got, c.want)
			}
		})
	}
}

func (w *world) refusedCreate(typeName, model string) string {
	out, err := w.cc.CreateResource(context.Background(), &cloudcontrol.CreateResourceInput{TypeName: &typeName, DesiredState: &model})
	if err != nil {
		return codeOf(err)
	}
	e := w.wait(out.ProgressEvent.RequestToken)
	if e.OperationStatus == cctypes.OperationStatusFailed && aws.ToString(e.StatusMessage) == "" {
		w.t.Error("a failed operation has no message")
	}
	return string(e.ErrorCode)
}

// twice creates two queues with one client token and returns the second answer's code.
func (w *world) twice(token string, models ...string) string {
	var err error
	for _, model := range models {
		_, err = w.cc.CreateResource(context.Background(), &cloudcontrol.CreateResourceInput{TypeName: aws.String("AWS::SQS::Queue"), DesiredState: &model, ClientToken: &token})
	}
	return codeOf(err)
}
