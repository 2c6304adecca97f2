package ec2

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

func securityGroup() direct.Kind[*ec2.Client] {
	return direct.Kind[*ec2.Client]{
		Type: "AWS::EC2::SecurityGroup", Identity: direct.ByName,
		CreateOnly: []string{"GroupDescription", "GroupName", "VpcId"},
		Create: func(ctx context.Context, c *call) (string, error) {
			in := ec2.CreateSecurityGroupInput{
				GroupName: aws.String(c.Text("GroupName")), Description: aws.String(c.Text("GroupDescription")),
				TagSpecifications: tagged(c, types.ResourceTypeSecurityGroup),
			}
			if c.Has("VpcId") {
				in.VpcId = aws.String(c.Text("VpcId"))
			}
			out, err := c.Client.CreateSecurityGroup(ctx, &in)
			if err != nil {
				return "", young(err)
			}
			return *out.GroupId, nil
		},
		Find: findSecurityGroup,
		Facets: []direct.Facet[*ec2.Client]{
			{
				Properties: []string{"SecurityGroupEgress", "SecurityGroupIngress"}, Put: putRules,
				Defaults: map[string]any{"SecurityGroupEgress": everything()},
			},
			tags(),
		},
		Read: readSecurityGroup,
		Delete: func(ctx context.Context, c *call) error {
			_, err := c.Client.DeleteSecurityGroup(ctx, &ec2.DeleteSecurityGroupInput{GroupId: &c.PhysicalID})
			return err
		},
	}
}

// findSecurityGroup: a name is taken once in each VPC. Without VpcId it is the default one's, and our own group is told by its mark.
func findSecurityGroup(ctx context.Context, c *call) (direct.Found, error) {
	in := ec2.DescribeSecurityGroupsInput{Filters: []types.Filter{filter("group-name", c.Text("GroupName"))}}
	if c.Has("VpcId") {
		in.Filters = append(in.Filters, filter("vpc-id", c.Text("VpcId")))
	}
	out, err := c.Client.DescribeSecurityGroups(ctx, &in)
	if err != nil {
		return direct.Found{}, err
	}
	var found direct.Found
	for _, g := range out.SecurityGroups {
		found = direct.Found{ID: *g.GroupId, Tags: direct.TagMap(g.Tags, pair)}
		if found.Tags[direct.MarkKey] == c.Mark() {
			break
		}
	}
	return found, nil
}

// putRules adds the rules that are new, changes descriptions and takes away what the template no longer has, in this order: what
// is allowed before and after is allowed between. Rules that the template never had are left alone, except for those that a
// new group lets everything out with.
func putRules(ctx context.Context, c *call) error {
	ingress, egress, err := liveRules(ctx, c, c.PhysicalID)
	if err != nil {
		return err
	}
	if c.Changed("SecurityGroupIngress") {
		if err := putDirection(ctx, c, "SecurityGroupIngress", ingress, false); err != nil {
			return err
		}
	}
	if c.Changed("SecurityGroupEgress") {
		return putDirection(ctx, c, "SecurityGroupEgress", egress, true)
	}
	return nil
}

func putDirection(ctx context.Context, c *call, property string, live []rule, egress bool) error {
	want, err := parseRules(ctx, c, c.Properties[property], egress)
	if err != nil {
		return err
	}
	before, err := parseRules(ctx, c, c.Previous[property], egress)
	if err != nil {
		return err
	}
	if egress && c.Previous[property] == nil {
		before = []rule{{protocol: "-1", ipv4: "0.0.0.0/0"}, {protocol: "-1", ipv6: "::/0"}}
	}
	var add []types.IpPermission
	var changed []types.SecurityGroupRuleUpdate
	var gone []string
	for i, r := range want {
		there, ok := r.among(live)
		if _, twice := r.among(want[:i]); twice {
			continue
		}
		if !ok {
			add = append(add, r.permission())
		} else if there.description != r.description {
			changed = append(changed, there.described(r.description))
		}
	}
	for _, r := range before {
		if _, stays := r.among(want); stays {
			continue
		}
		if there, ok := r.among(live); ok {
			gone = append(gone, there.id)
		}
	}
	return sendRules(ctx, c, egress, add, changed, gone)
}

