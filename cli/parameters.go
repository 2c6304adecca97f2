package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/template"
)

// parameterFlags give values to the parameters of templates. No message quotes a value: it may be a secret.
type parameterFlags struct {
	Values []string
	File   string
}

func (f *parameterFlags) register(fs *pflag.FlagSet) {
	grouped(fs, groupRun, func(fs *pflag.FlagSet) {
		fs.StringArrayVar(&f.Values, "parameters", nil, "value of a template parameter as `[STACK:]KEY=VALUE`; may be repeated")
		fs.StringVar(&f.File, "parameters-file", "", "JSON `FILE` with values of template parameters")
	})
}

// given is one value as it was given, for one stack or, with stack "", for all that declare the parameter.
type given struct {
	stack, key, value string
	from              string // the flag, for messages
}

// resolve says which value each parameter of each stack gets: by Stack.ID and parameter name. Every value has to
// fit a parameter of one of the stacks, and no parameter may get two.
func (f parameterFlags) resolve(stacks []*assembly.Stack) (map[string]map[string]string, error) {
	list, err := f.read()
	if err != nil || len(list) == 0 {
		return nil, err
	}
	declared := make(map[string][]string, len(stacks))
	for _, s := range stacks {
		t, err := template.Parse(s.Template)
		if err != nil {
			return nil, diag.From(err).InStack(s.Name)
		}
		declared[s.ID] = slices.Sorted(maps.Keys(t.Parameters))
	}
	out := map[string]map[string]string{}
	var diags diag.Diagnostics
	for _, g := range list {
		chosen, problem := g.stacks(stacks)
		if problem != nil {
			diags = append(diags, *problem)
			continue
		}
		fits := false
		var known []string
		for _, s := range chosen {
			known = append(known, declared[s.ID]...)
			if !slices.Contains(declared[s.ID], g.key) {
				continue
			}
			fits = true
			if out[s.ID] == nil {
				out[s.ID] = map[string]string{}
			}
			if _, twice := out[s.ID][g.key]; twice {
				diags = append(diags, diag.Diagnostic{
					Severity: diag.Error, Stack: s.Name, Summary: "the parameter " + g.key + " is given twice",
					Next: "Give it once, in --parameters or in --parameters-file.",
				})
				continue
			}
			out[s.ID][g.key] = g.value
		}
		if !fits {
			diags = append(diags, g.unknown(known))
		}
	}
	return out, diags.Err()
}

// stacks are those that a value is meant for.
func (g given) stacks(all []*assembly.Stack) ([]*assembly.Stack, *diag.Diagnostic) {
	if g.stack == "" {
		return all, nil
	}
	var chosen []*assembly.Stack
	var names []string
	for _, s := range all {
		names = append(names, s.Name)
		if g.stack == s.Name || g.stack == s.ID || g.stack == s.DisplayName {
			chosen = append(chosen, s)
		}
	}
	if len(chosen) > 0 {
		return chosen, nil
	}
	d := diag.Diagnostic{
		Severity: diag.Error, Summary: "unknown stack " + g.stack + " in " + g.from,
		Detail: "it is not among the selected ones: " + strings.Join(names, ", "),
		Next:   "Name a stack that this command works on, or none for all of them.",
	}
	if best := template.Closest(g.stack, names); best != "" {
		d.Detail = "did you mean " + best + "?"
	}
	return nil, &d
}

func (g given) unknown(known []string) diag.Diagnostic {
	d := diag.Diagnostic{
		Severity: diag.Error, Stack: g.stack, Summary: "unknown parameter " + g.key + " in " + g.from,
		Detail: "no template of the selected stacks declares it",
		Next:   "Give only parameters that a template declares.",
	}
	if g.stack != "" {
		d.Detail = "its template does not declare it"
	}
	slices.Sort(known)
	if best := template.Closest(g.key, slices.Compact(known)); best != "" {
		d.Detail = "did you mean " + best + "?"
	}
	return d
}

