package diff

import (
	"strings"

	"github.com/slipway-cdk/slipway/pkg/intrinsic"
	"github.com/slipway-cdk/slipway/pkg/template"
)

// Mask stands for a value that is never shown or stored.
const Mask = "***"

// dynamicReference starts a reference to a secret or parameter that only the deploy resolves.
const dynamicReference = "{{resolve:"

// secretPlace is a place inside a resource's properties whose expression refers to a NoEcho parameter.
type secretPlace struct {
	path    []string
	changed bool // the parameter has another value than the record was made with
}

// secretPlaces finds them. Positions in lists are wildcards: values that vanish move the items behind them.
func secretPlaces(in *Input, refs []template.Reference, under string) []secretPlace {
	var places []secretPlace
	for _, ref := range refs {
		p := in.Template.Parameters[ref.Target]
		if p == nil || !p.NoEcho {
			continue
		}
		path, inside := strings.CutPrefix(place(ref.Path), under)
		if !inside {
			continue
		}
		var segments []string
		if path = strings.TrimPrefix(path, "."); path != "" {
			segments = strings.Split(path, ".")
		}
		places = append(places, secretPlace{path: segments, changed: in.ChangedParameters[ref.Target]})
	}
	return places
}

func hasNoEcho(t *template.Template) bool {
	for _, p := range t.Parameters {
		if p.NoEcho {
			return true
		}
	}
	return false
}

// covers reports whether the place is at, below or above the path.
func (s secretPlace) covers(path []string) bool {
	if len(s.path) == 0 {
		return true
	}
	// Keys may hold dots, which the reference's path does not tell from its own: compare them cut alike.
	at := strings.Split(dotted(path), ".")
	for i := range min(len(at), len(s.path)) {
		if at[i] != s.path[i] && !position(at[i]) && !position(s.path[i]) {
			return false
		}
	}
	return true
}

func position(segment string) bool {
	return segment == "*" || segment != "" && strings.Trim(segment, "0123456789") == ""
}

func (c *comparer) secret(path []string) bool {
	for _, s := range c.secrets {
		if s.covers(path) {
			return true
		}
	}
	return false
}

// masked reports whether a recorded value is a masked one, of a NoEcho parameter that has kept its value.
func (c *comparer) masked(path []string, recorded any) bool {
	s, ok := recorded.(string)
	if !ok || !strings.Contains(s, Mask) {
		return false
	}
	found := false
	for _, place := range c.secrets {
		if place.covers(path) {
			if place.changed {
				return false
			}
			found = true
		}
	}
	return found
}

// matchesMask reports whether a value can be what was masked: the text around the masks is there, in order.
func (c *comparer) matchesMask(recorded, desired any) bool {
	pattern := recorded.(string)
	if pattern == Mask {
		_, unknown := desired.(intrinsic.Unknown)
		return !unknown
	}
	s, ok := text(desired)
	if !ok {
		return false
	}
	parts := strings.Split(pattern, Mask)
	if !strings.HasPrefix(s, parts[0]) {
		return false
	}
	s = s[len(parts[0]):]
	last := parts[len(parts)-1]
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(s, part)
		if i < 0 {
			return false
		}
		s = s[i+len(part):]
	}
	return strings.HasSuffix(s, last)
}

// resolvedBefore reports whether a recorded text may be what the desired one resolves to: cdkd records the
// value of a parameter that {{resolve:ssm:…}} names, not the expression (reference §7.7). Nothing has to
// have changed then, so it is no reason to replace a resource.
func resolvedBefore(recorded, desired any) bool {
	was, okWas := recorded.(string)
	is, okIs := desired.(string)
	if !okWas || !okIs || strings.Contains(was, dynamicReference) {
		return false
	}
	const ssm = dynamicReference + "ssm:"
	var pattern strings.Builder
	for {
		before, rest, found := strings.Cut(is, ssm)
		pattern.WriteString(before)
		if !found {
			break
		}
		_, after, closed := strings.Cut(rest, "}}")
		if !closed {
			return false
		}
		pattern.WriteString(Mask)
		is = after
	}
	c := &comparer{}
	return strings.Contains(pattern.String(), Mask) && c.matchesMask(pattern.String(), was)
}

// Redact prepares a value for display: what is not known yet becomes text that names what it waits for, and
// a secret becomes "***". Dynamic references are expressions, not secrets, and stay.
func Redact(v any, secret bool) any {
	if secret {
		if v == nil {
			return nil
		}
		return Mask
	}
	switch v := v.(type) {
	case intrinsic.Unknown:
		return "(known after deploy: " + strings.Join(v.Refs, ", ") + ")"
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, member := range v {
			out[k] = Redact(member, false)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = Redact(item, false)
		}
		return out
	}
	return v
}

// hasDynamicReference reports whether a value holds a dynamic reference anywhere.
func hasDynamicReference(v any) bool {
	switch v := v.(type) {
	case string:
		return strings.Contains(v, dynamicReference)
	case map[string]any:
		for _, member := range v {
			if hasDynamicReference(member) {
				return true
			}
		}
	case []any:
		for _, item := range v {
			if hasDynamicReference(item) {
				return true
			}
		}
	}
	return false
}
