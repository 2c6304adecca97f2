package apigatewayv2

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/apigatewayv2"
	"github.com/aws/aws-sdk-go-v2/service/apigatewayv2/types"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/provider/direct"
	"github.com/slipway-cdk/slipway/pkg/provider/providertest"
	"github.com/slipway-cdk/slipway/pkg/schema"
)

func TestEveryMemberIsSentAndReadBack(t *testing.T) {
	for _, c := range []struct {
		typ, property string
		in            any
	}{
		{"AWS::ApiGatewayV2::Api", "CorsConfiguration", new(apigatewayv2.CreateApiInput)},
		{"AWS::ApiGatewayV2::Stage", "AccessLogSettings", new(apigatewayv2.CreateStageInput)},
		{"AWS::ApiGatewayV2::Stage", "DefaultRouteSettings", new(apigatewayv2.CreateStageInput)},
		{"AWS::ApiGatewayV2::Integration", "TlsConfig", new(apigatewayv2.UpdateIntegrationInput)},
	} {
		typ, _ := schema.Lookup(c.typ)
		given := map[string]any{c.property: providertest.Sample(typ, c.property)}
		if err := direct.Into(given, c.in, nil); err != nil {
			t.Errorf("%s of %s: %v", c.property, c.typ, err)
		} else if live := direct.From(c.typ, c.in, nil); !direct.Same(c.typ, c.property, live[c.property], given[c.property]) {
			t.Errorf("%s of %s: given %v, read %v", c.property, c.typ, given[c.property], live[c.property])
		}
	}
}

func TestAConflictTellsATakenNameFromAnAPIThatIsBeingChanged(t *testing.T) {
	taken := taken(&types.ConflictException{Message: aws.String("Route with key GET / already exists for this API")})
	if !provider.IsAlreadyExists(taken) {
		t.Errorf("a taken name is %v", taken)
	}
	busy := &types.ConflictException{Message: aws.String("Unable to complete operation due to concurrent modification. Please try again later.")}
	if err := error(busy); !errorKinds.IsKind(err, provider.KindConflict) {
		t.Errorf("a concurrent change is %v", err)
	}
}
