package diff

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/intrinsic"
	"github.com/slipway-cdk/slipway/pkg/schema"
)

// identical compares two values literally. It needs no schema and settles most comparisons.
func identical(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for k, v := range a {
			if w, ok := b[k]; !ok || !identical(v, w) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !identical(a[i], b[i]) {
				return false
			}
		}
		return true
	case intrinsic.Unknown:
		return false
	case string, bool, json.Number, nil, float64, int, int64:
		switch b.(type) {
		case string, bool, json.Number, nil, float64, int, int64:
			return a == b
		}
	}
	return false
}

// equal compares two values as CloudFormation does: scalars by what the schema says they are, lists without
// their order where it has no meaning. The values stand at the path.
func (c *comparer) equal(path []string, a, b any) bool {
	if identical(a, b) {
		return true
	}
	if c.masked(path, a) {
		return c.matchesMask(a, b)
	}
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for k, v := range a {
			if w, ok := b[k]; !ok || !c.equal(join(path, k), v, w) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		inOrder := true
		for i := range a {
			if !c.equal(join(path, strconv.Itoa(i)), a[i], b[i]) {
				inOrder = false
				break
			}
		}
		if inOrder || !c.unordered(path, a, b) {
			return inOrder
		}
		restA, restB := c.unmatched(path, a, b)
		return len(restA) == 0 && len(restB) == 0
	}
	ta, okA := text(a)
	tb, okB := text(b)
	return okA && okB && c.sameScalar(path, a, b, ta, tb)
}

// sameScalar: 5 is "5" and true is "true", since a template can write either. Inside free JSON, whose reader
// may tell them apart, types count.
func (c *comparer) sameScalar(path []string, a, b any, ta, tb string) bool {
	p, free := c.property(path)
	if free {
		na, isA := a.(json.Number)
		nb, isB := b.(json.Number)
		return isA && isB && sameNumber(na.String(), nb.String())
	}
	if ta == tb {
		return true
	}
	return sameKind(p, a, b, ta, tb)
}

func sameKind(p *schema.Property, a, b any, ta, tb string) bool {
	if p == nil {
		// Nothing is known: a number stays the same number however it is written.
		_, numA := a.(json.Number)
		_, numB := b.(json.Number)
		return (numA || numB) && sameNumber(ta, tb) || isBool(a) != isBool(b) && strings.EqualFold(ta, tb)
	}
	switch p.Kind {
	case schema.KindInteger, schema.KindNumber:
		return sameNumber(strings.TrimSpace(ta), strings.TrimSpace(tb))
	case schema.KindBoolean:
		return strings.EqualFold(ta, tb)
	case schema.KindUnion:
		return slices.ContainsFunc(p.Alternatives, func(alternative *schema.Property) bool {
			return sameKind(alternative, a, b, ta, tb)
		})
	}
	return false
}

func isBool(v any) bool {
	_, ok := v.(bool)
	return ok
}

// sameNumber compares decimal notations: 5, 5.0, 0.5e1. Exactly, where the notation is short enough for that
// to be cheap.
func sameNumber(a, b string) bool {
	if len(a) < 40 && len(b) < 40 && !strings.ContainsAny(a+b, "eExX_/pP") {
		x, okX := new(big.Rat).SetString(a)
		y, okY := new(big.Rat).SetString(b)
		return okX && okY && x.Cmp(y) == 0
	}
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	return errX == nil && errY == nil && x == y
}

// text is a scalar as CloudFormation would write it.
func text(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	case bool:
		return strconv.FormatBool(v), true
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), true
	case int, int64:
		return fmt.Sprint(v), true
	}
	return "", false
}

// property is what the schema says of the value at a path; free when the value lies inside free JSON.
func (c *comparer) property(path []string) (p *schema.Property, free bool) {
	if c.t == nil {
		return nil, false
	}
	if p := c.t.At(path); p != nil {
		return p, p.Kind == schema.KindJSON
	}
	for n := len(path) - 1; n > 0; n-- {
		if p := c.t.At(path[:n]); p != nil {
			return nil, p.Kind == schema.KindJSON
		}
	}
	return nil, false
}

// unordered reports whether the order of a list has no meaning: the schema says so, or it holds tags.
func (c *comparer) unordered(path []string, a, b []any) bool {
	p, _ := c.property(path)
	if p != nil && p.Unordered {
		return true
	}
	if p != nil && p.Kind == schema.KindUnion {
		for _, alternative := range p.Alternatives {
			if alternative.Kind == schema.KindList && alternative.Unordered {
				return true
			}
		}
	}
	if len(path) != 1 || c.t == nil || path[0] != c.t.TagProperty && path[0] != "Tags" {
		return false
	}
	return tags(a) && tags(b)
}

func tags(list []any) bool {
	for _, item := range list {
		m, ok := item.(map[string]any)
		if !ok {
			return false
		}
		if _, ok := m["Key"]; !ok {
			return false
		}
	}
	return true
}

// unmatched returns the positions in two lists that are left over when equal items are paired off.
func (c *comparer) unmatched(path []string, a, b []any) (restA, restB []int) {
	used := make([]bool, len(b))
	at := join(path, "*")
	for i := range a {
		found := false
		for j := range b {
			if !used[j] && c.equal(at, a[i], b[j]) {
				used[j], found = true, true
				break
			}
		}
		if !found {
			restA = append(restA, i)
		}
	}
	for j := range b {
		if !used[j] {
			restB = append(restB, j)
		}
	}
	return restA, restB
}

// join makes a new path: slices of paths are kept, so they must not share memory.
func join(path []string, element string) []string {
	return append(path[:len(path):len(path)], element)
}
