package apigatewayv2

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/apigatewayv2"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

// apiDefaults are what properties of an API become that the template no longer has.
// https://docs.aws.amazon.com/apigatewayv2/latest/api-reference/apis.html
var apiDefaults = map[string]any{
	"ApiKeySelectionExpression": "$request.header.x-api-key", "Description": "", "DisableExecuteApiEndpoint": false, "DisableSchemaValidation": false,
	"IpAddressType": "ipv4", "RouteSelectionExpression": "$request.method $request.path", "Version": "",
}

var apiProperties = []string{
	"ApiKeySelectionExpression", "Description", "DisableExecuteApiEndpoint", "DisableSchemaValidation",
	"IpAddressType", "Name", "RouteSelectionExpression", "Version",
}

func api() direct.Kind[*apigatewayv2.Client] {
	document, quick := "an API from an OpenAPI document", "a part of quick create"
	return direct.Kind[*apigatewayv2.Client]{
		Type: "AWS::ApiGatewayV2::Api", Identity: direct.ByMark,
		CreateOnly: []string{"ProtocolType"},
		Create: func(ctx context.Context, c *call) (string, error) {
			in := apigatewayv2.CreateApiInput{Tags: c.Tags()}
			if err := direct.Into(c.Properties, &in, nil, append([]string{"CorsConfiguration", "ProtocolType"}, apiProperties...)...); err != nil {
				return "", err
			}
			out, err := c.Client.CreateApi(ctx, &in)
			if err != nil {
				return "", err
			}
			return *out.ApiId, nil
		},
		Find: findAPI,
		Facets: []direct.Facet[*apigatewayv2.Client]{
			{
				Properties: apiProperties, Created: true, Defaults: apiDefaults,
				Put: func(ctx context.Context, c *call) error {
					in := apigatewayv2.UpdateApiInput{ApiId: &c.PhysicalID}
					if err := direct.Into(changed(c, apiProperties), &in, nil); err != nil {
						return err
					}
					_, err := c.Client.UpdateApi(ctx, &in)
					return err
				},
			},
			{Properties: []string{"CorsConfiguration"}, Created: true, Put: putCors},
			direct.Tags("Tags",
				func(ctx context.Context, c *call, tags map[string]string) error {
					_, err := c.Client.TagResource(ctx, &apigatewayv2.TagResourceInput{ResourceArn: arn(c, "/apis/"+c.PhysicalID), Tags: tags})
					return err
				},
				func(ctx context.Context, c *call, keys []string) error {
					_, err := c.Client.UntagResource(ctx, &apigatewayv2.UntagResourceInput{ResourceArn: arn(c, "/apis/"+c.PhysicalID), TagKeys: keys})
					return err
				}),
		},
		Unhandled: map[string]string{
			"BasePath": document, "Body": document, "BodyS3Location": document, "FailOnWarnings": document,
			"CredentialsArn": quick, "RouteKey": quick, "Target": quick,
		},
		Read: func(ctx context.Context, c *call) (direct.Live, error) {
			out, err := c.Client.GetApi(ctx, &apigatewayv2.GetApiInput{ApiId: &c.PhysicalID})
			if err != nil {
				return direct.Live{}, err
			}
			properties := direct.From(c.Type, out, nil)
			return direct.Live{Properties: properties, Attributes: map[string]any{
				"ApiId": c.PhysicalID, "ApiEndpoint": aws.ToString(out.ApiEndpoint),
				"ExecuteApiArn": "arn:" + direct.Partition(c.Region) + ":execute-api:" + c.Region + ":" + c.Account + ":" + c.PhysicalID,
			}}, nil
		},
		Delete: func(ctx context.Context, c *call) error {
			_, err := c.Client.DeleteApi(ctx, &apigatewayv2.DeleteApiInput{ApiId: &c.PhysicalID})
			return err
		},
	}
}

// arn is what the calls on tags take.
// https://docs.aws.amazon.com/apigateway/latest/developerguide/arn-format-reference.html
func arn(c *call, path string) *string {
	return aws.String("arn:" + direct.Partition(c.Region) + ":apigateway:" + c.Region + "::" + path)
}

func findAPI(ctx context.Context, c *call) (direct.Found, error) {
	in := apigatewayv2.GetApisInput{MaxResults: aws.String("100")}
	for {
		out, err := c.Client.GetApis(ctx, &in)
		if err != nil {
			return direct.Found{}, err
		}
		for _, a := range out.Items {
			if a.Tags[direct.MarkKey] == c.Mark() {
				return direct.Found{ID: *a.ApiId}, nil
			}
		}
		if in.NextToken = out.NextToken; in.NextToken == nil {
			return direct.Found{}, nil
		}
	}
}

func putCors(ctx context.Context, c *call) error {
	if !c.Has("CorsConfiguration") {
		_, err := c.Client.DeleteCorsConfiguration(ctx, &apigatewayv2.DeleteCorsConfigurationInput{ApiId: &c.PhysicalID})
		if errorKinds.IsKind(err, provider.KindNotFound) { // the configuration, or the API
			_, err = c.Client.GetApi(ctx, &apigatewayv2.GetApiInput{ApiId: &c.PhysicalID})
		}
		return err
	}
	in := apigatewayv2.UpdateApiInput{ApiId: &c.PhysicalID}
	if err := direct.Into(c.Properties, &in, nil, "CorsConfiguration"); err != nil {
		return err
	}
	_, err := c.Client.UpdateApi(ctx, &in)
	return err
}
