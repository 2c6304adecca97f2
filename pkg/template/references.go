package template

import "strings"

// Intrinsic returns the name and the argument of an intrinsic function: an object whose only key is Ref or
// starts with "Fn::".
func Intrinsic(v any) (name string, arg any, ok bool) {
	m, isMap := v.(map[string]any)
	if !isMap || len(m) != 1 {
		return "", nil, false
	}
	for name, arg = range m {
	}
	return name, arg, name == "Ref" || strings.HasPrefix(name, "Fn::")
}

// IsPseudo reports whether a name is that of a pseudo parameter: AWS::Region and its like.
func IsPseudo(name string) bool { return strings.HasPrefix(name, "AWS::") }

// References lists every place where a resource refers to something of its template: DependsOn first, as
// cdkd records them, then Properties, Metadata, UpdatePolicy, CreationPolicy and the policies, keys sorted.
// Targets are resources, parameters (IsParameter) or nothing at all (Validate). Both branches of every
// Fn::If are walked.
func (t *Template) References(id string) []Reference {
	r := t.Resources[id]
	if r == nil {
		return nil
	}
	return r.references(nil)
}

func (r *Resource) references(conditions map[string]bool) []Reference {
	var out []Reference
	for _, dep := range r.DependsOn {
		out = append(out, Reference{Target: dep, Kind: RefDependsOn, Path: string(RefDependsOn)})
	}
	w := walker{conditions: conditions, visit: func(ref Reference) { out = append(out, ref) }}
	w.object(r.Properties, "Properties")
	w.object(r.Metadata, "Metadata")
	w.value(r.UpdatePolicy, "UpdatePolicy")
	w.value(r.CreationPolicy, "CreationPolicy")
	w.value(r.DeletionPolicy, "DeletionPolicy")
	w.value(r.UpdateReplacePolicy, "UpdateReplacePolicy")
	return out
}

// OutputReferences lists every place where Outputs refer to something; paths start with "Outputs.Name".
func (t *Template) OutputReferences() []Reference {
	var out []Reference
	for _, name := range sortedKeys(t.Outputs) {
		o := t.Outputs[name]
		visit := func(ref Reference) { out = append(out, ref) }
		WalkReferences(o.Value, "Outputs."+name+".Value", visit)
		WalkReferences(o.ExportName, "Outputs."+name+".Export.Name", visit)
	}
	return out
}

// IsParameter reports whether a reference's target is a parameter of the template.
func (t *Template) IsParameter(target string) bool { return t.Parameters[target] != nil }

// WalkReferences calls visit for every reference in a value. Pseudo parameters and what Fn::Sub's own map
// defines are no references. Malformed functions are walked like plain values: Validate reports them.
func WalkReferences(v any, path string, visit func(Reference)) {
	w := walker{visit: visit}
	w.value(v, path)
}

// walker finds the references in values.
type walker struct {
	// conditions, when not nil, makes Fn::If give the references of its chosen branch only.
	conditions map[string]bool
	visit      func(Reference)
}

func (w *walker) object(m map[string]any, path string) {
	if m != nil {
		w.value(m, path)
	}
}

func (w *walker) value(v any, path string) {
	if name, arg, ok := Intrinsic(v); ok {
		w.intrinsic(name, arg, child(path, name))
		return
	}
	switch v := v.(type) {
	case map[string]any:
		for _, k := range sortedKeys(v) {
			w.value(v[k], child(path, k))
		}
	case []any:
		for i, e := range v {
			w.value(e, item(path, i))
		}
	}
}

func (w *walker) intrinsic(name string, arg any, path string) {
	switch name {
	case "Ref":
		if target, ok := arg.(string); ok {
			w.found(target, "", RefRef, path)
			return
		}
	case "Fn::GetAtt":
		if target, attribute, ok := GetAttTarget(arg); ok {
			text, _ := attribute.(string)
			w.found(target, text, RefGetAtt, path)
			w.value(attribute, path) // the attribute's name may be computed
			return
		}
	case "Fn::Sub":
		if body, vars, ok := SubArguments(arg); ok {
			w.sub(body, vars, path)
			return
		}
	case "Fn::If":
		if list, ok := arg.([]any); ok && len(list) == 3 && w.conditions != nil {
			cond, isName := list[0].(string)
			if chosen, known := w.conditions[cond]; isName && known {
				branch := 2
				if chosen {
					branch = 1
				}
				w.value(list[branch], item(path, branch))
				return
			}
		}
	}
	w.value(arg, path)
}

func (w *walker) sub(body string, vars map[string]any, path string) {
	parts, err := ParseSub(body)
	if err == nil {
		for _, part := range parts {
			if part.Name == "" {
				continue
			}
			if _, own := vars[part.Name]; !own {
				w.found(part.Target, part.Attribute, RefSub, path)
			}
		}
	}
	for _, k := range sortedKeys(vars) {
		w.value(vars[k], child(item(path, 1), k))
	}
}

func (w *walker) found(target, attribute string, kind RefKind, path string) {
	if !IsPseudo(target) {
		w.visit(Reference{Target: target, Attribute: attribute, Kind: kind, Path: path})
	}
}

// GetAttTarget reads the argument of Fn::GetAtt, a list of two or "Resource.Attribute" split at its first
// dot. The attribute is a string or a function that gives one
// (https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/intrinsic-function-reference-getatt.html).
func GetAttTarget(arg any) (target string, attribute any, ok bool) {
	switch arg := arg.(type) {
	case string:
		target, attr, dotted := strings.Cut(arg, ".")
		return target, attr, dotted && target != "" && attr != ""
	case []any:
		if len(arg) != 2 {
			return "", nil, false
		}
		target, ok = arg[0].(string)
		if s, isText := arg[1].(string); isText {
			return target, s, ok && target != "" && s != ""
		}
		_, _, computed := Intrinsic(arg[1])
		return target, arg[1], ok && target != "" && computed
	}
	return "", nil, false
}

// SubArguments reads the argument of Fn::Sub: a string, or a list of a string and a map.
func SubArguments(arg any) (body string, vars map[string]any, ok bool) {
	switch arg := arg.(type) {
	case string:
		return arg, nil, true
	case []any:
		if len(arg) != 2 {
			return "", nil, false
		}
		body, isText := arg[0].(string)
		vars, isMap := arg[1].(map[string]any)
		return body, vars, isText && isMap
	}
	return "", nil, false
}
