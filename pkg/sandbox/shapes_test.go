package sandbox

import (
	"encoding/json"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/slipway-cdk/slipway/pkg/schema"
)

// A rule for a type or path that does not exist would never be noticed otherwise.
func TestTheShapeTableNamesWhatTheSchemaHas(t *testing.T) {
	shapes, err := parseShapes(shapesTable)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range sortedKeys(shapes) {
		typ, ok := schema.Lookup(name)
		if !ok {
			t.Errorf("%s is no resource type", name)
			continue
		}
		known := func(path string) bool {
			if path == "" || contains(typ.PrimaryIdentifier, path) || contains(typ.ReadOnly, path) || typ.RefProperty == path {
				return true
			}
			return typ.At(strings.Split(path, "/")) != nil
		}
		for _, r := range shapes[name].rules {
			if !known(r.path) || !known(r.condition) {
				t.Errorf("%s has no %s or no %s", name, r.path, r.condition)
			}
		}
		for _, c := range shapes[name].claims {
			if !known(c.path) {
				t.Errorf("%s has no %s", name, c.path)
			}
		}
	}
	t.Logf("%d types have shapes of their own", len(shapes))
}

func TestTheRelationTableNamesWhatTheSchemaHas(t *testing.T) {
	rel, err := parseRelations(relationsTable)
	if err != nil {
		t.Fatal(err)
	}
	for name := range rel.refuses {
		if _, ok := schema.Lookup(name); !ok {
			t.Errorf("%s is no resource type", name)
		}
	}
	for _, table := range []map[string]bool{rel.exists, rel.unrelated} {
		for line := range table {
			name, path, _ := strings.Cut(line, " ")
			typ, ok := schema.Lookup(name)
			if !ok || typ.At(strings.Split(path, "/")) == nil {
				t.Errorf("there is no %s", line)
			}
		}
	}
	for _, table := range []map[tie]bool{rel.owns, rel.outlives, rel.blocks} {
		for line := range table {
			if _, ok := schema.Lookup(line.target); !ok {
				t.Errorf("%s is no resource type", line.target)
			}
			typ, ok := schema.Lookup(line.typeName)
			if !ok {
				t.Errorf("%s is no resource type", line.typeName)
				continue
			}
			// The paths of references leave out the "*" of lists.
			head, rest, nested := strings.Cut(line.path, "/")
			p := typ.At(strings.Split(line.path, "/"))
			if p == nil && nested {
				p = typ.At([]string{head, "*", rest})
			}
			if p == nil {
				t.Errorf("%s has no %s", line.typeName, line.path)
			}
			if rel.owns[line] && (rel.outlives[line] || rel.blocks[line]) || rel.outlives[line] && rel.blocks[line] {
				t.Errorf("%v has two meanings", line)
			}
		}
	}
}

func TestTheLatencyTableCoversAllRoutes(t *testing.T) {
	l, err := parseLatencies(latencyTable)
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range []string{opCreate, opUpdate, opDelete} {
		for _, r := range []route{routeCloudControl, routeDirect, routeCustom} {
			if l[latencyKey("*", op, r)] == (span{}) {
				t.Errorf("no default for %s by %s", op, r)
			}
		}
	}
	for key, s := range l {
		typ, _, _ := strings.Cut(key, " ")
		if _, ok := schema.Lookup(typ); !ok && typ != "*" {
			t.Errorf("%s is no resource type", typ)
		}
		if s.p50 > s.p90 {
			t.Errorf("%s: half take %v, nine of ten %v", key, s.p50, s.p90)
		}
	}
	nat := func(seed uint64, key string) time.Duration {
		return l.sample("AWS::EC2::NatGateway", opCreate, routeCloudControl, seed, key)
	}
	if again := nat(1, "a"); again != nat(1, "a") || nat(1, "a") == nat(2, "a") || nat(1, "a") == nat(1, "b") {
		t.Error("samples must depend on seed and key alone")
	}
	rapid.Check(t, func(rt *rapid.T) {
		d := nat(rapid.Uint64().Draw(rt, "seed"), rapid.String().Draw(rt, "key"))
		if d < 98*time.Second || d > 134*time.Second {
			rt.Fatalf("a NAT gateway in %v", d)
		}
	})
}

