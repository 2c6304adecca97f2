package lambda

import (
	"context"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

// version is what a function was at one moment. The service publishes what has not changed since the last version
// only once: it answers with that version. A template that asks for such a version is refused, as CloudFormation does, unless
// an earlier call of the operation may have published it.
func version() direct.Kind[*client] {
	return direct.Kind[*client]{
		Type: "AWS::Lambda::Version", Identity: direct.ByPut,
		CreateOnly: []string{"FunctionName", "Description", "CodeSha256"},
		Create:     publishVersion, Stable: versionLevel, Read: readVersion,
		Facets: []direct.Facet[*client]{
			{
				Properties: []string{"RuntimePolicy"},
				Put: func(ctx context.Context, c *call) error {
					function, number := versionOf(c)
					return putRuntimeManagement(ctx, c, "RuntimePolicy", function, &number)
				},
			},
			{
				Properties: []string{"ProvisionedConcurrencyConfig"},
				Put: func(ctx context.Context, c *call) error {
					function, number := versionOf(c)
					return putProvisioned(ctx, c, function, number)
				},
			},
		},
		Unhandled: map[string]string{"FunctionScalingConfig": "for managed instances"},
		Delete: func(ctx context.Context, c *call) error {
			function, number := versionOf(c)
			if _, err := strconv.Atoi(number); err != nil {
				return direct.Invalid("the physical id is not that of a published version") // without a number the call deletes the function
			}
			_, err := c.Client.DeleteFunction(ctx, &lambda.DeleteFunctionInput{FunctionName: &function, Qualifier: &number})
			return err
		},
	}
}

// versionOf splits the physical id, the ARN of a version: the function's ARN and the number.
func versionOf(c *call) (function, number string) {
	i := strings.LastIndexByte(c.PhysicalID, ':')
	if i < 0 {
		return c.PhysicalID, ""
	}
	return c.PhysicalID[:i], c.PhysicalID[i+1:]
}

func publishVersion(ctx context.Context, c *call) (string, error) {
	last := 0
	if !c.Doubt {
		var err error
		if last, err = lastVersion(ctx, c); err != nil {
			return "", err
		}
	}
	var in lambda.PublishVersionInput
	if err := direct.Into(c.Properties, &in, nil, "FunctionName", "Description", "CodeSha256"); err != nil {
		return "", err
	}
	out, err := c.Client.PublishVersion(ctx, &in)
	if err != nil {
		return "", err
	}
	if n, err := strconv.Atoi(aws.ToString(out.Version)); err == nil && n <= last {
		return "", &provider.Error{
			Kind: provider.KindAlreadyExists, Code: "AlreadyExists",
			Message: "the function has not changed since its version " + aws.ToString(out.Version) + ", so that there is no other one to publish",
		}
	}
	return aws.ToString(out.FunctionArn), nil
}

// lastVersion is the highest number of a version, 0 when there is none.
func lastVersion(ctx context.Context, c *call) (int, error) {
	last := 0
	pages := lambda.NewListVersionsByFunctionPaginator(c.Client, &lambda.ListVersionsByFunctionInput{FunctionName: aws.String(c.Text("FunctionName"))})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return 0, err
		}
		for _, v := range page.Versions {
			if n, err := strconv.Atoi(aws.ToString(v.Version)); err == nil {
				last = max(last, n)
			}
		}
	}
	return last, nil
}

// versionLevel: one with a snapshot of its initialised code is pending for minutes, and can't be invoked until then.
// https://docs.aws.amazon.com/lambda/latest/dg/snapstart.html
func versionLevel(ctx context.Context, c *call) (direct.Level, error) {
	out, err := c.Client.GetFunctionConfiguration(ctx, &lambda.GetFunctionConfigurationInput{FunctionName: &c.PhysicalID})
	switch {
	case err != nil:
		return direct.NotYet, err
	case out.State == types.StateFailed:
		return direct.NotYet, failed(string(out.StateReasonCode), out.StateReason, "the version could not be made")
	case out.State == types.StatePending:
		return direct.NotYet, nil
	}
	function, number := versionOf(c)
	return provisionedLevel(ctx, c, function, number)
}

func readVersion(ctx context.Context, c *call) (direct.Live, error) {
	out, err := c.Client.GetFunctionConfiguration(ctx, &lambda.GetFunctionConfigurationInput{FunctionName: &c.PhysicalID})
	if err != nil {
		return direct.Live{}, err
	}
	function, number := versionOf(c)
	properties := map[string]any{"FunctionName": functionName(c, "FunctionName", function), "CodeSha256": aws.ToString(out.CodeSha256)}
	if text := aws.ToString(out.Description); text != "" {
		properties["Description"] = text
	}
	if c.Known("RuntimePolicy") != nil {
		out, err := c.Client.GetRuntimeManagementConfig(ctx, &lambda.GetRuntimeManagementConfigInput{FunctionName: &function, Qualifier: &number})
		if err != nil {
			return direct.Live{}, err
		}
		properties["RuntimePolicy"] = runtimeManagement(out)
	}
	if c.Known("ProvisionedConcurrencyConfig") != nil {
		config, err := concurrency(ctx, c, function, number)
		if err != nil {
			return direct.Live{}, err
		}
		properties["ProvisionedConcurrencyConfig"] = provisionedModel(config)
	}
	return direct.Live{Properties: properties, Attributes: map[string]any{"FunctionArn": c.PhysicalID, "Version": number}}, nil
}
