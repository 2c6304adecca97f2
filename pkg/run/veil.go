package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/diff"
	"github.com/slipway-cdk/slipway/pkg/intrinsic"
	"github.com/slipway-cdk/slipway/pkg/plan"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/schema"
	"github.com/slipway-cdk/slipway/pkg/secret"
	"github.com/slipway-cdk/slipway/pkg/state"
	"github.com/slipway-cdk/slipway/pkg/template"
)

// veil knows the places of a stack's template that derive from NoEcho parameters.
//
// A record holds "***" there, so comparing values says nothing. Instead the sidecar keeps, for every place, a keyed
// digest of all that its value is a function of: the expression with everything resolved that is no secret, and the
// digests of the parameters' values. A place whose digest is the same has the same value, whether or not this run
// knows it.
type veil struct {
	e      *Engine
	s      StackRequest
	t      *template.Template
	f      facts
	masked map[string]string // the sidecar's digests, by placeKey
	// told are the secret attributes whose values this run has or will have, by resource: their handler answers in it.
	told map[string]bool
}

// placeKey is a place's key in the sidecar: "LogicalID.Path", the path's own dots escaped.
func placeKey(id string, p secret.Path) string { return id + "." + p.Key() }

func (v *veil) hasSecrets() bool {
	for _, p := range v.t.Parameters {
		if p.NoEcho {
			return true
		}
	}
	return v.hasSecretAttributes()
}

func (v *veil) isNoEcho(name string) bool {
	p := v.t.Parameters[name]
	return p != nil && p.NoEcho
}

func (v *veil) scope(resources map[string]intrinsic.Resource) secret.Scope {
	scope := v.f.scope(v.t)
	scope.Resources = resources
	return secret.Scope{
		Secret: v.isSecret, Conditions: v.f.Conditions, Mappings: v.t.Mappings,
		Resolve: intrinsic.NewResolver(scope).Resolve,
	}
}

// digest is the digest of a place, "" while something that it needs does not exist yet.
func (v *veil) digest(ctx context.Context, id string, p secret.Place) (string, error) {
	if len(p.Waits) > 0 {
		return "", nil
	}
	values := make([]string, len(p.Secrets))
	for i, name := range p.Secrets {
		if values[i] = v.digestOf(name); values[i] == "" && v.isAttribute(name) {
			return "", nil
		}
	}
	return v.e.digest(ctx, v.s, placeKey(id, p.Path), []any{p.Skeleton, p.Secrets, values})
}

// unchanged reports whether a place has the value that was recorded, and how that is recorded.
func (v *veil) unchanged(ctx context.Context, id string, p secret.Place, before *state.Resource) (recorded any, same bool, err error) {
	was, ok := v.masked[placeKey(id, p.Path)]
	if !ok || before == nil {
		return nil, false, nil
	}
	recorded, ok = secret.At(before.Properties, p.Path)
	if !ok {
		return nil, false, nil
	}
	digest, err := v.digest(ctx, id, p)
	return recorded, err == nil && digest != "" && digest == was, err
}

// compared is the template as the diff has to see it: what is as it was recorded stands as it is recorded, and
// outputs that derive from a secret are masked. Everything else stays an expression.
func (v *veil) compared(ctx context.Context, rec *state.Record) (*template.Template, diag.Diagnostics, error) {
	if !v.hasSecrets() {
		return v.t, nil, nil
	}
	t := *v.t
	t.Resources = maps.Clone(v.t.Resources)
	var failure error
	resources := map[string]intrinsic.Resource{}
	if rec != nil {
		resources = resourcesOf(rec)
	}
	scope := v.scope(resources)
	for id, r := range v.t.Resources {
		if !v.t.Live(id, v.f.Conditions) || rec == nil || rec.Resources[id] == nil {
			continue
		}
		properties := scope.Walk(r.Properties, func(p secret.Place, expr any) any {
			recorded, same, err := v.unchanged(ctx, id, p, rec.Resources[id])
			if err != nil {
				failure = err
			}
			if !same && slices.ContainsFunc(p.Secrets, v.isAttribute) {
				return unlessUnknown(anotherSecret, p.Others)
			}
			if !same {
				return expr
			}
			return unlessUnknown(recorded, p.Others)
		})
		if m, ok := properties.(map[string]any); ok && r.Properties != nil {
			same := *r
			same.Properties = m
			t.Resources[id] = &same
		}
	}
	outputs, diags := v.outputs(scope)
	t.Outputs = outputs
	return &t, diags, failure
}

