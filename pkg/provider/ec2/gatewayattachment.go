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

// gatewayAttachment is a gateway on a VPC. Its id is gateway|vpc (reference §10.3), with the gateway that it was created with; the
// gateway itself is the template's, or, after a change of it, the record's.
func gatewayAttachment() direct.Kind[*ec2.Client] {
	return direct.Kind[*ec2.Client]{
		Type: "AWS::EC2::VPCGatewayAttachment", Identity: direct.ByName, LookFirst: true,
		CreateOnly: []string{"VpcId"},
		Create: func(ctx context.Context, c *call) (string, error) {
			gateway, err := gatewayOf(c.Properties)
			if err != nil {
				return "", err
			}
			return gateway + "|" + c.Text("VpcId"), young(attach(ctx, c, gateway))
		},
		Find: func(ctx context.Context, c *call) (direct.Found, error) {
			gateway, err := gatewayOf(c.Properties)
			if err != nil {
				return direct.Found{}, err
			}
			state, err := attachment(ctx, c, gateway)
			if err != nil || state == "" {
				return direct.Found{}, err
			}
			return direct.Found{ID: gateway + "|" + c.Text("VpcId"), Properties: attachmentModel(c, gateway)}, nil
		},
		Stable: func(ctx context.Context, c *call) (direct.Level, error) {
			gateway := attachedGateway(c)
			if !strings.HasPrefix(gateway, "vgw-") {
				return direct.Settled, nil // an internet gateway is attached when the call has been answered
			}
			state, err := attachment(ctx, c, gateway)
			switch {
			case err != nil:
				return direct.NotYet, err
			case state != string(types.AttachmentStatusAttached):
				return direct.NotYet, nil
			}
			return direct.Settled, nil
		},
		Facets: []direct.Facet[*ec2.Client]{{
			Properties: []string{"InternetGatewayId", "VpnGatewayId"}, Created: true, Settle: true, Put: moveAttachment,
		}},
		Read: func(ctx context.Context, c *call) (direct.Live, error) {
			gateway := attachedGateway(c)
			state, err := attachment(ctx, c, gateway)
			if err != nil {
				return direct.Live{}, err
			}
			if state == "" {
				return direct.Live{}, direct.NotFound("gateway attachment", c.PhysicalID)
			}
			kind := "IGW"
			if strings.HasPrefix(gateway, "vgw-") {
				kind = "VGW"
			}
			return direct.Live{Properties: attachmentModel(c, gateway), Attributes: map[string]any{"AttachmentType": kind}}, nil
		},
		Delete: func(ctx context.Context, c *call) error { return detach(ctx, c, attachedGateway(c)) },
		Gone: func(ctx context.Context, c *call) (bool, error) {
			gateway := attachedGateway(c)
			if !strings.HasPrefix(gateway, "vgw-") {
				return true, nil
			}
			state, err := attachment(ctx, c, gateway)
			return state == "", err
		},
	}
}

// gatewayOf is the one gateway that properties name.
func gatewayOf(properties map[string]any) (string, error) {
	internet, vpn := direct.Text(properties["InternetGatewayId"]), direct.Text(properties["VpnGatewayId"])
	if (internet == "") == (vpn == "") {
		return "", direct.Invalid("an attachment needs either InternetGatewayId or VpnGatewayId")
	}
	return internet + vpn, nil
}

// attachedGateway is the gateway of an attachment that exists.
func attachedGateway(c *call) string {
	for _, properties := range []map[string]any{c.Properties, c.Previous} {
		if gateway, err := gatewayOf(properties); err == nil {
			return gateway
		}
	}
	gateway, _, _ := strings.Cut(c.PhysicalID, "|")
	return gateway
}

func attachedVPC(c *call) string {
	if vpc := direct.Text(c.Known("VpcId")); vpc != "" {
		return vpc
	}
	_, vpc, _ := strings.Cut(c.PhysicalID, "|")
	return vpc
}

func attachmentModel(c *call, gateway string) map[string]any {
	if strings.HasPrefix(gateway, "vgw-") {
		return map[string]any{"VpcId": attachedVPC(c), "VpnGatewayId": gateway}
	}
	return map[string]any{"VpcId": attachedVPC(c), "InternetGatewayId": gateway}
}

// attachment is the state of the gateway's attachment to the VPC, "" when there is none.
func attachment(ctx context.Context, c *call, gateway string) (string, error) {
	if strings.HasPrefix(gateway, "vgw-") {
		out, err := c.Client.DescribeVpnGateways(ctx, &ec2.DescribeVpnGatewaysInput{VpnGatewayIds: []string{gateway}})
		if err != nil {
			return "", err
		}
		for _, g := range out.VpnGateways {
			for _, a := range g.VpcAttachments {
				if aws.ToString(a.VpcId) == attachedVPC(c) && a.State != types.AttachmentStatusDetached {
					return string(a.State), nil
				}
			}
		}
		return "", nil
	}
	out, err := c.Client.DescribeInternetGateways(ctx, &ec2.DescribeInternetGatewaysInput{InternetGatewayIds: []string{gateway}})
	if err != nil {
		return "", err
	}
	for _, g := range out.InternetGateways {
		for _, a := range g.Attachments {
			if aws.ToString(a.VpcId) == attachedVPC(c) && a.State != types.AttachmentStatusDetached {
				return string(a.State), nil
			}
		}
	}
	return "", nil
}

func attach(ctx context.Context, c *call, gateway string) error {
	vpc := attachedVPC(c)
	if strings.HasPrefix(gateway, "vgw-") {
		_, err := c.Client.AttachVpnGateway(ctx, &ec2.AttachVpnGatewayInput{VpnGatewayId: &gateway, VpcId: &vpc})
		return err
	}
	_, err := c.Client.AttachInternetGateway(ctx, &ec2.AttachInternetGatewayInput{InternetGatewayId: &gateway, VpcId: &vpc})
	return err
}

func detach(ctx context.Context, c *call, gateway string) error {
	vpc := attachedVPC(c)
	if strings.HasPrefix(gateway, "vgw-") {
		_, err := c.Client.DetachVpnGateway(ctx, &ec2.DetachVpnGatewayInput{VpnGatewayId: &gateway, VpcId: &vpc})
		return err
	}
	_, err := c.Client.DetachInternetGateway(ctx, &ec2.DetachInternetGatewayInput{InternetGatewayId: &gateway, VpcId: &vpc})
	return err
}

// moveAttachment takes the former gateway off, as a VPC has one of a kind, and puts the other on. Where neither is on, an earlier
// call has come half of the way, or somebody has taken the gateway off: either way the other one is put on.
func moveAttachment(ctx context.Context, c *call) error {
	gateway, err := gatewayOf(c.Properties)
	if err != nil {
		return err
	}
	if before, err := gatewayOf(c.Previous); err == nil && before != gateway {
		if err := errorKinds.Unless(detach(ctx, c, before), provider.KindNotFound); err != nil {
			return err
		}
	}
	err = attach(ctx, c, gateway)
	if errorKinds.IsKind(err, provider.KindAlreadyExists) {
		if state, readErr := attachment(ctx, c, gateway); readErr == nil && state != "" {
			return nil // by the call whose answer was lost
		}
	}
	return err
}
