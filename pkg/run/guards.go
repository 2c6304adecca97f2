package run

import (
	"context"
	"fmt"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/diff"
)

// guardExports refuses to take away an export that another stack has imported at its last deploy (reference
// §7.8; https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/using-cfn-stack-exports.html): the
// importer would hold a value that nobody stands for.
func (e *Engine) guardExports(ctx context.Context, s StackRequest, outputs diff.OutputSet) diag.Diagnostics {
	var removed []string
	for _, c := range outputs.Changes {
		if c.Kind == "remove" {
			removed = append(removed, c.Name)
		}
	}
	if len(removed) == 0 {
		return nil
	}
	importers, err := e.States.Importers(ctx, s.Name, s.Region, removed)
	if err != nil {
		return diag.From(err)
	}
	users := map[string][]string{}
	for _, i := range importers {
		users[i.ExportName] = append(users[i.ExportName], fmt.Sprintf("%s (%s)", i.Stack, i.Region))
	}
	var diags diag.Diagnostics
	for _, name := range sortedIDs(users) {
		diags = append(diags, diag.Diagnostic{
			Severity: diag.Error, Path: "Outputs",
			Summary: "the export " + name + " would go, and it is imported",
			Detail:  "by " + strings.Join(users[name], ", "),
			Next:    "Deploy those stacks without the import first; then the export can go.",
		})
	}
	return diags
}
