package ec2

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

// rule is one rule of a security group: one protocol, one range of ports, one other side.
type rule struct {
	protocol string
	from, to *int32
	// The other side is one of these.
	ipv4, ipv6, prefixList, group string
	// account is the owner of group.
	account     string
	description string

	// id and tags are of a live rule.
	id   string
	tags map[string]string
	// model is what the rule was read from.
	model map[string]any
}

// everything is the rule that lets all traffic out, which a new group has.
// https://docs.aws.amazon.com/vpc/latest/userguide/security-group-rules.html
func everything() []any {
	return []any{map[string]any{"CidrIp": "0.0.0.0/0", "IpProtocol": "-1"}}
}

// protocols are the numbers that the service knows a name for.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_IpPermission.html
var protocols = map[string]string{"1": "icmp", "6": "tcp", "17": "udp", "58": "icmpv6", "all": "-1"}

// side gives the property that names the other side of a rule: "Source" or "Destination".
func side(egress bool) string {
	if egress {
		return "Destination"
	}
	return "Source"
}

// parseRule reads a rule of a template.
func parseRule(ctx context.Context, c *call, model map[string]any, egress bool) (rule, error) {
	var ports struct{ FromPort, ToPort *int32 }
	if err := direct.Into(model, &ports, nil, "FromPort", "ToPort"); err != nil {
		return rule{}, err
	}
	r := rule{
		protocol: strings.ToLower(direct.Text(model["IpProtocol"])), from: ports.FromPort, to: ports.ToPort,
		ipv4: direct.Text(model["CidrIp"]), ipv6: direct.Text(model["CidrIpv6"]),
		prefixList: direct.Text(model[side(egress)+"PrefixListId"]), group: direct.Text(model[side(egress)+"SecurityGroupId"]),
		account: direct.Text(model["SourceSecurityGroupOwnerId"]), description: direct.Text(model["Description"]), model: model,
	}
	if name, known := protocols[r.protocol]; known {
		r.protocol = name
	}
	if name := direct.Text(model["SourceSecurityGroupName"]); name != "" && r.group == "" {
		id, err := groupNamed(ctx, c, name)
		if err != nil {
			return rule{}, err
		}
		r.group = id
	}
	if len(slices.DeleteFunc([]string{r.ipv4, r.ipv6, r.prefixList, r.group}, func(s string) bool { return s == "" })) != 1 {
		return rule{}, direct.Invalid("a rule of a security group needs one range of addresses, prefix list or group")
	}
	if r.protocol == "" {
		return rule{}, direct.Invalid("a rule of a security group needs a protocol")
	}
	return r, nil
}

