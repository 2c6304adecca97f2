package lambda

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

// functionNames are the members that the service calls otherwise.
var functionNames = direct.Renames{"ImageConfig": "ImageConfigResponse"}

// readFunction reads what one call tells; what has a call of its own only where the record speaks of it, and all of it
// without a record. The service tells a digest of the code, not where it came from.
func readFunction(ctx context.Context, c *call) (direct.Live, error) {
	out, err := c.Client.GetFunction(ctx, &lambda.GetFunctionInput{FunctionName: &c.PhysicalID})
	if err != nil {
		return direct.Live{}, err
	}
	f := out.Configuration
	properties := direct.From(c.Type, f, functionNames)
	properties["Tags"] = direct.TagModel(out.Tags)
	if f.ImageConfigResponse != nil && f.ImageConfigResponse.ImageConfig != nil {
		properties["ImageConfig"] = direct.From(c.Type, map[string]any{"ImageConfig": f.ImageConfigResponse.ImageConfig}, nil)["ImageConfig"]
	} else {
		delete(properties, "ImageConfig")
	}
	if f.VpcConfig == nil || len(f.VpcConfig.SubnetIds) == 0 {
		delete(properties, "VpcConfig")
	}
	var layers []string
	for _, l := range f.Layers {
		layers = append(layers, aws.ToString(l.Arn))
	}
	properties["Layers"] = direct.Models(layers)
	if out.Concurrency != nil && out.Concurrency.ReservedConcurrentExecutions != nil {
		properties["ReservedConcurrentExecutions"] = int(*out.Concurrency.ReservedConcurrentExecutions)
	}
	attributes := map[string]any{"Arn": aws.ToString(f.FunctionArn)}
	if f.SnapStart != nil {
		attributes["SnapStartResponse"] = map[string]any{"ApplyOn": string(f.SnapStart.ApplyOn), "OptimizationStatus": string(f.SnapStart.OptimizationStatus)}
	}
	if err := readAfterwards(ctx, c, properties); err != nil {
		return direct.Live{}, err
	}
	return direct.Live{Properties: properties, Attributes: attributes}, nil
}

func readAfterwards(ctx context.Context, c *call, properties map[string]any) error {
	wanted := func(property string) bool {
		return len(c.Properties)+len(c.Previous) == 0 || c.Properties[property] != nil || c.Previous[property] != nil
	}
	if wanted("RuntimeManagementConfig") {
		out, err := c.Client.GetRuntimeManagementConfig(ctx, &lambda.GetRuntimeManagementConfigInput{FunctionName: &c.PhysicalID})
		if err != nil {
			return err
		}
		properties["RuntimeManagementConfig"] = runtimeManagement(out)
	}
	if wanted("RecursiveLoop") {
		out, err := c.Client.GetFunctionRecursionConfig(ctx, &lambda.GetFunctionRecursionConfigInput{FunctionName: &c.PhysicalID})
		if err != nil {
			return err
		}
		properties["RecursiveLoop"] = string(out.RecursiveLoop)
	}
	if wanted("CodeSigningConfigArn") {
		out, err := c.Client.GetFunctionCodeSigningConfig(ctx, &lambda.GetFunctionCodeSigningConfigInput{FunctionName: &c.PhysicalID})
		if err != nil {
			return err
		}
		if arn := aws.ToString(out.CodeSigningConfigArn); arn != "" {
			properties["CodeSigningConfigArn"] = arn
		}
	}
	return nil
}

// runtimeManagement is how a runtime is updated, as a model has it.
func runtimeManagement(out *lambda.GetRuntimeManagementConfigOutput) any {
	config := map[string]any{"UpdateRuntimeOn": string(out.UpdateRuntimeOn)}
	if out.UpdateRuntimeOn == types.UpdateRuntimeOnManual {
		config["RuntimeVersionArn"] = aws.ToString(out.RuntimeVersionArn)
	}
	return config
}
