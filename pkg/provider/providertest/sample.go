package providertest

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/slipway-cdk/slipway/pkg/schema"
)

// Sample is a value of a type's property that has every member its schema knows: what can't be sent to a service shows at once. Of
// members that take several shapes it is the first.
func Sample(t *schema.Type, property string) any { return sample(t, t.Properties[property], nil) }

func sample(t *schema.Type, p *schema.Property, within []string) any {
	switch p.Kind {
	case schema.KindInteger, schema.KindNumber:
		return json.Number("1")
	case schema.KindBoolean:
		return true
	case schema.KindList:
		return []any{sample(t, p.Elem, within)}
	case schema.KindMap:
		return map[string]any{"key": sample(t, p.Elem, within)}
	case schema.KindUnion:
		return sample(t, p.Alternatives[0], within)
	case schema.KindObject:
		out := map[string]any{}
		if def := t.Definitions[p.Ref]; def != nil && !slices.Contains(within, p.Ref) { // types may hold themselves
			for _, name := range slices.Sorted(maps.Keys(def.Properties)) {
				out[name] = sample(t, def.Properties[name], append(within[:len(within):len(within)], p.Ref))
			}
		}
		return out
	case schema.KindJSON:
		return map[string]any{}
	}
	if len(p.Enum) > 0 {
		return p.Enum[0]
	}
	return "text"
}