func TestIdentifiersAndAttributesHaveTheShapesOfAWS(t *testing.T) {
	for _, c := range []struct{ region, typeName, model, path, pattern string }{
		{"us-east-1", "AWS::EC2::VPC", `{}`, "VpcId", `^vpc-[0-9a-f]{17}$`},
		{"us-east-1", "AWS::EC2::VPC", `{}`, "DefaultSecurityGroup", `^sg-[0-9a-f]{17}$`},
		{"us-east-1", "AWS::EC2::EIP", `{}`, "AllocationId", `^eipalloc-[0-9a-f]{17}$`},
		{"us-east-1", "AWS::EC2::EIP", `{}`, "PublicIp", `^\d+\.\d+\.\d+\.\d+$`},
		{"us-east-1", "AWS::EC2::Instance", `{}`, "InstanceId", `^i-[0-9a-f]{17}$`},
		{"us-east-1", "AWS::EC2::Instance", `{}`, "PublicDnsName", `^ec2-\d+-\d+-\d+-\d+\.us-east-1\.compute\.amazonaws\.com$`},
		{"us-east-1", "AWS::ApiGateway::RestApi", `{}`, "RestApiId", `^[a-z0-9]{10}$`},
		{"us-east-1", "AWS::ApiGatewayV2::Api", `{}`, "ApiEndpoint", `^https://[a-z0-9]{10}\.execute-api\.us-east-1\.amazonaws\.com$`},
		{"us-east-1", "AWS::CloudFront::Distribution", `{}`, "Id", `^E[A-Z0-9]{13}$`},
		{"us-east-1", "AWS::KMS::Key", `{}`, "Arn", `^arn:aws:kms:us-east-1:123456789012:key/[0-9a-f-]{36}$`},
		{"eu-west-1", "AWS::Cognito::UserPool", `{}`, "UserPoolId", `^eu-west-1_[A-Za-z0-9]{9}$`},
		{"us-east-1", "AWS::Route53::HostedZone", `{"Name":"example.com"}`, "Id", `^Z[A-Z0-9]{20}$`},
		{"us-east-1", "AWS::SQS::Queue", `{}`, "QueueUrl", `^https://sqs\.us-east-1\.amazonaws\.com/123456789012/queue-[a-z0-9]{12}$`},
		{"us-east-1", "AWS::SQS::Queue", `{"FifoQueue":true}`, "Arn", `^arn:aws:sqs:us-east-1:123456789012:queue-[a-z0-9]{12}\.fifo$`},
		{"cn-north-1", "AWS::SQS::Queue", `{"QueueName":"q"}`, "QueueUrl", `^https://sqs\.cn-north-1\.amazonaws\.com\.cn/123456789012/q$`},
		{"us-gov-west-1", "AWS::SQS::Queue", `{"QueueName":"q"}`, "Arn", `^arn:aws-us-gov:sqs:us-gov-west-1:123456789012:q$`},
		{"cn-north-1", "AWS::S3::Bucket", `{"BucketName":"b"}`, "Arn", `^arn:aws-cn:s3:::b$`},
		{"us-east-1", "AWS::IAM::Role", `{"RoleName":"r","Path":"/a/"}`, "Arn", `^arn:aws:iam::123456789012:role/a/r$`},
		{"us-east-1", "AWS::IAM::Role", `{}`, "RoleId", `^AROA[A-Z0-9]{17}$`},
		{"us-east-1", "AWS::Logs::LogGroup", `{"LogGroupName":"/a"}`, "Arn", `^arn:aws:logs:us-east-1:123456789012:log-group:/a:\*$`},
		{"us-east-1", "AWS::ElasticLoadBalancingV2::LoadBalancer", `{"Name":"n","Type":"network"}`, "LoadBalancerFullName", `^net/n/[0-9a-f]{16}$`},
		{"us-east-1", "AWS::ElasticLoadBalancingV2::LoadBalancer", `{}`, "LoadBalancerArn", `^arn:aws:elasticloadbalancing:us-east-1:123456789012:loadbalancer/app/lb-[a-z0-9]{12}/[0-9a-f]{16}$`},
		{"us-east-1", "AWS::DynamoDB::Table", `{"TableName":"t","StreamSpecification":{"StreamViewType":"KEYS_ONLY"}}`, "StreamArn", `^arn:aws:dynamodb:us-east-1:123456789012:table/t/stream/2026-03-01T12:00:00\.000$`},
		{"us-east-1", "AWS::DynamoDB::Table", `{"TableName":"t"}`, "StreamArn", `^$`},
		{"us-east-1", "AWS::Lambda::Version", `{"FunctionName":"arn:aws:lambda:us-east-1:123456789012:function:f"}`, "FunctionArn", `^arn:aws:lambda:us-east-1:123456789012:function:f:1$`},
		{"us-east-1", "AWS::Events::Rule", `{"Name":"r","EventBusName":"b"}`, "Arn", `^arn:aws:events:us-east-1:123456789012:rule/b/r$`},
		{"us-east-1", "AWS::Events::Rule", `{"Name":"r"}`, "Arn", `^arn:aws:events:us-east-1:123456789012:rule/r$`},
		{"us-east-1", "AWS::RDS::DBInstance", `{"DBInstanceIdentifier":"d","Engine":"postgres"}`, "Endpoint/Port", `^5432$`},
		{"us-east-1", "AWS::SecretsManager::Secret", `{"Name":"s"}`, "Id", `^arn:aws:secretsmanager:us-east-1:123456789012:secret:s-[A-Za-z0-9]{6}$`},
		{"us-east-1", "AWS::WAFv2::WebACL", `{"Name":"w","Scope":"CLOUDFRONT"}`, "Arn", `^arn:aws:wafv2:us-east-1:123456789012:global/webacl/w/[0-9a-f-]{36}$`},
		{"us-east-1", "AWS::ECS::Service", `{"ServiceName":"s","Cluster":"arn:aws:ecs:us-east-1:123456789012:cluster/c"}`, "ServiceArn", `^arn:aws:ecs:us-east-1:123456789012:service/c/s$`},
	} {
		model, err := decodeObject(c.model)
		if err != nil {
			t.Fatal(err)
		}
		if got := getString(fill(t, Caller{DefaultAccount, c.region}, c.typeName, model), c.path); !regexp.MustCompile(c.pattern).MatchString(got) {
			t.Errorf("%s %s of %s in %s is %q", c.typeName, c.path, c.model, c.region, got)
		}
	}
}

