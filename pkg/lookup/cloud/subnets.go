package cloud

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// subnetType is what the constructs call a subnet (VpcSubnetGroupType).
type subnetType string

const (
	public   subnetType = "Public"
	private  subnetType = "Private"
	isolated subnetType = "Isolated"
)

// The tags that CDK writes on the subnets of its own VPCs.
const (
	typeTag = "aws-cdk:subnet-type"
	nameTag = "aws-cdk:subnet-name"
)

type subnet struct {
	id, zone, cidr, name, routeTable string
	kind                             subnetType
}

// subnetsOf lists a VPC's subnets. Their groups are named by a tag: the one that is asked for, which every subnet must
// then have, or CDK's; without it, by their type.
func subnetsOf(ctx context.Context, client *ec2.Client, vpc, groupTag string) ([]subnet, error) {
	of := filters(map[string][]string{"vpc-id": {vpc}})
	var listed []types.Subnet
	pages := ec2.NewDescribeSubnetsPaginator(client, &ec2.DescribeSubnetsInput{Filters: of})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, called("ec2:DescribeSubnets", err)
		}
		listed = append(listed, page.Subnets...)
	}
	var tables routeTables
	more := ec2.NewDescribeRouteTablesPaginator(client, &ec2.DescribeRouteTablesInput{Filters: of})
	for more.HasMorePages() {
		page, err := more.NextPage(ctx)
		if err != nil {
			return nil, called("ec2:DescribeRouteTables", err)
		}
		tables = append(tables, page.RouteTables...)
	}
	out := make([]subnet, 0, len(listed))
	for _, s := range listed {
		id := aws.ToString(s.SubnetId)
		table := tables.of(id)
		if table == nil {
			return nil, fmt.Errorf("subnet %s of %s has no route table, and the VPC no main one", id, vpc)
		}
		kind, err := classify(s, table)
		if err != nil {
			return nil, err
		}
		name := tag(s.Tags, cmp.Or(groupTag, nameTag))
		if name == "" && groupTag != "" {
			return nil, fmt.Errorf("subnet %s of %s has no tag %s, by which the app wants to name groups (subnetGroupNameTag)", id, vpc, groupTag)
		}
		out = append(out, subnet{
			id: id, zone: aws.ToString(s.AvailabilityZone), cidr: aws.ToString(s.CidrBlock),
			name: cmp.Or(name, string(kind)), kind: kind, routeTable: aws.ToString(table.RouteTableId),
		})
	}
	return out, nil
}

// classify tells the type of a subnet: CDK's own tag says it, or where its routes lead.
func classify(s types.Subnet, table *types.RouteTable) (subnetType, error) {
	if tagged := tag(s.Tags, typeTag); tagged != "" {
		if kind := subnetType(tagged); slices.Contains([]subnetType{public, private, isolated}, kind) {
			return kind, nil
		}
		return "", fmt.Errorf("the tag %s of subnet %s is %s, not %s, %s or %s", typeTag, aws.ToString(s.SubnetId), tagged, public, private, isolated)
	}
	leads := func(to func(types.Route) bool) bool { return slices.ContainsFunc(table.Routes, to) }
	anywhere := func(r types.Route) bool { return aws.ToString(r.DestinationCidrBlock) == "0.0.0.0/0" }
	switch {
	case aws.ToBool(s.MapPublicIpOnLaunch),
		leads(func(r types.Route) bool { return strings.HasPrefix(aws.ToString(r.GatewayId), "igw-") }):
		return public, nil
	case leads(func(r types.Route) bool { return anywhere(r) && (r.NatGatewayId != nil || r.TransitGatewayId != nil) }):
		return private, nil
	}
	return isolated, nil
}

// routeTables are those of one VPC.
type routeTables []types.RouteTable

// of is the table that routes a subnet: its own, or the main one; nil without either.
func (t routeTables) of(subnet string) *types.RouteTable {
	var main *types.RouteTable
	for i := range t {
		for _, a := range t[i].Associations {
			if aws.ToString(a.SubnetId) == subnet {
				return &t[i]
			}
			if main == nil && aws.ToBool(a.Main) {
				main = &t[i]
			}
		}
	}
	return main
}
