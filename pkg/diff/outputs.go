package diff

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/intrinsic"
	"github.com/slipway-cdk/slipway/pkg/template"
)

// OutputSet is what the Outputs of a template come to.
type OutputSet struct {
	// Values are the outputs as the record stores them: by name, and once more by export name. What derives
	// from a NoEcho parameter is "***".
	Values map[string]any
	// Exports are the keys of Values that are export names.
	Exports map[string]bool
	// Unknown are the outputs, by name, whose value or export name the deploy decides; Failed those that
	// can't be resolved at all, with the reason in Diagnostics (as warnings).
	Unknown []string
	Failed  []string
	// Changes compare Values and Unknown with the record, sorted by name.
	Changes     []OutputChange
	Diagnostics diag.Diagnostics
}

// Outputs evaluates the outputs: what changes, the values as stored, and the names of those that are not
// known or can't be resolved. EvaluateOutputs says more.
func Outputs(in Input) (changes []OutputChange, values map[string]any, unresolved []string) {
	set := EvaluateOutputs(in)
	return set.Changes, set.Values, slices.Sorted(slices.Values(slices.Concat(set.Unknown, set.Failed)))
}

// EvaluateOutputs evaluates the live outputs (reference §6.7, §7.8). With Input.Scope.Resources set, as in
// Result.Scope, those are what the expressions read; else the record is.
func EvaluateOutputs(in Input) OutputSet {
	o := &outputs{in: in, set: OutputSet{Values: map[string]any{}, Exports: map[string]bool{}}, withheld: map[string]bool{}, kept: map[string]bool{}}
	scope := intrinsic.Scope{}
	if in.Scope != nil {
		scope = *in.Scope
	}
	scope.Template, scope.Conditions = in.Template, in.Conditions
	if scope.Resources == nil {
		scope.Resources = map[string]intrinsic.Resource{}
		for _, r := range in.live() {
			if was := in.recorded(r.LogicalID); was != nil {
				scope.Resources[r.LogicalID] = readable(was)
			}
		}
	}
	o.resolver = intrinsic.NewResolver(&scope)
	o.secrets = noEchoValues(in.Template, scope.Parameters)
	o.refs = map[string][]template.Reference{}
	for _, ref := range in.Template.OutputReferences() {
		name := strings.SplitN(ref.Path, ".", 3)[1]
		o.refs[name] = append(o.refs[name], ref)
	}
	live := o.live()
	for _, name := range live {
		o.value(in.Template.Outputs[name])
	}
	for _, name := range live {
		o.export(in.Template.Outputs[name])
	}
	o.compare()
	return o.set
}

type outputs struct {
	in       Input
	resolver *intrinsic.Resolver
	// secrets are the values of the NoEcho parameters.
	secrets []string
	refs    map[string][]template.Reference
	// unknown holds keys of the stored map whose value is not known yet.
	unknown []string
	// kept are export names of outputs that can't be resolved: what is recorded under them stays.
	kept map[string]bool
	// withheld are keys whose recorded value may be a secret in clear.
	withheld map[string]bool
	set      OutputSet
}

func (o *outputs) live() []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(o.in.Template.Outputs)) {
		if c := o.in.Template.Outputs[name].Condition; c == "" || o.in.Conditions[c] {
			names = append(names, name)
		}
	}
	return names
}

func (o *outputs) warn(name, summary, detail string) {
	o.set.Diagnostics = append(o.set.Diagnostics, diag.Diagnostic{
		Severity: diag.Warning, Path: "Outputs." + name, Summary: summary, Detail: detail,
	})
}

func (o *outputs) value(out *template.Output) {
	v, err := o.resolver.Resolve(out.Value, "Outputs."+out.Name+".Value")
	if err == nil {
		if _, none := v.(intrinsic.NoValue); none {
			err = diag.Errorf("its value is AWS::NoValue", "")
		}
	}
	if err != nil {
		o.set.Failed = append(o.set.Failed, out.Name)
		o.warn(out.Name, "the output "+out.Name+" can't be resolved", strings.ReplaceAll(diag.From(err).Error(), "\n", "; "))
		return
	}
	if len(intrinsic.HasUnknown(v)) > 0 {
		o.set.Unknown = append(o.set.Unknown, out.Name)
		o.unknown = append(o.unknown, out.Name)
		return
	}
	secret := len(secretPlaces(&o.in, o.refs[out.Name], "Outputs."+out.Name+".Value")) > 0
	if secret {
		v = Mask
	}
	o.withheld[out.Name] = secret
	o.set.Values[out.Name] = v
}

// export publishes the value under its export name too. Names that would give a secret away, and names that
// are another output's, are left out with a warning.
func (o *outputs) export(out *template.Output) {
	if out.ExportName == nil {
		return
	}
	path := "Outputs." + out.Name + ".Export.Name"
	v, err := o.resolver.Resolve(out.ExportName, path)
	if err != nil {
		o.warn(out.Name, "the export name of "+out.Name+" can't be resolved", strings.ReplaceAll(diag.From(err).Error(), "\n", "; "))
		return
	}
	if len(intrinsic.HasUnknown(v)) > 0 {
		if !slices.Contains(o.set.Unknown, out.Name) {
			o.set.Unknown = append(o.set.Unknown, out.Name)
		}
		return
	}
	name, ok := text(v)
	switch {
	case slices.Contains(o.set.Failed, out.Name):
		o.kept[name] = true
	case !ok || name == "":
		o.warn(out.Name, "the export name of "+out.Name+" is not text", "")
	case o.givesAway(name):
		o.warn(out.Name, "the export of "+out.Name+" is left out", "its name holds the value of a NoEcho parameter")
	case name == out.Name:
		o.set.Exports[name] = true
	case o.taken(name):
		o.warn(out.Name, "the export of "+out.Name+" is left out", fmt.Sprintf("%s is the name of another output", name))
	case slices.Contains(o.unknown, out.Name):
		o.set.Exports[name] = true
		o.unknown = append(o.unknown, name)
	default:
		if _, twice := o.set.Values[name]; twice {
			o.warn(out.Name, "the export of "+out.Name+" is left out", fmt.Sprintf("another output is already exported as %s", name))
			return
		}
		o.set.Values[name] = o.set.Values[out.Name]
		o.set.Exports[name] = true
		o.withheld[name] = o.withheld[out.Name]
	}
}

