package sandbox

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/cloudcontrol"
	cctypes "github.com/aws/aws-sdk-go-v2/service/cloudcontrol/types"

	"github.com/slipway-cdk/slipway/pkg/schema"
)

// make creates a resource through the API that serves its type and returns its identifier.
func (b *bench) make(typeName, model string) string {
	b.t.Helper()
	if t, _ := schema.Lookup(typeName); t.Provisionable {
		id, _ := b.mustCreate(typeName, model)
		return id
	}
	props, err := decodeObject(model)
	if err != nil {
		b.t.Fatal(err)
	}
	e, err := b.direct().Create(bg, typeName, "", props, "")
	if err != nil {
		b.t.Fatalf("creating %s: %v", typeName, err)
	}
	return b.settled(e).Identifier
}

func TestAProtectedResourceIsNotDeleted(t *testing.T) {
	cases := []struct{ typeName, protected, open string }{
		{
			"AWS::DynamoDB::Table",
			`{"TableName":"kept","DeletionProtectionEnabled":true,"KeySchema":[{"AttributeName":"id","KeyType":"HASH"}],"AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"}],"BillingMode":"PAY_PER_REQUEST"}`,
			`[{"op":"add","path":"/DeletionProtectionEnabled","value":false}]`,
		},
		{"AWS::Cognito::UserPool", `{"UserPoolName":"kept","DeletionProtection":"ACTIVE"}`, `[{"op":"add","path":"/DeletionProtection","value":"INACTIVE"}]`},
	}
	for _, c := range cases {
		t.Run(c.typeName, func(t *testing.T) {
			b := newBench(t, Options{})
			id := b.make(c.typeName, c.protected)
			if got := b.unmake(c.typeName, id); got != failureInvalidRequest {
				t.Fatalf("deleting it: %q, want %s", got, failureInvalidRequest)
			}
			if e, err := b.update(c.typeName, id, c.open); err != nil || e.ErrorCode != "" {
				t.Fatalf("turning the protection off: %v %v", e, err)
			}
			if got := b.unmake(c.typeName, id); got != "" {
				t.Fatalf("deleting it without protection: %s", got)
			}
		})
	}
}

// unmake deletes a resource and returns the error code of the operation, "" when it is gone.
func (b *bench) unmake(typeName, id string) string {
	b.t.Helper()
	if t, _ := schema.Lookup(typeName); t.Provisionable {
		return string(b.delete(typeName, id).ErrorCode)
	}
	e, err := b.direct().Delete(bg, typeName, id, nil, "")
	if err != nil {
		b.t.Fatalf("deleting %s: %v", typeName, err)
	}
	return b.settled(e).ErrorCode
}

func (b *bench) settled(e ProgressEvent) ProgressEvent {
	b.t.Helper()
	e, err := b.direct().Status(bg, e.RequestToken)
	if err != nil {
		b.t.Fatal(err)
	}
	return e
}

func (b *bench) lives(typeName, id string) bool {
	b.t.Helper()
	found, err := b.s.List(bg, Filter{Type: typeName, Identifier: id})
	if err != nil {
		b.t.Fatal(err)
	}
	return len(found) == 1
}

const (
	emptyPolicy = `{"Version":"2012-10-17","Statement":[]}`
	functionFn  = `{"FunctionName":"fn","Role":"arn:aws:iam::123456789012:role/outside","Runtime":"nodejs22.x","Handler":"index.handler","Code":{"ZipFile":"x"}}`
)

// thing is one resource of a test. {Name} in its model is the identifier of an earlier one, {Name.Path} a value of it.
type thing struct{ name, typeName, model string }

func (b *bench) build(things []thing) map[string]string {
	b.t.Helper()
	ids := map[string]string{}
	var known []string
	for _, th := range things {
		id := b.make(th.typeName, strings.NewReplacer(known...).Replace(th.model))
		ids[th.name] = id
		known = append(known, "{"+th.name+"}", id)
		found, err := b.s.List(bg, Filter{Type: th.typeName, Identifier: id})
		if err != nil || len(found) != 1 {
			b.t.Fatalf("listing %s: %v, %v", th.name, found, err)
		}
		for path := range found[0].Properties {
			known = append(known, "{"+th.name+"."+path+"}", getString(found[0].Properties, path))
		}
	}
	return ids
}

