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

// elasticIP is an address. Its id is publicIp|allocationId (reference §10.3). It is there when it has been allocated: no
// wait mode makes a difference.
func elasticIP() direct.Kind[*ec2.Client] {
	atCreation := []string{"Address", "IpamPoolId", "NetworkBorderGroup"}
	return direct.Kind[*ec2.Client]{
		Type: "AWS::EC2::EIP", Identity: direct.ByMark, CreateOnly: atCreation,
		Create: func(ctx context.Context, c *call) (string, error) {
			in := ec2.AllocateAddressInput{TagSpecifications: tagged(c, types.ResourceTypeElasticIp)}
			if err := direct.Into(c.Properties, &in, nil, append(atCreation, "Domain")...); err != nil {
				return "", err
			}
			out, err := c.Client.AllocateAddress(ctx, &in)
			if err != nil {
				return "", err
			}
			return aws.ToString(out.PublicIp) + "|" + aws.ToString(out.AllocationId), nil
		},
		Find: func(ctx context.Context, c *call) (direct.Found, error) {
			out, err := c.Client.DescribeAddresses(ctx, &ec2.DescribeAddressesInput{Filters: mark(c)})
			if err != nil {
				return direct.Found{}, err
			}
			found, ok := marked(c, out.Addresses, func(e types.Address) []types.Tag { return e.Tags })
			if !ok {
				return direct.Found{}, nil
			}
			return direct.Found{ID: aws.ToString(found.PublicIp) + "|" + aws.ToString(found.AllocationId)}, nil
		},
		Facets: []direct.Facet[*ec2.Client]{
			{
				// Every address is a VPC's now.
				// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_AllocateAddress.html
				Properties: []string{"Domain"}, Created: true, Defaults: map[string]any{"Domain": "vpc"},
				Put: func(_ context.Context, c *call) error {
					if c.Text("Domain") == "vpc" && (c.Previous["Domain"] == nil || direct.Text(c.Previous["Domain"]) == "vpc") {
						return nil
					}
					return &provider.Error{Kind: provider.KindImmutable, Code: "NotUpdatable", Message: "the domain of an address can't be changed"}
				},
			},
			{Properties: []string{"InstanceId"}, Put: associateAddress},
			tagsOf(allocation),
		},
		Unhandled: map[string]string{"PublicIpv4Pool": "addresses of one's own", "TransferAddress": "a transfer from another account"},
		Read:      readAddress,
		Delete: func(ctx context.Context, c *call) error {
			id := allocation(c)
			if c.Known("InstanceId") != nil {
				if err := disassociateAddress(ctx, c); err != nil {
					return err
				}
			}
			_, err := c.Client.ReleaseAddress(ctx, &ec2.ReleaseAddressInput{AllocationId: &id})
			return err
		},
	}
}

// allocation is the part of the id that calls take.
func allocation(c *call) string {
	_, id, found := strings.Cut(c.PhysicalID, "|")
	if !found {
		return c.PhysicalID
	}
	return id
}

func getAddress(ctx context.Context, c *call) (*types.Address, error) {
	out, err := c.Client.DescribeAddresses(ctx, &ec2.DescribeAddressesInput{AllocationIds: []string{allocation(c)}})
	if err != nil {
		return nil, err
	}
	if len(out.Addresses) == 0 {
		return nil, direct.NotFound("address", c.PhysicalID)
	}
	return &out.Addresses[0], nil
}

// associateAddress puts the address on the instance, wherever it was before, or takes it off.
func associateAddress(ctx context.Context, c *call) error {
	if !c.Has("InstanceId") {
		return disassociateAddress(ctx, c)
	}
	id, instance := allocation(c), c.Text("InstanceId")
	_, err := c.Client.AssociateAddress(ctx, &ec2.AssociateAddressInput{AllocationId: &id, InstanceId: &instance, AllowReassociation: aws.Bool(true)})
	return err
}

func disassociateAddress(ctx context.Context, c *call) error {
	a, err := getAddress(ctx, c)
	if err != nil || a.AssociationId == nil {
		return err
	}
	_, err = c.Client.DisassociateAddress(ctx, &ec2.DisassociateAddressInput{AssociationId: a.AssociationId})
	return errorKinds.Unless(err, provider.KindNotFound)
}

// readAddress tells of an instance only where the record does: AWS::EC2::EIPAssociation puts addresses on instances, too.
func readAddress(ctx context.Context, c *call) (direct.Live, error) {
	a, err := getAddress(ctx, c)
	if err != nil {
		return direct.Live{}, err
	}
	properties := direct.From(c.Type, a, nil)
	properties["Tags"] = model(a.Tags)
	delete(properties, "PublicIpv4Pool") // "amazon" for most
	if c.Known("Address") == nil {
		delete(properties, "Address")
	}
	if c.Known("InstanceId") == nil && len(c.Properties)+len(c.Previous) > 0 {
		delete(properties, "InstanceId")
	}
	return direct.Live{
		Properties: properties,
		Attributes: map[string]any{"AllocationId": aws.ToString(a.AllocationId), "PublicIp": aws.ToString(a.PublicIp)},
	}, nil
}
