package events

import (
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/smithy-go"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

// ruleProperties are those that one PutRule sets all of: what it is not given, the rule no longer has.
// https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_PutRule.html
var ruleProperties = []string{"Description", "EventPattern", "RoleArn", "ScheduleExpression", "State"}

// targetNames are the parts of a target that the API calls otherwise.
var targetNames = direct.Renames{
	"Targets/*/EcsParameters/PlacementStrategies": "PlacementStrategy",
	"Targets/*/EcsParameters/TagList":             "Tags",
}

// rule's id is its ARN (reference §10.3).
func rule() direct.Kind[*eventbridge.Client] {
	return direct.Kind[*eventbridge.Client]{
		Type: "AWS::Events::Rule", Identity: direct.ByName, LookFirst: true,
		CreateOnly: []string{"EventBusName", "Name"},
		Create: func(ctx context.Context, c *call) (string, error) {
			in := eventbridge.PutRuleInput{Tags: direct.TagList(c.Tags(), tag)}
			if err := direct.Into(c.Properties, &in, nil, append([]string{"EventBusName", "Name"}, ruleProperties...)...); err != nil {
				return "", err
			}
			out, err := c.Client.PutRule(ctx, &in)
			if err != nil {
				return "", err
			}
			return *out.RuleArn, nil
		},
		Find: func(ctx context.Context, c *call) (direct.Found, error) {
			in := eventbridge.DescribeRuleInput{Name: aws.String(c.Text("Name"))}
			if c.Has("EventBusName") {
				in.EventBusName = aws.String(c.Text("EventBusName"))
			}
			out, err := c.Client.DescribeRule(ctx, &in)
			if err != nil {
				return direct.Found{}, err
			}
			tags, err := tagsOf(ctx, c, aws.ToString(out.Arn))
			return direct.Found{ID: aws.ToString(out.Arn), Tags: tags}, err
		},
		Facets: []direct.Facet[*eventbridge.Client]{
			{Properties: ruleProperties, Created: true, Defaults: map[string]any{"State": "ENABLED"}, Put: putRule},
			{Properties: []string{"Targets"}, Put: putTargets},
			tags(func(c *call) string { return c.PhysicalID }),
		},
		Read: readRule, Delete: deleteRule,
	}
}

// ruleName takes the bus, nil for the default one, and the name out of an ARN: arn:…:rule/name, arn:…:rule/bus/name.
func ruleName(c *call) (bus, name *string) {
	id := c.PhysicalID
	if _, path, ok := strings.Cut(id, ":rule/"); ok {
		i := strings.LastIndexByte(path, '/')
		id = path[i+1:]
		if i >= 0 {
			bus = aws.String(path[:i])
		}
		return bus, &id
	}
	if head, tail, ok := strings.Cut(id, "|"); ok { // CloudFormation's own id
		return &head, &tail
	}
	if text := direct.Text(c.Known("EventBusName")); text != "" {
		bus = &text
	}
	return bus, &id
}

func putRule(ctx context.Context, c *call) error {
	var in eventbridge.PutRuleInput
	if err := direct.Into(c.Properties, &in, nil, ruleProperties...); err != nil {
		return err
	}
	in.EventBusName, in.Name = ruleName(c)
	// The call would make a rule that is gone anew.
	if _, err := c.Client.DescribeRule(ctx, &eventbridge.DescribeRuleInput{EventBusName: in.EventBusName, Name: in.Name}); err != nil {
		return err
	}
	_, err := c.Client.PutRule(ctx, &in)
	return err
}

// targetIDs are the ids of a template's targets.
func targetIDs(v any) []string {
	var ids []string
	list, _ := v.([]any)
	for _, e := range list {
		if target, ok := e.(map[string]any); ok {
			ids = append(ids, direct.Text(target["Id"]))
		}
	}
	return ids
}

func putTargets(ctx context.Context, c *call) error {
	gone := direct.Without(targetIDs(c.Previous["Targets"]), targetIDs(c.Properties["Targets"]))
	if err := removeTargets(ctx, c, gone); err != nil {
		return err
	}
	var in eventbridge.PutTargetsInput
	if err := direct.Into(c.Properties, &in, targetNames, "Targets"); err != nil {
		return err
	}
	if len(in.Targets) == 0 {
		return nil
	}
	in.EventBusName, in.Rule = ruleName(c)
	out, err := c.Client.PutTargets(ctx, &in)
	if err == nil && len(out.FailedEntries) > 0 {
		err = &smithy.GenericAPIError{Code: aws.ToString(out.FailedEntries[0].ErrorCode), Message: aws.ToString(out.FailedEntries[0].ErrorMessage)}
	}
	return err
}

func removeTargets(ctx context.Context, c *call, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	bus, name := ruleName(c)
	out, err := c.Client.RemoveTargets(ctx, &eventbridge.RemoveTargetsInput{EventBusName: bus, Rule: name, Ids: ids})
	if err != nil {
		return err
	}
	for _, e := range out.FailedEntries {
		err := &smithy.GenericAPIError{Code: aws.ToString(e.ErrorCode), Message: aws.ToString(e.ErrorMessage)}
		if !errorKinds.IsKind(err, provider.KindNotFound) {
			return err
		}
	}
	return nil
}

func listTargets(ctx context.Context, c *call) ([]types.Target, error) {
	var targets []types.Target
	bus, name := ruleName(c)
	in := eventbridge.ListTargetsByRuleInput{EventBusName: bus, Rule: name}
	for {
		out, err := c.Client.ListTargetsByRule(ctx, &in)
		if err != nil {
			return nil, err
		}
		targets = append(targets, out.Targets...)
		if in.NextToken = out.NextToken; in.NextToken == nil {
			break
		}
	}
	slices.SortFunc(targets, func(a, b types.Target) int { return strings.Compare(aws.ToString(a.Id), aws.ToString(b.Id)) })
	return targets, nil
}

// deleteRule removes the targets first, without which the service does not delete a rule.
func deleteRule(ctx context.Context, c *call) error {
	ids := targetIDs(c.Previous["Targets"])
	if err := removeTargets(ctx, c, ids); err != nil {
		return err
	}
	bus, name := ruleName(c)
	_, err := c.Client.DeleteRule(ctx, &eventbridge.DeleteRuleInput{EventBusName: bus, Name: name})
	if !errorKinds.IsKind(err, provider.KindInvalid) {
		return err
	}
	left, listErr := listTargets(ctx, c)
	if listErr != nil || len(left) == 0 {
		return err // it is something else
	}
	ids = nil
	for _, t := range left {
		ids = append(ids, aws.ToString(t.Id))
	}
	if err := removeTargets(ctx, c, ids); err != nil {
		return err
	}
	_, err = c.Client.DeleteRule(ctx, &eventbridge.DeleteRuleInput{EventBusName: bus, Name: name})
	return err
}

func readRule(ctx context.Context, c *call) (direct.Live, error) {
	bus, name := ruleName(c)
	out, err := c.Client.DescribeRule(ctx, &eventbridge.DescribeRuleInput{EventBusName: bus, Name: name})
	if err != nil {
		return direct.Live{}, err
	}
	properties := direct.From(c.Type, out, nil)
	if given := c.Known("EventBusName"); given != nil {
		properties["EventBusName"] = given // by name or by ARN
	}
	targets, err := listTargets(ctx, c)
	if err != nil {
		return direct.Live{}, err
	}
	if shaped := direct.From(c.Type, map[string]any{"Targets": targets}, targetNames)["Targets"]; shaped != nil {
		properties["Targets"] = shaped
	}
	tags, err := tagsOf(ctx, c, aws.ToString(out.Arn))
	if err != nil {
		return direct.Live{}, err
	}
	properties["Tags"] = direct.TagModel(tags)
	return direct.Live{
		Properties: properties, Attributes: map[string]any{"Arn": aws.ToString(out.Arn), "RuleName": aws.ToString(out.Name)},
	}, nil
}
