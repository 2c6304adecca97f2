package lambda

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

// url is the web address of a function or of an alias. There is one of each: the physical id is the ARN of what it calls.
func url() direct.Kind[*client] {
	return direct.Kind[*client]{
		Type: "AWS::Lambda::Url", Identity: direct.ByName,
		CreateOnly: []string{"TargetFunctionArn", "Qualifier"},
		Create: func(ctx context.Context, c *call) (string, error) {
			var in lambda.CreateFunctionUrlConfigInput
			if err := direct.Into(c.Properties, &in, direct.Renames{"TargetFunctionArn": "FunctionName"}, "TargetFunctionArn", "Qualifier", "AuthType", "Cors", "InvokeMode"); err != nil {
				return "", err
			}
			out, err := c.Client.CreateFunctionUrlConfig(ctx, &in)
			if err != nil {
				return "", taken(ctx, c, err, findURL)
			}
			return aws.ToString(out.FunctionArn), nil
		},
		Find: findURL,
		Facets: []direct.Facet[*client]{{
			Properties: []string{"AuthType", "Cors", "InvokeMode"}, Created: true,
			// https://docs.aws.amazon.com/lambda/latest/api/API_UpdateFunctionUrlConfig.html
			Defaults: map[string]any{"Cors": map[string]any{}, "InvokeMode": "BUFFERED"},
			Put: func(ctx context.Context, c *call) error {
				function, alias := urlTarget(c)
				in := lambda.UpdateFunctionUrlConfigInput{FunctionName: function, Qualifier: alias}
				if err := direct.Into(c.Properties, &in, nil, "AuthType", "Cors", "InvokeMode"); err != nil {
					return err
				}
				_, err := c.Client.UpdateFunctionUrlConfig(ctx, &in)
				return err
			},
		}},
		Read: func(ctx context.Context, c *call) (direct.Live, error) {
			function, alias := urlTarget(c)
			out, err := c.Client.GetFunctionUrlConfig(ctx, &lambda.GetFunctionUrlConfigInput{FunctionName: function, Qualifier: alias})
			if err != nil {
				return direct.Live{}, err
			}
			return direct.Live{
				Properties: urlModel(c, out), Attributes: map[string]any{"FunctionArn": c.PhysicalID, "FunctionUrl": aws.ToString(out.FunctionUrl)},
			}, nil
		},
		Delete: func(ctx context.Context, c *call) error {
			function, alias := urlTarget(c)
			_, err := c.Client.DeleteFunctionUrlConfig(ctx, &lambda.DeleteFunctionUrlConfigInput{FunctionName: function, Qualifier: alias})
			return err
		},
	}
}

// urlTarget splits the physical id.
func urlTarget(c *call) (function, alias *string) {
	if _, qualifier := functionOf(c.PhysicalID); qualifier != "" {
		return aws.String(strings.TrimSuffix(c.PhysicalID, ":"+qualifier)), &qualifier
	}
	return &c.PhysicalID, nil
}

func findURL(ctx context.Context, c *call) (direct.Found, error) {
	var in lambda.GetFunctionUrlConfigInput
	if err := direct.Into(c.Properties, &in, direct.Renames{"TargetFunctionArn": "FunctionName"}, "TargetFunctionArn", "Qualifier"); err != nil {
		return direct.Found{}, err
	}
	out, err := c.Client.GetFunctionUrlConfig(ctx, &in)
	if err != nil {
		return direct.Found{}, err
	}
	return direct.Found{ID: aws.ToString(out.FunctionArn), Properties: urlModel(c, out)}, nil
}

func urlModel(c *call, out *lambda.GetFunctionUrlConfigOutput) map[string]any {
	properties := direct.From(c.Type, out, nil)
	name, qualifier := functionOf(aws.ToString(out.FunctionArn))
	properties["TargetFunctionArn"] = functionName(c, "TargetFunctionArn", name)
	if qualifier != "" {
		properties["Qualifier"] = qualifier
	}
	return properties
}
