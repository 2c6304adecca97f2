package ec2

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

func subnet() direct.Kind[*ec2.Client] {
	atCreation := []string{
		"VpcId", "AvailabilityZone", "AvailabilityZoneId", "CidrBlock", "Ipv4IpamPoolId", "Ipv4NetmaskLength",
		"Ipv6CidrBlock", "Ipv6IpamPoolId", "Ipv6Native", "Ipv6NetmaskLength", "OutpostArn",
	}
	return direct.Kind[*ec2.Client]{
		Type: "AWS::EC2::Subnet", Identity: direct.ByMark, CreateOnly: atCreation,
		Create: func(ctx context.Context, c *call) (string, error) {
			in := ec2.CreateSubnetInput{TagSpecifications: tagged(c, types.ResourceTypeSubnet)}
			if err := direct.Into(c.Properties, &in, nil, atCreation...); err != nil {
				return "", err
			}
			out, err := c.Client.CreateSubnet(ctx, &in)
			if err != nil {
				return "", err
			}
			return *out.Subnet.SubnetId, nil
		},
		Find: func(ctx context.Context, c *call) (direct.Found, error) {
			out, err := c.Client.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{Filters: mark(c)})
			if err != nil {
				return direct.Found{}, err
			}
			found, ok := marked(c, out.Subnets, func(e types.Subnet) []types.Tag { return e.Tags })
			if !ok {
				return direct.Found{}, nil
			}
			return direct.Found{ID: *found.SubnetId}, nil
		},
		Stable: func(ctx context.Context, c *call) (direct.Level, error) {
			s, err := getSubnet(ctx, c)
			if err != nil || s.State != types.SubnetStateAvailable {
				return direct.NotYet, err
			}
			return direct.Settled, nil
		},
		// One attribute can be changed at a time.
		// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_ModifySubnetAttribute.html
		Facets: []direct.Facet[*ec2.Client]{
			subnetAttribute("MapPublicIpOnLaunch", false, func(c *call, in *ec2.ModifySubnetAttributeInput) {
				in.MapPublicIpOnLaunch = toggle(c, "MapPublicIpOnLaunch")
			}),
			subnetAttribute("AssignIpv6AddressOnCreation", false, func(c *call, in *ec2.ModifySubnetAttributeInput) {
				in.AssignIpv6AddressOnCreation = toggle(c, "AssignIpv6AddressOnCreation")
			}),
			subnetAttribute("EnableDns64", false, func(c *call, in *ec2.ModifySubnetAttributeInput) {
				in.EnableDns64 = toggle(c, "EnableDns64")
			}),
			{Properties: []string{"EnableLniAtDeviceIndex"}, Put: putDeviceIndex},
			{
				Properties: []string{"PrivateDnsNameOptionsOnLaunch"}, Put: putDNSNames,
				Defaults: map[string]any{"PrivateDnsNameOptionsOnLaunch": map[string]any{"HostnameType": "ip-name"}},
			},
			tags(),
		},
		Read: readSubnet,
		Delete: func(ctx context.Context, c *call) error {
			_, err := c.Client.DeleteSubnet(ctx, &ec2.DeleteSubnetInput{SubnetId: &c.PhysicalID})
			return err
		},
	}
}

// subnetAttribute is the facet of one attribute.
func subnetAttribute(property string, standard any, set func(*call, *ec2.ModifySubnetAttributeInput)) direct.Facet[*ec2.Client] {
	return direct.Facet[*ec2.Client]{
		Properties: []string{property}, Defaults: map[string]any{property: standard},
		Put: func(ctx context.Context, c *call) error {
			in := ec2.ModifySubnetAttributeInput{SubnetId: &c.PhysicalID}
			set(c, &in)
			_, err := c.Client.ModifySubnetAttribute(ctx, &in)
			return err
		},
	}
}

func putDeviceIndex(ctx context.Context, c *call) error {
	in := ec2.ModifySubnetAttributeInput{SubnetId: &c.PhysicalID}
	if c.Has("EnableLniAtDeviceIndex") {
		if err := direct.Into(c.Properties, &in, nil, "EnableLniAtDeviceIndex"); err != nil {
			return err
		}
	} else {
		in.DisableLniAtDeviceIndex = &types.AttributeBooleanValue{Value: aws.Bool(true)}
	}
	_, err := c.Client.ModifySubnetAttribute(ctx, &in)
	return err
}

// putDNSNames makes a call for each of the three options.
func putDNSNames(ctx context.Context, c *call) error {
	var options types.PrivateDnsNameOptionsOnLaunch
	given, _ := c.Properties["PrivateDnsNameOptionsOnLaunch"].(map[string]any)
	if err := direct.Into(given, &options, nil); err != nil {
		return err
	}
	kind := options.HostnameType
	if kind == "" {
		kind = types.HostnameTypeIpName
	}
	for _, in := range []ec2.ModifySubnetAttributeInput{
		{PrivateDnsHostnameTypeOnLaunch: kind},
		{EnableResourceNameDnsARecordOnLaunch: &types.AttributeBooleanValue{Value: aws.Bool(aws.ToBool(options.EnableResourceNameDnsARecord))}},
		{EnableResourceNameDnsAAAARecordOnLaunch: &types.AttributeBooleanValue{Value: aws.Bool(aws.ToBool(options.EnableResourceNameDnsAAAARecord))}},
	} {
		in.SubnetId = &c.PhysicalID
		if _, err := c.Client.ModifySubnetAttribute(ctx, &in); err != nil {
			return err
		}
	}
	return nil
}

func getSubnet(ctx context.Context, c *call) (*types.Subnet, error) {
	out, err := c.Client.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{SubnetIds: []string{c.PhysicalID}})
	if err != nil {
		return nil, err
	}
	if len(out.Subnets) == 0 {
		return nil, direct.NotFound("subnet", c.PhysicalID)
	}
	return &out.Subnets[0], nil
}

func readSubnet(ctx context.Context, c *call) (direct.Live, error) {
	s, err := getSubnet(ctx, c)
	if err != nil {
		return direct.Live{}, err
	}
	properties := direct.From(c.Type, s, nil)
	properties["Tags"] = model(s.Tags)
	attributes := map[string]any{
		"SubnetId": c.PhysicalID, "VpcId": aws.ToString(s.VpcId), "CidrBlock": aws.ToString(s.CidrBlock),
		"AvailabilityZone": aws.ToString(s.AvailabilityZone), "AvailabilityZoneId": aws.ToString(s.AvailabilityZoneId),
		"OutpostArn": aws.ToString(s.OutpostArn),
	}
	var ipv6 []string
	for _, a := range s.Ipv6CidrBlockAssociationSet {
		ipv6 = append(ipv6, aws.ToString(a.Ipv6CidrBlock))
	}
	if len(ipv6) > 0 {
		properties["Ipv6CidrBlock"] = ipv6[0]
	}
	attributes["Ipv6CidrBlocks"] = direct.Models(ipv6)
	lists, err := c.Client.DescribeNetworkAcls(ctx, &ec2.DescribeNetworkAclsInput{Filters: []types.Filter{filter("association.subnet-id", c.PhysicalID)}})
	if err != nil {
		return direct.Live{}, err
	}
	for _, l := range lists.NetworkAcls {
		for _, a := range l.Associations {
			if aws.ToString(a.SubnetId) == c.PhysicalID {
				attributes["NetworkAclAssociationId"] = aws.ToString(a.NetworkAclAssociationId)
			}
		}
	}
	return direct.Live{Properties: properties, Attributes: attributes}, nil
}
