package secret

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// leastShown is the length from which a value is masked inside of longer text. Shorter ones are only masked where
// they are the whole: "80" is in too many places to mean anything.
const leastShown = 4

// Redactor masks by value: what a service echoes or quotes. The zero value masks nothing.
type Redactor struct {
	whole map[string]string // value → what stands for it
	parts *strings.Replacer
}

// NewRedactor masks the leaves of values as "***", and the keys of named as what they map to.
func NewRedactor(values []any, named map[string]string) *Redactor {
	r := &Redactor{whole: map[string]string{}}
	for _, v := range values {
		Leaves(v, func(leaf any) any {
			if s, ok := scalarText(leaf); ok && s != "" {
				r.whole[s] = Mask
			}
			return leaf
		})
	}
	for v, shown := range named {
		if v != "" {
			r.whole[v] = shown
		}
	}
	// A value that holds another one goes first.
	var long []string
	for v := range r.whole {
		if len(v) >= leastShown {
			long = append(long, v)
		}
	}
	slices.SortFunc(long, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	var pairs []string
	for _, v := range long {
		pairs = append(pairs, v, r.whole[v])
		// Services quote what they were sent as JSON, with its escapes.
		if quoted := jsonText(v); quoted != v {
			pairs = append(pairs, quoted, r.whole[v])
		}
		if quoted := strings.Trim(strconv.Quote(v), `"`); quoted != v {
			pairs = append(pairs, quoted, r.whole[v])
		}
	}
	r.parts = strings.NewReplacer(pairs...)
	return r
}

func jsonText(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return s
	}
	return string(b[1 : len(b)-1])
}

// Empty reports whether there is nothing to mask.
func (r *Redactor) Empty() bool { return r == nil || len(r.whole) == 0 }

// Text masks a message.
func (r *Redactor) Text(s string) string {
	if r.Empty() {
		return s
	}
	if shown, ok := r.whole[s]; ok {
		return shown
	}
	return r.parts.Replace(s)
}

// Value masks every leaf of a JSON value that is, or holds, a value of at least four characters. Keys stay.
func (r *Redactor) Value(v any) any {
	if r.Empty() {
		return v
	}
	return Leaves(v, func(leaf any) any {
		switch leaf := leaf.(type) {
		case string:
			return r.parts.Replace(leaf)
		case json.Number:
			if shown, ok := r.whole[leaf.String()]; ok && len(leaf) >= leastShown {
				return shown
			}
		}
		return leaf
	})
}

// Object is Value for an object; nil stays nil.
func (r *Redactor) Object(m map[string]any) map[string]any {
	if m == nil || r.Empty() {
		return m
	}
	return r.Value(m).(map[string]any)
}

// Findable reports whether every leaf of a value is long enough to be masked by value. null is no secret.
func Findable(v any) bool {
	findable := true
	Leaves(v, func(leaf any) any {
		s, ok := scalarText(leaf)
		findable = findable && (leaf == nil || ok && len(s) >= leastShown)
		return leaf
	})
	return findable
}

// scalarText is the text of a string or a number. Booleans and null are no secrets.
func scalarText(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	}
	return "", false
}
