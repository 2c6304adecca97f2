package ec2

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

// ruleKind is a rule that is a resource of its own. What it says names it within its group, and its mark tells it from one that
// somebody else has made.
func ruleKind(typeName string, egress bool, createOnly []string, unhandled map[string]string) direct.Kind[*ec2.Client] {
	return direct.Kind[*ec2.Client]{
		Type: typeName, Identity: direct.ByName, LookFirst: true, CreateOnly: createOnly, Unhandled: unhandled,
		Create: func(ctx context.Context, c *call) (string, error) {
			r, err := parseRule(ctx, c, c.Properties, egress)
			if err != nil {
				return "", err
			}
			group, marked := c.Text("GroupId"), tagged(c, types.ResourceTypeSecurityGroupRule)
			permissions := []types.IpPermission{r.permission()}
			var made []types.SecurityGroupRule
			if egress {
				out, err := c.Client.AuthorizeSecurityGroupEgress(ctx, &ec2.AuthorizeSecurityGroupEgressInput{GroupId: &group, IpPermissions: permissions, TagSpecifications: marked})
				if err != nil {
					return "", young(err)
				}
				made = out.SecurityGroupRules
			} else {
				out, err := c.Client.AuthorizeSecurityGroupIngress(ctx, &ec2.AuthorizeSecurityGroupIngressInput{GroupId: &group, IpPermissions: permissions, TagSpecifications: marked})
				if err != nil {
					return "", young(err)
				}
				made = out.SecurityGroupRules
			}
			if len(made) == 1 {
				r.id = aws.ToString(made[0].SecurityGroupRuleId)
			}
			return ruleID(c, r, egress), nil
		},
		Find: func(ctx context.Context, c *call) (direct.Found, error) {
			want, err := parseRule(ctx, c, c.Properties, egress)
			if err != nil {
				return direct.Found{}, err
			}
			ingress, outgoing, err := liveRules(ctx, c, c.Text("GroupId"))
			if err != nil {
				return direct.Found{}, young(err)
			}
			if egress {
				ingress = outgoing
			}
			r, ok := want.among(ingress)
			if !ok {
				return direct.Found{}, nil
			}
			want.id = r.id
			return direct.Found{ID: ruleID(c, want, egress), Tags: r.tags}, nil
		},
		Facets: []direct.Facet[*ec2.Client]{{
			Properties: []string{"Description"}, Created: true,
			Put: func(ctx context.Context, c *call) error {
				r, group, err := getRule(ctx, c, egress)
				if err != nil {
					return err
				}
				_, err = c.Client.ModifySecurityGroupRules(ctx, &ec2.ModifySecurityGroupRulesInput{
					GroupId: &group, SecurityGroupRules: []types.SecurityGroupRuleUpdate{r.described(c.Text("Description"))},
				})
				return err
			},
		}},
		Read: func(ctx context.Context, c *call) (direct.Live, error) {
			r, group, err := getRule(ctx, c, egress)
			if err != nil {
				return direct.Live{}, err
			}
			recorded := map[string]any{}
			for _, name := range createOnly {
				if v := c.Known(name); v != nil {
					recorded[name] = v
				}
			}
			var words []rule
			if parsed, err := parseRule(ctx, c, recorded, egress); err == nil {
				words = []rule{parsed}
			}
			properties := r.written(words, egress)
			properties["GroupId"] = group
			return direct.Live{Properties: properties, Attributes: map[string]any{"Id": r.id}}, nil
		},
		Delete: func(ctx context.Context, c *call) error {
			id := ruleIDOf(c)
			r, group, err := rule{id: id}, direct.Text(c.Known("GroupId")), error(nil)
			if id == "" || group == "" {
				if r, group, err = getRule(ctx, c, egress); err != nil {
					return err
				}
			}
			if egress {
				_, err = c.Client.RevokeSecurityGroupEgress(ctx, &ec2.RevokeSecurityGroupEgressInput{GroupId: &group, SecurityGroupRuleIds: []string{r.id}})
			} else {
				_, err = c.Client.RevokeSecurityGroupIngress(ctx, &ec2.RevokeSecurityGroupIngressInput{GroupId: &group, SecurityGroupRuleIds: []string{r.id}})
			}
			return err
		},
	}
}

