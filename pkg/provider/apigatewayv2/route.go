package apigatewayv2

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/apigatewayv2"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

// routeRemoved are what properties of a route become that the template no longer has.
// https://docs.aws.amazon.com/apigatewayv2/latest/api-reference/apis-apiid-routes.html
var routeRemoved = map[string]any{
	"ApiKeyRequired": false, "AuthorizationScopes": []any{}, "AuthorizationType": "NONE", "AuthorizerId": "", "ModelSelectionExpression": "",
	"OperationName": "", "RouteResponseSelectionExpression": "", "Target": "",
}

var routeProperties = []string{
	"ApiKeyRequired", "AuthorizationScopes", "AuthorizationType", "AuthorizerId", "ModelSelectionExpression",
	"OperationName", "RequestParameters", "RouteKey", "RouteResponseSelectionExpression", "Target",
}

// maxOperationName is how long the operation name of a route may be.
// https://docs.aws.amazon.com/apigatewayv2/latest/api-reference/apis-apiid-routes.html
const maxOperationName = 64

// route's id is the service's; its name is the key, which an API has once. It has no tags: the operation name of a new one is the
// mark, which makes way for the template's where that gives one.
func route() direct.Kind[*apigatewayv2.Client] {
	return direct.Kind[*apigatewayv2.Client]{
		Type: "AWS::ApiGatewayV2::Route", Identity: direct.ByName,
		CreateOnly: []string{"ApiId"},
		Create: func(ctx context.Context, c *call) (string, error) {
			var in apigatewayv2.CreateRouteInput
			if err := direct.Into(c.Properties, &in, nil); err != nil {
				return "", err
			}
			in.OperationName = aws.String(c.Marked("", maxOperationName))
			out, err := c.Client.CreateRoute(ctx, &in)
			if err != nil {
				return "", taken(err)
			}
			return *out.RouteId, nil
		},
		Find: findRoute,
		Facets: []direct.Facet[*apigatewayv2.Client]{{
			Properties: append([]string{"RequestModels"}, routeProperties...), Created: true, Defaults: routeRemoved, Put: putRoute,
		}, direct.Whole("OperationName", 0, func(ctx context.Context, c *call) error {
			_, err := c.Client.UpdateRoute(ctx, &apigatewayv2.UpdateRouteInput{
				ApiId: apiID(c), RouteId: partID(c), OperationName: aws.String(c.Text("OperationName")),
			})
			return err
		})},
		Read: func(ctx context.Context, c *call) (direct.Live, error) {
			out, err := c.Client.GetRoute(ctx, &apigatewayv2.GetRouteInput{ApiId: apiID(c), RouteId: partID(c)})
			if err != nil {
				return direct.Live{}, err
			}
			return direct.Live{Properties: routeModel(c, out), Attributes: map[string]any{"RouteId": *partID(c)}}, nil
		},
		Delete: func(ctx context.Context, c *call) error {
			_, err := c.Client.DeleteRoute(ctx, &apigatewayv2.DeleteRouteInput{ApiId: apiID(c), RouteId: partID(c)})
			return err
		},
	}
}

func routeModel(c *call, live any) map[string]any {
	properties := direct.From(c.Type, live, nil)
	properties["ApiId"] = *apiID(c)
	if properties["OperationName"] = direct.Unmarked(direct.Text(properties["OperationName"])); properties["OperationName"] == "" {
		delete(properties, "OperationName")
	}
	for _, name := range []string{"RequestModels", "RequestParameters"} {
		if m, ok := properties[name].(map[string]any); ok {
			properties[name] = without(m)
		}
	}
	return properties
}

func findRoute(ctx context.Context, c *call) (direct.Found, error) {
	in := apigatewayv2.GetRoutesInput{ApiId: apiID(c), MaxResults: aws.String("100")}
	for {
		out, err := c.Client.GetRoutes(ctx, &in)
		if err != nil {
			return direct.Found{}, err
		}
		for _, r := range out.Items {
			if aws.ToString(r.RouteKey) == c.Text("RouteKey") {
				return direct.Found{ID: *r.RouteId, Tags: direct.MarkOf(aws.ToString(r.OperationName))}, nil
			}
		}
		if in.NextToken = out.NextToken; in.NextToken == nil {
			return direct.Found{}, nil
		}
	}
}

func putRoute(ctx context.Context, c *call) error {
	for _, name := range keys(c.Previous["RequestParameters"], c.Properties["RequestParameters"]) {
		_, err := c.Client.DeleteRouteRequestParameter(ctx, &apigatewayv2.DeleteRouteRequestParameterInput{ApiId: apiID(c), RouteId: partID(c), RequestParameterKey: &name})
		if err := errorKinds.Unless(err, provider.KindNotFound); err != nil {
			return err
		}
	}
	properties := changed(c, routeProperties)
	if c.Has("AuthorizerId") && c.Changed("AuthorizerId") {
		properties["AuthorizationType"] = c.Properties["AuthorizationType"] // they go together
	}
	in := apigatewayv2.UpdateRouteInput{ApiId: apiID(c), RouteId: partID(c)}
	if err := direct.Into(properties, &in, nil); err != nil {
		return err
	}
	if c.Changed("RequestModels") {
		in.RequestModels = emptied(nil, c.Properties["RequestModels"])
	}
	_, err := c.Client.UpdateRoute(ctx, &in)
	return err
}
