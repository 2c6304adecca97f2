package diff

import (
	"fmt"
	"slices"

	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/intrinsic"
)

// renamed warns of resources that have probably got another logical ID: one is deleted and another one of the same
// type and with the same properties is created. Nothing is assumed, since CloudFormation would do the same; but
// who has only moved a construct wants to know, before data or a name is lost. A pair that renames refuses
// is not repeated.
func (d *differ) renamed(refused diag.Diagnostics) diag.Diagnostics {
	leaving := map[string][]string{}
	for _, c := range d.result.Changes {
		if c.Action == ActionDelete {
			leaving[c.Type] = append(leaving[c.Type], c.LogicalID)
		}
	}
	if len(leaving) == 0 {
		return nil
	}
	var diags diag.Diagnostics
	for _, c := range d.result.Changes {
		if c.Action != ActionCreate || len(leaving[c.Type]) == 0 {
			continue
		}
		if slices.ContainsFunc(refused, func(r diag.Diagnostic) bool { return r.LogicalID == c.LogicalID }) {
			continue
		}
		comparer := &comparer{t: d.in.lookup(c.Type)}
		desired := d.result.Desired[c.LogicalID]
		i := slices.IndexFunc(leaving[c.Type], func(old string) bool {
			return comparer.alike(d.in.Record.Resources[old].Properties, desired)
		})
		if i < 0 {
			continue
		}
		old := leaving[c.Type][i]
		leaving[c.Type] = slices.Delete(slices.Clone(leaving[c.Type]), i, i+1)
		warning := diag.Diagnostic{
			Severity: diag.Warning, LogicalID: c.LogicalID,
			Summary: fmt.Sprintf("%s looks like %s under another logical ID", c.LogicalID, old),
			Detail:  fmt.Sprintf("both are %s with the same properties; %s is created and %s deleted", c.Type, c.LogicalID, old),
			Next:    fmt.Sprintf("If it is meant to be the same resource, keep the logical ID %s.", old),
		}
		if stateful(d.in.lookup(c.Type), c.Type, d.in.Record.Resources[old].Properties) {
			warning.Detail += ", with its data"
		}
		diags = append(diags, warning)
	}
	return diags
}

// alike reports whether properties are equal as far as they are known, and something of them is.
func (c *comparer) alike(old, desired map[string]any) bool {
	if len(old) != len(desired) {
		return false
	}
	known := false
	for key, is := range desired {
		was, there := old[key]
		if !there {
			return false
		}
		if len(intrinsic.HasUnknown(is)) > 0 {
			continue
		}
		if !c.equal([]string{key}, was, is) {
			return false
		}
		known = true
	}
	return known
}
