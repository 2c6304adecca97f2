package ec2

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

func routeTable() direct.Kind[*ec2.Client] {
	return direct.Kind[*ec2.Client]{
		Type: "AWS::EC2::RouteTable", Identity: direct.ByMark,
		CreateOnly: []string{"VpcId"},
		Create: func(ctx context.Context, c *call) (string, error) {
			out, err := c.Client.CreateRouteTable(ctx, &ec2.CreateRouteTableInput{
				VpcId: aws.String(c.Text("VpcId")), TagSpecifications: tagged(c, types.ResourceTypeRouteTable),
			})
			if err != nil {
				return "", young(err)
			}
			return *out.RouteTable.RouteTableId, nil
		},
		Find: func(ctx context.Context, c *call) (direct.Found, error) {
			out, err := c.Client.DescribeRouteTables(ctx, &ec2.DescribeRouteTablesInput{Filters: mark(c)})
			if err != nil {
				return direct.Found{}, err
			}
			found, ok := marked(c, out.RouteTables, func(e types.RouteTable) []types.Tag { return e.Tags })
			if !ok {
				return direct.Found{}, nil
			}
			return direct.Found{ID: *found.RouteTableId}, nil
		},
		Facets: []direct.Facet[*ec2.Client]{tags()},
		Read: func(ctx context.Context, c *call) (direct.Live, error) {
			t, err := getRouteTable(ctx, c, c.PhysicalID)
			if err != nil {
				return direct.Live{}, err
			}
			return direct.Live{
				Properties: map[string]any{"VpcId": aws.ToString(t.VpcId), "Tags": model(t.Tags)},
				Attributes: map[string]any{"RouteTableId": c.PhysicalID},
			}, nil
		},
		Delete: func(ctx context.Context, c *call) error {
			_, err := c.Client.DeleteRouteTable(ctx, &ec2.DeleteRouteTableInput{RouteTableId: &c.PhysicalID})
			return err
		},
	}
}

func getRouteTable(ctx context.Context, c *call, id string) (*types.RouteTable, error) {
	out, err := c.Client.DescribeRouteTables(ctx, &ec2.DescribeRouteTablesInput{RouteTableIds: []string{id}})
	if err != nil {
		return nil, err
	}
	if len(out.RouteTables) == 0 {
		return nil, direct.NotFound("route table", id)
	}
	return &out.RouteTables[0], nil
}

// routeTableAssociation puts a subnet on a route table. A subnet has one association, so the subnet is its name.
func routeTableAssociation() direct.Kind[*ec2.Client] {
	return direct.Kind[*ec2.Client]{
		Type: "AWS::EC2::SubnetRouteTableAssociation", Identity: direct.ByName, LookFirst: true,
		CreateOnly: []string{"RouteTableId", "SubnetId"},
		Create: func(ctx context.Context, c *call) (string, error) {
			out, err := c.Client.AssociateRouteTable(ctx, &ec2.AssociateRouteTableInput{
				RouteTableId: aws.String(c.Text("RouteTableId")), SubnetId: aws.String(c.Text("SubnetId")),
			})
			if err != nil {
				return "", young(err)
			}
			return *out.AssociationId, nil
		},
		Find: func(ctx context.Context, c *call) (direct.Found, error) {
			a, err := findAssociation(ctx, c, "association.subnet-id", c.Text("SubnetId"), func(a types.RouteTableAssociation) bool {
				return aws.ToString(a.SubnetId) == c.Text("SubnetId")
			})
			if a == nil || err != nil {
				return direct.Found{}, err
			}
			return direct.Found{ID: *a.RouteTableAssociationId, Properties: associationModel(a)}, nil
		},
		Stable: func(ctx context.Context, c *call) (direct.Level, error) {
			a, err := getAssociation(ctx, c)
			if err != nil {
				return direct.NotYet, err
			}
			if a.AssociationState != nil {
				switch a.AssociationState.State {
				case types.RouteTableAssociationStateCodeAssociating:
					return direct.Usable, nil
				case types.RouteTableAssociationStateCodeFailed:
					return direct.NotYet, &provider.Error{
						Kind: provider.KindFailed, Code: "AssociationFailed", Message: aws.ToString(a.AssociationState.StatusMessage),
					}
				}
			}
			return direct.Settled, nil
		},
		Read: func(ctx context.Context, c *call) (direct.Live, error) {
			a, err := getAssociation(ctx, c)
			if err != nil {
				return direct.Live{}, err
			}
			return direct.Live{Properties: associationModel(a), Attributes: map[string]any{"Id": c.PhysicalID}}, nil
		},
		Delete: func(ctx context.Context, c *call) error {
			_, err := c.Client.DisassociateRouteTable(ctx, &ec2.DisassociateRouteTableInput{AssociationId: &c.PhysicalID})
			return err
		},
	}
}

func getAssociation(ctx context.Context, c *call) (*types.RouteTableAssociation, error) {
	a, err := findAssociation(ctx, c, "association.route-table-association-id", c.PhysicalID, func(a types.RouteTableAssociation) bool {
		return aws.ToString(a.RouteTableAssociationId) == c.PhysicalID
	})
	if a == nil && err == nil {
		err = direct.NotFound("route table association", c.PhysicalID)
	}
	return a, err
}

// findAssociation is the association that a filter finds, nil when there is none.
func findAssociation(ctx context.Context, c *call, name, value string, is func(types.RouteTableAssociation) bool) (*types.RouteTableAssociation, error) {
	out, err := c.Client.DescribeRouteTables(ctx, &ec2.DescribeRouteTablesInput{Filters: []types.Filter{filter(name, value)}})
	if err != nil {
		return nil, err
	}
	for _, t := range out.RouteTables {
		for _, a := range t.Associations {
			gone := a.AssociationState != nil && (a.AssociationState.State == types.RouteTableAssociationStateCodeDisassociating ||
				a.AssociationState.State == types.RouteTableAssociationStateCodeDisassociated)
			if is(a) && !gone {
				return &a, nil
			}
		}
	}
	return nil, nil
}

func associationModel(a *types.RouteTableAssociation) map[string]any {
	return map[string]any{"RouteTableId": aws.ToString(a.RouteTableId), "SubnetId": aws.ToString(a.SubnetId)}
}