func parseRules(ctx context.Context, c *call, v any, egress bool) ([]rule, error) {
	list, _ := v.([]any)
	var out []rule
	for _, e := range list {
		model, ok := e.(map[string]any)
		if !ok {
			return nil, direct.Invalid("a rule of a security group is an object")
		}
		r, err := parseRule(ctx, c, model, egress)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

// groupNamed is the id of a group that a rule names.
func groupNamed(ctx context.Context, c *call, name string) (string, error) {
	in := ec2.DescribeSecurityGroupsInput{Filters: []types.Filter{filter("group-name", name)}}
	if vpc := direct.Text(c.Known("VpcId")); vpc != "" {
		in.Filters = append(in.Filters, filter("vpc-id", vpc))
	}
	out, err := c.Client.DescribeSecurityGroups(ctx, &in)
	if err != nil {
		return "", err
	}
	if len(out.SecurityGroups) != 1 {
		return "", direct.Invalid(fmt.Sprintf("there are %d security groups with the name that a rule gives", len(out.SecurityGroups)))
	}
	return *out.SecurityGroups[0].GroupId, nil
}

// key is what tells a rule from any other of its group and direction.
func (r rule) key() string {
	port := func(p *int32) int32 {
		if p == nil || r.protocol == "-1" {
			return -1
		}
		return *p
	}
	return fmt.Sprintf("%s|%d|%d|%s", r.protocol, port(r.from), port(r.to), r.other())
}

// other is the other side, as the service keeps it.
func (r rule) other() string { return canonical(r.ipv4+r.ipv6) + r.prefixList + r.group }

// permission is the rule as the calls that add rules take it.
func (r rule) permission() types.IpPermission {
	p := types.IpPermission{IpProtocol: &r.protocol, FromPort: r.from, ToPort: r.to}
	var description *string
	if r.description != "" {
		description = &r.description
	}
	switch {
	case r.ipv4 != "":
		p.IpRanges = []types.IpRange{{CidrIp: &r.ipv4, Description: description}}
	case r.ipv6 != "":
		p.Ipv6Ranges = []types.Ipv6Range{{CidrIpv6: &r.ipv6, Description: description}}
	case r.prefixList != "":
		p.PrefixListIds = []types.PrefixListId{{PrefixListId: &r.prefixList, Description: description}}
	default:
		pair := types.UserIdGroupPair{GroupId: &r.group, Description: description}
		if r.account != "" {
			pair.UserId = &r.account
		}
		p.UserIdGroupPairs = []types.UserIdGroupPair{pair}
	}
	return p
}

// described is the live rule with another description, as the call that changes rules takes it: with everything that stays, and with
// an empty description for none.
func (r rule) described(description string) types.SecurityGroupRuleUpdate {
	text := func(s string) *string {
		if s == "" {
			return nil
		}
		return &s
	}
	return types.SecurityGroupRuleUpdate{SecurityGroupRuleId: &r.id, SecurityGroupRule: &types.SecurityGroupRuleRequest{
		IpProtocol: &r.protocol, FromPort: r.from, ToPort: r.to, CidrIpv4: text(r.ipv4), CidrIpv6: text(r.ipv6),
		PrefixListId: text(r.prefixList), ReferencedGroupId: text(r.group), Description: &description,
	}}
}

// liveRules are the rules of a group, in one direction or the other.
func liveRules(ctx context.Context, c *call, group string) (ingress, egress []rule, err error) {
	pages := ec2.NewDescribeSecurityGroupRulesPaginator(c.Client, &ec2.DescribeSecurityGroupRulesInput{Filters: []types.Filter{filter("group-id", group)}})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, nil, err
		}
		for _, live := range page.SecurityGroupRules {
			if aws.ToBool(live.IsEgress) {
				egress = append(egress, liveRule(live))
			} else {
				ingress = append(ingress, liveRule(live))
			}
		}
	}
	return ingress, egress, nil
}

func liveRule(live types.SecurityGroupRule) rule {
	r := rule{
		protocol: aws.ToString(live.IpProtocol), from: live.FromPort, to: live.ToPort,
		ipv4: aws.ToString(live.CidrIpv4), ipv6: aws.ToString(live.CidrIpv6), prefixList: aws.ToString(live.PrefixListId),
		description: aws.ToString(live.Description), id: aws.ToString(live.SecurityGroupRuleId),
	}
	if other := live.ReferencedGroupInfo; other != nil {
		r.group, r.account = aws.ToString(other.GroupId), aws.ToString(other.UserId)
	}
	r.tags = direct.TagMap(live.Tags, pair)
	return r
}

// written is a live rule as CloudFormation writes it: in the words of the recorded rule, where there is one.
func (r rule) written(recorded []rule, egress bool) map[string]any {
	model := map[string]any{"IpProtocol": r.protocol}
	if i := slices.IndexFunc(recorded, func(e rule) bool { return e.key() == r.key() }); i >= 0 {
		for name, value := range recorded[i].model {
			model[name] = value
		}
		delete(model, "Description")
	} else {
		if r.protocol != "-1" && r.from != nil && r.to != nil {
			model["FromPort"], model["ToPort"] = int(*r.from), int(*r.to)
		}
		for name, value := range map[string]string{
			"CidrIp": r.ipv4, "CidrIpv6": r.ipv6, side(egress) + "PrefixListId": r.prefixList, side(egress) + "SecurityGroupId": r.group,
		} {
			if value != "" {
				model[name] = value
			}
		}
	}
	if r.description != "" {
		model["Description"] = r.description
	}
	return model
}

// marked: Slipway has made it as a resource of its own.
func (r rule) marked() bool { return r.tags[direct.MarkKey] != "" }

// among finds the rule of a list that is the same as this one.
func (r rule) among(list []rule) (rule, bool) {
	i := slices.IndexFunc(list, func(e rule) bool { return e.key() == r.key() })
	if i < 0 {
		return rule{}, false
	}
	return list[i], true
}
