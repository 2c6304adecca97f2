package doctor

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/provider/direct"
	"github.com/slipway-cdk/slipway/pkg/schema"
)

// compare names the properties of a resource whose live value is another one than the recorded, and those of which that
// can't be told. Values are not told. A live value has to hold what the template has set: services add members to objects,
// but no items to lists, whose order counts only where the schema says so. A false alarm makes nobody look again, so what
// could be the service's own way of writing the same is unsure.
//
// whole says that the live properties are known to have the shape of a template, as direct providers' have, which the
// conformance suite holds them to. Of others only plain values, at the top or inside of objects, are believed to differ.
func compare(typeName string, whole bool, recorded, live map[string]any) (differ, unsure []string) {
	t, _ := schema.Lookup(typeName)
	for _, name := range slices.Sorted(maps.Keys(recorded)) {
		want, got := recorded[name], live[name]
		switch {
		case hidden(want), empty(want), direct.Covers(typeName, name, got, want):
		case got == nil:
			// Some values are never read back; of the others the direct providers read all.
			if whole && t != nil && !t.IsWriteOnly([]string{name}) && !partlyWriteOnly(t, name) {
				unsure = append(unsure, name)
			}
		case alike(got, want):
			unsure = appendIf(!plain(want), unsure, name) // in another order
		case clash(got, want), whole && !partlyWriteOnly(t, name):
			differ = append(differ, name)
		default:
			unsure = append(unsure, name)
		}
	}
	return differ, unsure
}

func appendIf(yes bool, list []string, name string) []string {
	if yes {
		return append(list, name)
	}
	return list
}

// hidden: the record does not have the value itself, at some place, but what stands for a secret.
func hidden(v any) bool {
	switch v := v.(type) {
	case string:
		return v == "***" || strings.Contains(v, "{{resolve:")
	case []any:
		return slices.ContainsFunc(v, hidden)
	case map[string]any:
		for _, member := range v {
			if hidden(member) {
				return true
			}
		}
	}
	return false
}

// empty: a value that a service may leave out, because it says nothing or is what the service would do anyway.
func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case []any:
		return len(v) == 0
	case map[string]any:
		for _, member := range v {
			if !empty(member) {
				return false
			}
		}
		return true
	}
	return false
}

// partlyWriteOnly: a part of the property is never read back.
func partlyWriteOnly(t *schema.Type, name string) bool {
	if t == nil {
		return false
	}
	return slices.ContainsFunc(t.WriteOnly, func(path string) bool { return path == name || strings.HasPrefix(path, name+"/") })
}

// alike: live has all of want, in whatever order its lists are.
func alike(live, want any) bool {
	switch w := direct.Parsed(want).(type) {
	case map[string]any:
		l, ok := direct.Parsed(live).(map[string]any)
		if !ok {
			return false
		}
		for name, member := range w {
			if !empty(member) && !alike(l[name], member) {
				return false
			}
		}
		return true
	case []any:
		l, ok := direct.Parsed(live).([]any)
		if !ok || len(l) != len(w) {
			return false
		}
		rest := slices.Clone(l)
		for _, item := range w {
			i := slices.IndexFunc(rest, func(other any) bool { return alike(other, item) })
			if i < 0 {
				return false
			}
			rest = slices.Delete(rest, i, i+1)
		}
		return true
	}
	return plain(live) && samePlain(live, want)
}

// clash: both have a plain value at the same place, and not the same one. What lists hold is not looked at.
func clash(live, want any) bool {
	if w, ok := direct.Parsed(want).(map[string]any); ok {
		l, ok := direct.Parsed(live).(map[string]any)
		if !ok {
			return false
		}
		for name, member := range w {
			if l[name] != nil && clash(l[name], member) {
				return true
			}
		}
		return false
	}
	return plain(live) && plain(want) && !samePlain(live, want)
}

// plain: a text that is no document, a number or a truth value.
func plain(v any) bool {
	switch direct.Parsed(v).(type) {
	case string, bool, json.Number, float64, int, int64:
		return true
	}
	return false
}

// samePlain: services return numbers and truth values as texts at times, and numbers in other notations.
func samePlain(a, b any) bool {
	x, y := fmt.Sprint(a), fmt.Sprint(b)
	if x == y {
		return true
	}
	if strings.EqualFold(x, y) && (strings.EqualFold(x, "true") || strings.EqualFold(x, "false")) {
		return true
	}
	if len(x) > 40 || len(y) > 40 || strings.ContainsAny(x+y, "eEpPxXoObB_/") {
		return false // no number, or one that is not worth its cost
	}
	p, isP := new(big.Rat).SetString(x)
	q, isQ := new(big.Rat).SetString(y)
	return isP && isQ && p.Cmp(q) == 0
}