// unlessUnknown is an expression for a value, which is not known as long as one of the others is not.
func unlessUnknown(v any, others []any) any {
	if len(others) == 0 {
		return v
	}
	// Splitting their JSON at what it can't hold gives one part, or nothing that is known.
	one := map[string]any{"Fn::Length": map[string]any{"Fn::Split": []any{"\x00", map[string]any{"Fn::ToJsonString": others}}}}
	return map[string]any{"Fn::Select": []any{one, []any{"", v}}}
}

// outputs masks the outputs that derive from secrets. An export whose name needs a value that this run does not
// have can't be published.
func (v *veil) outputs(scope secret.Scope) (map[string]*template.Output, diag.Diagnostics) {
	var diags diag.Diagnostics
	out := maps.Clone(v.t.Outputs)
	for _, name := range sortedIDs(v.t.Outputs) {
		o := v.t.Outputs[name]
		if o.Condition != "" && !v.f.Conditions[o.Condition] {
			continue
		}
		masked := *o
		masked.Value = scope.Walk(o.Value, func(secret.Place, any) any { return secret.Mask })
		kept := ""
		scope.Walk(o.ExportName, func(p secret.Place, expr any) any {
			for _, name := range p.Secrets {
				if v.keeps(name) {
					kept = name
				}
			}
			return expr
		})
		if kept != "" {
			masked.ExportName = nil
			diags = append(diags, diag.Diagnostic{
				Severity: diag.Warning, Path: "Outputs." + name, Summary: "the export of " + name + " is left out",
				Detail: "its name is made from " + v.what(kept),
			})
		}
		out[name] = &masked
	}
	return out, diags
}

// published is the template whose outputs a deploy stores.
func (v *veil) published() (*template.Template, diag.Diagnostics) {
	if !v.hasSecrets() {
		return v.t, nil
	}
	t := *v.t
	outputs, diags := v.outputs(v.scope(map[string]intrinsic.Resource{}))
	t.Outputs = outputs
	return &t, diags
}

// changed names the parameters whose remaining places are to be compared as changed: all of them, since compared
// has replaced those that are not.
func (v *veil) changed() map[string]bool {
	out := map[string]bool{}
	for name, p := range v.t.Parameters {
		out[name] = p.NoEcho
	}
	return out
}

// keptPlaces are the places of a resource that derive from a secret whose value is not known in this run, by its name.
func (v *veil) keptPlaces(id string) map[string][]secret.Path {
	if len(v.f.NoEcho.Kept) == 0 && !v.hasSecretAttributes() {
		return nil
	}
	out := map[string][]secret.Path{}
	scope := v.scope(map[string]intrinsic.Resource{})
	scope.Secret = v.keeps
	scope.Walk(v.t.Resources[id].Properties, func(p secret.Place, expr any) any {
		for _, name := range p.Secrets {
			out[name] = append(out[name], p.Path)
		}
		return expr
	})
	return out
}

// missing refuses a change that must write a value which is kept, and so not known: it names the secret.
func (v *veil) missing(c diff.Change, before *state.Resource) diag.Diagnostics {
	if c.Action == diff.ActionDelete || c.Action == diff.ActionNone {
		return nil
	}
	var diags diag.Diagnostics
	kept := v.keptPlaces(c.LogicalID)
	for _, name := range sortedIDs(kept) {
		why := ""
		for _, path := range kept[name] {
			if reason := mustWrite(c, before, path); reason != "" {
				why = strings.Join(path, ".") + " has to be written: " + reason
				break
			}
		}
		if why == "" {
			continue
		}
		d := v.needed(name, why)
		d.LogicalID = c.LogicalID
		diags = append(diags, d)
	}
	return diags
}

// mustWrite says why a change writes what is at a path, "" when it does not.
func mustWrite(c diff.Change, before *state.Resource, path secret.Path) string {
	switch c.Action {
	case diff.ActionCreate:
		return "the resource is created"
	case diff.ActionReplace:
		return "the resource is replaced"
	}
	for _, pc := range c.Changes {
		if top, _, _ := strings.Cut(pc.Path, "."); top == path[0] {
			return path[0] + " changes"
		}
	}
	// Only Cloud Control is sent what has changed, and what it can't read back: all other providers are sent
	// everything.
	if before != nil && before.ProvisionedBy != string(provider.RouteCloudControl) {
		return "an update of " + c.Type + " sends all properties"
	}
	if t, ok := schema.Lookup(c.Type); ok {
		for _, p := range t.WriteOnly {
			if top, _, _ := strings.Cut(strings.TrimPrefix(p, "/"), "/"); top == path[0] {
				return "AWS never gives it back, so an update sends it again"
			}
		}
	}
	return ""
}

