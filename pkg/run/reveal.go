package run

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/plan"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/secret"
	"github.com/slipway-cdk/slipway/pkg/state"
)

// codeDynamicReference marks an operation whose dynamic references could not be resolved.
const codeDynamicReference = "DynamicReference"

// reveal puts the secrets of an operation into its request: what the vault has for it, and what its dynamic
// references come to. It returns the provider to call instead of p, which masks everything that comes back. From
// here on the request is in clear: it is for the provider alone.
func (e *Engine) reveal(ctx context.Context, p provider.Provider, input operationInput, req provider.Request) (provider.Provider, provider.Request, error) {
	open := opener{e: e, root: input.Root, contents: map[string]sealed{}}
	known, err := open.parameters(ctx, input.Mask)
	if err != nil {
		return nil, req, fmt.Errorf("the secrets of %s: %w", req.LogicalID, err)
	}
	expressions := input.Properties
	if req.Properties, err = open.object(ctx, req.Properties); err == nil {
		req.Previous, err = open.object(ctx, req.Previous)
	}
	if err != nil {
		return nil, req, fmt.Errorf("the secrets of %s: %w", req.LogicalID, err)
	}
	if input.Secrets != nil {
		for _, path := range input.Secrets.Same {
			if v, ok := secret.At(req.Properties, path); ok {
				req.Previous = secret.ReplaceIn(req.Previous, path, v)
			}
		}
	}
	var named map[string]string
	if secret.HasReference(expressions) && input.Operation.Action != plan.ActionDelete {
		resolved, err := e.resolver(input.Root, input.Role).Resolve(ctx, secret.Where{Account: input.Account, Region: input.Region}, expressions)
		if err != nil {
			return nil, req, err
		}
		named = resolved.Secrets
		req.Properties = inReferences(expressions, resolved.Value, req.Properties).(map[string]any)
		if previous, ok := sameReferences(req.Previous, expressions, resolved.Value).(map[string]any); ok && req.Previous != nil {
			req.Previous = previous
		}
	}
	redactor := secret.NewRedactor(append(known, open.values()...), named)
	hide := echoes(input, req.Properties)
	if redactor.Empty() && len(hide) == 0 {
		return p, req, nil
	}
	return masking{Provider: p, redactor: redactor, expressions: expressions, named: named, hide: hide}, req, nil
}

// echoes names the properties and attributes in which a service may give back a secret that can't be found by its
// text: because this run does not have it, or because it is too short to tell anything by.
func echoes(input operationInput, clear map[string]any) map[string]bool {
	hide := map[string]bool{}
	if input.Secrets == nil {
		return hide
	}
	for _, key := range sortedIDs(input.Secrets.Masked) {
		path := secret.ParsePath(key)
		sent, _ := secret.At(input.Properties, path)
		value, _ := secret.At(clear, path)
		unknown := false
		secret.Leaves(sent, func(leaf any) any {
			_, _, known := secret.ParseHandle(leaf)
			unknown = unknown || !known && leaf != nil
			return leaf
		})
		if unknown || !secret.Findable(value) {
			hide[path[0]] = true
		}
	}
	var before state.Resource
	if len(input.Before) == 0 || unmarshal(input.Before, &before) != nil {
		return hide
	}
	// What was masked then may be given back again.
	for _, values := range []map[string]any{before.Attributes, before.ObservedProperties} {
		for name, value := range values {
			secret.Leaves(value, func(leaf any) any {
				if text, ok := leaf.(string); ok && strings.Contains(text, secret.Mask) {
					hide[name] = true
				}
				return leaf
			})
		}
	}
	return hide
}

// opener replaces handle expressions by what the vault has under them.
type opener struct {
	e        *Engine
	root     string
	contents map[string]sealed // by handle
}

func (o opener) object(ctx context.Context, properties map[string]any) (map[string]any, error) {
	if properties == nil {
		return nil, nil
	}
	var failure error
	out := secret.Leaves(properties, func(leaf any) any {
		handle, n, ok := secret.ParseHandle(leaf)
		if !ok || failure != nil {
			return leaf
		}
		content, err := o.content(ctx, handle)
		if err == nil && n >= len(content.Leaves) {
			err = secret.ErrNotInVault
		}
		if failure = err; err != nil {
			return leaf
		}
		return content.Leaves[n]
	})
	return out.(map[string]any), failure
}

