package provider

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/slipway-cdk/slipway/pkg/schema"
)

func TestGeneratedNameFollowsTheReference(t *testing.T) {
	cases := []struct {
		name, typ, stack, id, suffix string
		props                        map[string]any
		want                         string
	}{
		{"a queue is stack and logical id", "AWS::SQS::Queue", "Basic", "Queue4A7E3555", "", nil, "Basic-Queue4A7E3555"},
		{"a bucket is lower case", "AWS::S3::Bucket", "Fn", "Data666C94C7", "", nil, "fn-data666c94c7"},
		{"a log group lives under the shared prefix", "AWS::Logs::LogGroup", "Basic", "Logs6819BB44", "", nil, "/cdkd/Basic-Logs6819BB44"},
		{"a fifo queue ends in .fifo", "AWS::SQS::Queue", "S", "Q", "", map[string]any{"FifoQueue": true}, "S-Q.fifo"},
		{"a fifo topic too, as a template writes it", "AWS::SNS::Topic", "S", "T", "", map[string]any{"FifoTopic": "True"}, "S-T.fifo"},
		{"a standard queue does not", "AWS::SQS::Queue", "S", "Q", "", map[string]any{"FifoQueue": "false"}, "S-Q"},
		{"odd characters become single dashes", "AWS::IAM::Role", "Parent~Child", "Ro_le", "", nil, "Parent-Child-Ro-le"},
		{"a suffix tells the halves of a replacement apart", "AWS::SNS::Topic", "S", "T", "9d51", nil, "S-T-9d51"},
		{
			"a long name is cut and hashed", "AWS::ElasticLoadBalancingV2::LoadBalancer",
			"a-rather-long-stack-name", "AndALongLogicalId1234", "", nil,
			"a-rather-long-stack-nam-96f6d44c",
		},
		{"a parameter of a stack called Aws", "AWS::SSM::Parameter", "AwsDemo", "P", "", nil, "x-AwsDemo-P"},
		{"a parameter of a stack called ssm", "AWS::SSM::Parameter", "ssm", "P", "", nil, "x-ssm-P"},
		{"a load balancer of a stack called Internal", "AWS::ElasticLoadBalancingV2::LoadBalancer", "Internal", "LB", "", nil, "x-Internal-LB"},
		{"a bucket whose resource is called S3Alias", "AWS::S3::Bucket", "App", "S3Alias", "", nil, "app-s3alias-x"},
		{"a bucket whose name would end as an alias does", "AWS::S3::Bucket", "App", "Data", "s3alias", nil, "app-data-s3alias-x"},
		{"a name that is too short", "AWS::DynamoDB::Table", "", "T", "", nil, "T-721be50a"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			rule, ok := NameRuleOf(c.typ)
			if !ok {
				t.Fatalf("no rule for %s", c.typ)
			}
			got := GeneratedName(rule, c.stack, c.id, c.suffix, c.props)
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if len(got) > rule.MaxLen {
				t.Errorf("%d characters, at most %d allowed", len(got), rule.MaxLen)
			}
		})
	}
}

