package lambda

import (
	"context"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

func alias() direct.Kind[*client] {
	return direct.Kind[*client]{
		Type: "AWS::Lambda::Alias", Identity: direct.ByName,
		CreateOnly: []string{"FunctionName", "Name"},
		Create: func(ctx context.Context, c *call) (string, error) {
			in := lambda.CreateAliasInput{RoutingConfig: routing(c)}
			if err := direct.Into(c.Properties, &in, nil, "FunctionName", "Name", "FunctionVersion", "Description"); err != nil {
				return "", err
			}
			out, err := c.Client.CreateAlias(ctx, &in)
			if err != nil {
				return "", taken(ctx, c, err, findAlias)
			}
			return aws.ToString(out.AliasArn), nil
		},
		Find: findAlias,
		Stable: func(ctx context.Context, c *call) (direct.Level, error) {
			function, name := versionOf(c)
			return provisionedLevel(ctx, c, function, name)
		},
		Facets: []direct.Facet[*client]{
			{
				Properties: []string{"Description", "FunctionVersion", "RoutingConfig"}, Created: true, Defaults: map[string]any{"Description": ""},
				Put: func(ctx context.Context, c *call) error {
					function, name := versionOf(c)
					in := lambda.UpdateAliasInput{FunctionName: &function, Name: &name, RoutingConfig: routing(c)}
					if err := direct.Into(c.Properties, &in, nil, "FunctionVersion", "Description"); err != nil {
						return err
					}
					_, err := c.Client.UpdateAlias(ctx, &in)
					return err
				},
			},
			{
				Properties: []string{"ProvisionedConcurrencyConfig"},
				Put: func(ctx context.Context, c *call) error {
					function, name := versionOf(c)
					return putProvisioned(ctx, c, function, name)
				},
			},
		},
		Read: readAlias,
		Delete: func(ctx context.Context, c *call) error {
			function, name := versionOf(c)
			_, err := c.Client.DeleteAlias(ctx, &lambda.DeleteAliasInput{FunctionName: &function, Name: &name})
			return err
		},
	}
}

// routing is the property RoutingConfig, a list of versions with their shares, as the service has it. Without the property it is
// empty in an update, as the service keeps the shares otherwise, and nothing in a create.
func routing(c *call) *types.AliasRoutingConfiguration {
	config, _ := c.Properties["RoutingConfig"].(map[string]any)
	list, _ := config["AdditionalVersionWeights"].([]any)
	if len(list) == 0 && c.Previous == nil {
		return nil
	}
	out := &types.AliasRoutingConfiguration{AdditionalVersionWeights: map[string]float64{}}
	for _, e := range list {
		var weight struct {
			FunctionVersion string
			FunctionWeight  float64
		}
		if item, ok := e.(map[string]any); ok && direct.Into(item, &weight, nil) == nil {
			out.AdditionalVersionWeights[weight.FunctionVersion] = weight.FunctionWeight
		}
	}
	return out
}

func findAlias(ctx context.Context, c *call) (direct.Found, error) {
	out, err := c.Client.GetAlias(ctx, &lambda.GetAliasInput{FunctionName: aws.String(c.Text("FunctionName")), Name: aws.String(c.Text("Name"))})
	if err != nil {
		return direct.Found{}, err
	}
	return direct.Found{ID: aws.ToString(out.AliasArn), Properties: aliasModel(c, out)}, nil
}

func aliasModel(c *call, out *lambda.GetAliasOutput) map[string]any {
	function, _ := functionOf(aws.ToString(out.AliasArn))
	properties := map[string]any{
		"Name": aws.ToString(out.Name), "FunctionVersion": aws.ToString(out.FunctionVersion), "FunctionName": functionName(c, "FunctionName", function),
	}
	if text := aws.ToString(out.Description); text != "" {
		properties["Description"] = text
	}
	if out.RoutingConfig != nil && len(out.RoutingConfig.AdditionalVersionWeights) > 0 {
		var weights []any
		for _, version := range slices.Sorted(maps.Keys(out.RoutingConfig.AdditionalVersionWeights)) {
			weights = append(weights, map[string]any{"FunctionVersion": version, "FunctionWeight": out.RoutingConfig.AdditionalVersionWeights[version]})
		}
		properties["RoutingConfig"] = map[string]any{"AdditionalVersionWeights": weights}
	}
	return properties
}

func readAlias(ctx context.Context, c *call) (direct.Live, error) {
	function, name := versionOf(c)
	out, err := c.Client.GetAlias(ctx, &lambda.GetAliasInput{FunctionName: &function, Name: &name})
	if err != nil {
		return direct.Live{}, err
	}
	properties := aliasModel(c, out)
	if len(c.Properties)+len(c.Previous) == 0 || c.Known("ProvisionedConcurrencyConfig") != nil {
		config, err := concurrency(ctx, c, function, name)
		if err != nil {
			return direct.Live{}, err
		}
		properties["ProvisionedConcurrencyConfig"] = provisionedModel(config)
	}
	return direct.Live{Properties: properties, Attributes: map[string]any{"AliasArn": c.PhysicalID}}, nil
}
