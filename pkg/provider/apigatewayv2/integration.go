package apigatewayv2

import (
	"context"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/apigatewayv2"
	"github.com/aws/aws-sdk-go-v2/service/apigatewayv2/types"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

// integrationDefaults are what properties of an integration become that the template no longer has.
// https://docs.aws.amazon.com/apigatewayv2/latest/api-reference/apis-apiid-integrations.html
var integrationDefaults = map[string]any{
	"ConnectionId": "", "ConnectionType": "INTERNET", "CredentialsArn": "", "Description": "", "IntegrationMethod": "", "IntegrationSubtype": "",
	"IntegrationUri": "", "PassthroughBehavior": "WHEN_NO_MATCH", "PayloadFormatVersion": "1.0", "TemplateSelectionExpression": "",
	"TlsConfig": map[string]any{"ServerNameToVerify": ""},
}

// integrationMaps are the properties that are maps; the others are integrationProperties.
var integrationMaps = []string{"RequestParameters", "RequestTemplates", "ResponseParameters"}

var integrationProperties = []string{
	"ConnectionId", "ConnectionType", "ContentHandlingStrategy", "CredentialsArn", "Description", "IntegrationMethod", "IntegrationSubtype", "IntegrationType",
	"IntegrationUri", "PassthroughBehavior", "PayloadFormatVersion", "TemplateSelectionExpression", "TimeoutInMillis", "TlsConfig",
}

// integration's id is the service's. An API may have many that are the same, and none has tags: the description of a new one ends
// with the mark, which a change of the description takes away.
func integration() direct.Kind[*apigatewayv2.Client] {
	return direct.Kind[*apigatewayv2.Client]{
		Type: "AWS::ApiGatewayV2::Integration", Identity: direct.ByMark,
		CreateOnly: []string{"ApiId"},
		Create: func(ctx context.Context, c *call) (string, error) {
			var in apigatewayv2.CreateIntegrationInput
			names := append([]string{"ApiId", "RequestParameters", "RequestTemplates"}, integrationProperties...)
			if err := direct.Into(c.Properties, &in, nil, names...); err != nil {
				return "", err
			}
			in.Description = aws.String(c.Marked(c.Text("Description"), maxDescription))
			var err error
			if in.ResponseParameters, err = responseParameters(c.Properties["ResponseParameters"]); err != nil {
				return "", err
			}
			out, err := c.Client.CreateIntegration(ctx, &in)
			if err != nil {
				return "", err
			}
			return *out.IntegrationId, nil
		},
		Find: findIntegration,
		Facets: []direct.Facet[*apigatewayv2.Client]{{
			Properties: append(append([]string{}, integrationProperties...), integrationMaps...), Created: true,
			Defaults: integrationDefaults, Put: putIntegration,
		}, direct.Whole("Description", maxDescription, func(ctx context.Context, c *call) error {
			_, err := c.Client.UpdateIntegration(ctx, &apigatewayv2.UpdateIntegrationInput{
				ApiId: apiID(c), IntegrationId: partID(c), Description: aws.String(c.Text("Description")),
			})
			return err
		})},
		Read: func(ctx context.Context, c *call) (direct.Live, error) {
			out, err := c.Client.GetIntegration(ctx, &apigatewayv2.GetIntegrationInput{ApiId: apiID(c), IntegrationId: partID(c)})
			if err != nil {
				return direct.Live{}, err
			}
			properties := direct.From(c.Type, out, nil)
			properties["ApiId"] = *apiID(c)
			delete(properties, "Description")
			if text := direct.Unmarked(aws.ToString(out.Description)); text != "" {
				properties["Description"] = text
			}
			delete(properties, "ResponseParameters")
			if model := responseModel(out.ResponseParameters); len(model) > 0 {
				properties["ResponseParameters"] = model
			}
			return direct.Live{Properties: properties, Attributes: map[string]any{"IntegrationId": *partID(c)}}, nil
		},
		Delete: func(ctx context.Context, c *call) error {
			_, err := c.Client.DeleteIntegration(ctx, &apigatewayv2.DeleteIntegrationInput{ApiId: apiID(c), IntegrationId: partID(c)})
			return err
		},
	}
}

// maxDescription is how long the description of an integration may be.
// https://docs.aws.amazon.com/apigatewayv2/latest/api-reference/apis-apiid-integrations.html
const maxDescription = 1024

func findIntegration(ctx context.Context, c *call) (direct.Found, error) {
	in := apigatewayv2.GetIntegrationsInput{ApiId: apiID(c), MaxResults: aws.String("100")}
	for {
		out, err := c.Client.GetIntegrations(ctx, &in)
		if err != nil {
			return direct.Found{}, err
		}
		for _, i := range out.Items {
			if direct.MarkOf(aws.ToString(i.Description))[direct.MarkKey] == c.Mark() {
				return direct.Found{ID: *i.IntegrationId}, nil
			}
		}
		if in.NextToken = out.NextToken; in.NextToken == nil {
			return direct.Found{}, nil
		}
	}
}

func putIntegration(ctx context.Context, c *call) error {
	if c.Removed("ContentHandlingStrategy") {
		return &provider.Error{Kind: provider.KindImmutable, Code: "NotUpdatable", Message: "ContentHandlingStrategy can't be taken away"}
	}
	properties := changed(c, integrationProperties)
	properties["IntegrationType"] = c.Properties["IntegrationType"] // the others are judged by it
	if c.Removed("TimeoutInMillis") {
		// https://docs.aws.amazon.com/apigatewayv2/latest/api-reference/apis-apiid-integrations.html
		properties["TimeoutInMillis"] = 30000
		out, err := c.Client.GetApi(ctx, &apigatewayv2.GetApiInput{ApiId: apiID(c)})
		if err != nil {
			return err
		}
		if out.ProtocolType == types.ProtocolTypeWebsocket {
			properties["TimeoutInMillis"] = 29000
		}
	}
	in := apigatewayv2.UpdateIntegrationInput{ApiId: apiID(c), IntegrationId: partID(c)}
	if err := direct.Into(properties, &in, nil); err != nil {
		return err
	}
	if c.Changed("RequestParameters") {
		in.RequestParameters = emptied(c.Previous["RequestParameters"], c.Properties["RequestParameters"])
	}
	if c.Changed("RequestTemplates") {
		in.RequestTemplates = emptied(nil, c.Properties["RequestTemplates"])
	}
	if c.Changed("ResponseParameters") {
		before, err := responseParameters(c.Previous["ResponseParameters"])
		if err != nil {
			return err
		}
		if in.ResponseParameters, err = responseParameters(c.Properties["ResponseParameters"]); err != nil {
			return err
		}
		if in.ResponseParameters == nil {
			in.ResponseParameters = map[string]map[string]string{}
		}
		for status := range before {
			if in.ResponseParameters[status] == nil {
				in.ResponseParameters[status] = map[string]string{} // none for this status
			}
		}
	}
	_, err := c.Client.UpdateIntegration(ctx, &in)
	return err
}

// responseParameters are CloudFormation's lists of Source and Destination as the API's maps.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-apigatewayv2-integration.html
func responseParameters(v any) (map[string]map[string]string, error) {
	statuses, _ := v.(map[string]any)
	if len(statuses) == 0 {
		return nil, nil
	}
	out := map[string]map[string]string{}
	for status, e := range statuses {
		holder, _ := e.(map[string]any)
		list, ok := holder["ResponseParameters"].([]any)
		if !ok {
			return nil, direct.Invalid("ResponseParameters of an integration holds a list of ResponseParameters for each status")
		}
		out[status] = map[string]string{}
		for _, p := range list {
			parameter, _ := p.(map[string]any)
			out[status][direct.Text(parameter["Destination"])] = direct.Text(parameter["Source"])
		}
	}
	return out, nil
}

func responseModel(live map[string]map[string]string) map[string]any {
	out := map[string]any{}
	for status, parameters := range live {
		if len(parameters) == 0 {
			continue
		}
		var list []any
		for _, destination := range slices.Sorted(maps.Keys(parameters)) {
			list = append(list, map[string]any{"Destination": destination, "Source": parameters[destination]})
		}
		out[status] = map[string]any{"ResponseParameters": list}
	}
	return out
}
