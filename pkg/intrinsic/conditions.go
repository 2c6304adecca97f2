package intrinsic

import (
	"strings"

	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/template"
)

// EvaluateConditions evaluates the template's Conditions, each once, whatever order they refer to each other
// in. An unknown, cyclic or malformed condition is an error; the result then lacks what could not be
// evaluated
// (https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/conditions-section-structure.html).
func EvaluateConditions(t *template.Template, params map[string]any, pseudo Pseudo) (map[string]bool, diag.Diagnostics) {
	c := newConditions(t, &Scope{Template: t, Parameters: params, Pseudo: pseudo})
	for _, name := range sortedKeys(t.Conditions) {
		c.named(name, "Conditions."+name)
	}
	out := map[string]bool{}
	for name, v := range c.done {
		if b, ok := v.(bool); ok {
			out[name] = b
		}
	}
	return out, c.e.diags
}

// conditions evaluates named conditions on demand.
type conditions struct {
	e     *evaluation
	exprs map[string]any
	done  map[string]any // bool, or failed
	stack []string       // the conditions being evaluated, outermost first
}

func newConditions(t *template.Template, scope *Scope) *conditions {
	c := &conditions{exprs: t.Conditions, done: map[string]any{}}
	c.e = &evaluation{scope: scope, place: inConditions, condition: c.named}
	return c
}

func (c *conditions) named(name, path string) any {
	if v, ok := c.done[name]; ok {
		return v
	}
	expr, ok := c.exprs[name]
	if !ok {
		return c.e.fail(path, "unknown condition "+name, c.e.suggest(name, sortedKeys(c.exprs)))
	}
	for i, outer := range c.stack {
		if outer == name {
			cycle := append(append([]string{}, c.stack[i:]...), name)
			return c.e.fail(path, "conditions refer to each other in a circle", strings.Join(cycle, " → "))
		}
	}
	c.stack = append(c.stack, name)
	place := c.e.place
	c.e.place = inConditions
	v := c.e.boolean(expr, "Conditions."+name)
	c.e.place = place
	c.stack = c.stack[:len(c.stack)-1]
	if _, ok := v.(bool); !ok {
		v = failed{}
	}
	c.done[name] = v
	return v
}
