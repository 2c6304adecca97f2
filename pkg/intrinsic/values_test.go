package intrinsic_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/intrinsic"
	"github.com/slipway-cdk/slipway/pkg/schema"
)

func TestRefGivesWhatTheTypeDocuments(t *testing.T) {
	cases := []struct {
		typ, id string
		attrs   map[string]any
		want    any // nil: no value
	}{
		{typ: "AWS::S3::Bucket", id: "b", want: "b"},
		{typ: "AWS::ApiGateway::Stage", id: "api1|prod", want: "prod"},
		{typ: "AWS::ApiGateway::Stage", id: "prod", want: "prod"},
		{typ: "AWS::ApiGateway::Resource", id: "api1|res1", want: "res1"},
		{typ: "AWS::ApiGateway::Deployment", id: "dep1|api1", want: "dep1"},
		{typ: "AWS::ApiGateway::Authorizer", id: "api1|auth1", want: "auth1"},
		{typ: "AWS::ApiGatewayV2::Authorizer", id: "auth1|api1", want: "auth1"},
		{typ: "AWS::ApiGatewayV2::Deployment", id: "api1|dep1", want: "dep1"},
		{typ: "AWS::ApiGatewayV2::ApiMapping", id: "map1|domain", want: "map1"},
		{typ: "AWS::ApiGatewayV2::RouteResponse", id: "api1|route1|resp1", want: "resp1"},
		{typ: "AWS::AppConfig::HostedConfigurationVersion", id: "app|profile|3", want: "3"},
		{typ: "AWS::Cognito::UserPoolClient", id: "eu-west-1_abc|client1", want: "client1"},
		{typ: "AWS::EC2::EIP", id: "1.2.3.4|eipalloc-1", want: "1.2.3.4"},
		{typ: "AWS::EC2::VPCCidrBlock", id: "vpc-cidr-assoc-1|vpc-1", want: "vpc-cidr-assoc-1"},
		{typ: "AWS::ECS::Service", id: "arn:aws:ecs:eu-west-1:1:service/c/s|c", want: "arn:aws:ecs:eu-west-1:1:service/c/s"},
		{typ: "AWS::Route53::RecordSet", id: "Z1|www.example.com.|A", want: "www.example.com."},
		{typ: "AWS::Glue::Table", id: "db|table|odd", want: "table|odd"},
		{typ: "AWS::Events::Rule", id: "arn:aws:events:eu-west-1:1:rule/r1", want: "r1"},
		{typ: "AWS::Events::Rule", id: "arn:aws:events:eu-west-1:1:rule/bus/r1", want: "bus|r1"},
		{typ: "AWS::CloudTrail::Trail", id: "arn:aws:cloudtrail:eu-west-1:1:trail/t1", want: "t1"},
		{typ: "AWS::WAFv2::WebACL", id: "arn:aws:wafv2:eu-west-1:1:regional/webacl/acl/uuid", want: "acl|uuid|REGIONAL"},
		{typ: "AWS::WAFv2::WebACL", id: "arn:aws:wafv2:us-east-1:1:global/webacl/acl/uuid", want: "acl|uuid|CLOUDFRONT"},
		{typ: "AWS::WAFv2::WebACL", id: "acl|uuid|REGIONAL", want: "acl|uuid|REGIONAL"},
		{typ: "AWS::S3Tables::Namespace", id: "arn:aws:s3tables:eu-west-1:1:bucket/b|ns", want: "ns"},
		{typ: "AWS::S3Tables::Table", id: "arn:aws:s3tables:eu-west-1:1:bucket/b|ns|t", want: "t"},
		{typ: "AWS::S3Tables::Table", id: "arn:aws:s3tables:eu-west-1:1:bucket/b/table/uuid", attrs: map[string]any{"TableName": "t"}, want: "t"},
		{typ: "AWS::AppSync::DataSource", id: "api|ds", attrs: map[string]any{"DataSourceArn": "arn:ds"}, want: "arn:ds"},
		{typ: "AWS::AppSync::DataSource", id: "api|ds", want: nil},
		{typ: "AWS::AppSync::Resolver", id: "api|Query|get", attrs: map[string]any{"ResolverArn": "arn:r"}, want: "arn:r"},
		{typ: "AWS::CodeCommit::Repository", id: "repo", attrs: map[string]any{"RepositoryId": "uuid"}, want: "uuid"},
		{typ: "AWS::Backup::BackupSelection", id: "plan_sel", attrs: map[string]any{"SelectionId": "sel"}, want: "sel"},
		{typ: "AWS::SQS::Queue", id: "", want: nil},
	}
	for _, c := range cases {
		t.Run(c.typ+" "+c.id, func(t *testing.T) {
			got, ok := intrinsic.Ref(&intrinsic.Scope{}, intrinsic.Resource{Type: c.typ, PhysicalID: c.id, Attributes: c.attrs})
			if ok != (c.want != nil) || (ok && got != c.want) {
				t.Fatalf("got %v, %v, want %v", got, ok, c.want)
			}
		})
	}
}

