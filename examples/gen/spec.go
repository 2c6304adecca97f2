package gen

import (
	"slices"
	"strings"
)

// entry is an assembly of the catalogue.
type entry struct {
	name     string
	about    string
	versions int
	build    func(a *app)
}

func (e entry) write(dir string, version int) (Spec, error) {
	a := &app{version: version}
	e.build(a)
	if err := a.write(dir, dir); err != nil {
		return Spec{}, err
	}
	s := Spec{Name: e.name, About: e.about, Dir: dir, Versions: e.versions}
	used := map[string]bool{}
	a.describe(&s, used)
	s.Intrinsics = sortedKeys(used)
	slices.Sort(s.LeavesBehind)
	return s, nil
}

// describe adds what a holds to the description.
func (a *app) describe(s *Spec, used map[string]bool) {
	for _, st := range a.stacks {
		s.Stacks++
		for _, r := range st.section("Resources") {
			s.Resources++
			condition, _ := r.(object)["Condition"].(string)
			if !st.inactive[condition] {
				s.Live++
			}
		}
		s.LeavesBehind = append(s.LeavesBehind, st.leaves...)
		intrinsics(st.template, used)
	}
	for _, nested := range a.stages {
		nested.app.describe(s, used)
	}
}

// intrinsics collects the functions in a value.
func intrinsics(v any, used map[string]bool) {
	switch v := v.(type) {
	case object:
		for k, e := range v {
			if strings.HasPrefix(k, "Fn::") || k == "Ref" && len(v) == 1 {
				used[k] = true
			}
			if k == "Ref" && e == "AWS::NoValue" {
				used["AWS::NoValue"] = true
			}
			intrinsics(e, used)
		}
	case list:
		for _, e := range v {
			intrinsics(e, used)
		}
	}
}

// The intrinsic functions, as the template has them.

func ref(id string) object { return object{"Ref": id} }

func att(id, attribute string) object { return object{"Fn::GetAtt": list{id, attribute}} }

func join(separator string, items ...any) object {
	return object{"Fn::Join": list{separator, items}}
}

func sub(text string) object { return object{"Fn::Sub": text} }

func subWith(text string, values object) object { return object{"Fn::Sub": list{text, values}} }

func split(separator string, v any) object { return object{"Fn::Split": list{separator, v}} }

func pick(index any, items any) object { return object{"Fn::Select": list{index, items}} }

func choose(condition string, then, otherwise any) object {
	return object{"Fn::If": list{condition, then, otherwise}}
}

func equals(a, b any) object { return object{"Fn::Equals": list{a, b}} }

func findInMap(mapping string, top, second any) object {
	return object{"Fn::FindInMap": list{mapping, top, second}}
}

func zones(region any) object { return object{"Fn::GetAZs": region} }

func base64(v any) object { return object{"Fn::Base64": v} }

func cidr(block any, count, bits int) object { return object{"Fn::Cidr": list{block, count, bits}} }

func noValue() object { return ref("AWS::NoValue") }

// texts is a list of strings as a JSON value.
func texts(items ...string) list {
	out := make(list, len(items))
	for i, s := range items {
		out[i] = s
	}
	return out
}

// tags is a Tags property of pairs: key, value, key, value.
func tags(pairs ...any) list {
	var out list
	for i := 0; i+1 < len(pairs); i += 2 {
		out = append(out, object{"Key": pairs[i], "Value": pairs[i+1]})
	}
	return out
}
