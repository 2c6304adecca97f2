package ec2

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

// destinations are the properties that name a route within its table.
var destinations = []string{"DestinationCidrBlock", "DestinationIpv6CidrBlock", "DestinationPrefixListId"}

// routeTargets are the properties that say where a route leads.
var routeTargets = []string{
	"EgressOnlyInternetGatewayId", "GatewayId", "InstanceId", "NatGatewayId", "NetworkInterfaceId",
	"TransitGatewayId", "VpcEndpointId", "VpcPeeringConnectionId",
}

// route is an entry of a route table. Its id is table|destination (reference §10.3).
func route() direct.Kind[*ec2.Client] {
	return direct.Kind[*ec2.Client]{
		Type: "AWS::EC2::Route", Identity: direct.ByName, LookFirst: true,
		CreateOnly: append([]string{"RouteTableId"}, destinations...),
		Create: func(ctx context.Context, c *call) (string, error) {
			destination, err := routeDestination(c)
			if err != nil {
				return "", err
			}
			var in ec2.CreateRouteInput
			if err := direct.Into(c.Properties, &in, nil); err != nil {
				return "", err
			}
			_, err = c.Client.CreateRoute(ctx, &in)
			return c.Text("RouteTableId") + "|" + destination, young(err)
		},
		Find: func(ctx context.Context, c *call) (direct.Found, error) {
			destination, err := routeDestination(c)
			if err != nil {
				return direct.Found{}, err
			}
			properties, err := findRoute(ctx, c, c.Text("RouteTableId"), destination)
			if properties == nil || err != nil {
				return direct.Found{}, young(err)
			}
			return direct.Found{ID: c.Text("RouteTableId") + "|" + destination, Properties: properties}, nil
		},
		Facets: []direct.Facet[*ec2.Client]{{Properties: routeTargets, Created: true, Put: replaceRoute}},
		Unhandled: map[string]string{
			"CarrierGatewayId": "of a Wavelength zone", "LocalGatewayId": "of an Outpost", "CoreNetworkArn": "of Cloud WAN", "OdbNetworkArn": "of Oracle Database@AWS",
		},
		Read: func(ctx context.Context, c *call) (direct.Live, error) {
			table, destination, _ := strings.Cut(c.PhysicalID, "|")
			properties, err := findRoute(ctx, c, table, destination)
			if err != nil {
				return direct.Live{}, err
			}
			if properties == nil {
				return direct.Live{}, direct.NotFound("route", c.PhysicalID)
			}
			return direct.Live{Properties: properties, Attributes: map[string]any{"CidrBlock": destination}}, nil
		},
		Delete: func(ctx context.Context, c *call) error {
			table, destination, _ := strings.Cut(c.PhysicalID, "|")
			in := ec2.DeleteRouteInput{RouteTableId: &table}
			switch {
			case strings.HasPrefix(destination, "pl-"):
				in.DestinationPrefixListId = &destination
			case strings.Contains(destination, ":"):
				in.DestinationIpv6CidrBlock = &destination
			default:
				in.DestinationCidrBlock = &destination
			}
			_, err := c.Client.DeleteRoute(ctx, &in)
			return err
		},
	}
}

func routeDestination(c *call) (string, error) {
	destination := ""
	for _, name := range destinations {
		if text := c.Text(name); text != "" {
			if destination != "" {
				return "", direct.Invalid("a route has one destination")
			}
			destination = text
		}
	}
	if destination == "" || strings.Contains(destination, "|") {
		return "", direct.Invalid("a route needs a destination")
	}
	return destination, nil
}

func replaceRoute(ctx context.Context, c *call) error {
	var in ec2.ReplaceRouteInput
	if err := direct.Into(c.Properties, &in, nil); err != nil {
		return err
	}
	_, err := c.Client.ReplaceRoute(ctx, &in)
	if errorKinds.IsKind(err, provider.KindInvalid) {
		// So it answers when there is no such route, too.
		table, destination, _ := strings.Cut(c.PhysicalID, "|")
		if properties, readErr := findRoute(ctx, c, table, destination); readErr == nil && properties == nil {
			return direct.NotFound("route", c.PhysicalID)
		}
	}
	return err
}

// findRoute is the model of a table's route, nil when there is none. Routes that the VPC itself or a propagating gateway
// has put there do not count: another one may stand beside them.
func findRoute(ctx context.Context, c *call, table, destination string) (map[string]any, error) {
	t, err := getRouteTable(ctx, c, table)
	if err != nil {
		return nil, err
	}
	for _, r := range t.Routes {
		at := aws.ToString(r.DestinationCidrBlock) + aws.ToString(r.DestinationIpv6CidrBlock) + aws.ToString(r.DestinationPrefixListId)
		if canonical(at) != canonical(destination) || r.Origin != types.RouteOriginCreateRoute {
			continue
		}
		properties := direct.From(c.Type, r, nil)
		properties["RouteTableId"] = table
		for _, name := range destinations {
			if c.Known(name) != nil {
				properties[name] = c.Known(name) // as it is written in the template
			}
		}
		if gateway := aws.ToString(r.GatewayId); strings.HasPrefix(gateway, "vpce-") {
			delete(properties, "GatewayId")
			properties["VpcEndpointId"] = gateway
		}
		if properties["InstanceId"] != nil && c.Known("NetworkInterfaceId") == nil {
			delete(properties, "NetworkInterfaceId") // that of the instance
		}
		return properties, nil
	}
	return nil, nil
}