func TestAttributesAreDerivedFromThePhysicalID(t *testing.T) {
	const account = "123456789012"
	cases := []struct {
		region, typ, id, name string
		props                 map[string]any
		want                  any // nil: no such attribute
	}{
		{typ: "AWS::S3::Bucket", id: "b", name: "DomainName", want: "b.s3.amazonaws.com"},
		{typ: "AWS::S3::Bucket", id: "b", name: "RegionalDomainName", want: "b.s3.eu-west-1.amazonaws.com"},
		{typ: "AWS::S3::Bucket", id: "b", name: "DualStackDomainName", want: "b.s3.dualstack.eu-west-1.amazonaws.com"},
		{typ: "AWS::S3::Bucket", id: "b", name: "WebsiteURL", want: "http://b.s3-website-eu-west-1.amazonaws.com"},
		{region: "eu-central-1", typ: "AWS::S3::Bucket", id: "b", name: "WebsiteURL", want: "http://b.s3-website.eu-central-1.amazonaws.com"},
		{region: "cn-north-1", typ: "AWS::S3::Bucket", id: "b", name: "Arn", want: "arn:aws-cn:s3:::b"},
		{region: "cn-north-1", typ: "AWS::S3::Bucket", id: "b", name: "RegionalDomainName", want: "b.s3.cn-north-1.amazonaws.com.cn"},
		{typ: "AWS::DynamoDB::Table", id: "t", name: "Arn", want: "arn:aws:dynamodb:eu-west-1:123456789012:table/t"},
		{typ: "AWS::DynamoDB::Table", id: "t", name: "StreamArn", want: nil},
		{typ: "AWS::Lambda::Function", id: "f", name: "Arn", want: "arn:aws:lambda:eu-west-1:123456789012:function:f"},
		{typ: "AWS::Lambda::Function", id: "arn:aws:lambda:eu-west-1:1:function:f", name: "Arn", want: "arn:aws:lambda:eu-west-1:1:function:f"},
		{typ: "AWS::SQS::Queue", id: "https://sqs.eu-west-1.amazonaws.com/123456789012/q.fifo", name: "Arn", want: "arn:aws:sqs:eu-west-1:123456789012:q.fifo"},
		{typ: "AWS::SQS::Queue", id: "https://sqs.eu-west-1.amazonaws.com/123456789012/q", name: "QueueName", want: "q"},
		{typ: "AWS::SQS::Queue", id: "https://sqs.eu-west-1.amazonaws.com/123456789012/q", name: "QueueUrl", want: "https://sqs.eu-west-1.amazonaws.com/123456789012/q"},
		{typ: "AWS::SNS::Topic", id: "arn:aws:sns:eu-west-1:123456789012:t", name: "TopicName", want: "t"},
		{typ: "AWS::SNS::Topic", id: "arn:aws:sns:eu-west-1:123456789012:t", name: "TopicArn", want: "arn:aws:sns:eu-west-1:123456789012:t"},
		{typ: "AWS::Logs::LogGroup", id: "/aws/x", name: "Arn", want: "arn:aws:logs:eu-west-1:123456789012:log-group:/aws/x:*"},
		{typ: "AWS::IAM::Role", id: "r", name: "Arn", want: "arn:aws:iam::123456789012:role/r"},
		{typ: "AWS::IAM::Role", id: "r", name: "Arn", props: map[string]any{"Path": "/a/b/"}, want: "arn:aws:iam::123456789012:role/a/b/r"},
		{typ: "AWS::IAM::InstanceProfile", id: "p", name: "Arn", want: "arn:aws:iam::123456789012:instance-profile/p"},
		{typ: "AWS::IAM::Role", id: "r", name: "RoleId", want: nil},
		{typ: "AWS::KMS::Key", id: "k", name: "Arn", want: "arn:aws:kms:eu-west-1:123456789012:key/k"},
		{typ: "AWS::KMS::Key", id: "k", name: "KeyId", want: "k"},
		{typ: "AWS::Events::Rule", id: "r", name: "Arn", want: "arn:aws:events:eu-west-1:123456789012:rule/r"},
		{typ: "AWS::Events::Rule", id: "r", name: "Arn", props: map[string]any{"EventBusName": "arn:aws:events:eu-west-1:1:event-bus/b"}, want: "arn:aws:events:eu-west-1:123456789012:rule/b/r"},
		{typ: "AWS::Events::Rule", id: "b|r", name: "Arn", want: "arn:aws:events:eu-west-1:123456789012:rule/b/r"},
		{typ: "AWS::RDS::DBInstance", id: "db", name: "DBInstanceArn", want: "arn:aws:rds:eu-west-1:123456789012:db:db"},
		{typ: "AWS::RDS::DBCluster", id: "c", name: "DBClusterArn", want: "arn:aws:rds:eu-west-1:123456789012:cluster:c"},
		{typ: "AWS::RDS::DBInstance", id: "db", name: "Endpoint.Address", want: nil},
		{typ: "AWS::ECR::Repository", id: "r", name: "RepositoryUri", want: "123456789012.dkr.ecr.eu-west-1.amazonaws.com/r"},
		{typ: "AWS::ECS::Service", id: "arn:aws:ecs:eu-west-1:1:service/c/s|c", name: "Name", want: "s"},
		{typ: "AWS::EC2::EIP", id: "1.2.3.4|eipalloc-1", name: "AllocationId", want: "eipalloc-1"},
		{typ: "AWS::EC2::SecurityGroup", id: "sg-1", name: "GroupId", want: "sg-1"},
		{typ: "AWS::EC2::VPC", id: "vpc-1", name: "DefaultSecurityGroup", want: nil},
		{typ: "AWS::EC2::VPC", id: "vpc-1", name: "CidrBlock", props: map[string]any{"CidrBlock": "10.0.0.0/16"}, want: "10.0.0.0/16"},
		{typ: "AWS::ApiGatewayV2::Api", id: "a1", name: "ApiEndpoint", props: map[string]any{"ProtocolType": "HTTP"}, want: "https://a1.execute-api.eu-west-1.amazonaws.com"},
		{typ: "AWS::Cognito::UserPool", id: "eu-west-1_x", name: "Arn", want: "arn:aws:cognito-idp:eu-west-1:123456789012:userpool/eu-west-1_x"},
		{typ: "AWS::Cognito::UserPool", id: "eu-west-1_x", name: "ProviderURL", want: "https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_x"},
		{typ: "AWS::Unheard::Of", id: "x", name: "Arn", want: nil},
	}
	for _, c := range cases {
		t.Run(c.typ+" "+c.id+" "+c.name, func(t *testing.T) {
			if c.region == "" {
				c.region = "eu-west-1"
			}
			scope := &intrinsic.Scope{Pseudo: intrinsic.PseudoFor(account, c.region, "S")}
			got, ok := intrinsic.Attribute(scope, intrinsic.Resource{Type: c.typ, PhysicalID: c.id, Properties: c.props}, c.name)
			if ok != (c.want != nil) || (ok && got != c.want) {
				t.Fatalf("got %v, %v, want %v", got, ok, c.want)
			}
		})
	}
}