func (o *outputs) taken(name string) bool {
	other := o.in.Template.Outputs[name]
	return other != nil && (other.Condition == "" || o.in.Conditions[other.Condition])
}

// givesAway: the name is a NoEcho value, or holds one of at least four characters.
func (o *outputs) givesAway(name string) bool {
	for _, secret := range o.secrets {
		if name == secret || len(secret) >= 4 && strings.Contains(name, secret) {
			return true
		}
	}
	return false
}

func noEchoValues(t *template.Template, parameters map[string]any) []string {
	var out []string
	for name, p := range t.Parameters {
		if !p.NoEcho {
			continue
		}
		switch v := parameters[name].(type) {
		case []any:
			for _, item := range v {
				if s, ok := text(item); ok && s != "" {
					out = append(out, s)
				}
			}
		default:
			if s, ok := text(v); ok && s != "" {
				out = append(out, s)
			}
		}
	}
	return out
}

// compare fills in Changes.
func (o *outputs) compare() {
	var old map[string]any
	if o.in.Record != nil {
		old = o.in.Record.Outputs
	}
	c := &comparer{}
	withheld := o.withhold()
	keys := unionKeys(old, o.set.Values)
	for _, name := range o.unknown {
		if i, found := slices.BinarySearch(keys, name); !found {
			keys = slices.Insert(keys, i, name)
		}
	}
	for _, name := range keys {
		was, had := old[name]
		is, has := o.set.Values[name]
		change := OutputChange{Name: name, Export: o.set.Exports[name], Kind: "modify", Old: was, New: is}
		switch {
		case slices.Contains(o.unknown, name):
			change.Unknown = true
			if !had {
				change.Kind = "add"
			}
		case slices.Contains(o.set.Failed, name), o.kept[name] && !has:
			// It keeps its value; the warning says so.
			continue
		case !has:
			change.Kind = "remove"
			change.Export = !logicalName(name)
			change.Withheld = secretName(name)
		case !had:
			change.Kind = "add"
		case c.equal(nil, was, is):
			continue
		}
		if had && (change.Withheld || o.withheld[name] && inClear(was) || withheld.hides(name)) {
			change.Withheld, change.Old = true, nil
		}
		o.set.Changes = append(o.set.Changes, change)
	}
}

// logicalName: names of outputs are alphanumeric, so anything else in a record is an export name.
func logicalName(name string) bool {
	for _, r := range name {
		if (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
			return false
		}
	}
	return true
}

// secretName: the output is gone, and with it the expression that could tell; its name has to.
func secretName(name string) bool {
	name = strings.ToLower(name)
	for _, word := range []string{"secret", "password", "passwd", "token", "apikey", "credential", "privatekey"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}

// Carry decides what a deploy that changes no resource stores when some outputs can't be resolved (seed of
// the deploy internals: "Outputs a no-change deploy cannot resolve"): a failed output keeps its recorded
// value, and its literal export name if that was published, while everything that did resolve is saved.
//
// All recorded outputs are kept instead where a failed output's export name is itself an expression, and
// where the result would put a secret's expression beside a carried plain value.
func Carry(in Input, set OutputSet) (map[string]any, diag.Diagnostics) {
	if len(set.Failed) == 0 || in.Record == nil {
		return set.Values, set.Diagnostics
	}
	old := in.Record.Outputs
	diags := slices.Clone(set.Diagnostics)
	merged := maps.Clone(set.Values)
	carriedPlain := false
	o := &outputs{in: in, secrets: nil}
	if in.Scope != nil {
		o.secrets = noEchoValues(in.Template, in.Scope.Parameters)
	}
	for _, name := range set.Failed {
		was, had := old[name]
		export := in.Template.Outputs[name].ExportName
		alias, literal := export.(string)
		if export != nil && !literal {
			return maps.Clone(old), append(diags, keepAll(name, "its export name is an expression"))
		}
		if !had {
			continue
		}
		merged[name] = was
		carriedPlain = carriedPlain || !hasDynamicReference(was)
		published, exported := old[alias]
		switch {
		case export == nil || !exported || o.taken(alias):
		case o.givesAway(alias):
			diags = append(diags, diag.Diagnostic{
				Severity: diag.Warning, Path: "Outputs." + name, Summary: "the export of " + name + " is left out",
				Detail: "its name holds the value of a NoEcho parameter",
			})
		default:
			merged[alias] = published
		}
	}
	if carriedPlain {
		for _, v := range set.Values {
			if hasDynamicReference(v) {
				return maps.Clone(old), append(diags, keepAll(set.Failed[0], "saving the others would store a secret's expression beside its plain value"))
			}
		}
	}
	return merged, diags
}

func keepAll(name, why string) diag.Diagnostic {
	return diag.Diagnostic{
		Severity: diag.Warning, Path: "Outputs." + name, Summary: "all outputs keep their recorded values",
		Detail: fmt.Sprintf("the output %s can't be resolved, and %s", name, why),
	}
}
