//go:build emulators

package conformance

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/apigatewayv2"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	kmstypes "github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/slipway-cdk/slipway/pkg/provider"
	monitoring "github.com/slipway-cdk/slipway/pkg/provider/cloudwatch"
	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

// counting is how the resources of a type are counted: by the service's own call that lists them.
type counting struct {
	by   string
	list func(ctx context.Context, cfg aws.Config, l *life) (map[string]bool, error)
}

// found is a set of ids.
func found[T any](list []T, id func(T) *string) map[string]bool {
	out := map[string]bool{}
	for _, e := range list {
		if s := id(e); s != nil && *s != "" {
			out[*s] = true
		}
	}
	return out
}

// listed makes a counting of one call without pages: the emulator holds what this run has made, and little else.
func listed[In, Out, T any](by string, call func(context.Context, aws.Config, *In) (*Out, error), items func(*Out) []T, id func(T) *string) counting {
	return counting{by: by, list: func(ctx context.Context, cfg aws.Config, _ *life) (map[string]bool, error) {
		out, err := call(ctx, cfg, new(In))
		if err != nil {
			return nil, err
		}
		return found(items(out), id), nil
	}}
}

// within makes a counting that asks once for each resource of a kind that the case needs.
func within(by, typeName string, ask func(ctx context.Context, cfg aws.Config, parent made) (map[string]bool, error)) counting {
	return counting{by: by, list: func(ctx context.Context, cfg aws.Config, l *life) (map[string]bool, error) {
		all, asked := map[string]bool{}, 0
		for _, n := range l.order {
			if n.Type != typeName {
				continue
			}
			asked++
			some, err := ask(ctx, cfg, l.needs[n.ID])
			if err != nil {
				return nil, err
			}
			for id := range some {
				all[id] = true
			}
		}
		if asked == 0 {
			return nil, fmt.Errorf("the case needs no %s", typeName)
		}
		return all, nil
	}}
}

// one is the resource that a call answers with; nothing when it says that there is none.
func one(id string, there bool, err error) (map[string]bool, error) {
	if err = (direct.Errors{
		"NoSuchBucketPolicy": provider.KindNotFound, "NoSuchEntity": provider.KindNotFound, "ResourceNotFoundException": provider.KindNotFound,
		"ResourceNotFound": provider.KindNotFound, "404": provider.KindNotFound,
	}).Unless(err, provider.KindNotFound); err != nil {
		return nil, err
	}
	if there {
		return map[string]bool{id: true}, nil
	}
	return nil, nil
}

// census tells for every type what counts its resources.
func census() map[string]counting {
	all := network()
	maps.Copy(all, others())
	return all
}