// What a service deletes with a resource goes; the rest stays. The first thing is deleted. A later deletion of what
// has gone answers NotFound.
func TestAServiceDeletesWhatItsResourceOwns(t *testing.T) {
	function := thing{"fn", "AWS::Lambda::Function", functionFn}
	version := thing{"version", "AWS::Lambda::Version", `{"FunctionName":"{fn}"}`}
	alias := thing{"alias", "AWS::Lambda::Alias", `{"Name":"live","FunctionName":"{fn}","FunctionVersion":"{version.Version}"}`}
	group := thing{"group", "AWS::Logs::LogGroup", `{"LogGroupName":"/g"}`}
	topic := thing{"topic", "AWS::SNS::Topic", `{"TopicName":"t"}`}
	queue := thing{"queue", "AWS::SQS::Queue", `{"QueueName":"q"}`}
	vpc := thing{"vpc", "AWS::EC2::VPC", `{"CidrBlock":"10.0.0.0/16"}`}
	cases := []struct {
		name   string
		things []thing
		stay   string // names that stay, separated by spaces
	}{
		{"a log group and its streams, filters and subscriptions", []thing{
			group,
			{"stream", "AWS::Logs::LogStream", `{"LogGroupName":"{group}","LogStreamName":"s"}`},
			{"metric", "AWS::Logs::MetricFilter", `{"LogGroupName":"{group}","FilterPattern":"","MetricTransformations":[{"MetricName":"m","MetricNamespace":"n","MetricValue":"1"}]}`},
			{"subscription", "AWS::Logs::SubscriptionFilter", `{"LogGroupName":"{group}","FilterPattern":"","DestinationArn":"arn:aws:lambda:us-east-1:123456789012:function:f"}`},
			{"other", "AWS::Logs::LogGroup", `{"LogGroupName":"/h"}`},
			{"elsewhere", "AWS::Logs::LogStream", `{"LogGroupName":"{other}","LogStreamName":"s"}`},
		}, "other elsewhere"},
		{"a function and its versions, aliases, permissions, URL and configuration", []thing{
			function, version, alias,
			{"url", "AWS::Lambda::Url", `{"TargetFunctionArn":"{fn.Arn}","AuthType":"NONE"}`},
			{"permission", "AWS::Lambda::Permission", `{"FunctionName":"{fn.Arn}","Action":"lambda:InvokeFunction","Principal":"sns.amazonaws.com"}`},
			{"onAlias", "AWS::Lambda::Permission", `{"FunctionName":"{alias}","Action":"lambda:InvokeFunction","Principal":"sns.amazonaws.com"}`},
			{"async", "AWS::Lambda::EventInvokeConfig", `{"FunctionName":"{fn}","Qualifier":"$LATEST"}`},
			queue,
			{"source", "AWS::Lambda::EventSourceMapping", `{"FunctionName":"{alias}","EventSourceArn":"{queue.Arn}"}`},
			{"second", "AWS::Lambda::EventSourceMapping", `{"FunctionName":"{fn}","EventSourceArn":"{queue.Arn}"}`},
		}, "queue source second"},
		{"a state machine with its versions and aliases", []thing{
			{"machine", "AWS::StepFunctions::StateMachine", `{"RoleArn":"arn:aws:iam::123456789012:role/r","DefinitionString":"{}"}`},
			{"version", "AWS::StepFunctions::StateMachineVersion", `{"StateMachineArn":"{machine}"}`},
			{"alias", "AWS::StepFunctions::StateMachineAlias", `{"Name":"live","RoutingConfiguration":[{"StateMachineVersionArn":"{version}","Weight":100}]}`},
		}, ""},
		{"a bucket and its policy", []thing{
			{"bucket", "AWS::S3::Bucket", `{"BucketName":"the-bucket"}`},
			{"policy", "AWS::S3::BucketPolicy", `{"Bucket":"{bucket}","PolicyDocument":` + emptyPolicy + `}`},
		}, ""},
		{"a topic, its policies and subscriptions", []thing{
			topic, queue,
			{"subscription", "AWS::SNS::Subscription", `{"TopicArn":"{topic}","Protocol":"sqs","Endpoint":"{queue.Arn}"}`},
			{"policy", "AWS::SNS::TopicPolicy", `{"Topics":["{topic}"],"PolicyDocument":` + emptyPolicy + `}`},
			{"inline", "AWS::SNS::TopicInlinePolicy", `{"TopicArn":"{topic}","PolicyDocument":` + emptyPolicy + `}`},
		}, "queue"},
		{"a queue and its policies", []thing{
			queue,
			{"policy", "AWS::SQS::QueuePolicy", `{"Queues":["{queue}"],"PolicyDocument":` + emptyPolicy + `}`},
			{"inline", "AWS::SQS::QueueInlinePolicy", `{"Queue":"{queue}","PolicyDocument":` + emptyPolicy + `}`},
		}, ""},
		{"a policy of two queues stays with the other one", []thing{
			queue, {"other", "AWS::SQS::Queue", `{"QueueName":"r"}`},
			{"policy", "AWS::SQS::QueuePolicy", `{"Queues":["{queue}","{other}"],"PolicyDocument":` + emptyPolicy + `}`},
		}, "other policy"},
		{"a policy that also names a queue from elsewhere stays", []thing{
			queue,
			{"policy", "AWS::SQS::QueuePolicy", `{"Queues":["{queue}","https://sqs.us-east-1.amazonaws.com/123456789012/outside"],"PolicyDocument":` + emptyPolicy + `}`},
		}, "policy"},
		{"a load balancer, its listeners and their rules", []thing{
			{"front", "AWS::ElasticLoadBalancingV2::LoadBalancer", `{"Subnets":["subnet-a","subnet-b"]}`},
			{"target", "AWS::ElasticLoadBalancingV2::TargetGroup", `{}`},
			{"listener", "AWS::ElasticLoadBalancingV2::Listener", `{"LoadBalancerArn":"{front}","DefaultActions":[{"Type":"forward","TargetGroupArn":"{target}"}]}`},
			{"rule", "AWS::ElasticLoadBalancingV2::ListenerRule", `{"ListenerArn":"{listener}","Priority":1,"Actions":[{"Type":"forward","TargetGroupArn":"{target}"}],"Conditions":[]}`},
			{"certificates", "AWS::ElasticLoadBalancingV2::ListenerCertificate", `{"ListenerArn":"{listener}","Certificates":[]}`},
		}, "target"},
		{"a scaling group and its policies", []thing{
			{"scaling", "AWS::AutoScaling::AutoScalingGroup", `{"AutoScalingGroupName":"g","MinSize":"0","MaxSize":"1"}`},
			{"policy", "AWS::AutoScaling::ScalingPolicy", `{"AutoScalingGroupName":"{scaling}"}`},
			{"warm", "AWS::AutoScaling::WarmPool", `{"AutoScalingGroupName":"{scaling}"}`},
		}, ""},
		{"a scalable target and its policies", []thing{
			{"target", "AWS::ApplicationAutoScaling::ScalableTarget", `{"MinCapacity":1,"MaxCapacity":2,"ResourceId":"table/t","ScalableDimension":"dynamodb:table:ReadCapacityUnits","ServiceNamespace":"dynamodb"}`},
			{"policy", "AWS::ApplicationAutoScaling::ScalingPolicy", `{"PolicyName":"p","PolicyType":"TargetTrackingScaling","ScalingTargetId":"{target}"}`},
		}, ""},
		{"a schedule group and its schedules", []thing{
			{"group", "AWS::Scheduler::ScheduleGroup", `{"Name":"g"}`},
			{"schedule", "AWS::Scheduler::Schedule", `{"GroupName":"{group}","Name":"s","FlexibleTimeWindow":{"Mode":"OFF"},"ScheduleExpression":"rate(1 day)","Target":{"Arn":"arn:aws:sqs:us-east-1:123456789012:x","RoleArn":"arn:aws:iam::123456789012:role/r"}}`},
			{"other", "AWS::Scheduler::Schedule", `{"Name":"o","FlexibleTimeWindow":{"Mode":"OFF"},"ScheduleExpression":"rate(1 day)","Target":{"Arn":"arn:aws:sqs:us-east-1:123456789012:x","RoleArn":"arn:aws:iam::123456789012:role/r"}}`},
		}, "other"},
		{"a database and its tables", []thing{
			{"database", "AWS::Glue::Database", `{"CatalogId":"123456789012","DatabaseName":"d","DatabaseInput":{}}`},
			{"table", "AWS::Glue::Table", `{"CatalogId":"123456789012","DatabaseName":"{database}","Name":"t"}`},
		}, ""},
		{"a security group and its rules", []thing{
			{"group", "AWS::EC2::SecurityGroup", `{"GroupDescription":"d"}`},
			{"in", "AWS::EC2::SecurityGroupIngress", `{"GroupId":"{group.GroupId}","IpProtocol":"-1","SourceSecurityGroupId":"{group.GroupId}"}`},
			{"out", "AWS::EC2::SecurityGroupEgress", `{"GroupId":"{group.GroupId}","IpProtocol":"-1","CidrIp":"0.0.0.0/0"}`},
		}, ""},
		{"a route table and its routes", []thing{
			{"table", "AWS::EC2::RouteTable", `{"VpcId":"vpc-outside"}`},
			{"route", "AWS::EC2::Route", `{"RouteTableId":"{table}","DestinationCidrBlock":"0.0.0.0/0","GatewayId":"igw-outside"}`},
		}, ""},
		{"a VPC and its flow log", []thing{vpc, {"flow", "AWS::EC2::FlowLog", `{"ResourceId":"{vpc}","ResourceType":"VPC"}`}}, ""},
		{"a key leaves its alias until its waiting period is over", []thing{
			{"key", "AWS::KMS::Key", `{}`}, {"alias", "AWS::KMS::Alias", `{"AliasName":"alias/a","TargetKeyId":"{key}"}`},
		}, "alias"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, Options{})
			ids := b.build(c.things)
			if code := b.unmake(c.things[0].typeName, ids[c.things[0].name]); code != "" {
				t.Fatalf("the deletion failed with %s", code)
			}
			for _, th := range c.things {
				stays := contains(strings.Fields(c.stay), th.name)
				if b.lives(th.typeName, ids[th.name]) != stays {
					t.Errorf("%s: stays = %v, want %v", th.name, !stays, stays)
				}
				if !stays {
					if code := b.unmake(th.typeName, ids[th.name]); code != failureNotFound {
						t.Errorf("deleting %s afterwards answers %q", th.name, code)
					}
				}
			}
			// What has gone holds nothing any more, and what stays can be deleted.
			for i := len(c.things) - 1; i >= 0; i-- {
				if th := c.things[i]; b.lives(th.typeName, ids[th.name]) {
					if code := b.unmake(th.typeName, ids[th.name]); code != "" {
						t.Errorf("deleting %s at the end answers %q", th.name, code)
					}
				}
			}
		})
	}
}

