package apigatewayv2

import (
	"context"
	"maps"

	"github.com/aws/aws-sdk-go-v2/service/apigatewayv2"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

// routeDefaults are what the settings of routes are where nobody has set them. The rates are those of an account.
// https://docs.aws.amazon.com/apigateway/latest/developerguide/limits.html
var routeDefaults = map[string]any{
	"DataTraceEnabled": false, "DetailedMetricsEnabled": false, "LoggingLevel": "OFF", "ThrottlingBurstLimit": 5000, "ThrottlingRateLimit": 10000,
}

var stageProperties = []string{"AutoDeploy", "ClientCertificateId", "DefaultRouteSettings", "DeploymentId", "Description", "StageVariables"}

// stage's id is its name (reference §7.2).
func stage() direct.Kind[*apigatewayv2.Client] {
	return direct.Kind[*apigatewayv2.Client]{
		Type: "AWS::ApiGatewayV2::Stage", Identity: direct.ByName,
		CreateOnly: []string{"ApiId", "StageName"},
		Create: func(ctx context.Context, c *call) (string, error) {
			in := apigatewayv2.CreateStageInput{Tags: c.Tags()}
			names := append([]string{"ApiId", "StageName", "AccessLogSettings", "RouteSettings"}, stageProperties...)
			if err := direct.Into(c.Properties, &in, nil, names...); err != nil {
				return "", err
			}
			_, err := c.Client.CreateStage(ctx, &in)
			return c.Text("StageName"), taken(err)
		},
		Find: func(ctx context.Context, c *call) (direct.Found, error) {
			name := c.Text("StageName")
			out, err := c.Client.GetStage(ctx, &apigatewayv2.GetStageInput{ApiId: apiID(c), StageName: &name})
			if err != nil {
				return direct.Found{}, err
			}
			found := direct.Found{ID: name, Tags: map[string]string{}}
			maps.Copy(found.Tags, out.Tags)
			return found, nil
		},
		Facets: []direct.Facet[*apigatewayv2.Client]{
			{
				Properties: stageProperties, Created: true, Put: putStage,
				Defaults: map[string]any{"AutoDeploy": false, "ClientCertificateId": "", "DefaultRouteSettings": map[string]any{}, "Description": "", "StageVariables": map[string]any{}},
			},
			{Properties: []string{"AccessLogSettings"}, Created: true, Put: putAccessLog},
			{Properties: []string{"RouteSettings"}, Created: true, Put: putRouteSettings},
			direct.Tags("Tags",
				func(ctx context.Context, c *call, tags map[string]string) error {
					_, err := c.Client.TagResource(ctx, &apigatewayv2.TagResourceInput{ResourceArn: stageARN(c), Tags: tags})
					return err
				},
				func(ctx context.Context, c *call, keys []string) error {
					_, err := c.Client.UntagResource(ctx, &apigatewayv2.UntagResourceInput{ResourceArn: stageARN(c), TagKeys: keys})
					return err
				}),
		},
		Unhandled: map[string]string{"AccessPolicyId": "the service does not support it"},
		Read:      readStage,
		Delete: func(ctx context.Context, c *call) error {
			_, err := c.Client.DeleteStage(ctx, &apigatewayv2.DeleteStageInput{ApiId: apiID(c), StageName: partID(c)})
			return err
		},
	}
}

func stageARN(c *call) *string { return arn(c, "/apis/"+*apiID(c)+"/stages/"+*partID(c)) }

func putStage(ctx context.Context, c *call) error {
	in := apigatewayv2.UpdateStageInput{ApiId: apiID(c), StageName: partID(c)}
	properties := changed(c, stageProperties)
	delete(properties, "StageVariables")
	if c.Changed("DefaultRouteSettings") {
		properties["DefaultRouteSettings"] = routeSettings(c.Previous["DefaultRouteSettings"], c.Properties["DefaultRouteSettings"])
	}
	if err := direct.Into(properties, &in, nil); err != nil {
		return err
	}
	if c.Changed("StageVariables") {
		in.StageVariables = emptied(c.Previous["StageVariables"], c.Properties["StageVariables"])
	}
	_, err := c.Client.UpdateStage(ctx, &in)
	return err
}

// routeSettings are settings with the default of those that are gone.
func routeSettings(before, after any) map[string]any {
	out := map[string]any{}
	for _, name := range keys(before, after) {
		out[name] = routeDefaults[name]
	}
	if is, ok := after.(map[string]any); ok {
		maps.Copy(out, is)
	}
	return out
}

func putAccessLog(ctx context.Context, c *call) error {
	if !c.Has("AccessLogSettings") {
		_, err := c.Client.DeleteAccessLogSettings(ctx, &apigatewayv2.DeleteAccessLogSettingsInput{ApiId: apiID(c), StageName: partID(c)})
		if errorKinds.IsKind(err, provider.KindNotFound) { // the settings, or the stage
			_, err = c.Client.GetStage(ctx, &apigatewayv2.GetStageInput{ApiId: apiID(c), StageName: partID(c)})
		}
		return err
	}
	in := apigatewayv2.UpdateStageInput{ApiId: apiID(c), StageName: partID(c)}
	if err := direct.Into(c.Properties, &in, nil, "AccessLogSettings"); err != nil {
		return err
	}
	_, err := c.Client.UpdateStage(ctx, &in)
	return err
}

func putRouteSettings(ctx context.Context, c *call) error {
	for _, key := range keys(c.Previous["RouteSettings"], c.Properties["RouteSettings"]) {
		_, err := c.Client.DeleteRouteSettings(ctx, &apigatewayv2.DeleteRouteSettingsInput{ApiId: apiID(c), StageName: partID(c), RouteKey: &key})
		if err := errorKinds.Unless(err, provider.KindNotFound); err != nil {
			return err
		}
	}
	if !c.Has("RouteSettings") {
		return nil
	}
	before, _ := c.Previous["RouteSettings"].(map[string]any)
	settings := map[string]any{}
	for key, after := range c.Properties["RouteSettings"].(map[string]any) {
		settings[key] = routeSettings(before[key], after)
	}
	in := apigatewayv2.UpdateStageInput{ApiId: apiID(c), StageName: partID(c)}
	if err := direct.Into(map[string]any{"RouteSettings": settings}, &in, nil); err != nil {
		return err
	}
	_, err := c.Client.UpdateStage(ctx, &in)
	return err
}

func readStage(ctx context.Context, c *call) (direct.Live, error) {
	out, err := c.Client.GetStage(ctx, &apigatewayv2.GetStageInput{ApiId: apiID(c), StageName: partID(c)})
	if err != nil {
		return direct.Live{}, err
	}
	properties := direct.From(c.Type, out, nil)
	properties["ApiId"] = *apiID(c)
	if c.Known("DeploymentId") == nil {
		delete(properties, "DeploymentId") // that of an automatic deployment, or of another resource
	}
	for _, name := range []string{"RouteSettings", "StageVariables"} {
		if m, ok := properties[name].(map[string]any); ok {
			if properties[name] = without(m); len(properties[name].(map[string]any)) == 0 {
				delete(properties, name)
			}
		}
	}
	return direct.Live{Properties: properties, Attributes: map[string]any{}}, nil
}

// without is a map without what is empty, and without what is empty in its members.
func without(m map[string]any) map[string]any {
	out := map[string]any{}
	for name, v := range m {
		if inner, ok := v.(map[string]any); ok {
			v = without(inner)
		}
		if v != nil && v != "" {
			out[name] = v
		}
	}
	return out
}
