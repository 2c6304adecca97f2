package ec2

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

// natGateway takes minutes to come up: routes can lead to it before, traffic flows only after. It may fail until then, so that the
// default waits for it (reference §8.8).
func natGateway() direct.Kind[*ec2.Client] {
	atCreation := []string{"AllocationId", "ConnectivityType", "PrivateIpAddress", "SubnetId"}
	return direct.Kind[*ec2.Client]{
		Type: "AWS::EC2::NatGateway", Identity: direct.ByMark, CreateOnly: atCreation,
		Create: func(ctx context.Context, c *call) (string, error) {
			in := ec2.CreateNatGatewayInput{TagSpecifications: tagged(c, types.ResourceTypeNatgateway), ClientToken: aws.String(c.Mark())}
			if err := direct.Into(c.Properties, &in, nil, atCreation...); err != nil {
				return "", err
			}
			out, err := c.Client.CreateNatGateway(ctx, &in)
			if err != nil {
				return "", young(err)
			}
			return *out.NatGateway.NatGatewayId, nil
		},
		Find: func(ctx context.Context, c *call) (direct.Found, error) {
			out, err := c.Client.DescribeNatGateways(ctx, &ec2.DescribeNatGatewaysInput{Filter: mark(c)})
			if err != nil {
				return direct.Found{}, err
			}
			for _, g := range out.NatGateways {
				alive := g.State == types.NatGatewayStatePending || g.State == types.NatGatewayStateAvailable
				if alive && direct.TagMap(g.Tags, pair)[direct.MarkKey] == c.Mark() {
					return direct.Found{ID: *g.NatGatewayId}, nil
				}
			}
			return direct.Found{}, nil
		},
		Stable: func(ctx context.Context, c *call) (direct.Level, error) {
			g, err := getNatGateway(ctx, c)
			if err != nil {
				return direct.NotYet, err
			}
			switch g.State {
			case types.NatGatewayStateAvailable:
				return direct.Settled, nil
			case types.NatGatewayStatePending:
				return direct.Usable, nil
			}
			code := aws.ToString(g.FailureCode)
			kind, known := errorKinds[code]
			if !known {
				kind = provider.KindFailed
			}
			return direct.NotYet, &provider.Error{
				Kind: kind, Code: code, Message: fmt.Sprintf("the NAT gateway is %s: %s", g.State, aws.ToString(g.FailureMessage)),
			}
		},
		Facets: []direct.Facet[*ec2.Client]{tags()},
		Unhandled: map[string]string{
			"AvailabilityMode": "of a regional NAT gateway", "AvailabilityZoneAddresses": "of a regional NAT gateway", "VpcId": "of a regional NAT gateway",
			"SecondaryAllocationIds": "secondary addresses", "SecondaryPrivateIpAddresses": "secondary addresses", "SecondaryPrivateIpAddressCount": "secondary addresses",
			"MaxDrainDurationSeconds": "used when secondary addresses are taken away",
		},
		Read: func(ctx context.Context, c *call) (direct.Live, error) {
			g, err := getNatGateway(ctx, c)
			if err != nil {
				return direct.Live{}, err
			}
			properties := direct.From(c.Type, g, nil)
			properties["Tags"] = model(g.Tags)
			delete(properties, "VpcId") // that of the subnet
			attributes := map[string]any{"NatGatewayId": c.PhysicalID}
			for _, a := range g.NatGatewayAddresses {
				if a.IsPrimary != nil && !*a.IsPrimary {
					continue
				}
				if a.AllocationId != nil {
					properties["AllocationId"] = *a.AllocationId
				}
				if a.PrivateIp != nil && c.Known("PrivateIpAddress") != nil {
					properties["PrivateIpAddress"] = *a.PrivateIp
				}
				if a.NetworkInterfaceId != nil {
					attributes["EniId"] = *a.NetworkInterfaceId
				}
				break
			}
			for name, value := range map[string]string{
				"AutoProvisionZones": string(g.AutoProvisionZones), "AutoScalingIps": string(g.AutoScalingIps), "RouteTableId": aws.ToString(g.RouteTableId),
			} {
				if value != "" {
					attributes[name] = value
				}
			}
			return direct.Live{Properties: properties, Attributes: attributes}, nil
		},
		Delete: func(ctx context.Context, c *call) error {
			_, err := c.Client.DeleteNatGateway(ctx, &ec2.DeleteNatGatewayInput{NatGatewayId: &c.PhysicalID})
			return err
		},
		// Its address and its subnet are taken until it is gone.
		Gone: func(ctx context.Context, c *call) (bool, error) {
			_, err := getNatGateway(ctx, c)
			return false, err
		},
	}
}

// getNatGateway reads the gateway; a deleted one, which is listed for an hour, is not found.
func getNatGateway(ctx context.Context, c *call) (*types.NatGateway, error) {
	out, err := c.Client.DescribeNatGateways(ctx, &ec2.DescribeNatGatewaysInput{NatGatewayIds: []string{c.PhysicalID}})
	if err != nil {
		return nil, err
	}
	if len(out.NatGateways) == 0 || out.NatGateways[0].State == types.NatGatewayStateDeleted {
		return nil, direct.NotFound("NAT gateway", c.PhysicalID)
	}
	return &out.NatGateways[0], nil
}
