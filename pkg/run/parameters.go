package run

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/intrinsic"
	"github.com/slipway-cdk/slipway/pkg/state"
	"github.com/slipway-cdk/slipway/pkg/template"
)

// noEcho is what a run knows of a stack's NoEcho parameters. The values themselves are only in memory and in the
// run vault.
type noEcho struct {
	// Handle is where the vault has the bound values, by name.
	Handle string `json:"handle,omitempty"`
	// Kept are the parameters that were given no value now and had one before: what derives from them stays.
	Kept []string `json:"kept,omitempty"`
	// Digests are keyed digests of every value, kept ones included; Recorded those that the sidecar will hold:
	// of values that were given, now or before, and did not come from a Default.
	Digests  map[string]string `json:"digests,omitempty"`
	Recorded map[string]string `json:"recorded,omitempty"`
	// Conditions are the conditions that depend on them, as the sidecar will hold them.
	Conditions map[string]recordedCondition `json:"conditions,omitempty"`
}

// recordedCondition is the outcome of a condition that depends on a NoEcho parameter: what a later deploy without
// the value goes by. Basis is a digest of everything else that the condition depends on.
type recordedCondition struct {
	Value bool   `json:"value"`
	Basis string `json:"basis"`
}

// conditionsMember is the member of a generation that holds them.
const conditionsMember = "noEchoConditions"

func (n noEcho) keeps(parameter string) bool { return slices.Contains(n.Kept, parameter) }

// errNoVault: a NoEcho value can't be kept from being stored.
var errNoVault = diag.Diagnostics{{
	Severity: diag.Error, Path: "Parameters", Summary: "there is no run vault here, and a NoEcho parameter needs one",
	Next: "Configure the plane's vault, or take a dynamic reference in place of the parameter.",
}}

// DivideParameters divides the values that a stack is given into those that may be stored and those that may not: of
// NoEcho parameters, and of parameters that the template does not declare. The planner refuses the latter; until then
// they may be secrets.
func DivideParameters(source []byte, values map[string]string) (plain, secret map[string]string, err error) {
	if len(values) == 0 {
		return nil, nil, nil
	}
	t, err := template.Parse(source)
	if err != nil {
		return nil, nil, err
	}
	for name, v := range values {
		into := &secret
		if p := t.Parameters[name]; p != nil && !p.NoEcho {
			into = &plain
		}
		if *into == nil {
			*into = map[string]string{}
		}
		(*into)[name] = v
	}
	return plain, secret, nil
}

// SealParameters divides the values that a stack is given: those of NoEcho parameters go into the vault of the
// root run, and only their handles come back. A plane calls it before it stores a request.
func (e *Engine) SealParameters(ctx context.Context, root string, source []byte, values map[string]string) (plain, handles map[string]string, err error) {
	plain, secret, err := DivideParameters(source, values)
	if err != nil || len(secret) == 0 {
		return plain, nil, err
	}
	if e.Vault == nil {
		return nil, nil, errNoVault
	}
	handles = map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(secret)) {
		if handles[name], err = e.Vault.Put(ctx, root, secret[name]); err != nil {
			return nil, nil, err
		}
	}
	return plain, handles, nil
}

// parameters binds the parameters of one stack: what it is given, else what an earlier deploy was given, else the
// Default (reference §7.1). gen is what the sidecar knows of the standing record, nil when nothing.
type parameters struct {
	e   *Engine
	s   StackRequest
	t   *template.Template
	gen *state.Generation
	// texts are the values as they were given; kept the NoEcho parameters whose value stays.
	texts map[string]string
	kept  []string
	// unknown are those of a nested stack that have no value yet.
	unknown []string
}