func (o opener) content(ctx context.Context, handle string) (sealed, error) {
	if content, ok := o.contents[handle]; ok {
		return content, nil
	}
	if o.e.Vault == nil {
		return sealed{}, errNoVault
	}
	var content sealed
	if err := o.e.Vault.Get(ctx, o.root, handle, &content); err != nil {
		return content, err
	}
	o.contents[handle] = content
	return content, nil
}

// parameters are the values of the run's NoEcho parameters.
func (o opener) parameters(ctx context.Context, handle string) ([]any, error) {
	if handle == "" {
		return nil, nil
	}
	if o.e.Vault == nil {
		return nil, errNoVault
	}
	var byName map[string]any
	if err := o.e.Vault.Get(ctx, o.root, handle, &byName); err != nil {
		return nil, err
	}
	var values []any
	for _, name := range sortedIDs(byName) {
		values = append(values, byName[name])
	}
	return values, nil
}

// values are all the secrets that were opened.
func (o opener) values() []any {
	var all []any
	for _, handle := range sortedIDs(o.contents) {
		all = append(all, o.contents[handle].Leaves...)
	}
	return all
}

// inReferences takes the resolved leaf where there was a dynamic reference, and the one that is there elsewhere.
func inReferences(expression, resolved, standing any) any {
	switch x := expression.(type) {
	case map[string]any:
		r, okR := resolved.(map[string]any)
		s, okS := standing.(map[string]any)
		if !okR || !okS {
			return standing
		}
		out := make(map[string]any, len(s))
		for k, v := range s {
			out[k] = inReferences(x[k], r[k], v)
		}
		return out
	case []any:
		r, okR := resolved.([]any)
		s, okS := standing.([]any)
		if !okR || !okS || len(r) != len(x) || len(s) != len(x) {
			return standing
		}
		out := make([]any, len(x))
		for i := range x {
			out[i] = inReferences(x[i], r[i], s[i])
		}
		return out
	}
	if secret.HasReference(expression) {
		return resolved
	}
	return standing
}

// sameReferences resolves the dynamic references of the record that the desired properties have at the same place:
// they are no change. Others stay text, which is one.
func sameReferences(recorded, expression, resolved any) any {
	switch was := recorded.(type) {
	case map[string]any:
		x, okX := expression.(map[string]any)
		r, okR := resolved.(map[string]any)
		if !okX || !okR {
			return recorded
		}
		out := make(map[string]any, len(was))
		for k, v := range was {
			out[k] = sameReferences(v, x[k], r[k])
		}
		return out
	case []any:
		x, okX := expression.([]any)
		r, okR := resolved.([]any)
		if !okX || !okR || len(x) != len(was) || len(r) != len(was) {
			return recorded
		}
		out := make([]any, len(was))
		for i := range was {
			out[i] = sameReferences(was[i], x[i], r[i])
		}
		return out
	case string:
		if x, ok := expression.(string); ok && x == was && secret.HasReference(x) {
			return resolved
		}
	}
	return recorded
}

// resolver is the resolver of a run, which asks for each secret once. A process that has come to another run forgets
// the ones before, all but a few that may go on beside it.
//
// Stacks of different roles do not share one: what the one role may read, the other may not.
func (e *Engine) resolver(root string, role *Role) *secret.Resolver {
	of := resolverKey{root: root}
	if role != nil {
		of.role = *role
	}
	r, known := e.resolvers.LoadOrStore(of, &secret.Resolver{Source: e.Secrets})
	if !known {
		kept := 0
		e.resolvers.Range(func(other, _ any) bool {
			if kept++; kept > 8 && other != of {
				e.resolvers.Delete(other)
			}
			return true
		})
	}
	return r.(*secret.Resolver)
}

type resolverKey struct {
	root string
	role Role
}

// forgetResolvers lets go of the secrets of a run that has ended.
func (e *Engine) forgetResolvers(root string) {
	e.resolvers.Range(func(of, _ any) bool {
		if of.(resolverKey).root == root {
			e.resolvers.Delete(of)
		}
		return true
	})
}

