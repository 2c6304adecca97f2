package ec2

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

func vpc() direct.Kind[*ec2.Client] {
	return direct.Kind[*ec2.Client]{
		Type: "AWS::EC2::VPC", Identity: direct.ByMark,
		CreateOnly: []string{"CidrBlock", "Ipv4IpamPoolId", "Ipv4NetmaskLength"},
		Create: func(ctx context.Context, c *call) (string, error) {
			in := ec2.CreateVpcInput{TagSpecifications: tagged(c, types.ResourceTypeVpc)}
			if err := direct.Into(c.Properties, &in, nil, "CidrBlock", "Ipv4IpamPoolId", "Ipv4NetmaskLength", "InstanceTenancy"); err != nil {
				return "", err
			}
			out, err := c.Client.CreateVpc(ctx, &in)
			if err != nil {
				return "", err
			}
			return *out.Vpc.VpcId, nil
		},
		Find: func(ctx context.Context, c *call) (direct.Found, error) {
			out, err := c.Client.DescribeVpcs(ctx, &ec2.DescribeVpcsInput{Filters: mark(c)})
			if err != nil {
				return direct.Found{}, err
			}
			found, ok := marked(c, out.Vpcs, func(e types.Vpc) []types.Tag { return e.Tags })
			if !ok {
				return direct.Found{}, nil
			}
			return direct.Found{ID: *found.VpcId}, nil
		},
		Stable: func(ctx context.Context, c *call) (direct.Level, error) {
			v, err := getVPC(ctx, c)
			if err != nil || v.State != types.VpcStateAvailable {
				return direct.NotYet, err
			}
			return direct.Settled, nil
		},
		// https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-ec2-vpc.html
		Facets: []direct.Facet[*ec2.Client]{
			{
				Properties: []string{"EnableDnsSupport"}, Defaults: map[string]any{"EnableDnsSupport": true},
				Put: func(ctx context.Context, c *call) error {
					_, err := c.Client.ModifyVpcAttribute(ctx, &ec2.ModifyVpcAttributeInput{VpcId: &c.PhysicalID, EnableDnsSupport: toggle(c, "EnableDnsSupport")})
					return err
				},
			},
			{
				Properties: []string{"EnableDnsHostnames"}, Defaults: map[string]any{"EnableDnsHostnames": false},
				Put: func(ctx context.Context, c *call) error {
					_, err := c.Client.ModifyVpcAttribute(ctx, &ec2.ModifyVpcAttributeInput{VpcId: &c.PhysicalID, EnableDnsHostnames: toggle(c, "EnableDnsHostnames")})
					return err
				},
			},
			{Properties: []string{"InstanceTenancy"}, Created: true, Defaults: map[string]any{"InstanceTenancy": "default"}, Put: putTenancy},
			tags(),
		},
		Unhandled: map[string]string{"VpcEncryptionControl": "a resource of its own"},
		Read:      readVPC,
		Delete: func(ctx context.Context, c *call) error {
			_, err := c.Client.DeleteVpc(ctx, &ec2.DeleteVpcInput{VpcId: &c.PhysicalID})
			return err
		},
	}
}

// putTenancy: a VPC can only become one of the default tenancy.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_ModifyVpcTenancy.html
func putTenancy(ctx context.Context, c *call) error {
	if c.Text("InstanceTenancy") != string(types.TenancyDefault) {
		return &provider.Error{Kind: provider.KindImmutable, Code: "NotUpdatable", Message: "the tenancy of a VPC can only be changed to default"}
	}
	if !c.Has("InstanceTenancy") || c.Previous["InstanceTenancy"] == nil {
		return nil // it had the default
	}
	_, err := c.Client.ModifyVpcTenancy(ctx, &ec2.ModifyVpcTenancyInput{VpcId: &c.PhysicalID, InstanceTenancy: types.VpcTenancyDefault})
	return err
}

func getVPC(ctx context.Context, c *call) (*types.Vpc, error) {
	out, err := c.Client.DescribeVpcs(ctx, &ec2.DescribeVpcsInput{VpcIds: []string{c.PhysicalID}})
	if err != nil {
		return nil, err
	}
	if len(out.Vpcs) == 0 {
		return nil, direct.NotFound("VPC", c.PhysicalID)
	}
	return &out.Vpcs[0], nil
}

func readVPC(ctx context.Context, c *call) (direct.Live, error) {
	v, err := getVPC(ctx, c)
	if err != nil {
		return direct.Live{}, err
	}
	properties := direct.From(c.Type, v, nil)
	properties["Tags"] = model(v.Tags)
	for _, name := range []types.VpcAttributeName{types.VpcAttributeNameEnableDnsSupport, types.VpcAttributeNameEnableDnsHostnames} {
		out, err := c.Client.DescribeVpcAttribute(ctx, &ec2.DescribeVpcAttributeInput{VpcId: &c.PhysicalID, Attribute: name})
		if err != nil {
			return direct.Live{}, err
		}
		if out.EnableDnsSupport != nil {
			properties["EnableDnsSupport"] = aws.ToBool(out.EnableDnsSupport.Value)
		}
		if out.EnableDnsHostnames != nil {
			properties["EnableDnsHostnames"] = aws.ToBool(out.EnableDnsHostnames.Value)
		}
	}
	attributes := map[string]any{"VpcId": c.PhysicalID, "CidrBlock": aws.ToString(v.CidrBlock)}
	var associations, ipv6 []string
	for _, a := range v.CidrBlockAssociationSet {
		associations = append(associations, aws.ToString(a.AssociationId))
	}
	for _, a := range v.Ipv6CidrBlockAssociationSet {
		ipv6 = append(ipv6, aws.ToString(a.Ipv6CidrBlock))
	}
	attributes["CidrBlockAssociations"], attributes["Ipv6CidrBlocks"] = direct.Models(associations), direct.Models(ipv6)
	groups, err := c.Client.DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{Filters: []types.Filter{filter("vpc-id", c.PhysicalID), filter("group-name", "default")}})
	if err != nil {
		return direct.Live{}, err
	}
	if len(groups.SecurityGroups) > 0 {
		attributes["DefaultSecurityGroup"] = aws.ToString(groups.SecurityGroups[0].GroupId)
	}
	lists, err := c.Client.DescribeNetworkAcls(ctx, &ec2.DescribeNetworkAclsInput{Filters: []types.Filter{filter("vpc-id", c.PhysicalID), filter("default", "true")}})
	if err != nil {
		return direct.Live{}, err
	}
	if len(lists.NetworkAcls) > 0 {
		attributes["DefaultNetworkAcl"] = aws.ToString(lists.NetworkAcls[0].NetworkAclId)
	}
	return direct.Live{Properties: properties, Attributes: attributes}, nil
}
