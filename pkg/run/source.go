package run

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/slipway-cdk/slipway/pkg/macro"
	"github.com/slipway-cdk/slipway/pkg/objectstore"
	"github.com/slipway-cdk/slipway/pkg/template"
)

// Macros runs the macros of a template in AWS; *macro.Expander is one.
type Macros interface {
	Expand(ctx context.Context, req macro.Request) (macro.Progress, error)
}

// template reads and parses a stored template.
func (e *Engine) template(ctx context.Context, key string) (*template.Template, error) {
	obj, err := e.Objects.Get(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("reading the template %s: %w", key, err)
	}
	return template.Parse(obj.Body)
}

// sourceTemplate reads the template that a stack is to be deployed from, and runs its macros; ran tells whether
// there were any. Where no AWS endpoint could run them the template is refused.
func (e *Engine) sourceTemplate(ctx context.Context, s StackRequest) (t *template.Template, ran bool, err error) {
	obj, err := e.Objects.Get(ctx, s.TemplateKey)
	if err != nil {
		return nil, false, fmt.Errorf("reading the template of stack %s: %w", s.Name, err)
	}
	uses, err := template.FindMacros(obj.Body)
	if err != nil {
		return nil, false, err
	}
	if len(uses) == 0 {
		t, err = template.Parse(obj.Body)
		return t, false, err
	}
	if e.Macros == nil {
		return nil, false, macro.Refuse(s.Name, uses)
	}
	done, err := e.Macros.Expand(ctx, macro.Request{Stack: s.Name, Body: obj.Body, Parameters: s.Parameters})
	if err != nil {
		return nil, false, err
	}
	t, err = template.Parse(done.Body)
	return t, true, err
}

// writtenOut renders an expanded template and names the object that holds it.
func writtenOut(t *template.Template) (body []byte, key string, err error) {
	if body, err = t.Encode(); err != nil {
		return nil, "", fmt.Errorf("writing out the expanded template: %w", err)
	}
	sum := sha256.Sum256(body)
	return body, TemplateKey(hex.EncodeToString(sum[:])), nil
}

// keepExpanded stores the template that a run works on, when it is not the one that was handed in.
func (e *Engine) keepExpanded(ctx context.Context, p *stackPlan) error {
	if p.expanded == nil {
		return nil
	}
	_, err := e.Objects.Put(ctx, p.file.TemplateKey, p.expanded, objectstore.Condition{IfNoneMatch: true})
	if err != nil && !errors.Is(err, objectstore.ErrPrecondition) {
		return fmt.Errorf("storing the expanded template of stack %s: %w", p.view.Stack, err)
	}
	return nil
}

// dependencyOptions are the choices of an option set about the order of resources.
func dependencyOptions(o Options) []template.DependencyOption {
	if o.RelaxVPCRoutes {
		return []template.DependencyOption{template.RelaxVPCRoutes()}
	}
	return nil
}
