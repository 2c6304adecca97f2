package doctor

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// differing names the properties whose live value is another one than the recorded. Only plain values that both have
// are compared: services return lists in their own order and objects with defaults in them, and a false alarm makes
// nobody look again. Values are not told.
func differing(recorded, live map[string]any) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(recorded)) {
		want, plain := scalar(recorded[name])
		got, same := scalar(live[name])
		if plain && same && want != "***" && want != got {
			names = append(names, name)
		}
	}
	return names
}

// scalar renders a text, number or truth value: services return numbers and truth values as texts at times.
func scalar(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case bool, json.Number, float64, int, int64:
		return fmt.Sprint(v), true
	}
	return "", false
}
