package provider

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"regexp"
	"strings"
)

// NameRule says how the physical name of a type is made when the template gives none.
type NameRule struct {
	Property string
	MaxLen   int
	Lower    bool
	// Prefix is put before the generated name (log groups live under a path).
	Prefix string
	// FifoProperty: when this boolean property is true the name must end in ".fifo".
	FifoProperty string
	// Reserved are the beginnings (with "^" before) and ends (with "$" after) that the service keeps for itself, in
	// lower case. A name that has one gets an "x" before or after it, as a template can't help what its stack is called.
	Reserved []string
	// Unless: no name is made when the template gives this property.
	Unless string
}

// nameRules are the types whose names Slipway generates itself (reference §8.3 and §0.7), so that they are
// deterministic and speak of their stack; every other type gets its name from its service.
var nameRules = map[string]NameRule{
	"AWS::S3::Bucket": {
		// https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html
		Property: "BucketName", MaxLen: 63, Lower: true, Unless: "BucketNamePrefix",
		Reserved: []string{"^sthree-", "^amzn-s3-demo-", "-s3alias$"},
	},
	"AWS::SQS::Queue":             {Property: "QueueName", MaxLen: 80, FifoProperty: "FifoQueue"},
	"AWS::SNS::Topic":             {Property: "TopicName", MaxLen: 256, FifoProperty: "FifoTopic"},
	"AWS::DynamoDB::Table":        {Property: "TableName", MaxLen: 255},
	"AWS::DynamoDB::GlobalTable":  {Property: "TableName", MaxLen: 255},
	"AWS::Lambda::Function":       {Property: "FunctionName", MaxLen: 64},
	"AWS::Lambda::LayerVersion":   {Property: "LayerName", MaxLen: 140},
	"AWS::IAM::Role":              {Property: "RoleName", MaxLen: 64},
	"AWS::IAM::User":              {Property: "UserName", MaxLen: 64},
	"AWS::IAM::Group":             {Property: "GroupName", MaxLen: 128},
	"AWS::IAM::ManagedPolicy":     {Property: "ManagedPolicyName", MaxLen: 128},
	"AWS::IAM::InstanceProfile":   {Property: "InstanceProfileName", MaxLen: 128},
	"AWS::Logs::LogGroup":         {Property: "LogGroupName", MaxLen: 512, Prefix: "/cdkd/"},
	"AWS::CloudWatch::Dashboard":  {Property: "DashboardName", MaxLen: 255},
	"AWS::CloudWatch::Alarm":      {Property: "AlarmName", MaxLen: 255},
	"AWS::SecretsManager::Secret": {Property: "Name", MaxLen: 512},
	"AWS::SSM::Parameter": {
		// https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_PutParameter.html
		Property: "Name", MaxLen: 1011, Reserved: []string{"^aws", "^ssm"},
	},
	"AWS::Events::Rule":                    {Property: "Name", MaxLen: 64},
	"AWS::StepFunctions::StateMachine":     {Property: "StateMachineName", MaxLen: 80},
	"AWS::Kinesis::Stream":                 {Property: "Name", MaxLen: 128},
	"AWS::KinesisFirehose::DeliveryStream": {Property: "DeliveryStreamName", MaxLen: 64},
	"AWS::ECS::Cluster":                    {Property: "ClusterName", MaxLen: 255},
	"AWS::ECR::Repository":                 {Property: "RepositoryName", MaxLen: 256, Lower: true},
	"AWS::Cognito::UserPool":               {Property: "UserPoolName", MaxLen: 128},
	"AWS::ElasticLoadBalancingV2::LoadBalancer": {
		// https://docs.aws.amazon.com/elasticloadbalancing/latest/APIReference/API_CreateLoadBalancer.html
		Property: "Name", MaxLen: 32, Reserved: []string{"^internal-"},
	},
	"AWS::ElasticLoadBalancingV2::TargetGroup": {Property: "Name", MaxLen: 32},
	"AWS::EC2::SecurityGroup": {
		// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CreateSecurityGroup.html
		Property: "GroupName", MaxLen: 255, Reserved: []string{"^sg-"},
	},
	"AWS::Scheduler::Schedule": {Property: "Name", MaxLen: 64},
	"AWS::Pipes::Pipe":         {Property: "Name", MaxLen: 64},
}

// NameRuleOf returns the rule of a type, if Slipway names it.
func NameRuleOf(typeName string) (NameRule, bool) {
	r, ok := nameRules[typeName]
	return r, ok
}

var (
	notNameChar = regexp.MustCompile(`[^A-Za-z0-9-]`)
	dashes      = regexp.MustCompile(`-{2,}`)
)

// shortest is the length that every service accepts.
const shortest = 3

// GeneratedName makes the physical name of a resource (reference §8.3): "{stack}-{logicalId}", sanitised, cut
// to the type's length with eight hex digits of the full name's SHA-256. suffix tells the halves of a
// replacement apart. The name is valid for the type whatever the stack is called.
func GeneratedName(rule NameRule, stack, logicalID, suffix string, props map[string]any) string {
	full := stack + "-" + logicalID
	if suffix != "" {
		full += "-" + suffix
	}
	tail := ""
	if rule.FifoProperty != "" && isTrue(props[rule.FifoProperty]) {
		tail = ".fifo"
	}
	name := rule.free(strings.Trim(dashes.ReplaceAllString(notNameChar.ReplaceAllString(full, "-"), "-"), "-"))
	limit := rule.MaxLen - len(rule.Prefix) - len(tail)
	if len(name) > limit || len(name) < shortest {
		sum := sha256.Sum256([]byte(full))
		name = strings.Trim(name[:min(len(name), limit-9)]+"-"+hex.EncodeToString(sum[:4]), "-")
		name = dashes.ReplaceAllString(name, "-")
	}
	if rule.Lower {
		name = strings.ToLower(name)
	}
	return rule.Prefix + name + tail
}

// free is the name without a reserved beginning or end.
func (rule NameRule) free(name string) string {
	for _, r := range rule.Reserved {
		lower := strings.ToLower(name)
		if begin, ok := strings.CutPrefix(r, "^"); ok && strings.HasPrefix(lower, begin) {
			name = "x-" + name
		}
		if end, ok := strings.CutSuffix(r, "$"); ok && strings.HasSuffix(lower, end) {
			name += "-x"
		}
	}
	return name
}

func isTrue(v any) bool {
	switch x := v.(type) {
	case bool:
		return x
	case string:
		return strings.EqualFold(x, "true")
	}
	return false
}

// Named gives resources whose template names none the name that the rules make, and hides it again: the
// recorded properties stay what the template says.
type Named struct{ Provider }

// Create implements Provider.
func (n Named) Create(ctx context.Context, req Request) (Progress, error) {
	return n.Provider.Create(ctx, withName(req))
}

// Poll implements Provider.
func (n Named) Poll(ctx context.Context, req Request, h Handle) (Progress, error) {
	if req.PhysicalID == "" {
		req = withName(req)
	}
	return n.Provider.Poll(ctx, req, h)
}

func withName(req Request) Request {
	rule, ok := NameRuleOf(req.Type)
	if !ok {
		return req
	}
	if req.Properties[rule.Property] != nil || rule.Unless != "" && req.Properties[rule.Unless] != nil {
		return req
	}
	props := maps.Clone(req.Properties)
	if props == nil {
		props = map[string]any{}
	}
	props[rule.Property] = GeneratedName(rule, req.Stack, req.LogicalID, req.NameSuffix, props)
	req.Properties = props
	return req
}

var _ Provider = Named{}