// The first thing can't be deleted while the last one is there.
func TestAServiceRefusesToDeleteWhatIsAttached(t *testing.T) {
	role := thing{"role", "AWS::IAM::Role", `{"RoleName":"r","AssumeRolePolicyDocument":` + emptyPolicy + `}`}
	user := thing{"user", "AWS::IAM::User", `{"UserName":"u"}`}
	group := thing{"group", "AWS::IAM::Group", `{"GroupName":"g"}`}
	sg := thing{"sg", "AWS::EC2::SecurityGroup", `{"GroupDescription":"d"}`}
	cases := []struct {
		name   string
		things []thing
	}{
		{"a role with an inline policy", []thing{role, {"p", "AWS::IAM::Policy", `{"PolicyName":"p","PolicyDocument":` + emptyPolicy + `,"Roles":["{role}"]}`}}},
		{"a role with a policy of its own", []thing{role, {"p", "AWS::IAM::RolePolicy", `{"PolicyName":"p","RoleName":"{role}","PolicyDocument":` + emptyPolicy + `}`}}},
		{"a role with a managed policy", []thing{role, {"p", "AWS::IAM::ManagedPolicy", `{"PolicyDocument":` + emptyPolicy + `,"Roles":["{role}"]}`}}},
		{"a role in an instance profile", []thing{role, {"p", "AWS::IAM::InstanceProfile", `{"Roles":["{role}"]}`}}},
		{"a user with an access key", []thing{user, {"k", "AWS::IAM::AccessKey", `{"UserName":"{user}"}`}}},
		{"a user with a policy", []thing{user, {"p", "AWS::IAM::Policy", `{"PolicyName":"p","PolicyDocument":` + emptyPolicy + `,"Users":["{user}"]}`}}},
		{"a user in a group", []thing{user, group, {"m", "AWS::IAM::UserToGroupAddition", `{"GroupName":"{group}","Users":["{user}"]}`}}},
		{"a group with a user", []thing{group, user, {"m", "AWS::IAM::UserToGroupAddition", `{"GroupName":"{group}","Users":["{user}"]}`}}},
		{"a group with a policy", []thing{group, {"p", "AWS::IAM::Policy", `{"PolicyName":"p","PolicyDocument":` + emptyPolicy + `,"Groups":["{group}"]}`}}},
		{"a zone with a record", []thing{{"zone", "AWS::Route53::HostedZone", `{"Name":"example.com."}`}, {"r", "AWS::Route53::RecordSet", `{"HostedZoneId":"{zone}","Name":"a.example.com.","Type":"A"}`}}},
		{"a zone with records", []thing{{"zone", "AWS::Route53::HostedZone", `{"Name":"example.com."}`}, {"r", "AWS::Route53::RecordSetGroup", `{"HostedZoneId":"{zone}"}`}}},
		{"a security group that a rule of another names", []thing{
			sg, {"other", "AWS::EC2::SecurityGroup", `{"GroupDescription":"d"}`},
			{"rule", "AWS::EC2::SecurityGroupIngress", `{"GroupId":"{other.GroupId}","IpProtocol":"-1","SourceSecurityGroupId":"{sg.GroupId}"}`},
		}},
		{"a bucket with an access point", []thing{{"bucket", "AWS::S3::Bucket", `{"BucketName":"the-bucket"}`}, {"p", "AWS::S3::AccessPoint", `{"Bucket":"{bucket}"}`}}},
		{"a version that an alias names", []thing{
			{"machine", "AWS::StepFunctions::StateMachineVersion", `{"StateMachineArn":"arn:aws:states:us-east-1:123456789012:stateMachine:m"}`},
			{"alias", "AWS::StepFunctions::StateMachineAlias", `{"Name":"live","DeploymentPreference":{"StateMachineVersionArn":"{machine}","Type":"ALL_AT_ONCE"}}`},
		}},
		{"an event bus with rules", []thing{{"bus", "AWS::Events::EventBus", `{"Name":"b"}`}, {"rule", "AWS::Events::Rule", `{"EventBusName":"{bus}","EventPattern":{}}`}}},
		{"a function that something outside of it needs", []thing{
			{"fn", "AWS::Lambda::Function", functionFn},
			{"provider", "AWS::IoT::CertificateProvider", `{"LambdaFunctionArn":"{fn.Arn}","AccountDefaultForOperations":["CreateCertificateFromCsr"]}`},
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, Options{})
			ids := b.build(c.things)
			first, last := c.things[0], c.things[len(c.things)-1]
			if code := b.unmake(first.typeName, ids[first.name]); code != failureConflict {
				t.Errorf("the deletion answers %q", code)
			}
			for _, th := range c.things {
				if !b.lives(th.typeName, ids[th.name]) {
					t.Errorf("%s is gone", th.name)
				}
			}
			if code := b.unmake(last.typeName, ids[last.name]); code != "" {
				t.Errorf("deleting the %s answers %q", last.name, code)
			}
			if code := b.unmake(first.typeName, ids[first.name]); code != "" {
				t.Errorf("deleting the %s when it is free answers %q", first.name, code)
			}
		})
	}
}

