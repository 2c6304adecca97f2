package providertest

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/schema"
)

// missing says what of a desired value a live one does not have, "" when it has all. The live one may have more: what
// the service has filled in. Write-only parts are not looked for; scalars are compared by their text, as templates
// write numbers as strings.
func missing(t *schema.Type, path []string, want, live any) string {
	if t.IsWriteOnly(path) {
		return ""
	}
	at := strings.Join(path, "/")
	below := func(k string) []string { return append(path[:len(path):len(path)], k) }
	switch w := want.(type) {
	case map[string]any:
		l, ok := live.(map[string]any)
		if text, isText := live.(string); isText {
			ok = json.Unmarshal([]byte(text), &l) == nil
		}
		if !ok && !onlyWriteOnly(t, path, w) {
			return at + " is no object"
		}
		for k, v := range w {
			if diff := missing(t, below(k), v, l[k]); diff != "" {
				return diff
			}
		}
		return ""
	case []any:
		l, ok := live.([]any)
		if !ok || len(l) != len(w) {
			return fmt.Sprintf("%s is no list of %d", at, len(w))
		}
		for i := range w {
			if diff := missing(t, below(strconv.Itoa(i)), w[i], l[i]); diff != "" {
				return diff
			}
		}
		return ""
	}
	if fmt.Sprint(want) != fmt.Sprint(live) {
		return fmt.Sprintf("%s is %v, want %v", at, live, want)
	}
	return ""
}

func onlyWriteOnly(t *schema.Type, path []string, m map[string]any) bool {
	for k := range m {
		if !t.IsWriteOnly(append(path[:len(path):len(path)], k)) {
			return false
		}
	}
	return true
}

func clone(m map[string]any) map[string]any {
	if m == nil {
		return nil
	}
	return cloneValue(m).(map[string]any)
}

func cloneValue(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = cloneValue(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = cloneValue(e)
		}
		return out
	}
	return v
}

// with is a copy of properties in which one has another value.
func with(properties map[string]any, name string, value any) map[string]any {
	out := clone(properties)
	out[name] = value
	return out
}

// without is a copy of properties that lacks one.
func without(properties map[string]any, name string) map[string]any {
	out := clone(properties)
	delete(out, name)
	return out
}

func jsonOf(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return "not JSON: " + err.Error()
	}
	return string(b)
}