// serviceRules are what the services say of names where the registry's schema does not: a pattern of the allowed, and
// one of the reserved. Sources: the Create operation of each service's API reference.
var serviceRules = map[string]struct{ allowed, reserved string }{
	"AWS::S3::Bucket":                           {`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`, `\.\.|^xn--|^sthree-|^amzn-s3-demo-|-s3alias$|--ol-s3$|\.mrap$|--x-s3$|--table-s3$|^\d+\.\d+\.\d+\.\d+$`},
	"AWS::SQS::Queue":                           {`^[A-Za-z0-9_-]{1,80}$|^[A-Za-z0-9_-]{1,75}\.fifo$`, ``},
	"AWS::SNS::Topic":                           {`^[A-Za-z0-9_-]{1,256}$|^[A-Za-z0-9_-]{1,251}\.fifo$`, ``},
	"AWS::DynamoDB::Table":                      {`^[a-zA-Z0-9_.-]{3,255}$`, ``},
	"AWS::DynamoDB::GlobalTable":                {`^[a-zA-Z0-9_.-]{3,255}$`, ``},
	"AWS::IAM::ManagedPolicy":                   {`^[\w+=,.@-]{1,128}$`, ``},
	"AWS::CloudWatch::Alarm":                    {`^[^:].{0,254}$`, ``},
	"AWS::CloudWatch::Dashboard":                {`^[A-Za-z0-9_-]{1,255}$`, ``},
	"AWS::Logs::LogGroup":                       {`^[.\-_/#A-Za-z0-9]{1,512}$`, `^aws/`},
	"AWS::SSM::Parameter":                       {`^[a-zA-Z0-9_.\-/]{1,900}$`, `(?i)^/?(aws|ssm)`},
	"AWS::SecretsManager::Secret":               {`^[A-Za-z0-9/_+=.@-]{1,512}$`, ``},
	"AWS::EC2::SecurityGroup":                   {`^[A-Za-z0-9 ._\-:/()#,@\[\]+=&;{}!$*]{1,255}$`, `(?i)^sg-`},
	"AWS::StepFunctions::StateMachine":          {`^[A-Za-z0-9_-]{1,80}$`, ``},
	"AWS::ECS::Cluster":                         {`^[A-Za-z0-9_-]{1,255}$`, ``},
	"AWS::ECR::Repository":                      {`^[a-z0-9]+([._-][a-z0-9]+)*$`, ``},
	"AWS::Cognito::UserPool":                    {`^[\w\s+=,.@-]{1,128}$`, ``},
	"AWS::ElasticLoadBalancingV2::LoadBalancer": {`^[A-Za-z0-9]([A-Za-z0-9-]{0,30}[A-Za-z0-9])?$`, `(?i)^internal-`},
	"AWS::ElasticLoadBalancingV2::TargetGroup":  {`^[A-Za-z0-9]([A-Za-z0-9-]{0,30}[A-Za-z0-9])?$`, ``},
}

// Whatever a stack and a resource are called, the generated name is one that the service takes.
func TestGeneratedNamesAreValid(t *testing.T) {
	stacks := rapid.OneOf(
		rapid.StringMatching(`[A-Za-z][A-Za-z0-9-]{0,127}`),
		rapid.StringMatching(`[A-Za-z][A-Za-z0-9-]{0,40}(~[A-Za-z0-9]{1,60}){1,3}`),
		rapid.StringMatching(`(aws|AWS|Ssm|internal|Internal|sg|SG|sthree|amzn-s3-demo|xn)-?-?[A-Za-z0-9-]{0,12}`),
		rapid.StringMatching(`[-~._ ]{0,6}[A-Za-z0-9]?-{0,40}`), rapid.String(),
	)
	ids := rapid.OneOf(rapid.StringMatching(`[A-Za-z0-9]{1,255}`), rapid.SampledFrom([]string{"s3alias", "S3Alias", "OlS3", "0", "Mrap"}))
	suffixes := rapid.OneOf(rapid.Just(""), rapid.StringMatching(`[0-9a-f]{4,8}`), rapid.Just("s3alias"))
	for name := range nameRules {
		t.Run(name, func(t *testing.T) {
			rule, _ := NameRuleOf(name)
			typ, ok := schema.Lookup(name)
			if !ok {
				t.Fatal("it is no resource type")
			}
			p := typ.Properties[rule.Property]
			if p == nil {
				t.Fatalf("it has no %s", rule.Property)
			}
			if rule.Unless != "" && typ.Properties[rule.Unless] == nil {
				t.Fatalf("it has no %s", rule.Unless)
			}
			if rule.FifoProperty != "" && typ.Properties[rule.FifoProperty] == nil {
				t.Fatalf("it has no %s", rule.FifoProperty)
			}
			if p.Pattern == "" && serviceRules[name].allowed == "" {
				t.Error("nothing is known of its names")
			}
			rapid.Check(t, func(rt *rapid.T) {
				stack, id, suffix := stacks.Draw(rt, "stack"), ids.Draw(rt, "id"), suffixes.Draw(rt, "suffix")
				props := map[string]any{}
				if rule.FifoProperty != "" {
					props[rule.FifoProperty] = rapid.Bool().Draw(rt, "fifo")
				}
				got := GeneratedName(rule, stack, id, suffix, props)
				if len(got) > rule.MaxLen || p.MaxLength != nil && len(got) > *p.MaxLength {
					rt.Errorf("%q has %d characters", got, len(got))
				}
				if p.MinLength != nil && len(got) < *p.MinLength {
					rt.Errorf("%q has %d characters", got, len(got))
				}
				if p.Pattern != "" && !regexp.MustCompile(p.Pattern).MatchString(got) {
					rt.Errorf("%q does not match %s", got, p.Pattern)
				}
				service := serviceRules[name]
				if service.allowed != "" && !regexp.MustCompile(service.allowed).MatchString(got) {
					rt.Errorf("%q does not match %s", got, service.allowed)
				}
				if service.reserved != "" && regexp.MustCompile(service.reserved).MatchString(got) {
					rt.Errorf("%q is reserved", got)
				}
				if rule.Lower && got != strings.ToLower(got) {
					rt.Errorf("%q is not in lower case", got)
				}
				if GeneratedName(rule, stack, id, suffix, props) != got {
					rt.Error("the same resource gets another name")
				}
			})
		})
	}
}