// conceal prepares the resolved properties of an operation. It returns the properties as they are compared with
// the record, and fills in what the provisioner will be sent: the concealed positions still in clear, to be sealed
// before they are stored.
func (v *veil) conceal(ctx context.Context, in *operationInput, properties map[string]any, before *state.Resource, resolve func(v any, path string) (any, error)) (compared map[string]any, err error) {
	in.Properties = properties
	if !v.hasSecrets() {
		return properties, nil
	}
	id := in.Operation.LogicalID
	compared = properties
	secrets := &inputSecrets{Masked: map[string]string{}}
	scope := v.scope(nil)
	scope.Resolve = resolve
	scope.Walk(v.t.Resources[id].Properties, func(p secret.Place, expr any) any {
		if _, there := secret.At(properties, p.Path); !there || err != nil {
			return expr
		}
		var recorded any
		var same bool
		var digest string
		if recorded, same, err = v.unchanged(ctx, id, p, before); err != nil {
			return expr
		}
		if digest, err = v.digest(ctx, id, p); err != nil {
			return expr
		}
		if same {
			compared = secret.ReplaceIn(compared, p.Path, recorded)
			secrets.Same = append(secrets.Same, p.Path)
		}
		if i := slices.IndexFunc(p.Secrets, v.keeps); i >= 0 {
			if !same {
				d := v.needed(p.Secrets[i], "what is made from it has changed")
				d.LogicalID, d.Path = id, "Properties."+strings.Join(p.Path, ".")
				err = diag.Diagnostics{d}
				return expr
			}
			in.Properties = secret.ReplaceIn(in.Properties, p.Path, recorded)
		} else {
			in.concealed = append(in.concealed, p.Path)
		}
		secrets.Masked[p.Path.Key()] = digest
		return expr
	})
	if err != nil {
		return nil, err
	}
	if len(secrets.Masked) > 0 {
		in.Secrets = secrets
	}
	return compared, nil
}

// inputSecrets tells a provisioner which positions of an operation's properties are secret.
type inputSecrets struct {
	// Handle is where the vault has the leaves that handle expressions stand for.
	Handle string `json:"handle,omitempty"`
	// Masked are the digests of the places, by path: what the sidecar will hold once the operation is done.
	Masked map[string]string `json:"masked,omitempty"`
	// Same are the places that are as the record has them: they are no change to the provider.
	Same []secret.Path `json:"same,omitempty"`
}

// sealed is what the vault holds for one operation.
type sealed struct {
	Leaves []any `json:"leaves"`
}

// seal replaces the concealed leaves of an operation's properties by handle expressions. What it returns may be
// stored.
func (t *turn) seal(ctx context.Context, in operationInput) (operationInput, error) {
	if len(in.concealed) == 0 {
		return in, nil
	}
	var content sealed
	for _, path := range in.concealed {
		v, _ := secret.At(in.Properties, path)
		secret.Leaves(v, func(leaf any) any {
			content.Leaves = append(content.Leaves, leaf)
			return leaf
		})
	}
	handle, err := t.e.Vault.Put(ctx, t.h.Root, content)
	if err != nil {
		return in, fmt.Errorf("concealing the properties of %s: %w", in.Operation.LogicalID, err)
	}
	n := 0
	for _, path := range in.concealed {
		v, _ := secret.At(in.Properties, path)
		in.Properties = secret.ReplaceIn(in.Properties, path, secret.Leaves(v, func(any) any {
			n++
			return secret.Handle(handle, n-1)
		}))
	}
	secrets := *in.Secrets
	secrets.Handle = handle
	in.Secrets, in.concealed = &secrets, nil
	return in, nil
}

// unveil gives an operation that undoes another one the secrets that its old properties hold as "***": those that
// the undone operation was sent. An earlier value, where the run has changed it, is not known to anybody.
func unveil(in *operationInput, forward operationInput, old map[string]string, succeeded bool) error {
	prefix := in.Operation.LogicalID + "."
	for _, key := range sortedIDs(old) {
		text, mine := strings.CutPrefix(key, prefix)
		path := secret.ParsePath(text)
		if _, there := secret.At(in.Properties, path); !mine || !there {
			continue
		}
		sent, ok := secret.At(forward.Properties, path)
		if !ok || forward.Secrets == nil {
			return diag.Diagnostics{{
				Severity: diag.Error, LogicalID: in.Operation.LogicalID, Path: "Properties." + strings.Join(path, "."),
				Summary: "it can't be restored: the value of its NoEcho parameter is not known any more",
				Next:    "Deploy again with the value.",
			}}
		}
		if in.Secrets == nil {
			in.Secrets = &inputSecrets{Handle: forward.Secrets.Handle, Masked: map[string]string{}}
		}
		in.Properties = secret.ReplaceIn(in.Properties, path, sent)
		digest := forward.Secrets.Masked[text]
		if succeeded || digest == old[key] {
			in.Secrets.Same = append(in.Secrets.Same, path)
		}
		in.Secrets.Masked[text] = digest
	}
	return nil
}

