package asl

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"time"
)

// object reads the members of one JSON object of a definition, reports each that is wrong, and in the end each
// that nobody has asked for.
type object struct {
	l       *loader
	state   string // of which state the problems are
	what    string // what the object is, "" for the state itself
	members map[string]any
	read    map[string]bool
}

func (l *loader) object(state, what string, v any) *object {
	members, ok := v.(map[string]any)
	if !ok {
		l.refuse(state, "%s must be an object", cmp.Or(what, "it"))
	}
	return &object{l: l, state: state, what: what, members: members, read: map[string]bool{}}
}

// field is the name of a member as problems show it.
func (o *object) field(name string) string {
	if o.what == "" || o.what == "definition" {
		return name
	}
	return o.what + "." + name
}

func (o *object) has(name string) bool { _, ok := o.members[name]; return ok }

func (o *object) get(name string) (any, bool) {
	o.read[name] = true
	v, ok := o.members[name]
	return v, ok
}

// done reports the members that were not read.
func (o *object) done() {
	for _, name := range slices.Sorted(maps.Keys(o.members)) {
		if !o.read[name] {
			o.l.refuse(o.state, "field %s is not supported", o.field(name))
		}
	}
}

func (o *object) text(name string) string {
	v, ok := o.get(name)
	if !ok {
		return ""
	}
	s, ok := v.(string)
	if !ok {
		o.l.refuse(o.state, "%s must be a string", o.field(name))
	}
	return s
}

func (o *object) needText(name string) string {
	s := o.text(name)
	if s == "" {
		if v, ok := o.members[name]; !ok || v == "" {
			o.l.refuse(o.state, "%s is missing", o.field(name))
		}
	}
	return s
}

func (o *object) needObject(name string) map[string]any {
	v, ok := o.get(name)
	if !ok {
		o.l.refuse(o.state, "%s is missing", o.field(name))
		return nil
	}
	m, ok := v.(map[string]any)
	if !ok {
		o.l.refuse(o.state, "%s must be an object", o.field(name))
	}
	return m
}

// list returns the objects of an array that, where it is present, must not be empty.
func (o *object) list(name string) []*object {
	v, ok := o.get(name)
	if !ok {
		return nil
	}
	items, ok := v.([]any)
	if !ok || len(items) == 0 {
		o.l.refuse(o.state, "%s must be an array that is not empty", o.field(name))
		return nil
	}
	all := make([]*object, len(items))
	for i, item := range items {
		all[i] = o.l.object(o.state, o.field(name), item)
	}
	return all
}

func (o *object) texts(name string) []string {
	v, _ := o.get(name)
	items, _ := v.([]any)
	var all []string
	for _, item := range items {
		if s, ok := item.(string); ok {
			all = append(all, s)
		}
	}
	if len(all) == 0 || len(all) != len(items) {
		o.l.refuse(o.state, "%s must be an array of strings that is not empty", o.field(name))
		return nil
	}
	return all
}

// integer reads a whole number between least and most.
func (o *object) integer(name string, least, most int64) (int64, bool) {
	v, ok := o.get(name)
	if !ok {
		return 0, false
	}
	n, _ := v.(json.Number)
	i, err := n.Int64()
	if err != nil || i < least || i > most {
		o.l.refuse(o.state, "%s must be a whole number from %d to %d", o.field(name), least, most)
		return 0, false
	}
	return i, true
}

func (o *object) seconds(name string, least, most int64) time.Duration {
	n, _ := o.integer(name, least, most)
	return time.Duration(n) * time.Second
}

// path reads InputPath, OutputPath and the like: absent is $, null is nil.
func (o *object) path(name string) *path {
	v, ok := o.get(name)
	if !ok {
		return &path{text: "$"}
	}
	if v == nil {
		return nil
	}
	s, ok := v.(string)
	if !ok {
		o.l.refuse(o.state, "%s must be a path or null", o.field(name))
		return nil
	}
	p, _ := o.l.path(o.state, o.field(name), s, true)
	return &p
}

// resultPath reads ResultPath: a reference path into the state's data, of member names only.
func (o *object) resultPath() *path {
	const name = "ResultPath"
	v, ok := o.get(name)
	if !ok {
		return &path{text: "$"}
	}
	if v == nil {
		return nil
	}
	s, ok := v.(string)
	if !ok {
		o.l.refuse(o.state, "%s must be a path or null", o.field(name))
		return nil
	}
	p, ok := o.l.path(o.state, o.field(name), s, false)
	if ok {
		for _, step := range p.steps {
			if step.isIndex {
				o.l.refuse(o.state, "%s: path %q writes into an array, which is not supported", o.field(name), s)
				break
			}
		}
	}
	return &p
}

// template reads a payload template, which must be an object.
func (o *object) template(name string) *template {
	v, ok := o.get(name)
	if !ok {
		return nil
	}
	if _, ok := v.(map[string]any); !ok {
		o.l.refuse(o.state, "%s must be an object", o.field(name))
		return nil
	}
	t, err := parseTemplate(v)
	if err != nil {
		o.l.refuse(o.state, "%s: %v", o.field(name), err)
		return nil
	}
	for _, p := range t.paths {
		o.l.contextPath(o.state, o.field(name), p)
	}
	return t
}
