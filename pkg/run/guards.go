package run

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/diff"
	"github.com/slipway-cdk/slipway/pkg/state"
)

// guardExports refuses to take away an export that another stack has imported at its last deploy (reference
// §7.8; https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/using-cfn-stack-exports.html): the
// importer would hold a value that nobody stands for. One that is deployed together with the stack is not in the
// way: its new template is checked against what will be exported, and it comes first (freedFirst). Where a plan is
// only looked at, this is a warning.
func (e *Engine) guardExports(ctx context.Context, req Request, s StackRequest, outputs diff.OutputSet) (diag.Diagnostics, error) {
	importers, err := e.importersOfRemoved(ctx, s, outputs)
	if err != nil {
		return nil, err
	}
	severity := diag.Error
	if req.Options.Lenient {
		severity = diag.Warning
	}
	inside := stackSet(req)
	users := map[string][]string{}
	for _, i := range importers {
		if !inside[state.Ref{Stack: i.Stack, Region: state.Region(i.Region)}] {
			users[i.ExportName] = append(users[i.ExportName], fmt.Sprintf("%s (%s)", i.Stack, i.Region))
		}
	}
	var diags diag.Diagnostics
	for _, name := range sortedIDs(users) {
		diags = append(diags, diag.Diagnostic{
			Severity: severity, Path: "Outputs",
			Summary: "the export " + name + " would go, and it is imported",
			Detail:  "by " + strings.Join(users[name], ", "),
			Next:    "Deploy those stacks without the import first, or together with this one.",
		})
	}
	return diags, nil
}

func (e *Engine) importersOfRemoved(ctx context.Context, s StackRequest, outputs diff.OutputSet) ([]state.Importer, error) {
	var removed []string
	for _, c := range outputs.Changes {
		if c.Kind == "remove" {
			removed = append(removed, c.Name)
		}
	}
	if len(removed) == 0 {
		return nil, nil
	}
	return e.States.Importers(ctx, s.Name, s.Region, removed)
}

// freedFirst adds to the order of a deploy that stacks which give up an import go before the stack that takes the
// export away. Where that stack has to go before one of them, no order is right.
func (e *Engine) freedFirst(ctx context.Context, stacks []StackRequest, plans []*stackPlan) ([]StackRequest, diag.Diagnostics, error) {
	stacks = slices.Clone(stacks)
	var diags diag.Diagnostics
	for k, p := range plans {
		producer := stacks[k]
		importers, err := e.importersOfRemoved(ctx, producer, p.outputs)
		if err != nil {
			return nil, nil, err
		}
		for _, i := range importers {
			at := slices.IndexFunc(stacks, func(s StackRequest) bool {
				return s.Name == i.Stack && state.Region(s.Region) == state.Region(i.Region)
			})
			switch {
			case at < 0 || slices.Contains(stacks[k].DependsOn, i.Stack):
			case dependsOn(stacks, i.Stack, producer.Name):
				diags = append(diags, diag.Diagnostic{
					Severity: diag.Error, Stack: producer.Name, Path: "Outputs",
					Summary: fmt.Sprintf("the export %s can't go in one deploy with its last use", i.ExportName),
					Detail:  fmt.Sprintf("stack %s imports it until it is deployed, and depends on this one", i.Stack),
					Next:    "Keep the export for this deploy (exportValue in the CDK), and remove it in the next one.",
				})
			default:
				stacks[k].DependsOn = append(slices.Clone(stacks[k].DependsOn), i.Stack)
			}
		}
	}
	return stacks, diags, nil
}

// dependsOn reports whether a stack depends on another one, directly or not.
func dependsOn(stacks []StackRequest, name, on string) bool {
	seen := map[string]bool{}
	var visit func(string) bool
	visit = func(name string) bool {
		if name == on {
			return true
		}
		if seen[name] {
			return false
		}
		seen[name] = true
		for _, s := range stacks {
			if s.Name == name && slices.ContainsFunc(s.DependsOn, visit) {
				return true
			}
		}
		return false
	}
	return visit(name)
}
