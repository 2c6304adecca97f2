package schema

import (
	"cmp"
	"slices"
	"strings"

	"github.com/agext/levenshtein"
)

// Suggest names up to three resource types that name may have been meant to be, the likeliest first. Empty when
// nothing is close.
func Suggest(name string) []string { return embedded().Suggest(name) }

// Suggest is the function Suggest on this index.
func (x *Index) Suggest(name string) []string { return closest(name, x.Names(), 3) }

// SuggestProperty names the property of def that name may have been meant to be, "" when nothing is close. A nil
// def stands for the type's own properties.
func (t *Type) SuggestProperty(def *Definition, name string) string {
	if def == nil {
		def = &t.Definition
	}
	names := make([]string, 0, len(def.Properties))
	for property := range def.Properties {
		names = append(names, property)
	}
	if found := closest(name, names, 1); len(found) > 0 {
		return found[0]
	}
	return ""
}

// SuggestAttribute names the attribute that name may have been meant to be, "" when nothing is close.
func (t *Type) SuggestAttribute(name string) string {
	names := make([]string, 0, len(t.Attributes))
	for attribute := range t.Attributes {
		names = append(names, attribute)
	}
	if found := closest(name, names, 1); len(found) > 0 {
		return found[0]
	}
	return ""
}

// closest ranks candidates by edit distance, ignoring case, and keeps those within a fifth of the length (at
// least two edits for names longer than four letters).
func closest(name string, candidates []string, most int) []string {
	type ranked struct {
		name     string
		distance int
	}
	lower := strings.ToLower(name)
	limit := len(lower) / 5
	if len(lower) > 4 {
		limit = max(limit, 2)
	} else {
		limit = max(limit, 1)
	}
	// No MaxCost: the library's banded search then returns distances that are too small.
	var found []ranked
	for _, candidate := range candidates {
		if difference := len(candidate) - len(lower); difference > limit || -difference > limit {
			continue
		}
		if d := levenshtein.Distance(lower, strings.ToLower(candidate), nil); d <= limit {
			found = append(found, ranked{candidate, d})
		}
	}
	slices.SortFunc(found, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.name, b.name))
	})
	var out []string
	for _, r := range found[:min(most, len(found))] {
		out = append(out, r.name)
	}
	return out
}
