package run

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/macro"
	"github.com/slipway-cdk/slipway/pkg/objectstore"
	"github.com/slipway-cdk/slipway/pkg/state"
	"github.com/slipway-cdk/slipway/pkg/template"
)

// template reads and parses a stored template.
func (e *Engine) template(ctx context.Context, key string) (*template.Template, error) {
	obj, err := e.Objects.Get(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("reading the template %s: %w", key, err)
	}
	return template.Parse(obj.Body)
}

// source is the template that a stack is deployed from.
type source struct {
	t *template.Template
	// macros is a digest of what its macros were given, and expanded the object that holds what they have made; both
	// "" where there are none.
	macros, expanded string
	warnings         diag.Diagnostics
}

// sourceTemplate reads the template that a stack is to be deployed from, with its macros run: macrosRunning is the error
// as long as they are not done. Where no AWS endpoint could run them the template is refused. gen is what an earlier
// deploy has left, nil for nothing.
func (e *Engine) sourceTemplate(ctx context.Context, req Request, s StackRequest, gen *state.Generation) (source, error) {
	obj, err := e.Objects.Get(ctx, s.TemplateKey)
	if err != nil {
		return source{}, fmt.Errorf("reading the template of stack %s: %w", s.Name, err)
	}
	uses, err := template.FindMacros(obj.Body)
	if err != nil {
		return source{}, err
	}
	if len(uses) == 0 {
		t, err := template.Parse(obj.Body)
		return source{t: t}, err
	}
	if e.Macros == nil {
		return source{}, macro.Refuse(s.Name, uses)
	}
	x, err := e.newExpansion(ctx, req, s, obj.Body, gen)
	if err != nil {
		return source{}, err
	}
	src := source{macros: x.inputs}
	if src.expanded, err = x.shown(ctx, req, s); err != nil {
		return source{}, err
	}
	if src.expanded != "" {
		src.t, err = e.template(ctx, src.expanded)
		if !isAbsent(err) {
			return src, err
		}
		// It was expired: whether the macros make the same again the binding tells.
	}
	if src.expanded, src.warnings, err = x.run(ctx); err != nil {
		return source{}, err
	}
	src.t, err = e.template(ctx, src.expanded)
	return src, err
}

// writtenOut renders an expanded template and names the object that holds it.
func writtenOut(t *template.Template) (body []byte, key string, err error) {
	if body, err = t.Encode(); err != nil {
		return nil, "", fmt.Errorf("writing out the expanded template: %w", err)
	}
	return body, keyOf(body), nil
}

// keyOf is the object that holds a template.
func keyOf(body []byte) string {
	sum := sha256.Sum256(body)
	return TemplateKey(hex.EncodeToString(sum[:]))
}

// KeepTemplate stores a template under its digest, unless it is there, and returns its key. what names it in an error:
// "template of stack Web".
func (e *Engine) KeepTemplate(ctx context.Context, body []byte, what string) (string, error) {
	key := keyOf(body)
	_, err := e.Objects.Put(ctx, key, body, objectstore.Condition{IfNoneMatch: true})
	if err != nil && !errors.Is(err, objectstore.ErrPrecondition) {
		return "", fmt.Errorf("storing the %s: %w", what, err)
	}
	return key, nil
}

// keepExpanded stores the template that a run works on, when it is not the one that was handed in.
func (e *Engine) keepExpanded(ctx context.Context, p *stackPlan) error {
	if p.expanded == nil {
		return nil
	}
	_, err := e.KeepTemplate(ctx, p.expanded, "expanded template of stack "+p.view.Stack)
	return err
}

// dependencyOptions are the choices of an option set about the order of resources.
func dependencyOptions(o Options) []template.DependencyOption {
	if o.RelaxVPCRoutes {
		return []template.DependencyOption{template.RelaxVPCRoutes()}
	}
	return nil
}
