package assembly

import (
	"fmt"
	"sort"
	"strings"

	"github.com/agext/levenshtein"
	"github.com/bmatcuk/doublestar/v4"

	"github.com/slipway-cdk/slipway/pkg/diag"
)

// SelectOptions say how Select chooses.
type SelectOptions struct {
	// All takes every stack; patterns must then be empty.
	All bool
	// Exclusively takes what the patterns name and nothing else.
	Exclusively bool
	// Dependents adds, instead of what the chosen stacks depend on, the stacks that depend on them. A destroy
	// needs this: an export in use can't be deleted.
	Dependents bool
}

// Select chooses stacks by physical name, construct path ("Prod/Web") or artifact id, or by a glob over any
// of these ("Prod/*", "**/Web"). Without a pattern the only stack is meant. The result is in the order of
// asm.Stacks; added are those of it that no pattern named, present because of a dependency.
//
// Errors are diag.Diagnostics: no stack at all, several stacks and no pattern, a pattern that matches
// nothing (with the nearest name).
func Select(asm *Assembly, patterns []string, opts SelectOptions) (selected, added []*Stack, err error) {
	if len(asm.Stacks) == 0 {
		return nil, nil, diag.Diagnostics{{
			Severity: diag.Error,
			Summary:  "the app has no stacks",
			Detail:   "the cloud assembly in " + asm.Dir + " holds none",
			Next:     "Define a stack in the app, and check the context that decides about it.",
		}}
	}
	named := map[*Stack]bool{}
	switch {
	case opts.All && len(patterns) > 0:
		return nil, nil, diag.Errorf("stacks were named together with --all", strings.Join(patterns, ", "))
	case opts.All:
		for _, s := range asm.Stacks {
			named[s] = true
		}
	case len(patterns) == 0:
		if len(asm.Stacks) > 1 {
			return nil, nil, diag.Diagnostics{{
				Severity: diag.Error,
				Summary:  "the app has several stacks, and none was named",
				Detail:   listing(asm),
				Next:     "Name one or more of them, or give --all.",
			}}
		}
		named[asm.Stacks[0]] = true
	default:
		var ds diag.Diagnostics
		for _, p := range patterns {
			found, err := match(asm, p)
			if err != nil {
				ds = append(ds, diag.From(err)...)
			}
			for _, s := range found {
				named[s] = true
			}
		}
		if err := ds.Err(); err != nil {
			return nil, nil, err
		}
	}

	chosen := map[*Stack]bool{}
	for s := range named {
		chosen[s] = true
	}
	if !opts.Exclusively {
		next := dependencies(asm)
		if opts.Dependents {
			next = reversed(asm, next)
		}
		for s := range named {
			spread(s, next, chosen)
		}
	}
	for _, s := range asm.Stacks {
		if chosen[s] {
			selected = append(selected, s)
			if !named[s] {
				added = append(added, s)
			}
		}
	}
	return selected, added, nil
}

// match returns the stacks that one pattern means. A literal name is tried before a glob, so that a stack
// whose name holds a glob character can be named.
func match(asm *Assembly, pattern string) ([]*Stack, error) {
	var found []*Stack
	for _, s := range asm.Stacks {
		if pattern == s.Name || pattern == s.DisplayName || pattern == s.ID {
			found = append(found, s)
		}
	}
	if len(found) > 0 {
		return found, nil
	}
	if !doublestar.ValidatePattern(pattern) {
		return nil, diag.Diagnostics{{
			Severity: diag.Error,
			Summary:  fmt.Sprintf("%q is not a valid pattern", pattern),
			Detail:   "a bracket or brace is not closed",
			Next:     "The app has " + listing(asm) + ".",
		}}
	}
	for _, s := range asm.Stacks {
		for _, name := range []string{s.Name, s.DisplayName, s.ID} {
			if ok, _ := doublestar.Match(pattern, name); ok {
				found = append(found, s)
				break
			}
		}
	}
	if len(found) > 0 {
		return found, nil
	}
	d := diag.Diagnostic{
		Severity: diag.Error,
		Summary:  fmt.Sprintf("no stack matches %q", pattern),
		Detail:   "the app has " + listing(asm),
		Next:     "`slipway list` shows the stacks.",
	}
	if near := nearest(asm, pattern); near != "" {
		d.Next = fmt.Sprintf("Did you mean %q?", near)
	}
	return nil, diag.Diagnostics{d}
}

// nearest returns the name or path that is closest to what was typed, "" when none is close.
func nearest(asm *Assembly, typed string) string {
	type candidate struct {
		name  string
		score float64
	}
	var list []candidate
	for _, s := range asm.Stacks {
		for _, name := range []string{s.Name, s.DisplayName} {
			list = append(list, candidate{name, levenshtein.Match(strings.ToLower(typed), strings.ToLower(name), nil)})
		}
	}
	sort.SliceStable(list, func(i, j int) bool { return list[i].score > list[j].score })
	if list[0].score < 0.6 {
		return ""
	}
	return list[0].name
}

// listing names the stacks as a user would type them: by name, with the path where it differs.
func listing(asm *Assembly) string {
	names := make([]string, 0, len(asm.Stacks))
	for _, s := range asm.Stacks {
		if s.DisplayName != s.Name {
			names = append(names, s.Name+" ("+s.DisplayName+")")
		} else {
			names = append(names, s.Name)
		}
	}
	return strings.Join(names, ", ")
}

// dependencies gives the direct dependencies of each stack: those that Read found, or, for an assembly put
// together otherwise, those that DependsOn names.
func dependencies(asm *Assembly) map[*Stack][]*Stack {
	byName := map[string][]*Stack{}
	for _, s := range asm.Stacks {
		byName[s.Name] = append(byName[s.Name], s)
	}
	out := make(map[*Stack][]*Stack, len(asm.Stacks))
	for _, s := range asm.Stacks {
		if s.deps != nil {
			out[s] = s.deps
			continue
		}
		for _, name := range s.DependsOn {
			out[s] = append(out[s], byName[name]...)
		}
	}
	return out
}

func reversed(asm *Assembly, deps map[*Stack][]*Stack) map[*Stack][]*Stack {
	out := make(map[*Stack][]*Stack, len(deps))
	for _, s := range asm.Stacks {
		for _, d := range deps[s] {
			out[d] = append(out[d], s)
		}
	}
	return out
}

// spread adds to chosen everything that can be reached from s.
func spread(s *Stack, next map[*Stack][]*Stack, chosen map[*Stack]bool) {
	for _, n := range next[s] {
		if !chosen[n] {
			chosen[n] = true
			spread(n, next, chosen)
		}
	}
}