func sendRules(ctx context.Context, c *call, egress bool, add []types.IpPermission, changed []types.SecurityGroupRuleUpdate, gone []string) error {
	var err error
	if len(add) > 0 && egress {
		_, err = c.Client.AuthorizeSecurityGroupEgress(ctx, &ec2.AuthorizeSecurityGroupEgressInput{GroupId: &c.PhysicalID, IpPermissions: add})
	} else if len(add) > 0 {
		_, err = c.Client.AuthorizeSecurityGroupIngress(ctx, &ec2.AuthorizeSecurityGroupIngressInput{GroupId: &c.PhysicalID, IpPermissions: add})
	}
	if err == nil && len(changed) > 0 {
		_, err = c.Client.ModifySecurityGroupRules(ctx, &ec2.ModifySecurityGroupRulesInput{GroupId: &c.PhysicalID, SecurityGroupRules: changed})
	}
	if err == nil && len(gone) > 0 && egress {
		_, err = c.Client.RevokeSecurityGroupEgress(ctx, &ec2.RevokeSecurityGroupEgressInput{GroupId: &c.PhysicalID, SecurityGroupRuleIds: gone})
	} else if err == nil && len(gone) > 0 {
		_, err = c.Client.RevokeSecurityGroupIngress(ctx, &ec2.RevokeSecurityGroupIngressInput{GroupId: &c.PhysicalID, SecurityGroupRuleIds: gone})
	}
	return stale(err)
}

// stale makes the facet be put again, from a new reading: the rules that putDirection has read were no longer those that stand, because
// an earlier call that nobody has heard of has been at work since.
func stale(err error) error {
	var api smithy.APIError
	if errors.As(err, &api) {
		switch api.ErrorCode() {
		case "InvalidPermission.Duplicate", "InvalidPermission.NotFound", "InvalidSecurityGroupRuleId.NotFound":
			return &provider.Error{Kind: provider.KindConflict, Code: api.ErrorCode(), Message: api.ErrorMessage(), Err: err}
		}
	}
	return err
}

// readSecurityGroup leaves out the rules that are resources of their own (AWS::EC2::SecurityGroupIngress and …Egress), which are told by
// their mark, and the default of a template that says nothing of egress.
func readSecurityGroup(ctx context.Context, c *call) (direct.Live, error) {
	out, err := c.Client.DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{GroupIds: []string{c.PhysicalID}})
	if err != nil {
		return direct.Live{}, err
	}
	if len(out.SecurityGroups) == 0 {
		return direct.Live{}, direct.NotFound("security group", c.PhysicalID)
	}
	g := out.SecurityGroups[0]
	ingress, egress, err := liveRules(ctx, c, c.PhysicalID)
	if err != nil {
		return direct.Live{}, err
	}
	properties := map[string]any{
		"GroupDescription": aws.ToString(g.Description), "GroupName": aws.ToString(g.GroupName), "VpcId": aws.ToString(g.VpcId), "Tags": model(g.Tags),
	}
	for name, live := range map[string][]rule{"SecurityGroupIngress": ingress, "SecurityGroupEgress": egress} {
		isEgress := name == "SecurityGroupEgress"
		recorded, err := parseRules(ctx, c, c.Known(name), isEgress)
		if err != nil {
			return direct.Live{}, err
		}
		var models []any
		for _, r := range live {
			_, ours := r.among(recorded)
			standard := isEgress && c.Known(name) == nil && r.protocol == "-1" && (r.ipv4 == "0.0.0.0/0" || r.ipv6 == "::/0")
			if ours || !r.marked() && !standard {
				models = append(models, r.written(recorded, isEgress))
			}
		}
		if len(models) > 0 {
			properties[name] = models
		}
	}
	return direct.Live{
		Properties: properties,
		Attributes: map[string]any{"GroupId": c.PhysicalID, "Id": c.PhysicalID, "VpcId": aws.ToString(g.VpcId)},
	}, nil
}
