package provider

import "testing"

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
		{"odd characters become single dashes", "AWS::IAM::Role", "Parent~Child", "Ro_le", "", nil, "Parent-Child-Ro-le"},
		{"a suffix tells the halves of a replacement apart", "AWS::SNS::Topic", "S", "T", "9d51", nil, "S-T-9d51"},
		{
			"a long name is cut and hashed", "AWS::ElasticLoadBalancingV2::LoadBalancer",
			"a-rather-long-stack-name", "AndALongLogicalId1234", "", nil,
			"a-rather-long-stack-nam-96f6d44c",
		},
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
