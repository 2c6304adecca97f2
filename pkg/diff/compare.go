package diff

import (
	"slices"
	"strconv"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/intrinsic"
	"github.com/slipway-cdk/slipway/pkg/schema"
)

// leaf is one difference between recorded and desired properties.
type leaf struct {
	path         []string
	old, new     any
	hadOld, gone bool // there was an old value; there is no new one
}

// comparer compares the properties of one resource.
type comparer struct {
	t *schema.Type // nil when the type is not known
	// secrets are the places whose expressions refer to NoEcho parameters.
	secrets []secretPlace
	leaves  []leaf
}

// properties compares key by key, sorted: what the record holds is exactly what was sent, so a key on either
// side alone is a difference, at every level.
func (c *comparer) properties(old, desired map[string]any, ignored func(key string) bool) []leaf {
	c.leaves = nil
	for _, key := range unionKeys(old, desired) {
		if ignored != nil && ignored(key) {
			continue
		}
		c.member([]string{key}, old, desired, key)
	}
	return c.leaves
}

func unionKeys(a, b map[string]any) []string {
	keys := make([]string, 0, len(a))
	for k := range a {
		keys = append(keys, k)
	}
	for k := range b {
		if _, both := a[k]; !both {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}

func (c *comparer) member(path []string, old, desired map[string]any, key string) {
	was, had := old[key]
	is, has := desired[key]
	switch {
	case had && has:
		c.value(path, was, is)
	case had:
		c.leaves = append(c.leaves, leaf{path: path, old: was, hadOld: true, gone: true})
	default:
		c.leaves = append(c.leaves, leaf{path: path, new: is})
	}
}

// value finds the differences between two values at a path.
func (c *comparer) value(path []string, old, desired any) {
	if c.equal(path, old, desired) {
		return
	}
	switch was := old.(type) {
	case map[string]any:
		if is, ok := desired.(map[string]any); ok {
			for _, key := range unionKeys(was, is) {
				c.member(join(path, key), was, is, key)
			}
			return
		}
	case []any:
		if is, ok := desired.([]any); ok {
			if c.unordered(path, was, is) {
				c.set(path, was, is)
			} else {
				c.sequence(path, was, is)
			}
			return
		}
	}
	c.leaves = append(c.leaves, leaf{path: path, old: old, new: desired, hadOld: true})
}

// sequence compares ordered lists: without their common start and end, position by position.
func (c *comparer) sequence(path []string, old, desired []any) {
	start := 0
	for start < len(old) && start < len(desired) && c.equal(join(path, strconv.Itoa(start)), old[start], desired[start]) {
		start++
	}
	end := 0
	for end < len(old)-start && end < len(desired)-start &&
		c.equal(join(path, strconv.Itoa(len(desired)-1-end)), old[len(old)-1-end], desired[len(desired)-1-end]) {
		end++
	}
	var was, is []int
	for i := start; i < len(old)-end; i++ {
		was = append(was, i)
	}
	for i := start; i < len(desired)-end; i++ {
		is = append(is, i)
	}
	c.pairs(path, old, desired, was, is)
}

// set compares lists whose order has no meaning: equal items are paired off, then those of one identity.
func (c *comparer) set(path []string, old, desired []any) {
	was, is := c.unmatched(path, old, desired)
	var restWas []int
	for _, i := range was {
		j := slices.IndexFunc(is, func(j int) bool { return sameIdentity(old[i], desired[j]) })
		if j < 0 {
			restWas = append(restWas, i)
			continue
		}
		c.value(join(path, strconv.Itoa(is[j])), old[i], desired[is[j]])
		is = slices.Delete(is, j, j+1)
	}
	c.pairs(path, old, desired, restWas, is)
}

// pairs compares the items at the positions; the longer list's rest is added or removed.
func (c *comparer) pairs(path []string, old, desired []any, was, is []int) {
	for n := range max(len(was), len(is)) {
		switch {
		case n >= len(is):
			c.leaves = append(c.leaves, leaf{path: join(path, strconv.Itoa(was[n])), old: old[was[n]], hadOld: true, gone: true})
		case n >= len(was):
			c.leaves = append(c.leaves, leaf{path: join(path, strconv.Itoa(is[n])), new: desired[is[n]]})
		default:
			c.value(join(path, strconv.Itoa(is[n])), old[was[n]], desired[is[n]])
		}
	}
}

// sameIdentity reports whether two items are versions of one thing, by the member that usually names it.
func sameIdentity(a, b any) bool {
	m, okA := a.(map[string]any)
	n, okB := b.(map[string]any)
	if !okA || !okB {
		return false
	}
	for _, key := range []string{"Key", "Name", "Id", "ID", "SID", "IndexName", "AttributeName", "Device", "DeviceName", "RuleName"} {
		x, hasX := m[key].(string)
		y, hasY := n[key].(string)
		if hasX || hasY {
			return hasX && hasY && x == y
		}
	}
	return false
}

// verdict says what the difference does to the resource: the hardest verdict of any value in it. A value
// that is not known yet may or may not change the members of an object, so those count as maybe.
func (c *comparer) verdict(l leaf) schema.Replacement {
	if c.t == nil {
		return schema.ReplaceNever
	}
	verdict := c.t.Replacement(l.path)
	if verdict == schema.ReplaceAlways {
		return verdict
	}
	_, unknown := l.new.(intrinsic.Unknown)
	eachLeaf(l.path, l.old, func(path []string) {
		found := c.t.Replacement(path)
		if unknown && found == schema.ReplaceAlways {
			found = schema.ReplaceMaybe
		}
		verdict = harder(verdict, found)
	})
	eachLeaf(l.path, l.new, func(path []string) { verdict = harder(verdict, c.t.Replacement(path)) })
	return verdict
}

func harder(a, b schema.Replacement) schema.Replacement {
	switch {
	case a == schema.ReplaceAlways || b == schema.ReplaceAlways:
		return schema.ReplaceAlways
	case a == schema.ReplaceMaybe || b == schema.ReplaceMaybe:
		return schema.ReplaceMaybe
	}
	return schema.ReplaceNever
}

func eachLeaf(path []string, v any, visit func(path []string)) {
	switch v := v.(type) {
	case map[string]any:
		for k, member := range v {
			eachLeaf(join(path, k), member, visit)
		}
	case []any:
		for i, item := range v {
			eachLeaf(join(path, strconv.Itoa(i)), item, visit)
		}
	default:
		visit(path)
	}
}

func dotted(path []string) string { return strings.Join(path, ".") }
