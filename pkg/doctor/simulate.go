package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/slipway-cdk/slipway/pkg/iampolicy"
)

// simulated is what IAM says of a caller.
type simulated struct {
	// denied are the actions that are not allowed.
	denied []string
	// depends are the condition keys of the caller's own policies that decide about actions, and that nobody here can
	// know: where a call comes from, or whether it was made with a second factor.
	depends []string
}

// simulate asks IAM for each action on each resource of the statements, one resource a question: an action that is asked
// for with resources of another statement would be denied on those.
// https://docs.aws.amazon.com/IAM/latest/APIReference/API_SimulatePrincipalPolicy.html
func (x *examination) simulate(ctx context.Context, source string, needed []iampolicy.Statement) (simulated, error) {
	client := iam.NewFromConfig(x.Config)
	var out simulated
	for _, s := range needed {
		for _, resource := range s.Resource {
			pages := iam.NewSimulatePrincipalPolicyPaginator(client, &iam.SimulatePrincipalPolicyInput{
				PolicySourceArn: &source, ActionNames: s.Action, ResourceArns: []string{x.example(resource)}, ContextEntries: x.knows(s),
			})
			for pages.HasMorePages() {
				page, err := pages.NextPage(ctx)
				if err != nil {
					return simulated{}, fmt.Errorf("asking IAM: %w", err)
				}
				for _, r := range page.EvaluationResults {
					switch {
					case r.EvalDecision == types.PolicyEvaluationDecisionTypeAllowed:
					case r.EvalDecision == types.PolicyEvaluationDecisionTypeImplicitDeny && len(r.MissingContextValues) > 0:
						out.depends = append(out.depends, r.MissingContextValues...)
					default:
						out.denied = append(out.denied, aws.ToString(r.EvalActionName))
					}
				}
			}
		}
	}
	slices.Sort(out.denied)
	slices.Sort(out.depends)
	out.denied, out.depends = slices.Compact(out.denied), slices.Compact(out.depends)
	return out, nil
}

// knows is the context of a call that meets the conditions of a statement. Keys that have several values are lists: those
// that a set operator is about.
func (x *examination) knows(s iampolicy.Statement) []types.ContextEntry {
	entries := []types.ContextEntry{
		{ContextKeyName: aws.String("aws:userid"), ContextKeyType: types.ContextKeyTypeEnumString, ContextKeyValues: []string{x.userID}},
		{ContextKeyName: aws.String("aws:SecureTransport"), ContextKeyType: types.ContextKeyTypeEnumBoolean, ContextKeyValues: []string{"true"}},
	}
	for operator, keys := range s.Condition {
		for key, values := range keys {
			entry := types.ContextEntry{ContextKeyName: aws.String(key), ContextKeyType: types.ContextKeyTypeEnumString}
			if strings.HasPrefix(operator, "ForAllValues:") || strings.HasPrefix(operator, "ForAnyValue:") {
				entry.ContextKeyType = types.ContextKeyTypeEnumStringList
			} else {
				values = values[:1]
			}
			for _, v := range values {
				entry.ContextKeyValues = append(entry.ContextKeyValues, x.example(v))
			}
			entries = append(entries, entry)
		}
	}
	return entries
}

// example is one of the things that a pattern of a policy is about: policies that are narrower, or name the caller, allow
// it too.
func (x *examination) example(pattern string) string {
	return strings.ReplaceAll(strings.ReplaceAll(pattern, "${aws:userid}", x.userID), "*", "doctor")
}
