package run

import (
	"maps"
	"slices"

	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/diff"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/state"
	"github.com/slipway-cdk/slipway/pkg/template"
)

// routes refuses the changes that no provider can make, before anything is touched: a type that nobody can provision,
// a property that nobody can set.
func (e *Engine) routes(changes []diff.Change, t *template.Template, rec *state.Record, recreate map[string]provider.Route) diag.Diagnostics {
	var diags diag.Diagnostics
	for _, c := range changes {
		res := t.Resources[c.LogicalID]
		if res == nil || c.RecordOnly || c.Action != diff.ActionCreate && c.Action != diff.ActionUpdate && c.Action != diff.ActionReplace {
			continue
		}
		var recorded provider.Route
		if before := recordOf(rec, c.LogicalID); before != nil && before.ResourceType == c.Type {
			recorded = provider.Route(before.ProvisionedBy)
			if via, wanted := recreate[c.LogicalID]; wanted {
				recorded = via
			}
		}
		if _, _, err := e.Providers.For(c.Type, recorded, slices.Sorted(maps.Keys(res.Properties))); err != nil {
			for _, d := range diag.From(err) {
				d.LogicalID = c.LogicalID
				diags = append(diags, d)
			}
		}
	}
	return diags
}
