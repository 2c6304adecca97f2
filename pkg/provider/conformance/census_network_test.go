//go:build emulators

package conformance

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// network are the types of EC2.
func network() map[string]counting {
	client := func(cfg aws.Config) *ec2.Client { return ec2.NewFromConfig(cfg) }
	rules := func(ctx context.Context, cfg aws.Config, egress bool) (map[string]bool, error) {
		out, err := client(cfg).DescribeSecurityGroupRules(ctx, &ec2.DescribeSecurityGroupRulesInput{})
		if err != nil {
			return nil, err
		}
		all := map[string]bool{}
		for _, r := range out.SecurityGroupRules {
			if aws.ToBool(r.IsEgress) == egress {
				all[aws.ToString(r.SecurityGroupRuleId)] = true
			}
		}
		return all, nil
	}
	return map[string]counting{
		"AWS::EC2::VPC": {by: "DescribeVpcs", list: func(ctx context.Context, cfg aws.Config, _ *life) (map[string]bool, error) {
			out, err := client(cfg).DescribeVpcs(ctx, &ec2.DescribeVpcsInput{})
			if err != nil {
				return nil, err
			}
			return found(out.Vpcs, func(v ec2types.Vpc) *string { return v.VpcId }), nil
		}},
		"AWS::EC2::Subnet": {by: "DescribeSubnets", list: func(ctx context.Context, cfg aws.Config, _ *life) (map[string]bool, error) {
			out, err := client(cfg).DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{})
			if err != nil {
				return nil, err
			}
			return found(out.Subnets, func(s ec2types.Subnet) *string { return s.SubnetId }), nil
		}},
		"AWS::EC2::InternetGateway": {by: "DescribeInternetGateways", list: func(ctx context.Context, cfg aws.Config, _ *life) (map[string]bool, error) {
			out, err := client(cfg).DescribeInternetGateways(ctx, &ec2.DescribeInternetGatewaysInput{})
			if err != nil {
				return nil, err
			}
			return found(out.InternetGateways, func(g ec2types.InternetGateway) *string { return g.InternetGatewayId }), nil
		}},
		"AWS::EC2::VPCGatewayAttachment": {by: "DescribeInternetGateways", list: func(ctx context.Context, cfg aws.Config, _ *life) (map[string]bool, error) {
			out, err := client(cfg).DescribeInternetGateways(ctx, &ec2.DescribeInternetGatewaysInput{})
			if err != nil {
				return nil, err
			}
			all := map[string]bool{}
			for _, g := range out.InternetGateways {
				for _, a := range g.Attachments {
					all[aws.ToString(g.InternetGatewayId)+" "+aws.ToString(a.VpcId)] = true
				}
			}
			return all, nil
		}},
		"AWS::EC2::RouteTable": {by: "DescribeRouteTables", list: func(ctx context.Context, cfg aws.Config, _ *life) (map[string]bool, error) {
			out, err := client(cfg).DescribeRouteTables(ctx, &ec2.DescribeRouteTablesInput{})
			if err != nil {
				return nil, err
			}
			return found(out.RouteTables, func(r ec2types.RouteTable) *string { return r.RouteTableId }), nil
		}},
		"AWS::EC2::Route": {by: "DescribeRouteTables", list: func(ctx context.Context, cfg aws.Config, _ *life) (map[string]bool, error) {
			out, err := client(cfg).DescribeRouteTables(ctx, &ec2.DescribeRouteTablesInput{})
			if err != nil {
				return nil, err
			}
			all := map[string]bool{}
			for _, table := range out.RouteTables {
				for i, r := range table.Routes {
					all[fmt.Sprint(aws.ToString(table.RouteTableId), " ", aws.ToString(r.DestinationCidrBlock), aws.ToString(r.DestinationIpv6CidrBlock), aws.ToString(r.DestinationPrefixListId), " ", i)] = true
				}
			}
			return all, nil
		}},
		"AWS::EC2::SubnetRouteTableAssociation": {by: "DescribeRouteTables", list: func(ctx context.Context, cfg aws.Config, _ *life) (map[string]bool, error) {
			out, err := client(cfg).DescribeRouteTables(ctx, &ec2.DescribeRouteTablesInput{})
			if err != nil {
				return nil, err
			}
			all := map[string]bool{}
			for _, table := range out.RouteTables {
				for _, a := range table.Associations {
					all[aws.ToString(a.RouteTableAssociationId)] = true
				}
			}
			return all, nil
		}},
		"AWS::EC2::EIP": {by: "DescribeAddresses", list: func(ctx context.Context, cfg aws.Config, _ *life) (map[string]bool, error) {
			out, err := client(cfg).DescribeAddresses(ctx, &ec2.DescribeAddressesInput{})
			if err != nil {
				return nil, err
			}
			return found(out.Addresses, func(a ec2types.Address) *string { return a.AllocationId }), nil
		}},
		"AWS::EC2::NatGateway": {by: "DescribeNatGateways", list: func(ctx context.Context, cfg aws.Config, _ *life) (map[string]bool, error) {
			out, err := client(cfg).DescribeNatGateways(ctx, &ec2.DescribeNatGatewaysInput{})
			if err != nil {
				return nil, err
			}
			all := map[string]bool{}
			for _, g := range out.NatGateways {
				if g.State != ec2types.NatGatewayStateDeleted && g.State != ec2types.NatGatewayStateDeleting {
					all[aws.ToString(g.NatGatewayId)] = true
				}
			}
			return all, nil
		}},
		"AWS::EC2::SecurityGroup": {by: "DescribeSecurityGroups", list: func(ctx context.Context, cfg aws.Config, _ *life) (map[string]bool, error) {
			out, err := client(cfg).DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{})
			if err != nil {
				return nil, err
			}
			return found(out.SecurityGroups, func(g ec2types.SecurityGroup) *string { return g.GroupId }), nil
		}},
		"AWS::EC2::SecurityGroupIngress": {by: "DescribeSecurityGroupRules", list: func(ctx context.Context, cfg aws.Config, _ *life) (map[string]bool, error) {
			return rules(ctx, cfg, false)
		}},
		"AWS::EC2::SecurityGroupEgress": {by: "DescribeSecurityGroupRules", list: func(ctx context.Context, cfg aws.Config, _ *life) (map[string]bool, error) {
			return rules(ctx, cfg, true)
		}},
	}
}