// parameters finds where the value of every parameter comes from.
func (e *Engine) parameters(ctx context.Context, root string, s StackRequest, t *template.Template, gen *state.Generation) (*parameters, error) {
	p := &parameters{e: e, s: s, t: t, gen: gen, texts: maps.Clone(s.Parameters)}
	if p.texts == nil {
		p.texts = map[string]string{}
	}
	for name, handle := range s.NoEcho {
		if e.Vault == nil {
			return nil, errNoVault
		}
		var text string
		if err := e.Vault.Get(ctx, root, handle, &text); err != nil {
			return nil, fmt.Errorf("the value of parameter %s of stack %s: %w", name, s.Name, err)
		}
		p.texts[name] = text
	}
	if s.passed != nil {
		// A nested stack has the values that its parent passes, and no others.
		p.take(s.passed)
		return p, nil
	}
	if gen == nil {
		return p, nil
	}
	for _, name := range slices.Sorted(maps.Keys(t.Parameters)) {
		if _, given := p.texts[name]; given {
			continue
		}
		if t.Parameters[name].NoEcho {
			if gen.NoEcho[name] != "" {
				p.kept = append(p.kept, name)
			}
			continue
		}
		if text, ok := gen.Parameters[name]; ok && p.valid(name, text) {
			p.texts[name] = text
		}
	}
	return p, nil
}

// valid reports whether the declaration, which may have changed, still allows a value.
func (p *parameters) valid(name, text string) bool {
	one := *p.t
	one.Parameters = map[string]*template.Parameter{name: p.t.Parameters[name]}
	_, diags := one.BindParameters(map[string]string{name: text}, map[string]any{template.SSMFact(text): ""})
	return !diags.HasErrors()
}

// bindable is the template without the parameters whose value is not known.
func (p *parameters) bindable() *template.Template {
	if len(p.kept)+len(p.unknown) == 0 {
		return p.t
	}
	t := *p.t
	t.Parameters = maps.Clone(p.t.Parameters)
	for _, name := range slices.Concat(p.kept, p.unknown) {
		delete(t.Parameters, name)
	}
	return &t
}

// needed lists the SSM parameters whose values bind will want.
func (p *parameters) needed() []string { return template.SSMParameters(p.bindable(), p.texts) }

// bind fills in the facts: parameters, conditions, and what is to be remembered of both.
func (p *parameters) bind(ctx context.Context, f *facts, ssm map[string]any) (diag.Diagnostics, error) {
	bound, diags := p.bindable().BindParameters(p.texts, ssm)
	if diags.HasErrors() {
		return diags, nil
	}
	f.Parameters, f.clear, f.given, f.unknown = map[string]any{}, map[string]any{}, map[string]string{}, p.unknown
	for name, v := range bound {
		if p.t.Parameters[name].NoEcho {
			f.clear[name] = v
		} else {
			f.Parameters[name] = v
		}
	}
	for name, text := range p.texts {
		if !p.t.Parameters[name].NoEcho {
			f.given[name] = text
		}
	}
	if err := p.digests(ctx, f); err != nil {
		return nil, err
	}
	if more := p.undecided(); more.HasErrors() {
		return more, nil
	}
	expanded, more := intrinsic.Expand(p.t, f.values(), f.Pseudo)
	if diags = append(diags, more...); diags.HasErrors() {
		return diags, nil
	}
	if expanded.Unexpanded || expanded != p.t {
		// What a loop makes is validated as if it had been written out.
		if diags = append(diags, template.Validate(expanded)...); diags.HasErrors() {
			return diags, nil
		}
		p.t = expanded
	}
	conditions, more, err := p.conditions(ctx, f)
	if err != nil {
		return nil, err
	}
	if diags = append(diags, more...); diags.HasErrors() {
		return diags, nil
	}
	f.Conditions = conditions
	return append(diags, intrinsic.CheckRules(p.checkable(), f.values(), f.Pseudo, ssm)...), nil
}

// digests makes the keyed digests of the NoEcho values.
func (p *parameters) digests(ctx context.Context, f *facts) error {
	if len(f.clear)+len(p.kept) == 0 {
		return nil
	}
	if p.e.Vault == nil {
		return errNoVault
	}
	f.NoEcho = noEcho{Kept: p.kept, Digests: map[string]string{}, Recorded: map[string]string{}}
	for name, v := range f.clear {
		digest, err := p.e.digest(ctx, p.s, "parameter."+name, v)
		if err != nil {
			return err
		}
		f.NoEcho.Digests[name] = digest
		if _, given := p.texts[name]; given {
			f.NoEcho.Recorded[name] = digest
		}
	}
	for _, name := range p.kept {
		f.NoEcho.Digests[name], f.NoEcho.Recorded[name] = p.gen.NoEcho[name], p.gen.NoEcho[name]
	}
	return nil
}