// Different resources of real stacks get different names, as far as the service tells cases apart.
func TestGeneratedNamesDiffer(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		name := rapid.SampledFrom([]string{"AWS::S3::Bucket", "AWS::IAM::Role", "AWS::ElasticLoadBalancingV2::TargetGroup", "AWS::SSM::Parameter"}).Draw(rt, "type")
		rule, _ := NameRuleOf(name)
		ids := rapid.SliceOfNDistinct(rapid.StringMatching(`[A-Z][a-z]{0,60}[0-9A-F]{8}`), 2, 2, strings.ToLower).Draw(rt, "ids")
		stack := rapid.StringMatching(`[A-Za-z][A-Za-z0-9-]{0,60}[A-Za-z0-9]`).Draw(rt, "stack")
		if a, b := GeneratedName(rule, stack, ids[0], "", nil), GeneratedName(rule, stack, ids[1], "", nil); a == b {
			rt.Errorf("both are called %q", a)
		}
		if a, b := GeneratedName(rule, stack, ids[0], "", nil), GeneratedName(rule, stack, ids[0], "9d51", nil); a == b {
			rt.Errorf("both halves are called %q", a)
		}
	})
}

// heard is a provider that remembers the request.
type heard struct {
	Provider
	req Request
}

func (h *heard) Create(_ context.Context, req Request) (Progress, error) {
	h.req = req
	return Progress{Done: true}, nil
}

func (h *heard) Poll(_ context.Context, req Request, _ Handle) (Progress, error) {
	h.req = req
	return Progress{Done: true}, nil
}

func TestNamedNamesOnlyWhatTheTemplateDoesNot(t *testing.T) {
	cases := []struct {
		name  string
		typ   string
		props map[string]any
		want  any
	}{
		{"no name", "AWS::SQS::Queue", map[string]any{"DelaySeconds": "5"}, "Stack-Queue"},
		{"no properties", "AWS::SQS::Queue", nil, "Stack-Queue"},
		{"a name of nothing", "AWS::SQS::Queue", map[string]any{"QueueName": nil}, "Stack-Queue"},
		{"a name", "AWS::SQS::Queue", map[string]any{"QueueName": "orders"}, "orders"},
		{"a fifo queue", "AWS::SQS::Queue", map[string]any{"FifoQueue": true}, "Stack-Queue.fifo"},
		{"a type whose service names it", "AWS::EC2::VPC", map[string]any{}, nil},
		{"a bucket", "AWS::S3::Bucket", map[string]any{}, "stack-queue"},
		{"a bucket with a prefix for its service", "AWS::S3::Bucket", map[string]any{"BucketNamePrefix": "p"}, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			rule, _ := NameRuleOf(c.typ)
			inner := &heard{}
			named := Named{Provider: inner}
			req := Request{Stack: "Stack", LogicalID: "Queue", Type: c.typ, Properties: c.props}
			before := len(c.props)
			if _, err := named.Create(t.Context(), req); err != nil || inner.req.Properties[rule.Property] != c.want {
				t.Errorf("created as %v", inner.req.Properties[rule.Property])
			}
			if _, err := named.Poll(t.Context(), req, Handle{}); err != nil || inner.req.Properties[rule.Property] != c.want {
				t.Errorf("polled as %v", inner.req.Properties[rule.Property])
			}
			if len(c.props) != before {
				t.Error("the template's properties have changed")
			}
			req.PhysicalID = "there already"
			if _, err := named.Poll(t.Context(), req, Handle{}); err != nil || len(inner.req.Properties) != len(c.props) {
				t.Errorf("the poll of an update got %v", inner.req.Properties)
			}
		})
	}
}