// others are the types that are not EC2's.
func others() map[string]counting {
	return map[string]counting{
		"AWS::SQS::Queue": listed("ListQueues",
			func(ctx context.Context, cfg aws.Config, in *sqs.ListQueuesInput) (*sqs.ListQueuesOutput, error) {
				return sqs.NewFromConfig(cfg).ListQueues(ctx, in)
			},
			func(out *sqs.ListQueuesOutput) []string { return out.QueueUrls }, func(u string) *string { return &u }),
		"AWS::SQS::QueuePolicy": within("GetQueueAttributes of the queue", "AWS::SQS::Queue", func(ctx context.Context, cfg aws.Config, queue made) (map[string]bool, error) {
			out, err := sqs.NewFromConfig(cfg).GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
				QueueUrl: &queue.id, AttributeNames: []sqstypes.QueueAttributeName{sqstypes.QueueAttributeNamePolicy},
			})
			return one(queue.id, out != nil && out.Attributes["Policy"] != "", err)
		}),
		"AWS::SNS::Topic": listed("ListTopics",
			func(ctx context.Context, cfg aws.Config, in *sns.ListTopicsInput) (*sns.ListTopicsOutput, error) {
				return sns.NewFromConfig(cfg).ListTopics(ctx, in)
			},
			func(out *sns.ListTopicsOutput) []string {
				var arns []string
				for _, t := range out.Topics {
					arns = append(arns, aws.ToString(t.TopicArn))
				}
				return arns
			}, func(a string) *string { return &a }),
		"AWS::SNS::Subscription": within("ListSubscriptionsByTopic", "AWS::SNS::Topic", func(ctx context.Context, cfg aws.Config, topic made) (map[string]bool, error) {
			out, err := sns.NewFromConfig(cfg).ListSubscriptionsByTopic(ctx, &sns.ListSubscriptionsByTopicInput{TopicArn: &topic.id})
			if err != nil {
				return nil, err
			}
			all := map[string]bool{}
			for i, s := range out.Subscriptions {
				all[fmt.Sprint(aws.ToString(s.SubscriptionArn), " ", i)] = true
			}
			return all, nil
		}),
		"AWS::SNS::TopicPolicy": within("GetTopicAttributes of the topic", "AWS::SNS::Topic", func(ctx context.Context, cfg aws.Config, topic made) (map[string]bool, error) {
			out, err := sns.NewFromConfig(cfg).GetTopicAttributes(ctx, &sns.GetTopicAttributesInput{TopicArn: &topic.id})
			// Every topic has a policy: the one that it is born with has this id.
			// https://docs.aws.amazon.com/sns/latest/dg/sns-access-policy-use-cases.html
			return one(topic.id, out != nil && !strings.Contains(out.Attributes["Policy"], "__default_policy_ID"), err)
		}),
		"AWS::IAM::Role": listed("ListRoles",
			func(ctx context.Context, cfg aws.Config, in *iam.ListRolesInput) (*iam.ListRolesOutput, error) {
				return iam.NewFromConfig(cfg).ListRoles(ctx, in)
			},
			func(out *iam.ListRolesOutput) []iamtypes.Role { return out.Roles }, func(r iamtypes.Role) *string { return r.Arn }),
		"AWS::IAM::ManagedPolicy": listed("ListPolicies",
			func(ctx context.Context, cfg aws.Config, in *iam.ListPoliciesInput) (*iam.ListPoliciesOutput, error) {
				in.Scope = iamtypes.PolicyScopeTypeLocal
				return iam.NewFromConfig(cfg).ListPolicies(ctx, in)
			},
			func(out *iam.ListPoliciesOutput) []iamtypes.Policy { return out.Policies }, func(p iamtypes.Policy) *string { return p.Arn }),
		"AWS::IAM::InstanceProfile": listed("ListInstanceProfiles",
			func(ctx context.Context, cfg aws.Config, in *iam.ListInstanceProfilesInput) (*iam.ListInstanceProfilesOutput, error) {
				return iam.NewFromConfig(cfg).ListInstanceProfiles(ctx, in)
			},
			func(out *iam.ListInstanceProfilesOutput) []iamtypes.InstanceProfile { return out.InstanceProfiles },
			func(p iamtypes.InstanceProfile) *string { return p.Arn }),
		"AWS::IAM::Policy": within("ListRolePolicies of the role", "AWS::IAM::Role", func(ctx context.Context, cfg aws.Config, role made) (map[string]bool, error) {
			out, err := iam.NewFromConfig(cfg).ListRolePolicies(ctx, &iam.ListRolePoliciesInput{RoleName: &role.id})
			if err != nil {
				return nil, err
			}
			return found(out.PolicyNames, func(n string) *string { return &n }), nil
		}),
		"AWS::Logs::LogGroup": listed("DescribeLogGroups",
			func(ctx context.Context, cfg aws.Config, in *cloudwatchlogs.DescribeLogGroupsInput) (*cloudwatchlogs.DescribeLogGroupsOutput, error) {
				out, err := cloudwatchlogs.NewFromConfig(cfg).DescribeLogGroups(ctx, in)
				return out, err
			},
			func(out *cloudwatchlogs.DescribeLogGroupsOutput) []string {
				var names []string
				for _, g := range out.LogGroups {
					names = append(names, aws.ToString(g.LogGroupName))
				}
				return names
			}, func(n string) *string { return &n }),
		"AWS::CloudWatch::Alarm": {by: "DescribeAlarms", list: func(ctx context.Context, cfg aws.Config, _ *life) (map[string]bool, error) {
			out, err := monitoring.NewClient(cfg).DescribeAlarms(ctx, &cloudwatch.DescribeAlarmsInput{})
			if err != nil {
				return nil, err
			}
			all := map[string]bool{}
			for _, a := range out.MetricAlarms {
				all[aws.ToString(a.AlarmName)] = true
			}
			return all, nil
		}},
		"AWS::CloudWatch::Dashboard": {by: "ListDashboards", list: func(ctx context.Context, cfg aws.Config, _ *life) (map[string]bool, error) {
			out, err := monitoring.NewClient(cfg).ListDashboards(ctx, &cloudwatch.ListDashboardsInput{})
			if err != nil {
				return nil, err
			}
			all := map[string]bool{}
			for _, d := range out.DashboardEntries {
				all[aws.ToString(d.DashboardName)] = true
			}
			return all, nil
		}},
		"AWS::S3::Bucket": {by: "ListBuckets", list: func(ctx context.Context, cfg aws.Config, _ *life) (map[string]bool, error) {
			out, err := pathStyle(cfg).ListBuckets(ctx, &s3.ListBucketsInput{})
			if err != nil {
				return nil, err
			}
			all := map[string]bool{}
			for _, b := range out.Buckets {
				all[aws.ToString(b.Name)] = true
			}
			return all, nil
		}},
		"AWS::S3::BucketPolicy": within("GetBucketPolicy of the bucket", "AWS::S3::Bucket", func(ctx context.Context, cfg aws.Config, bucket made) (map[string]bool, error) {
			_, err := pathStyle(cfg).GetBucketPolicy(ctx, &s3.GetBucketPolicyInput{Bucket: &bucket.id})
			return one(bucket.id, err == nil, err)
		}),
		"AWS::DynamoDB::Table": listed("ListTables",
			func(ctx context.Context, cfg aws.Config, in *dynamodb.ListTablesInput) (*dynamodb.ListTablesOutput, error) {
				return dynamodb.NewFromConfig(cfg).ListTables(ctx, in)
			},
			func(out *dynamodb.ListTablesOutput) []string { return out.TableNames }, func(n string) *string { return &n }),
		"AWS::SecretsManager::Secret": {by: "ListSecrets", list: func(ctx context.Context, cfg aws.Config, _ *life) (map[string]bool, error) {
			out, err := secretsmanager.NewFromConfig(cfg).ListSecrets(ctx, &secretsmanager.ListSecretsInput{})
			if err != nil {
				return nil, err
			}
			all := map[string]bool{}
			for _, s := range out.SecretList {
				if s.DeletedDate == nil {
					all[aws.ToString(s.ARN)] = true
				}
			}
			return all, nil
		}},
		"AWS::SSM::Parameter": {by: "DescribeParameters", list: func(ctx context.Context, cfg aws.Config, _ *life) (map[string]bool, error) {
			out, err := ssm.NewFromConfig(cfg).DescribeParameters(ctx, &ssm.DescribeParametersInput{})
			if err != nil {
				return nil, err
			}
			all := map[string]bool{}
			for _, p := range out.Parameters {
				all[aws.ToString(p.Name)] = true
			}
			return all, nil
		}},
		"AWS::Events::EventBus": {by: "ListEventBuses", list: func(ctx context.Context, cfg aws.Config, _ *life) (map[string]bool, error) {
			out, err := eventbridge.NewFromConfig(cfg).ListEventBuses(ctx, &eventbridge.ListEventBusesInput{})
			if err != nil {
				return nil, err
			}
			all := map[string]bool{}
			for _, b := range out.EventBuses {
				all[aws.ToString(b.Name)] = true
			}
			return all, nil
		}},
		"AWS::Events::Rule": {by: "ListRules", list: func(ctx context.Context, cfg aws.Config, l *life) (map[string]bool, error) {
			in := &eventbridge.ListRulesInput{}
			if bus := direct.Text(l.c.Properties["EventBusName"]); bus != "" {
				in.EventBusName = &bus
			}
			out, err := eventbridge.NewFromConfig(cfg).ListRules(ctx, in)
			if err != nil {
				return nil, err
			}
			all := map[string]bool{}
			for _, r := range out.Rules {
				all[aws.ToString(r.Arn)] = true
			}
			return all, nil
		}},
		"AWS::Scheduler::Schedule": {by: "ListSchedules", list: func(ctx context.Context, cfg aws.Config, _ *life) (map[string]bool, error) {
			out, err := scheduler.NewFromConfig(cfg).ListSchedules(ctx, &scheduler.ListSchedulesInput{})
			if err != nil {
				return nil, err
			}
			all := map[string]bool{}
			for _, s := range out.Schedules {
				all[aws.ToString(s.Arn)] = true
			}
			return all, nil
		}},
		"AWS::StepFunctions::StateMachine": {by: "ListStateMachines", list: func(ctx context.Context, cfg aws.Config, _ *life) (map[string]bool, error) {
			out, err := sfn.NewFromConfig(cfg).ListStateMachines(ctx, &sfn.ListStateMachinesInput{})
			if err != nil {
				return nil, err
			}
			all := map[string]bool{}
			for _, m := range out.StateMachines {
				all[aws.ToString(m.StateMachineArn)] = true
			}
			return all, nil
		}},
		"AWS::KMS::Key": {by: "ListKeys", list: func(ctx context.Context, cfg aws.Config, _ *life) (map[string]bool, error) {
			client := kms.NewFromConfig(cfg)
			out, err := client.ListKeys(ctx, &kms.ListKeysInput{})
			if err != nil {
				return nil, err
			}
			all := map[string]bool{}
			for _, k := range out.Keys {
				d, err := client.DescribeKey(ctx, &kms.DescribeKeyInput{KeyId: k.KeyId})
				if err != nil {
					return nil, err
				}
				if m := d.KeyMetadata; m.KeyState != kmstypes.KeyStatePendingDeletion && m.KeyManager == kmstypes.KeyManagerTypeCustomer {
					all[aws.ToString(k.KeyId)] = true
				}
			}
			return all, nil
		}},
		"AWS::KMS::Alias": {by: "ListAliases", list: func(ctx context.Context, cfg aws.Config, _ *life) (map[string]bool, error) {
			out, err := kms.NewFromConfig(cfg).ListAliases(ctx, &kms.ListAliasesInput{})
			if err != nil {
				return nil, err
			}
			all := map[string]bool{}
			for _, a := range out.Aliases {
				all[aws.ToString(a.AliasName)] = true
			}
			return all, nil
		}},
		"AWS::Lambda::Function": {by: "ListFunctions", list: func(ctx context.Context, cfg aws.Config, _ *life) (map[string]bool, error) {
			out, err := lambda.NewFromConfig(cfg).ListFunctions(ctx, &lambda.ListFunctionsInput{})
			if err != nil {
				return nil, err
			}
			all := map[string]bool{}
			for _, f := range out.Functions {
				all[aws.ToString(f.FunctionArn)] = true
			}
			return all, nil
		}},
		"AWS::Lambda::Version": within("ListVersionsByFunction", "AWS::Lambda::Function", func(ctx context.Context, cfg aws.Config, function made) (map[string]bool, error) {
			out, err := lambda.NewFromConfig(cfg).ListVersionsByFunction(ctx, &lambda.ListVersionsByFunctionInput{FunctionName: &function.id})
			if err != nil {
				return nil, err
			}
			all := map[string]bool{}
			for _, v := range out.Versions {
				all[aws.ToString(v.FunctionArn)+":"+aws.ToString(v.Version)] = true
			}
			return all, nil
		}),
		"AWS::Lambda::Alias": within("ListAliases of the function", "AWS::Lambda::Function", func(ctx context.Context, cfg aws.Config, function made) (map[string]bool, error) {
			out, err := lambda.NewFromConfig(cfg).ListAliases(ctx, &lambda.ListAliasesInput{FunctionName: &function.id})
			if err != nil {
				return nil, err
			}
			all := map[string]bool{}
			for _, a := range out.Aliases {
				all[aws.ToString(a.AliasArn)] = true
			}
			return all, nil
		}),
		"AWS::Lambda::Url": within("ListFunctionUrlConfigs", "AWS::Lambda::Function", func(ctx context.Context, cfg aws.Config, function made) (map[string]bool, error) {
			out, err := lambda.NewFromConfig(cfg).ListFunctionUrlConfigs(ctx, &lambda.ListFunctionUrlConfigsInput{FunctionName: &function.id})
			if err != nil {
				return nil, err
			}
			all := map[string]bool{}
			for _, u := range out.FunctionUrlConfigs {
				all[aws.ToString(u.FunctionUrl)] = true
			}
			return all, nil
		}),
		"AWS::Lambda::Permission": within("GetPolicy of the function", "AWS::Lambda::Function", func(ctx context.Context, cfg aws.Config, function made) (map[string]bool, error) {
			out, err := lambda.NewFromConfig(cfg).GetPolicy(ctx, &lambda.GetPolicyInput{FunctionName: &function.id})
			if err != nil {
				return one("", false, err)
			}
			document, _ := direct.ParseDocument(out.Policy).(map[string]any)
			statements, _ := document["Statement"].([]any)
			all := map[string]bool{}
			for _, s := range statements {
				all[direct.Text(s.(map[string]any)["Sid"])] = true
			}
			return all, nil
		}),
		"AWS::Lambda::EventSourceMapping": {by: "ListEventSourceMappings", list: func(ctx context.Context, cfg aws.Config, _ *life) (map[string]bool, error) {
			out, err := lambda.NewFromConfig(cfg).ListEventSourceMappings(ctx, &lambda.ListEventSourceMappingsInput{})
			if err != nil {
				return nil, err
			}
			all := map[string]bool{}
			for _, m := range out.EventSourceMappings {
				all[aws.ToString(m.UUID)] = true
			}
			return all, nil
		}},
		"AWS::Lambda::LayerVersion": {by: "ListLayers and ListLayerVersions", list: func(ctx context.Context, cfg aws.Config, _ *life) (map[string]bool, error) {
			client := lambda.NewFromConfig(cfg)
			out, err := client.ListLayers(ctx, &lambda.ListLayersInput{})
			if err != nil {
				return nil, err
			}
			all := map[string]bool{}
			for _, layer := range out.Layers {
				versions, err := client.ListLayerVersions(ctx, &lambda.ListLayerVersionsInput{LayerName: layer.LayerName})
				if err != nil {
					return nil, err
				}
				for _, v := range versions.LayerVersions {
					all[aws.ToString(v.LayerVersionArn)] = true
				}
			}
			return all, nil
		}},
		"AWS::ApiGatewayV2::Api": {by: "GetApis", list: func(ctx context.Context, cfg aws.Config, _ *life) (map[string]bool, error) {
			out, err := apigatewayv2.NewFromConfig(cfg).GetApis(ctx, &apigatewayv2.GetApisInput{})
			if err != nil {
				return nil, err
			}
			all := map[string]bool{}
			for _, a := range out.Items {
				all[aws.ToString(a.ApiId)] = true
			}
			return all, nil
		}},
		"AWS::ApiGatewayV2::Stage": within("GetStages", "AWS::ApiGatewayV2::Api", func(ctx context.Context, cfg aws.Config, api made) (map[string]bool, error) {
			out, err := apigatewayv2.NewFromConfig(cfg).GetStages(ctx, &apigatewayv2.GetStagesInput{ApiId: &api.id})
			if err != nil {
				return nil, err
			}
			all := map[string]bool{}
			for _, s := range out.Items {
				all[aws.ToString(s.StageName)] = true
			}
			return all, nil
		}),
		"AWS::ApiGatewayV2::Integration": within("GetIntegrations", "AWS::ApiGatewayV2::Api", func(ctx context.Context, cfg aws.Config, api made) (map[string]bool, error) {
			out, err := apigatewayv2.NewFromConfig(cfg).GetIntegrations(ctx, &apigatewayv2.GetIntegrationsInput{ApiId: &api.id})
			if err != nil {
				return nil, err
			}
			all := map[string]bool{}
			for _, i := range out.Items {
				all[aws.ToString(i.IntegrationId)] = true
			}
			return all, nil
		}),
		"AWS::ApiGatewayV2::Route": within("GetRoutes", "AWS::ApiGatewayV2::Api", func(ctx context.Context, cfg aws.Config, api made) (map[string]bool, error) {
			out, err := apigatewayv2.NewFromConfig(cfg).GetRoutes(ctx, &apigatewayv2.GetRoutesInput{ApiId: &api.id})
			if err != nil {
				return nil, err
			}
			all := map[string]bool{}
			for _, r := range out.Items {
				all[aws.ToString(r.RouteId)] = true
			}
			return all, nil
		}),
	}
}

func pathStyle(cfg aws.Config) *s3.Client {
	return s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = true })
}