func TestWhatAResourceOwnsGoesWhenItsDeletionIsOver(t *testing.T) {
	b := newBench(t, Options{Speed: 1})
	wait := func(typeName, model string) string {
		t.Helper()
		e, err := b.start(typeName, model, "")
		if err != nil {
			t.Fatal(err)
		}
		b.clock.Advance(10 * time.Minute)
		if e = b.wait(e.RequestToken); e.OperationStatus != cctypes.OperationStatusSuccess {
			t.Fatalf("creating %s: %+v", typeName, e)
		}
		return *e.Identifier
	}
	group := wait("AWS::Logs::LogGroup", `{"LogGroupName":"/g"}`)
	stream := wait("AWS::Logs::LogStream", `{"LogGroupName":"/g","LogStreamName":"s"}`)
	remove := func() *cctypes.ProgressEvent {
		t.Helper()
		typeName := "AWS::Logs::LogGroup"
		out, err := b.cc.DeleteResource(bg, &cloudcontrol.DeleteResourceInput{TypeName: &typeName, Identifier: &group})
		if err != nil {
			t.Fatal(err)
		}
		return out.ProgressEvent
	}
	e := remove()
	if !b.lives("AWS::Logs::LogStream", stream) {
		t.Error("the stream is gone before its group is")
	}
	if _, err := b.cc.CancelResourceRequest(bg, &cloudcontrol.CancelResourceRequestInput{RequestToken: e.RequestToken}); err != nil {
		t.Fatal(err)
	}
	b.clock.Advance(10 * time.Minute)
	if !b.lives("AWS::Logs::LogGroup", group) || !b.lives("AWS::Logs::LogStream", stream) {
		t.Error("a cancelled deletion has taken something away")
	}
	// While its child is being deleted, the group stays as it is.
	typeName := "AWS::Logs::LogStream"
	out, err := b.cc.DeleteResource(bg, &cloudcontrol.DeleteResourceInput{TypeName: &typeName, Identifier: &stream})
	if err != nil {
		t.Fatal(err)
	}
	e = remove()
	b.clock.Advance(10 * time.Minute)
	if e = b.wait(e.RequestToken); e.ErrorCode != failureConflict {
		t.Errorf("deleting the group meanwhile: %+v", e)
	}
	if e = b.wait(out.ProgressEvent.RequestToken); e.OperationStatus != cctypes.OperationStatusSuccess {
		t.Errorf("deleting the stream: %+v", e)
	}
	wait("AWS::Logs::LogStream", `{"LogGroupName":"/g","LogStreamName":"s"}`)
	e = remove()
	b.clock.Advance(10 * time.Minute)
	if e = b.wait(e.RequestToken); e.OperationStatus != cctypes.OperationStatusSuccess {
		t.Errorf("deleting the group: %+v", e)
	}
	if b.lives("AWS::Logs::LogGroup", group) || b.lives("AWS::Logs::LogStream", stream) {
		t.Error("something of the group is left")
	}
}

func TestATieTakesThreeWords(t *testing.T) {
	for _, line := range []string{"owns AWS::S3::Bucket", "blocks A B", "outlives A B C D", "loves A B C"} {
		if _, err := parseRelations(line); err == nil {
			t.Errorf("%q is accepted", line)
		}
	}
}