// digest makes a keyed digest of a value of one stack.
func (e *Engine) digest(ctx context.Context, s StackRequest, what string, v any) (string, error) {
	body, err := marshal(v)
	if err != nil {
		return "", fmt.Errorf("digesting %s of stack %s: %w", what, s.Name, err)
	}
	digest, err := e.Vault.Sealer.Digest(ctx, strings.Join([]string{s.Account, s.Region, s.Name, what}, "/"), body)
	if err != nil {
		return "", fmt.Errorf("digesting %s of stack %s: %w", what, s.Name, err)
	}
	return digest, nil
}

// conditions evaluates the conditions, in memory with the values in clear. One that depends on a value which is
// kept comes out as it did when the value was given.
func (p *parameters) conditions(ctx context.Context, f *facts) (map[string]bool, diag.Diagnostics, error) {
	t := p.t
	recorded := map[string]recordedCondition{}
	if p.gen != nil {
		if raw, ok := p.gen.Extra[conditionsMember]; ok && json.Unmarshal(raw, &recorded) != nil {
			recorded = nil
		}
	}
	secrets := map[string]string{} // condition → digest of its basis
	var diags diag.Diagnostics
	for _, name := range slices.Sorted(maps.Keys(t.Conditions)) {
		used := p.usedBy(name, map[string]bool{})
		if !slices.ContainsFunc(used, p.isNoEcho) {
			continue
		}
		basis, err := p.basis(ctx, name, used, f)
		if err != nil {
			return nil, nil, err
		}
		secrets[name] = basis
		i := slices.IndexFunc(used, func(parameter string) bool { return slices.Contains(p.kept, parameter) })
		if i < 0 {
			continue
		}
		was, ok := recorded[name]
		if !ok || was.Basis != basis {
			diags = append(diags, diag.Diagnostic{
				Severity: diag.Error, Path: "Conditions." + name,
				Summary: "parameter " + used[i] + " is needed: the condition " + name + " can't be evaluated without it",
				Detail:  "it is a NoEcho parameter, so its value was not kept, and what the condition says has changed",
				Next:    "Supply it: --parameters " + used[i] + "=…",
			})
			continue
		}
		if t == p.t {
			same := *p.t
			t = &same
			t.Conditions = maps.Clone(p.t.Conditions)
		}
		outcome := "false"
		if was.Value {
			outcome = "true"
		}
		t.Conditions[name] = map[string]any{"Fn::Equals": []any{outcome, "true"}}
	}
	if diags.HasErrors() {
		return nil, diags, nil
	}
	values, diags := intrinsic.EvaluateConditions(t, f.values(), f.Pseudo)
	for name, basis := range secrets {
		if f.NoEcho.Conditions == nil {
			f.NoEcho.Conditions = map[string]recordedCondition{}
		}
		f.NoEcho.Conditions[name] = recordedCondition{Value: values[name], Basis: basis}
	}
	return values, diags, nil
}

func (p *parameters) isNoEcho(name string) bool {
	declared := p.t.Parameters[name]
	return declared != nil && declared.NoEcho
}

// usedBy lists, sorted, the parameters that a condition depends on, through other conditions too.
func (p *parameters) usedBy(condition string, seen map[string]bool) []string {
	if seen[condition] {
		return nil
	}
	seen[condition] = true
	var used []string
	template.WalkReferences(p.t.Conditions[condition], "", func(ref template.Reference) { used = append(used, ref.Target) })
	for _, other := range conditionsIn(p.t.Conditions[condition]) {
		used = append(used, p.usedBy(other, seen)...)
	}
	slices.Sort(used)
	return slices.Compact(used)
}

