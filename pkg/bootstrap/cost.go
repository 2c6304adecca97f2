package bootstrap

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/slipway-cdk/slipway/pkg/prices"
)

// Part is one kind of resource that a template makes.
type Part struct {
	Type  string `json:"type"`
	Count int    `json:"count"`
	// Monthly is what they cost at rest, in US dollars a month, at the list prices of us-east-1.
	Monthly float64 `json:"monthlyUsd"`
}

// Parts lists what a template makes, the dearest first, then by name. Conditions are not looked at: it may be less.
func Parts(template []byte) ([]Part, error) {
	var t struct {
		Resources map[string]struct{ Type string }
	}
	if err := json.Unmarshal(template, &t); err != nil {
		return nil, fmt.Errorf("reading the template of the control plane: %w", err)
	}
	counts := map[string]int{}
	for _, r := range t.Resources {
		counts[r.Type]++
	}
	var parts []Part
	for name, n := range counts {
		parts = append(parts, Part{Type: name, Count: n, Monthly: float64(n) * prices.AtRest(name)})
	}
	slices.SortFunc(parts, func(a, b Part) int { return cmp.Or(cmp.Compare(b.Monthly, a.Monthly), cmp.Compare(a.Type, b.Type)) })
	return parts, nil
}

// Monthly is the sum of parts.
func Monthly(parts []Part) float64 {
	sum := 0.0
	for _, p := range parts {
		sum += p.Monthly
	}
	return sum
}
