package intrinsic

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/template"
)

// loop is one Fn::ForEach::Name: [identifier, collection, body]
// (https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/intrinsic-function-reference-foreach.html).
type loop struct {
	identifier string
	items      []string
	body       map[string]any
}

var identifierName = regexp.MustCompile(`^[A-Za-z0-9]+$`)

// members expands the loops among the members of an object that stands at path. The order is that given, with what a
// loop produces in its place: by item of the collection, then by key.
func (x *expansion) members(m map[string]any, order []string, path string, b bindings) (expanded, error) {
	out := expanded{members: make(map[string]any, len(m))}
	for _, key := range order {
		here := child(path, key)
		if isLoop(key) {
			if err := x.loop(key, m[key], here, b, &out); err != nil {
				return out, err
			}
			continue
		}
		if _, double := out.members[key]; double {
			return out, x.collision(here, key)
		}
		out.members[key] = m[key]
		out.order = append(out.order, key)
	}
	return out, nil
}

func (x *expansion) collision(path, key string) error {
	return x.stop(path, "a loop produces "+key+" twice", "or it stands in the template as well",
		"Make the keys different: each holds the loop's identifier, and collections hold each item once.")
}

func (x *expansion) misplaced(path string) error {
	return x.stop(path, "Fn::ForEach can't be used here", "loops stand in Resources, Outputs, Conditions and in properties", "")
}

// loop expands one loop into an object, and the loops inside of its body with it.
func (x *expansion) loop(key string, v any, path string, b bindings, into *expanded) error {
	if err := x.named(key, path, b); err != nil {
		return err
	}
	l, err := x.readLoop(v, path, b)
	if err != nil {
		return err
	}
	inner := b.with(l.identifier)
	for _, value := range l.items {
		inner.values[l.identifier] = value
		if err := x.grow(len(value), path); err != nil {
			return err
		}
		for _, k := range sortedKeys(l.body) {
			here := child(path, k)
			if isLoop(k) {
				if err := x.loop(k, l.body[k], here, inner, into); err != nil {
					return err
				}
				continue
			}
			if !mentions(k, l.identifier) {
				return x.stop(here, "the loop's key does not hold its identifier", "${"+l.identifier+"} or &{"+l.identifier+"} makes the keys different", "")
			}
			name := inner.text(k)
			if _, double := into.members[name]; double {
				return x.collision(here, name)
			}
			body, err := x.substitute(l.body[k], here, inner)
			if err != nil {
				return err
			}
			into.members[name] = body
			into.order = append(into.order, name)
			if err := x.grow(len(name), here); err != nil {
				return err
			}
		}
	}
	return nil
}

// named checks the name of a loop: it is unique in the template, and no resource's.
func (x *expansion) named(key, path string, b bindings) error {
	name := strings.TrimPrefix(key, template.LoopPrefix)
	resources, _ := x.source.Document["Resources"].(map[string]any)
	_, isResource := resources[name]
	switch where := x.loops[name]; {
	case !identifierName.MatchString(name):
		return x.stop(path, "the loop's name is not alphanumeric", "letters A-Z, a-z and digits are allowed", "")
	case x.source.Parameters[name] != nil || isResource:
		return x.stop(path, "the loop's name is also that of a parameter or a resource", "", "Rename the loop.")
	case where != "" && where != path:
		return x.stop(path, "the loop's name is not unique in the template", "another loop of that name stands at "+where, "Rename one of the two.")
	case len(b.values) >= MaxLoopDepth:
		return x.stop(path, fmt.Sprintf("loops nest deeper than %d levels", MaxLoopDepth), "", "")
	}
	x.loops[name] = path
	return nil
}

// readLoop checks the three parts of a loop and evaluates the collection.
func (x *expansion) readLoop(v any, path string, b bindings) (loop, error) {
	var l loop
	list, ok := v.([]any)
	if !ok || len(list) != 3 {
		return l, x.stop(path, "Fn::ForEach takes an identifier, a collection and an object", "found "+kindOf(v), "")
	}
	l.identifier, ok = list[0].(string)
	switch {
	case !ok || !identifierName.MatchString(l.identifier):
		return l, x.stop(item(path, 0), "the loop's identifier is not an alphanumeric name", "found "+kindOf(list[0]), "")
	case x.source.Parameters[l.identifier] != nil:
		return l, x.stop(item(path, 0), "the loop's identifier is also the name of a parameter", "", "Rename the identifier "+l.identifier+".")
	case b.has(l.identifier):
		return l, x.stop(item(path, 0), "the loop's identifier is that of a loop around it", "", "Rename one of the two: "+l.identifier+".")
	}
	if l.body, ok = list[2].(map[string]any); !ok || len(l.body) == 0 {
		return l, x.stop(item(path, 2), "the loop's body is not an object with a key for each item", "found "+kindOf(list[2]), "")
	}
	var err error
	l.items, err = x.collection(list[1], item(path, 1), b)
	return l, err
}

// collection evaluates what a loop runs over: a list, or a function that gives one.
func (x *expansion) collection(v any, path string, b bindings) ([]string, error) {
	v, err := x.substitute(v, path, b)
	if err != nil {
		return nil, err
	}
	v, ok := x.evaluate(v, path)
	if !ok {
		return nil, errStopped
	}
	list, ok := v.([]any)
	if !ok {
		return nil, x.stop(path, "the loop's collection is not a list", "found "+kindOf(v), "")
	}
	items := make([]string, len(list))
	for i, e := range list {
		s, ok := text(e)
		switch {
		case !ok:
			return nil, x.stop(item(path, i), "an item of the loop's collection is not a string", "found "+kindOf(e), "")
		case strings.Contains(s, dynamicOpen):
			return nil, x.stop(item(path, i), "an item of the loop's collection is a dynamic reference", "it is not read before the resources are written", "")
		}
		items[i] = s
	}
	return items, x.grow(8*len(items), path)
}

// propertyLoops expands the loops inside a value that stands outside of any other loop: loops may stand in the
// properties of a resource.
func (x *expansion) propertyLoops(v any, path string, b bindings) (any, error) {
	switch v := v.(type) {
	case map[string]any:
		for _, k := range sortedKeys(v) {
			if isLoop(k) && !b.properties {
				return nil, x.misplaced(child(path, k))
			}
		}
		out, err := x.members(v, sortedKeys(v), path, b)
		if err != nil {
			return nil, err
		}
		for k, e := range out.members {
			if _, stood := v[k]; !stood {
				continue // a loop has produced it
			}
			if out.members[k], err = x.propertyLoops(e, child(path, k), b.below(k)); err != nil {
				return nil, err
			}
		}
		return out.members, nil
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			var err error
			if out[i], err = x.propertyLoops(e, item(path, i), b); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return v, nil
}