// conditionsIn lists the conditions that an expression names: {"Condition": name}, and the first argument of
// Fn::If.
func conditionsIn(v any) []string {
	var out []string
	switch v := v.(type) {
	case map[string]any:
		if name, ok := v["Condition"].(string); ok && len(v) == 1 {
			return []string{name}
		}
		if list, ok := v["Fn::If"].([]any); ok && len(list) > 0 {
			if name, ok := list[0].(string); ok {
				out = append(out, name)
			}
		}
		for _, k := range slices.Sorted(maps.Keys(v)) {
			out = append(out, conditionsIn(v[k])...)
		}
	case []any:
		for _, item := range v {
			out = append(out, conditionsIn(item)...)
		}
	}
	return out
}

// basis digests what a condition depends on besides NoEcho values: the expressions, other parameters, mappings.
func (p *parameters) basis(ctx context.Context, name string, used []string, f *facts) (string, error) {
	seen := map[string]bool{}
	p.usedBy(name, seen)
	expressions := map[string]any{}
	for condition := range seen {
		expressions[condition] = p.t.Conditions[condition]
	}
	values := map[string]any{}
	for _, parameter := range used {
		if v, ok := f.Parameters[parameter]; ok {
			values[parameter] = v
		}
	}
	return p.e.digest(ctx, p.s, "condition."+name, []any{expressions, values, p.t.Mappings, f.Pseudo})
}

// checkable is the template without the rules that can't be checked: they held when the value was given.
func (p *parameters) checkable() *template.Template {
	if len(p.kept) == 0 {
		return p.t
	}
	t := *p.t
	t.Rules = maps.Clone(p.t.Rules)
	for name, rule := range p.t.Rules {
		template.WalkReferences(rule, "", func(ref template.Reference) {
			if slices.Contains(p.kept, ref.Target) {
				delete(t.Rules, name)
			}
		})
	}
	return &t
}

// values are the parameters as expressions see them: a kept value is not known, nor one that is not passed yet.
func (f facts) values() map[string]any {
	if len(f.clear)+len(f.NoEcho.Kept)+len(f.unknown) == 0 {
		return f.Parameters
	}
	all := maps.Clone(f.Parameters)
	if all == nil {
		all = map[string]any{}
	}
	maps.Copy(all, f.clear)
	for _, name := range slices.Concat(f.NoEcho.Kept, f.unknown) {
		all[name] = intrinsic.Unknown{Refs: []string{keptPrefix + name}}
	}
	return all
}

// keptPrefix begins the name of a parameter that has no value in this run, among what an unknown value
// waits for.
const keptPrefix = "parameter:"

// sealFacts puts the values of a run's NoEcho parameters into the vault, for its later steps.
func (e *Engine) sealFacts(ctx context.Context, root string, f *facts) error {
	if len(f.clear) == 0 {
		return nil
	}
	handle, err := e.Vault.Put(ctx, root, f.clear)
	f.NoEcho.Handle = handle
	return err
}

// openFacts reads them back.
func (e *Engine) openFacts(ctx context.Context, root string, f *facts) error {
	if f.NoEcho.Handle == "" {
		return nil
	}
	if e.Vault == nil {
		return errNoVault
	}
	return e.Vault.Get(ctx, root, f.NoEcho.Handle, &f.clear)
}

// parameterDigest tells two sets of values apart, for the binding of a run to its plan.
func (f facts) parameterDigest() (string, error) {
	body, err := marshal([]any{f.given, f.NoEcho.Digests})
	if err != nil {
		return "", fmt.Errorf("digesting the parameters: %w", err)
	}
	return digest(string(body)), nil
}

// generation is what the sidecar will say of the parameters of the records that the run saves.
func (f facts) generation(given map[string]string) state.Generation {
	gen := state.Generation{Parameters: given, NoEcho: f.NoEcho.Recorded}
	if len(f.NoEcho.Conditions) > 0 {
		if raw, err := marshal(f.NoEcho.Conditions); err == nil {
			gen.Extra = map[string]json.RawMessage{conditionsMember: raw}
		}
	}
	return gen
}