// securityGroupIngress is known by group|protocol|from|to|source (reference §10.3).
func securityGroupIngress() direct.Kind[*ec2.Client] {
	return ruleKind("AWS::EC2::SecurityGroupIngress", false,
		[]string{
			"CidrIp", "CidrIpv6", "FromPort", "GroupId", "IpProtocol", "SourcePrefixListId", "SourceSecurityGroupId",
			"SourceSecurityGroupOwnerId", "ToPort",
		},
		map[string]string{
			"GroupName": "a group of the default VPC by its name", "SourceSecurityGroupName": "a group of the default VPC by its name",
		})
}

// securityGroupEgress is known by the service's id of the rule.
func securityGroupEgress() direct.Kind[*ec2.Client] {
	return ruleKind("AWS::EC2::SecurityGroupEgress", true,
		[]string{
			"CidrIp", "CidrIpv6", "DestinationPrefixListId", "DestinationSecurityGroupId", "FromPort", "GroupId", "IpProtocol", "ToPort",
		}, nil)
}

// ruleID is the physical id of a rule as the template has it.
func ruleID(c *call, r rule, egress bool) string {
	if egress {
		return r.id
	}
	port := func(p *int32) int32 {
		if p == nil {
			return -1
		}
		return *p
	}
	return fmt.Sprintf("%s|%s|%d|%d|%s", c.Text("GroupId"), direct.Text(c.Properties["IpProtocol"]), port(r.from), port(r.to), r.ipv4+r.ipv6+r.prefixList+r.group)
}

// ruleIDOf is the service's id of the rule, where the record has it.
func ruleIDOf(c *call) string {
	if strings.HasPrefix(c.PhysicalID, "sgr-") {
		return c.PhysicalID
	}
	return direct.Text(c.Attributes["Id"])
}

// getRule reads the live rule and its group: by the service's id, by what the record says of it, or by the physical id.
func getRule(ctx context.Context, c *call, egress bool) (rule, string, error) {
	missing := direct.NotFound("security group rule", c.PhysicalID)
	if id := ruleIDOf(c); id != "" {
		out, err := c.Client.DescribeSecurityGroupRules(ctx, &ec2.DescribeSecurityGroupRulesInput{SecurityGroupRuleIds: []string{id}})
		if err != nil {
			return rule{}, "", err
		}
		if len(out.SecurityGroupRules) == 0 {
			return rule{}, "", missing
		}
		return liveRule(out.SecurityGroupRules[0]), aws.ToString(out.SecurityGroupRules[0].GroupId), nil
	}
	parts := strings.Split(c.PhysicalID, "|")
	model := map[string]any{}
	for _, properties := range []map[string]any{c.Previous, c.Properties} {
		for name, v := range properties {
			model[name] = v
		}
	}
	if len(parts) == 5 && len(model) == 0 {
		model = map[string]any{"IpProtocol": parts[1], "FromPort": parts[2], "ToPort": parts[3], otherSide(parts[4], egress): parts[4]}
	}
	want, err := parseRule(ctx, c, model, egress)
	if err != nil {
		return rule{}, "", err
	}
	ingress, outgoing, err := liveRules(ctx, c, parts[0])
	if err != nil {
		return rule{}, "", err
	}
	if egress {
		ingress = outgoing
	}
	r, ok := want.among(ingress)
	if !ok {
		return rule{}, "", missing
	}
	return r, parts[0], nil
}

// otherSide is the property that holds what a physical id ends with.
func otherSide(text string, egress bool) string {
	switch {
	case strings.HasPrefix(text, "sg-"):
		return side(egress) + "SecurityGroupId"
	case strings.HasPrefix(text, "pl-"):
		return side(egress) + "PrefixListId"
	case strings.Contains(text, ":"):
		return "CidrIpv6"
	}
	return "CidrIp"
}
