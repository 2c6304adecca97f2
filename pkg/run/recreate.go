package run

import (
	"slices"

	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/diff"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/state"
	"github.com/slipway-cdk/slipway/pkg/template"
)

// Which layer provisions a resource is decided when it is made, and stays (reference §10.1): another layer may know it
// by another id. To change it the resource is made again.

// recreated are the resources of a stack that are to be made again by another layer, by logical id. One that the layer
// can't make, or has made, is refused.
func (e *Engine) recreated(via map[string]provider.Route, t *template.Template, rec *state.Record) (map[string]string, diag.Diagnostics) {
	var diags diag.Diagnostics
	out := map[string]string{}
	for _, id := range sortedIDs(via) {
		res, before := t.Resources[id], recordOf(rec, id)
		if res == nil || before == nil {
			continue // it is another stack's, or nobody's: unmatched tells
		}
		refuse := func(summary, detail string) {
			diags = append(diags, diag.Diagnostic{
				Severity: diag.Error, LogicalID: id, Summary: summary, Detail: detail, Next: "Leave " + id + " out of the resources to recreate.",
			})
		}
		_, route, err := e.Providers.For(res.Type, via[id], sortedIDs(res.Properties))
		switch {
		case provider.IsCustom(res.Type):
			refuse(id+" can't be made again by another layer", "only its handler can make a custom resource")
		case provider.Route(before.ProvisionedBy) == via[id]:
			refuse(id+" is provisioned by that layer already", "its record says "+before.ProvisionedBy)
		case err != nil || route != via[id]:
			refuse(id+" can't be made again by that layer", "there is no "+layers[via[id]]+" for "+res.Type)
		default:
			out[id] = string(via[id])
		}
	}
	return out, diags
}

// layers are what the two routes of the state format are called.
var layers = map[provider.Route]string{provider.RouteSDK: "direct provider", provider.RouteCloudControl: "Cloud Control handler"}

// unmatched refuses resources to recreate that no planned stack has in its template and its record.
func unmatched(via map[string]provider.Route, plans []*stackPlan) diag.Diagnostics {
	var diags diag.Diagnostics
	for _, id := range sortedIDs(via) {
		found := slices.ContainsFunc(plans, func(p *stackPlan) bool {
			return slices.ContainsFunc(p.view.Changes, func(c diff.Change) bool {
				return c.LogicalID == id && c.Action == diff.ActionReplace
			})
		})
		if !found {
			diags = append(diags, diag.Diagnostic{
				Severity: diag.Error, LogicalID: id, Summary: "there is no " + id + " to make again",
				Detail: "no selected stack has a resource with this logical id in its template and in its record",
				Next:   "Look for its logical id: slipway state show STACK.",
			})
		}
	}
	return diags
}
