package secret

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Mask stands for a secret value in everything that is stored or shown.
const Mask = "***"

// Path is a position in a JSON value: keys, and indexes of lists in decimal.
type Path []string

// Key writes the path as one text, for maps: segments joined by dots, with "~1" for a dot inside of one and "~0"
// for "~".
func (p Path) Key() string {
	escape := strings.NewReplacer("~", "~0", ".", "~1")
	segments := make([]string, len(p))
	for i, s := range p {
		segments[i] = escape.Replace(s)
	}
	return strings.Join(segments, ".")
}

// ParsePath reads what Key has written.
func ParsePath(key string) Path {
	if key == "" {
		return nil
	}
	unescape := strings.NewReplacer("~1", ".", "~0", "~")
	segments := strings.Split(key, ".")
	for i, s := range segments {
		segments[i] = unescape.Replace(s)
	}
	return segments
}

// At returns what is at the position.
func At(v any, p Path) (any, bool) {
	for _, segment := range p {
		switch in := v.(type) {
		case map[string]any:
			member, ok := in[segment]
			if !ok {
				return nil, false
			}
			v = member
		case []any:
			i, err := strconv.Atoi(segment)
			if err != nil || i < 0 || i >= len(in) {
				return nil, false
			}
			v = in[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// Replace returns the value with another one at the position. What is on the way is copied, the rest shared; where
// there is no such position the value comes back as it is.
func Replace(v any, p Path, with any) any {
	if len(p) == 0 {
		return with
	}
	if _, ok := At(v, p); !ok {
		return v
	}
	switch in := v.(type) {
	case map[string]any:
		out := maps.Clone(in)
		out[p[0]] = Replace(in[p[0]], p[1:], with)
		return out
	case []any:
		out := slices.Clone(in)
		i, _ := strconv.Atoi(p[0])
		out[i] = Replace(in[i], p[1:], with)
		return out
	}
	return v
}

// ReplaceIn is Replace for properties.
func ReplaceIn(properties map[string]any, p Path, with any) map[string]any {
	if out, ok := Replace(properties, p, with).(map[string]any); ok {
		return out
	}
	return properties
}

// Leaves rebuilds a value with every leaf replaced by what f says. Keys are visited in order.
func Leaves(v any, f func(leaf any) any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for _, k := range slices.Sorted(maps.Keys(v)) {
			out[k] = Leaves(v[k], f)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = Leaves(item, f)
		}
		return out
	}
	return f(v)
}

// Masked is a value with every leaf masked. null, which tells nothing, stays.
func Masked(v any) any {
	return Leaves(v, func(leaf any) any {
		if leaf == nil {
			return nil
		}
		return Mask
	})
}