func TestRecordedAttributesWinOverDerivedOnes(t *testing.T) {
	scope := &intrinsic.Scope{Pseudo: intrinsic.PseudoFor("123456789012", "eu-west-1", "S")}
	r := intrinsic.Resource{Type: "AWS::IAM::Role", PhysicalID: "r", Attributes: map[string]any{"Arn": "arn:recorded", "a.b": "flat", "a": map[string]any{"b": "nested", "c.d": "mixed"}}}
	for name, want := range map[string]any{"Arn": "arn:recorded", "a.b": "flat", "a.c.d": "mixed"} {
		if got, ok := intrinsic.Attribute(scope, r, name); !ok || got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	zone := intrinsic.Resource{Type: "AWS::Route53::HostedZone", PhysicalID: "Z", Attributes: map[string]any{"NameServers": "a, b"}}
	got, _ := intrinsic.Attribute(scope, zone, "NameServers")
	if diff := cmp.Diff([]any{"a", "b"}, got); diff != "" {
		t.Errorf("NameServers recorded as text (-want +got):\n%s", diff)
	}
}

func TestTheSchemaFillsInWhatTheTablesDoNotName(t *testing.T) {
	types := map[string]*schema.Type{
		"AWS::New::Child": {PrimaryIdentifier: []string{"ParentId", "ChildId"}, RefProperty: "ChildId",
			Attributes: map[string]*schema.Property{"ChildId": {Kind: schema.KindString}, "Arn": {Kind: schema.KindString}, "ChildArn": {Kind: schema.KindString}},
			ARN:        "arn:${Partition}:new:${Region}:${Account}:parent/${ParentId}/child/${ChildId}"},
		"AWS::New::Named": {PrimaryIdentifier: []string{"NamedArn"}, Attributes: map[string]*schema.Property{"NamedArn": {Kind: schema.KindString}}},
	}
	scope := &intrinsic.Scope{Pseudo: intrinsic.PseudoFor("123456789012", "eu-west-1", "S"),
		Schema: func(typ string) (*schema.Type, bool) { t, ok := types[typ]; return t, ok }}
	child := intrinsic.Resource{Type: "AWS::New::Child", PhysicalID: "p1|c1"}
	if got, _ := intrinsic.Ref(scope, child); got != "c1" {
		t.Errorf("Ref is %v, want the part that the schema names", got)
	}
	for name, want := range map[string]any{"ChildId": "c1", "Arn": "arn:aws:new:eu-west-1:123456789012:parent/p1/child/c1"} {
		if got, ok := intrinsic.Attribute(scope, child, name); !ok || got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	for _, name := range []string{"ParentId", "ChildArn", "Nothing"} {
		if got, ok := intrinsic.Attribute(scope, child, name); ok {
			t.Errorf("%s is %v, but nothing says so", name, got)
		}
	}
	if got, ok := intrinsic.Attribute(scope, intrinsic.Resource{Type: "AWS::New::Named", PhysicalID: "a-mere-name"}, "NamedArn"); ok {
		t.Errorf("an ID without the shape of an ARN was taken for one: %v", got)
	}
	if got, ok := intrinsic.Attribute(scope, intrinsic.Resource{Type: "AWS::New::Named", PhysicalID: "arn:aws:new:::x"}, "NamedArn"); !ok || got != "arn:aws:new:::x" {
		t.Errorf("the identifier is the ARN, got %v", got)
	}
	if got, _ := intrinsic.Ref(scope, intrinsic.Resource{Type: "AWS::New::Other", PhysicalID: "a|b"}); got != "a|b" {
		t.Errorf("without a schema Ref is the whole ID, got %v", got)
	}
}

func TestPseudoParametersFollowTheRegionsPartition(t *testing.T) {
	cases := []struct{ region, partition, suffix string }{
		{"us-east-1", "aws", "amazonaws.com"},
		{"ap-southeast-3", "aws", "amazonaws.com"},
		{"cn-northwest-1", "aws-cn", "amazonaws.com.cn"},
		{"us-gov-west-1", "aws-us-gov", "amazonaws.com"},
		{"us-iso-east-1", "aws-iso", "c2s.ic.gov"},
		{"us-isob-east-1", "aws-iso-b", "sc2s.sgov.gov"},
		{"eu-isoe-west-1", "aws-iso-e", "cloud.adc-e.uk"},
		{"us-isof-south-1", "aws-iso-f", "csp.hci.ic.gov"},
		{"eusc-de-east-1", "aws-eusc", "amazonaws.eu"},
		{"no region", "", ""},
		{"us-east-1.evil.example", "", ""},
	}
	for _, c := range cases {
		p := intrinsic.PseudoFor("123456789012", c.region, "Shop")
		if p.Partition != c.partition || p.URLSuffix != c.suffix {
			t.Errorf("%s: got %q, %q, want %q, %q", c.region, p.Partition, p.URLSuffix, c.partition, c.suffix)
		}
	}
}

func TestTheStackIDIsStableAndKeepsCdkdsWhereItIsInUse(t *testing.T) {
	p := intrinsic.PseudoFor("123456789012", "eu-west-1", "Shop")
	if again := intrinsic.PseudoFor("123456789012", "eu-west-1", "Shop"); again.StackID != p.StackID {
		t.Errorf("the stack ID changes: %s, %s", p.StackID, again.StackID)
	}
	if other := intrinsic.PseudoFor("123456789012", "eu-west-1", "Shop2"); other.StackID == p.StackID {
		t.Errorf("two stacks share the ID %s", p.StackID)
	}
	const cdkd = "arn:aws:cloudformation:eu-west-1:123456789012:stack/Shop/cdkd"
	if got := p.WithRecordedStackID(map[string]any{"Tags": []any{map[string]any{"Value": "x " + cdkd}}}).StackID; got != cdkd {
		t.Errorf("got %s, want the ID that is recorded", got)
	}
	if got := p.WithRecordedStackID(map[string]any{"Name": "arn:aws:cloudformation:eu-west-1:123456789012:stack/Other/cdkd"}, nil).StackID; got != p.StackID {
		t.Errorf("another stack's ID was taken over: %s", got)
	}
}

func TestUnknownsStayAtTheirPlaceBesideKnownSiblings(t *testing.T) {
	value := parseJSON(t, `{"Name": {"Ref": "Env"}, "Targets": ["a", {"Ref": "Later"}, {"Arn": {"Fn::GetAtt": ["Replaced", "Arn"]}}]}`)
	got, err := intrinsic.NewResolver(languageScope(t)).Resolve(value, "Properties")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"Name": "prod", "Targets": []any{"a", intrinsic.Unknown{Refs: []string{"Later"}}, map[string]any{"Arn": intrinsic.Unknown{Refs: []string{"Replaced.Arn"}}}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"Later", "Replaced.Arn"}, intrinsic.HasUnknown(got)); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	if intrinsic.HasUnknown(map[string]any{"a": json.Number("1")}) != nil {
		t.Error("a known value has unknowns")
	}
}

func TestAllProblemsOfAResourceAreReportedTogether(t *testing.T) {
	value := parseJSON(t, `{"A": {"Ref": "Nope"}, "B": [{"Fn::Select": [9, ["x"]]}], "C": {"Fn::Sub": "${Gone}"}}`)
	_, err := intrinsic.NewResolver(languageScope(t)).Resolve(value, "Properties")
	want := "Thing Properties.A.Ref: nothing is called Nope\n" +
		"Thing Properties.B.0.Fn::Select: the index is out of range: index 9, and the list has 1 items\n" +
		"Thing Properties.C.Fn::Sub: nothing is called Gone"
	if got := intrinsic.InResource(err, "Thing").Error(); got != want {
		t.Fatalf("got\n%s\nwant\n%s", got, want)
	}
}
