package lambda

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

// putProvisioned sets the property ProvisionedConcurrencyConfig of a version or an alias.
func putProvisioned(ctx context.Context, c *call, function, qualifier string) error {
	parts, _ := c.Properties["ProvisionedConcurrencyConfig"].(map[string]any)
	if parts == nil {
		_, err := c.Client.DeleteProvisionedConcurrencyConfig(ctx, &lambda.DeleteProvisionedConcurrencyConfigInput{FunctionName: &function, Qualifier: &qualifier})
		return err
	}
	in := lambda.PutProvisionedConcurrencyConfigInput{FunctionName: &function, Qualifier: &qualifier}
	if err := direct.Into(parts, &in, nil, "ProvisionedConcurrentExecutions"); err != nil {
		return err
	}
	_, err := c.Client.PutProvisionedConcurrencyConfig(ctx, &in)
	return err
}

// provisionedLevel: calls work while the instances are prepared, but whether there are enough of them shows in the end.
func provisionedLevel(ctx context.Context, c *call, function, qualifier string) (direct.Level, error) {
	if !c.Has("ProvisionedConcurrencyConfig") {
		return direct.Settled, nil
	}
	config, err := concurrency(ctx, c, function, qualifier)
	switch {
	case err != nil:
		return direct.NotYet, err
	case config == nil:
		return direct.Usable, nil
	case config.Status == types.ProvisionedConcurrencyStatusEnumFailed:
		return direct.NotYet, failed("ProvisionedConcurrencyFailed", config.StatusReason, "the provisioned concurrency could not be allocated")
	case config.Status == types.ProvisionedConcurrencyStatusEnumInProgress:
		return direct.Usable, nil
	}
	return direct.Settled, nil
}

// concurrency reads the provisioned concurrency of a version or an alias; nil when there is none.
func concurrency(ctx context.Context, c *call, function, qualifier string) (*lambda.GetProvisionedConcurrencyConfigOutput, error) {
	out, err := c.Client.GetProvisionedConcurrencyConfig(ctx, &lambda.GetProvisionedConcurrencyConfigInput{FunctionName: &function, Qualifier: &qualifier})
	if errorKinds.IsKind(err, provider.KindNotFound) {
		return nil, nil
	}
	return out, err
}

func provisionedModel(config *lambda.GetProvisionedConcurrencyConfigOutput) any {
	if config == nil {
		return nil
	}
	return map[string]any{"ProvisionedConcurrentExecutions": int(aws.ToInt32(config.RequestedProvisionedConcurrentExecutions))}
}
