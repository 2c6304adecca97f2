package assembly

import (
	"strings"

	"github.com/slipway-cdk/slipway/pkg/diag"
)

// order sorts stacks so that each comes after those it depends on. Among stacks that are free to go, the one
// that stood first stays first, so the result is stable. O(stacks × (stacks + edges)); apps have tens of stacks.
func order(stacks []*Stack) ([]*Stack, error) {
	placed := make(map[*Stack]bool, len(stacks))
	out := make([]*Stack, 0, len(stacks))
	for len(out) < len(stacks) {
		var next *Stack
		for _, s := range stacks {
			if !placed[s] && allPlaced(s.deps, placed) {
				next = s
				break
			}
		}
		if next == nil {
			return nil, circle(stacks, placed)
		}
		placed[next] = true
		out = append(out, next)
	}
	return out, nil
}

func allPlaced(stacks []*Stack, placed map[*Stack]bool) bool {
	for _, s := range stacks {
		if !placed[s] {
			return false
		}
	}
	return true
}

// circle names one cycle among the stacks that could not be placed. From any of them, following a
// dependency that is not placed must come back to a stack already met.
func circle(stacks []*Stack, placed map[*Stack]bool) error {
	var at *Stack
	for _, s := range stacks {
		if !placed[s] {
			at = s
			break
		}
	}
	seen := map[*Stack]int{}
	var path []string
	for {
		if start, ok := seen[at]; ok {
			path = append(path[start:], at.DisplayName)
			break
		}
		seen[at] = len(path)
		path = append(path, at.DisplayName)
		for _, d := range at.deps {
			if !placed[d] {
				at = d
				break
			}
		}
	}
	return diag.Diagnostics{{
		Severity: diag.Error,
		Summary:  "stacks depend on each other in a circle",
		Detail:   strings.Join(path, " → "),
		Next:     "Move what they share into a stack of its own.",
	}}
}