// unveil fills in the secrets of an operation that undoes another one.
func (s *stackTurn) unveil(ctx context.Context, undone runlog.Op, in *operationInput) error {
	prefix := in.Operation.LogicalID + "."
	if !slices.ContainsFunc(sortedIDs(s.file.Masked), func(key string) bool { return strings.HasPrefix(key, prefix) }) {
		return nil
	}
	forward, err := s.e.operationInput(ctx, s.h.RunID, undone.Wave, undone.OpID)
	if err != nil && !isAbsent(err) && !errors.Is(err, errNoInput) {
		return err
	}
	return unveil(in, forward, s.file.Masked, undone.Status == runlog.OpSucceeded)
}

// missingAtTurn is missing for an operation whose turn has come: what the plan could not tell yet.
func (v *veil) missingAtTurn(op plan.Operation, before *state.Resource, compared map[string]any) diag.Diagnostics {
	if len(v.f.NoEcho.Kept) == 0 && !v.hasSecretAttributes() {
		return nil
	}
	c := diff.Change{LogicalID: op.LogicalID, Type: op.Type}
	switch op.Action {
	case plan.ActionCreate:
		c.Action = diff.ActionCreate
	case plan.ActionReplace:
		c.Action = diff.ActionReplace
	case plan.ActionUpdate:
		t, _ := schema.Lookup(op.Type)
		c.Action, c.Changes = diff.Reassess(t, op.Type, before.Properties, compared)
	default:
		return nil
	}
	return v.missing(c, before)
}

// secretPrefix begins the name of an attribute that the record holds as "***", among what an unknown value waits for.
const secretPrefix = "secret:"

// withoutMasked makes unknown what the record holds as "***" of resources with secret properties: a service may have
// echoed one in an attribute. "***" itself must not be sent to anybody: an attribute that is nothing else is unknown
// too where no digest tells of it.
func withoutMasked(resources map[string]intrinsic.Resource, masked map[string]string) map[string]intrinsic.Resource {
	for id, r := range resources {
		for _, value := range r.Attributes {
			if value == secret.Mask {
				r.Attributes = hidden(id, r.Attributes)
				resources[id] = r
				break
			}
		}
	}
	for key := range masked {
		id, _, _ := strings.Cut(key, ".")
		r, ok := resources[id]
		if !ok {
			continue
		}
		r.Attributes, r.Properties = hidden(id, r.Attributes), hidden(id, r.Properties)
		resources[id] = r
	}
	return resources
}

func hidden(id string, values map[string]any) map[string]any {
	out := maps.Clone(values)
	for name, value := range values {
		secret.Leaves(value, func(leaf any) any {
			if s, ok := leaf.(string); ok && strings.Contains(s, secret.Mask) {
				out[name] = intrinsic.Unknown{Refs: []string{secretPrefix + id + "." + name}}
			}
			return leaf
		})
	}
	return out
}

// secretWaits refuses a value that needs one which is not kept.
func secretWaits(waits []string) error {
	for _, wait := range waits {
		if name, ok := strings.CutPrefix(wait, secretPrefix); ok {
			return diag.Errorf("it reads "+name+", which is secret and is not kept", "refer to the NoEcho parameter that it holds instead; what a custom resource answers is known in the runs in which its handler is asked")
		}
		if name, ok := strings.CutPrefix(wait, keptPrefix); ok {
			return diag.Errorf("parameter "+name+" is needed and was not given", "it is a NoEcho parameter, so its value was not kept")
		}
	}
	return nil
}

// readsSecret refuses what another stack publishes as "***".
func readsSecret(s StackRequest, f facts) diag.Diagnostics {
	var diags diag.Diagnostics
	refuse := func(what string) {
		diags = append(diags, diag.Diagnostic{
			Severity: diag.Error, Stack: s.Name, Summary: what + " is made from a NoEcho parameter, so its value was not kept",
			Next: "Give this stack a parameter of its own, or take a dynamic reference to a secret.",
		})
	}
	for _, name := range sortedIDs(f.Imports) {
		if f.Imports[name] == secret.Mask {
			refuse("the export " + name)
		}
	}
	for _, key := range sortedIDs(f.StackOutputs) {
		if f.StackOutputs[key] == secret.Mask {
			refuse("the output " + key)
		}
	}
	return diags
}