// read collects the values of both flags.
func (f parameterFlags) read() ([]given, error) {
	var list []given
	for i, text := range f.Values {
		left, value, found := strings.Cut(text, "=")
		stack, key, prefixed := strings.Cut(left, ":")
		if !prefixed {
			stack, key = "", left
		}
		if !found || key == "" || prefixed && stack == "" {
			d := diag.Diagnostic{Severity: diag.Error, Summary: "--parameters takes KEY=VALUE or STACK:KEY=VALUE", Next: "For example: --parameters Size=3"}
			if found || len(f.Values) > 1 {
				// What stands there is not quoted: it may be a value whose key was forgotten.
				d.Detail = "number " + strconv.Itoa(i+1) + " is neither"
			}
			return nil, diag.Diagnostics{d}
		}
		list = append(list, given{stack: stack, key: key, value: value, from: "--parameters"})
	}
	if f.File == "" {
		return list, nil
	}
	body, err := os.ReadFile(f.File)
	if err != nil {
		return nil, diag.Diagnostics{{Severity: diag.Error, Summary: "the parameters file can't be read", Detail: err.Error(), Next: "Give --parameters-file a JSON file."}}
	}
	more, problem := parseParameters(body)
	if problem != "" {
		return nil, diag.Diagnostics{{
			Severity: diag.Error, Summary: "the parameters file " + f.File + " does not have the form of one", Detail: problem,
			Next: `It is {"Key": "Value"}, {"Stack": {"Key": "Value"}}, or CloudFormation's [{"ParameterKey": …, "ParameterValue": …}].`,
		}}
	}
	return append(list, more...), nil
}

// parseParameters reads a parameters file. The problem never quotes it, and neither does a JSON error.
func parseParameters(body []byte) (list []given, problem string) {
	body = bytes.TrimSpace(body)
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	if len(body) > 0 && body[0] == '[' {
		var entries []struct {
			ParameterKey     string
			ParameterValue   any
			UsePreviousValue bool
		}
		if dec.Decode(&entries) != nil || dec.More() {
			return nil, "it is not valid JSON, or an entry is not an object with a ParameterKey"
		}
		for i, e := range entries {
			if e.UsePreviousValue && e.ParameterValue == nil {
				continue // what a deploy does with what it is not given
			}
			value, ok := parameterText(e.ParameterValue)
			if e.ParameterKey == "" || !ok {
				return nil, "entry " + strconv.Itoa(i+1) + " needs a ParameterKey and a ParameterValue that is text"
			}
			list = append(list, given{key: e.ParameterKey, value: value, from: "--parameters-file"})
		}
		return list, ""
	}
	entries, problem := members(dec)
	if problem != "" {
		return nil, problem
	}
	for _, e := range entries {
		if value, ok := parameterText(e.value); ok {
			list = append(list, given{key: e.key, value: value, from: "--parameters-file"})
			continue
		}
		inner, ok := e.value.([]entry)
		if !ok {
			return nil, e.key + " is neither text nor an object of a stack's parameters"
		}
		for _, p := range inner {
			value, ok := parameterText(p.value)
			if !ok {
				return nil, e.key + "." + p.key + " is not text, a number or a boolean"
			}
			list = append(list, given{stack: e.key, key: p.key, value: value, from: "--parameters-file"})
		}
	}
	return list, ""
}

// entry is a member of an object, in the order of the file and with repetitions, which a map would hide. The value
// of an object is its own list of entries.
type entry struct {
	key   string
	value any
}

// members reads an object, and objects in it.
func members(dec *json.Decoder) ([]entry, string) {
	const invalid = "it is not valid JSON"
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, "it is not a JSON object or list"
	}
	list, problem := rest(dec)
	if problem == "" && dec.More() {
		problem = invalid
	}
	return list, problem
}

// rest reads an object whose opening brace has been read.
func rest(dec *json.Decoder) ([]entry, string) {
	const invalid = "it is not valid JSON"
	list := []entry{}
	for dec.More() {
		k, err := dec.Token()
		name, ok := k.(string)
		if err != nil || !ok {
			return nil, invalid
		}
		v, err := dec.Token()
		if err != nil {
			return nil, invalid
		}
		e := entry{key: name, value: v}
		if delim, ok := v.(json.Delim); ok {
			if delim != '{' {
				return nil, name + " is a list; a list parameter's value is text with commas"
			}
			inner, problem := rest(dec)
			if problem != "" {
				return nil, problem
			}
			e.value = inner
		}
		list = append(list, e)
	}
	if _, err := dec.Token(); err != nil {
		return nil, invalid
	}
	return list, ""
}

// parameterText is the text of a parameter's value as JSON gives it.
func parameterText(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	case bool:
		if v {
			return "true", true
		}
		return "false", true
	}
	return "", false
}
