package diff

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/intrinsic"
	"github.com/slipway-cdk/slipway/pkg/state"
)

// renamed warns of resources that have probably got another logical ID: one is deleted and another one of the same
// type and with the same properties is created. Nothing is assumed, since CloudFormation would do the same; but
// who has only moved a construct wants to know, before data or a name is lost. A pair that renames refuses
// is not repeated.
func (d *differ) renamed(refused diag.Diagnostics) diag.Diagnostics {
	leaving := map[string]*departed{}
	for _, c := range d.result.Changes {
		if c.Action == ActionDelete {
			if leaving[c.Type] == nil {
				leaving[c.Type] = &departed{comparer: &comparer{t: d.in.lookup(c.Type)}, record: d.in.Record, equal: map[string][]string{}, taken: map[string]bool{}}
			}
			leaving[c.Type].add(c.LogicalID)
		}
	}
	if len(leaving) == 0 {
		return nil
	}
	known := map[string]bool{}
	for _, r := range refused {
		known[r.LogicalID] = true
	}
	var diags diag.Diagnostics
	more := 0
	for _, c := range d.result.Changes {
		if c.Action != ActionCreate || leaving[c.Type] == nil || known[c.LogicalID] {
			continue
		}
		old := leaving[c.Type].find(d.result.Desired[c.LogicalID])
		if old == "" {
			continue
		}
		if len(diags) == mostWarnings {
			more++
			continue
		}
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
	if more > 0 {
		diags = append(diags, diag.Diagnostic{
			Severity: diag.Warning, Summary: fmt.Sprintf("%d more resources look like others under another logical ID", more),
			Next: "If they are meant to be the same resources, keep their logical IDs.",
		})
	}
	return diags
}

// mostWarnings: who moves a whole stack needs no list of it.
const mostWarnings = 10

// departed are the resources of one type that leave the template.
type departed struct {
	comparer *comparer
	record   *state.Record
	// equal are their logical IDs by their properties as text, rest all of them in order. Both may hold taken ones.
	equal map[string][]string
	rest  []string
	taken map[string]bool
}

// candidates is how many are compared member by member with one new resource: enough to find it where a few were moved
// together, few enough for a template of thousands.
const candidates = 16

func (l *departed) add(id string) {
	key := fingerprint(l.record.Resources[id].Properties)
	l.equal[key] = append(l.equal[key], id)
	l.rest = append(l.rest, id)
}

// find takes one that is like the desired properties, "" when there is none.
func (l *departed) find(desired map[string]any) string {
	if len(desired) == 0 {
		return ""
	}
	if key := fingerprint(desired); key != "" {
		if same := l.equal[key]; len(same) > 0 {
			l.equal[key] = same[1:]
			if !l.taken[same[0]] {
				l.taken[same[0]] = true
				return same[0]
			}
		}
	}
	for len(l.rest) > 0 && l.taken[l.rest[0]] {
		l.rest = l.rest[1:]
	}
	compared, passed := 0, 0
	defer func() {
		if passed > 4*candidates {
			l.rest = slices.DeleteFunc(l.rest, func(id string) bool { return l.taken[id] })
		}
	}()
	for _, id := range l.rest {
		if l.taken[id] {
			passed++
			continue
		}
		if compared++; compared > candidates {
			break
		}
		if l.comparer.alike(l.record.Resources[id].Properties, desired) {
			l.taken[id] = true
			return id
		}
	}
	return ""
}

// fingerprint is equal for equal properties; "" when some of them are not known.
func fingerprint(properties map[string]any) string {
	if len(intrinsic.HasUnknown(properties)) > 0 {
		return ""
	}
	encoded, err := json.Marshal(properties)
	if err != nil {
		return ""
	}
	return string(encoded)
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
