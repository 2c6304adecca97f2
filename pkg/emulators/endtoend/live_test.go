//go:build emulators

package endtoend

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/apigatewayv2"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/slipway-cdk/slipway/pkg/objectstore/s3"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/state"
)

// inventory is what the services say there is, by kind and name.
func (w *world) inventory() map[string]bool {
	w.Helper()
	ctx := w.Context()
	found := map[string]bool{}
	add := func(kind string, name *string) { found[kind+" "+aws.ToString(name)] = true }
	must := func(err error) {
		w.Helper()
		if err != nil {
			w.Fatal(err)
		}
	}
	queues, err := sqs.NewFromConfig(w.cfg).ListQueues(ctx, &sqs.ListQueuesInput{})
	must(err)
	for _, url := range queues.QueueUrls {
		add("queue", &url)
	}
	tables, err := dynamodb.NewFromConfig(w.cfg).ListTables(ctx, &dynamodb.ListTablesInput{})
	must(err)
	for _, name := range tables.TableNames {
		add("table", &name)
	}
	buckets, err := s3.NewClient(w.cfg, "").ListBuckets(ctx, &sdk.ListBucketsInput{})
	must(err)
	for _, b := range buckets.Buckets {
		add("bucket", b.Name)
	}
	functions := lambda.NewFromConfig(w.cfg)
	for pages := lambda.NewListFunctionsPaginator(functions, &lambda.ListFunctionsInput{}); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		must(err)
		for _, f := range page.Functions {
			add("function", f.FunctionName)
		}
	}
	mappings, err := functions.ListEventSourceMappings(ctx, &lambda.ListEventSourceMappingsInput{})
	must(err)
	for _, m := range mappings.EventSourceMappings {
		add("event source mapping", m.UUID)
	}
	for pages := iam.NewListRolesPaginator(iam.NewFromConfig(w.cfg), &iam.ListRolesInput{}); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		must(err)
		for _, r := range page.Roles {
			add("role", r.RoleName)
		}
	}
	apis, err := apigatewayv2.NewFromConfig(w.cfg).GetApis(ctx, &apigatewayv2.GetApisInput{})
	must(err)
	for _, a := range apis.Items {
		add("api", a.ApiId)
	}
	for pages := cloudwatchlogs.NewDescribeLogGroupsPaginator(cloudwatchlogs.NewFromConfig(w.cfg), &cloudwatchlogs.DescribeLogGroupsInput{}); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		must(err)
		for _, g := range page.LogGroups {
			// The emulator makes a function's log itself when it is first invoked.
			if !strings.HasPrefix(aws.ToString(g.LogGroupName), "/aws/lambda/") {
				add("log group", g.LogGroupName)
			}
		}
	}
	for pages := ssm.NewDescribeParametersPaginator(ssm.NewFromConfig(w.cfg), &ssm.DescribeParametersInput{}); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		must(err)
		for _, p := range page.Parameters {
			add("parameter", p.Name)
		}
	}
	return found
}

// difference is what one inventory has and the other has not.
func difference(before, after map[string]bool) []string {
	var out []string
	for name := range before {
		if !after[name] {
			out = append(out, "- "+name)
		}
	}
	for name := range after {
		if !before[name] {
			out = append(out, "+ "+name)
		}
	}
	slices.Sort(out)
	return out
}

// record is the record of a stack, nil where there is none.
func (w *world) record(stack string) *state.Record {
	w.Helper()
	rec, _, err := w.plane.Engine.States.Load(w.Context(), stack, region)
	if state.IsNotFound(err) {
		return nil
	}
	if err != nil {
		w.Fatal(err)
	}
	rec.LastModified = 0
	return rec
}

// unlocked asserts that nobody holds the lock of a stack.
func (w *world) unlocked(stacks ...string) {
	w.Helper()
	for _, stack := range stacks {
		if lock, err := w.plane.Engine.States.ReadLock(w.Context(), stack, region); !errors.Is(err, state.ErrNotFound) {
			w.Errorf("the lock of %s: %+v, %v", stack, lock, err)
		}
	}
}

// live asserts that each recorded resource exists and that what the services say of it is what the record says.
func (w *world) live(rec *state.Record) {
	w.Helper()
	if rec == nil {
		w.Fatal("there is no record")
	}
	for _, id := range slices.Sorted(maps.Keys(rec.Resources)) {
		r := rec.Resources[id]
		p, _, err := w.plane.Engine.Providers.For(r.ResourceType, provider.Route(r.ProvisionedBy), nil)
		if err != nil {
			w.Fatal(err)
		}
		_, err = p.Read(w.Context(), provider.Request{
			Stack: rec.StackName, Account: w.descriptor.Account, Region: region, LogicalID: id, Type: r.ResourceType, PhysicalID: r.PhysicalID,
			Previous: r.Properties, Attributes: r.Attributes,
		})
		if err != nil {
			w.Errorf("%s (%s) is recorded as %s: %v", id, r.ResourceType, r.PhysicalID, err)
			continue
		}
		for name, says := range w.describe(r) {
			if want := fmt.Sprint(says.recorded); says.live != want {
				w.Errorf("%s of %s is %q, recorded is %q", name, id, says.live, want)
			}
		}
	}
}

// said is what a service and the record say of one property.
type said struct {
	live     string
	recorded any
}

// describe asks services about properties that the scenarios change, by their own describe calls.
func (w *world) describe(r *state.Resource) map[string]said {
	w.Helper()
	ctx := w.Context()
	out := map[string]said{}
	must := func(err error) {
		w.Helper()
		if err != nil {
			w.Errorf("describing %s: %v", r.PhysicalID, err)
		}
	}
	switch r.ResourceType {
	case "AWS::SQS::Queue":
		got, err := sqs.NewFromConfig(w.cfg).GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
			QueueUrl: &r.PhysicalID, AttributeNames: []sqstypes.QueueAttributeName{sqstypes.QueueAttributeNameAll},
		})
		must(err)
		if want := r.Properties["VisibilityTimeout"]; err == nil && want != nil {
			out["VisibilityTimeout"] = said{got.Attributes["VisibilityTimeout"], want}
		}
	case "AWS::SSM::Parameter":
		got, err := ssm.NewFromConfig(w.cfg).GetParameter(ctx, &ssm.GetParameterInput{Name: &r.PhysicalID})
		must(err)
		if err == nil {
			out["Value"] = said{aws.ToString(got.Parameter.Value), r.Properties["Value"]}
		}
	case "AWS::Lambda::Function":
		got, err := lambda.NewFromConfig(w.cfg).GetFunctionConfiguration(ctx, &lambda.GetFunctionConfigurationInput{FunctionName: &r.PhysicalID})
		must(err)
		environment, _ := r.Properties["Environment"].(map[string]any)
		variables, _ := environment["Variables"].(map[string]any)
		for name, want := range variables {
			if err == nil && got.Environment != nil {
				out[name] = said{got.Environment.Variables[name], want}
			}
		}
	case "AWS::DynamoDB::Table":
		got, err := dynamodb.NewFromConfig(w.cfg).DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &r.PhysicalID})
		must(err)
		if err == nil {
			out["Arn"] = said{aws.ToString(got.Table.TableArn), r.Attributes["Arn"]}
		}
	case "AWS::ApiGatewayV2::Api":
		got, err := apigatewayv2.NewFromConfig(w.cfg).GetApi(ctx, &apigatewayv2.GetApiInput{ApiId: &r.PhysicalID})
		must(err)
		if err == nil {
			out["Name"] = said{aws.ToString(got.Name), r.Properties["Name"]}
		}
	}
	return out
}
