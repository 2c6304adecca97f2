package cloud

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/slipway-cdk/slipway/pkg/lookup"
)

type vpcQuery struct {
	Filter                  map[string]string `json:"filter"`
	ReturnAsymmetricSubnets bool              `json:"returnAsymmetricSubnets"`
	SubnetGroupNameTag      string            `json:"subnetGroupNameTag"`
	// ReturnVpnGateways is true where it is absent.
	ReturnVpnGateways *bool `json:"returnVpnGateways"`
}

// vpc answers vpc-provider (Vpc.fromLookup): a VPC with its subnets in groups. With returnAsymmetricSubnets, which
// today's construct sets, they are in subnetGroups; else in lists per type, and every group must be in the same zones.
func vpc(ctx context.Context, in *place, q lookup.Query) (any, error) {
	var ask vpcQuery
	if err := decode(q, &ask); err != nil {
		return nil, err
	}
	client := ec2.NewFromConfig(in.cfg)
	found, err := findVPC(ctx, client, ask.Filter)
	if err != nil {
		return nil, err
	}
	id := aws.ToString(found.VpcId)
	subnets, err := subnetsOf(ctx, client, id, ask.SubnetGroupNameTag)
	if err != nil {
		return nil, err
	}
	out := map[string]any{"vpcId": id}
	if found.CidrBlock != nil {
		out["vpcCidrBlock"] = *found.CidrBlock
	}
	if found.OwnerId != nil {
		out["ownerAccountId"] = *found.OwnerId
	}
	groups := grouped(subnets)
	if ask.ReturnAsymmetricSubnets {
		out["availabilityZones"] = []any{}
		out["subnetGroups"] = asymmetric(groups)
	} else if err := symmetric(out, groups, id); err != nil {
		return nil, err
	}
	if ask.ReturnVpnGateways == nil || *ask.ReturnVpnGateways {
		gateway, err := vpnGateway(ctx, client, id)
		if err != nil {
			return nil, err
		}
		if gateway != "" {
			out["vpnGatewayId"] = gateway
		}
	}
	return out, nil
}

func findVPC(ctx context.Context, client *ec2.Client, filter map[string]string) (types.Vpc, error) {
	by := map[string][]string{}
	for name, value := range filter {
		by[name] = []string{value}
	}
	var found []types.Vpc
	pages := ec2.NewDescribeVpcsPaginator(client, &ec2.DescribeVpcsInput{Filters: filters(by)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return types.Vpc{}, called("ec2:DescribeVpcs", err)
		}
		found = append(found, page.Vpcs...)
	}
	what := "VPC"
	if len(by) > 0 {
		what += " with " + asked(by)
	}
	return only(found, what)
}

// vpnGateway is the gateway that is attached, "" unless it is just one.
func vpnGateway(ctx context.Context, client *ec2.Client, vpc string) (string, error) {
	out, err := client.DescribeVpnGateways(ctx, &ec2.DescribeVpnGatewaysInput{Filters: filters(map[string][]string{
		"attachment.vpc-id": {vpc}, "attachment.state": {"attached"}, "state": {"available"},
	})})
	if err != nil {
		return "", called("ec2:DescribeVpnGateways", err)
	}
	if len(out.VpnGateways) != 1 {
		return "", nil
	}
	return aws.ToString(out.VpnGateways[0].VpnGatewayId), nil
}

// group is subnets of one type and name, sorted by zone.
type group struct {
	kind    subnetType
	name    string
	subnets []subnet
}

// grouped keeps the order in which EC2 lists, as the CDK CLI does: constructs take subnets in it.
func grouped(subnets []subnet) []*group {
	var groups []*group
	for _, s := range subnets {
		i := slices.IndexFunc(groups, func(g *group) bool { return g.kind == s.kind && g.name == s.name })
		if i < 0 {
			i = len(groups)
			groups = append(groups, &group{kind: s.kind, name: s.name})
		}
		groups[i].subnets = append(groups[i].subnets, s)
	}
	for _, g := range groups {
		slices.SortStableFunc(g.subnets, func(a, b subnet) int { return strings.Compare(a.zone, b.zone) })
	}
	return groups
}

func asymmetric(groups []*group) []any {
	out := []any{}
	for _, g := range groups {
		subnets := []any{}
		for _, s := range g.subnets {
			one := map[string]any{"subnetId": s.id, "availabilityZone": s.zone, "routeTableId": s.routeTable}
			if s.cidr != "" {
				one["cidr"] = s.cidr
			}
			subnets = append(subnets, one)
		}
		out = append(out, map[string]any{"name": g.name, "type": string(g.kind), "subnets": subnets})
	}
	return out
}

// symmetric adds the lists per type to the answer: the constructs count on a subnet per group and zone.
func symmetric(out map[string]any, groups []*group, vpc string) error {
	lists := map[string][]string{}
	var zones []string
	for i, g := range groups {
		kind := strings.ToLower(string(g.kind))
		var own []string
		for _, s := range g.subnets {
			own = append(own, s.zone)
			lists[kind+"SubnetIds"] = append(lists[kind+"SubnetIds"], s.id)
			lists[kind+"SubnetRouteTableIds"] = append(lists[kind+"SubnetRouteTableIds"], s.routeTable)
		}
		lists[kind+"SubnetNames"] = append(lists[kind+"SubnetNames"], g.name)
		if i == 0 {
			zones = own
		}
		if !slices.Equal(own, zones) {
			return &AsymmetricError{VPC: vpc, Zones: [2][]string{zones, own}}
		}
	}
	out["availabilityZones"] = list(zones)
	for _, name := range slices.Sorted(maps.Keys(lists)) {
		out[name] = list(lists[name])
	}
	return nil
}

// AsymmetricError: groups of subnets are in different zones, and the app's aws-cdk-lib can't take that.
type AsymmetricError struct {
	VPC   string
	Zones [2][]string
}

// Error implements error.
func (e *AsymmetricError) Error() string {
	return "the groups of subnets of " + e.VPC + " are not in the same zones: " + strings.Join(e.Zones[0], ", ") + " and " + strings.Join(e.Zones[1], ", ")
}

// Next says what to do.
func (e *AsymmetricError) Next() string {
	return "Use an aws-cdk-lib that asks for asymmetric subnets (Vpc.fromLookup does), or tag the subnets with aws-cdk:subnet-name."
}