// fill completes a model as a create would.
func fill(t *testing.T, caller Caller, typeName string, model map[string]any) map[string]any {
	t.Helper()
	shapes, err := parseShapes(shapesTable)
	if err != nil {
		t.Fatal(err)
	}
	typ, ok := schema.Lookup(typeName)
	if !ok {
		t.Fatalf("no type %s", typeName)
	}
	m := &maker{caller: caller, t: typ, shape: shapes[typeName], model: model, now: start, rng: rand.New(rand.NewPCG(1, 2)),
		sequence: func(string) (int, error) { return 1, nil }}
	if _, err := m.fill(); err != nil {
		t.Fatal(err)
	}
	return model
}

func TestExamplesMatchTheirPatterns(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, c := range []struct {
		pattern     string
		least, most int
	}{
		{`^[a-z]{3}-[0-9]+$`, 1, 10}, {`^(abc|def)?x{2,}$`, 2, 20}, {`^[^a-z]{4}$`, 4, 4}, {`arn:aws[a-z-]*:iam::\d{12}:role/.+`, 20, 200}, {`^[\p{L}]+$`, 30, 40},
	} {
		s, ok := example(c.pattern, c.least, c.most, rng)
		if !ok || !matches(c.pattern, s) || len(s) < c.least {
			t.Errorf("%s: %q, %v", c.pattern, s, ok)
		}
	}
	if s, ok := example(`^(?=a)b$`, 0, 9, rng); ok {
		t.Errorf("a pattern that Go can't read has the example %q", s)
	}
}

func TestReferencesLeaveFreeTextAlone(t *testing.T) {
	rel, err := parseRelations(relationsTable)
	if err != nil {
		t.Fatal(err)
	}
	typ, _ := schema.Lookup("AWS::Lambda::Function")
	model, err := decodeObject(`{"Role":"arn:aws:iam::123456789012:role/r","Code":{"ZipFile":"x"},
		"Environment":{"Variables":{"A":"arn:aws:sqs:us-east-1:123456789012:q"}},"Tags":[{"Key":"k","Value":"vpc-0123456789abcdef0"}],
		"VpcConfig":{"SubnetIds":["subnet-0123456789abcdef0"]}}`)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, r := range rel.references(typ, model) {
		got[r.path+" "+r.value] = r.required
	}
	want := map[string]bool{"Role arn:aws:iam::123456789012:role/r": true, "VpcConfig/SubnetIds subnet-0123456789abcdef0": false}
	if encode(toAny(got)) != encode(toAny(want)) {
		t.Errorf("found %v", got)
	}
}

func toAny(m map[string]bool) map[string]any {
	out := map[string]any{}
	for k, v := range m {
		out[k] = v
	}
	return out
}

// A model survives the round trip through its own paths: what set writes, get reads, remove removes.
func TestPathsAreConsistent(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		path := strings.Join(rapid.SliceOfN(rapid.StringMatching(`[A-C]`), 1, 4).Draw(rt, "path"), "/")
		model := map[string]any{"A": map[string]any{"B": json.Number("1")}}
		if !set(model, path, "v") {
			return // a number is in the way
		}
		if v, ok := get(model, path); !ok || v != "v" || !present(model, path) {
			rt.Fatalf("%s reads %v", path, v)
		}
		remove(model, strings.Split(path, "/"))
		if _, ok := get(model, path); ok {
			rt.Fatalf("%s is still there", path)
		}
	})
}
