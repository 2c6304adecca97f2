package ec2

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

func internetGateway() direct.Kind[*ec2.Client] {
	return direct.Kind[*ec2.Client]{
		Type: "AWS::EC2::InternetGateway", Identity: direct.ByMark,
		Create: func(ctx context.Context, c *call) (string, error) {
			out, err := c.Client.CreateInternetGateway(ctx, &ec2.CreateInternetGatewayInput{TagSpecifications: tagged(c, types.ResourceTypeInternetGateway)})
			if err != nil {
				return "", err
			}
			return *out.InternetGateway.InternetGatewayId, nil
		},
		Find: func(ctx context.Context, c *call) (direct.Found, error) {
			out, err := c.Client.DescribeInternetGateways(ctx, &ec2.DescribeInternetGatewaysInput{Filters: mark(c)})
			if err != nil {
				return direct.Found{}, err
			}
			found, ok := marked(c, out.InternetGateways, func(e types.InternetGateway) []types.Tag { return e.Tags })
			if !ok {
				return direct.Found{}, nil
			}
			return direct.Found{ID: *found.InternetGatewayId}, nil
		},
		Facets: []direct.Facet[*ec2.Client]{tags()},
		Read: func(ctx context.Context, c *call) (direct.Live, error) {
			out, err := c.Client.DescribeInternetGateways(ctx, &ec2.DescribeInternetGatewaysInput{InternetGatewayIds: []string{c.PhysicalID}})
			if err != nil {
				return direct.Live{}, err
			}
			if len(out.InternetGateways) == 0 {
				return direct.Live{}, direct.NotFound("internet gateway", c.PhysicalID)
			}
			return direct.Live{
				Properties: map[string]any{"Tags": model(out.InternetGateways[0].Tags)},
				Attributes: map[string]any{"InternetGatewayId": c.PhysicalID},
			}, nil
		},
		Delete: func(ctx context.Context, c *call) error {
			_, err := c.Client.DeleteInternetGateway(ctx, &ec2.DeleteInternetGatewayInput{InternetGatewayId: &c.PhysicalID})
			return err
		},
	}
}