// unresolvable is the failure of an operation whose secrets can't be had. What the vault does not have is lost;
// a service that did not answer may do so later.
func unresolvable(err error) *provider.Error {
	kind := provider.KindInvalid
	switch {
	case errors.Is(err, secret.ErrUnavailable):
		kind = provider.KindUnavailable
	case errors.Is(err, secret.ErrDenied):
		kind = provider.KindAccessDenied
	}
	return &provider.Error{Kind: kind, Code: codeDynamicReference, Message: err.Error()}
}

// masking masks what a provider gives back: by position, where the request had a secret, and by value.
type masking struct {
	provider.Provider
	redactor    *secret.Redactor
	expressions map[string]any
	named       map[string]string
	// hide are the top-level members of what is read back that are masked altogether.
	hide map[string]bool
}

// Create implements provider.Provider.
func (m masking) Create(ctx context.Context, req provider.Request) (provider.Progress, error) {
	progress, err := m.Provider.Create(ctx, req)
	return m.progress(progress), m.failure(err)
}

// Update implements provider.Provider.
func (m masking) Update(ctx context.Context, req provider.Request) (provider.Progress, error) {
	progress, err := m.Provider.Update(ctx, req)
	return m.progress(progress), m.failure(err)
}

// Delete implements provider.Provider.
func (m masking) Delete(ctx context.Context, req provider.Request) (provider.Progress, error) {
	progress, err := m.Provider.Delete(ctx, req)
	return m.progress(progress), m.failure(err)
}

// Poll implements provider.Provider.
func (m masking) Poll(ctx context.Context, req provider.Request, h provider.Handle) (provider.Progress, error) {
	progress, err := m.Provider.Poll(ctx, req, h)
	return m.progress(progress), m.failure(err)
}

// Read implements provider.Provider.
func (m masking) Read(ctx context.Context, req provider.Request) (provider.Snapshot, error) {
	snapshot, err := m.Provider.Read(ctx, req)
	snapshot.Properties, snapshot.Attributes = m.read(snapshot.Properties), m.read(snapshot.Attributes)
	return snapshot, m.failure(err)
}

func (m masking) progress(p provider.Progress) provider.Progress {
	p.Attributes, p.Effective, p.Observed = m.read(p.Attributes), m.object(p.Effective), m.read(p.Observed)
	p.Skipped = m.redactor.Text(p.Skipped)
	return p
}

// read masks what was read back.
func (m masking) read(v map[string]any) map[string]any {
	out := m.object(v)
	for name := range m.hide {
		if value, ok := out[name]; ok {
			out[name] = secret.Masked(value)
		}
	}
	return out
}

func (m masking) object(v map[string]any) map[string]any {
	if v == nil {
		return nil
	}
	return m.redactor.Object(m.position(m.expressions, v).(map[string]any))
}

// secretReference reports whether a text has a dynamic reference to a secret, which then stands for it.
func (m masking) secretReference(text string) bool {
	for _, reference := range m.named {
		if strings.Contains(text, reference) {
			return true
		}
	}
	return false
}

// position masks what stands where the request had a handle or a dynamic reference to a secret.
func (m masking) position(expression, v any) any {
	if _, _, ok := secret.ParseHandle(expression); ok {
		return secret.Masked(v)
	}
	if expression == secret.Mask {
		return secret.Masked(v) // a value that is kept
	}
	if text, ok := expression.(string); ok && m.secretReference(text) {
		return text
	}
	switch x := expression.(type) {
	case map[string]any:
		object, ok := v.(map[string]any)
		if !ok {
			return v
		}
		out := make(map[string]any, len(object))
		for k, member := range object {
			out[k] = m.position(x[k], member)
		}
		return out
	case []any:
		list, ok := v.([]any)
		if !ok || len(list) != len(x) {
			return v
		}
		out := make([]any, len(list))
		for i := range list {
			out[i] = m.position(x[i], list[i])
		}
		return out
	}
	return v
}

// failure masks an error by its texts. What it wraps could be printed, so that is left out.
func (m masking) failure(err error) error {
	if err == nil {
		return nil
	}
	var perr *provider.Error
	if !errors.As(err, &perr) {
		return &provider.Error{Kind: provider.KindFailed, Message: m.redactor.Text(err.Error())}
	}
	masked := *perr
	masked.Message, masked.Err = m.redactor.Text(perr.Message), nil
	if masked.Message == "" && perr.Err != nil {
		masked.Message = m.redactor.Text(perr.Err.Error())
	}
	return &masked
}
