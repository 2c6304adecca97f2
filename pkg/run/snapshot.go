package run

import (
	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/plan"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/state"
	"github.com/slipway-cdk/slipway/pkg/template"
)

const policySnapshot = "Snapshot"

// checkSnapshots refuses a policy of Snapshot for types that have no snapshots, as CloudFormation does
// (https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-attribute-deletionpolicy.html).
func checkSnapshots(t *template.Template, conditions map[string]bool) diag.Diagnostics {
	var diags diag.Diagnostics
	for _, id := range t.Order {
		r := t.Resources[id]
		if !t.Live(id, conditions) || provider.CanSnapshot(r.Type) {
			continue
		}
		for _, policy := range []struct {
			name  string
			value any
		}{{"DeletionPolicy", r.DeletionPolicy}, {"UpdateReplacePolicy", r.UpdateReplacePolicy}} {
			if policy.value == policySnapshot {
				diags = append(diags, diag.Diagnostic{
					Severity: diag.Error, LogicalID: id, Path: policy.name,
					Summary: r.Type + " has no snapshots", Detail: "its " + policy.name + " is Snapshot",
					Next: "Choose Delete, Retain or RetainExceptOnCreate.",
				})
			}
		}
	}
	return diags
}

// finalSnapshot names the snapshot that an operation takes of the resource before it deletes it, "" for none. For a
// replacement that deletes first it is the template's UpdateReplacePolicy that counts.
func (s *stackTurn) finalSnapshot(planned plan.Operation, before *state.Resource, updateReplacePolicy string) string {
	policy := planned.Policy
	if planned.Action == plan.ActionReplace {
		policy = updateReplacePolicy
	}
	deletes := planned.Action == plan.ActionDelete || planned.Action == plan.ActionReplace && planned.DeleteFirst
	if !deletes || policy != policySnapshot || before == nil || s.req.Options.SkipFinalSnapshot {
		return ""
	}
	return provider.FinalSnapshotName(before.ResourceType, before.PhysicalID, s.h.RunID)
}

// unsupportedSnapshot refuses to delete a recorded resource whose policy asks for a snapshot that there can't be.
func unsupportedSnapshot(op runlog.Op) *provider.Error {
	return &provider.Error{
		Kind: provider.KindUnsupported, Code: "FinalSnapshot",
		Message: op.Type + " has no snapshots, and its policy asks for one, so it was not deleted: repeat the command with --skip-final-snapshot to delete it without",
	}
}
