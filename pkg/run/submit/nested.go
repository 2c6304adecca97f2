package submit

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/run"
)

// maxNested is how many nested stacks one stack may contain, in all depths: a few templates that name each other
// can describe any number. CloudFormation takes 2,500 resources in a hierarchy.
const maxNested = 2500

// nestedTemplates stores the templates of the stacks nested in s, in all depths.
func (d Desk) nestedTemplates(ctx context.Context, asm *assembly.Assembly, s *assembly.Stack) (map[string]run.NestedTemplate, error) {
	w := nestedWalk{desk: d, asm: asm, stack: s}
	return w.store(ctx, s.Name, s.NestedTemplates, nil)
}

type nestedWalk struct {
	desk  Desk
	asm   *assembly.Assembly
	stack *assembly.Stack
	count int
}

// store stores the given templates and what they name in turn. outer are the paths of the templates around them.
func (w *nestedWalk) store(ctx context.Context, parent string, paths map[string]string, outer []string) (map[string]run.NestedTemplate, error) {
	var out map[string]run.NestedTemplate
	for _, id := range slices.Sorted(maps.Keys(paths)) {
		path, what := paths[id], "nested stack "+id+" of "+parent
		refuse := func(summary, detail string) error {
			return diag.Diagnostics{{
				Severity: diag.Error, Stack: w.stack.Name, LogicalID: id, Summary: summary, Detail: detail,
				Next: "Correct the app, or leave --recursive out.",
			}}
		}
		if slices.Contains(outer, path) {
			return nil, refuse("a nested stack contains itself", what+" has the template of a stack around it")
		}
		if w.count++; w.count > maxNested {
			return nil, refuse("there are too many nested stacks", fmt.Sprintf("stack %s contains more than %d", w.stack.Name, maxNested))
		}
		body, err := w.asm.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("reading the template of %s: %w", what, err)
		}
		inner, err := w.asm.Nested(w.stack, path, body)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", what, err)
		}
		var n run.NestedTemplate
		if n.TemplateKey, err = w.desk.Engine.KeepTemplate(ctx, body, "template of "+what); err != nil {
			return nil, err
		}
		if n.Nested, err = w.store(ctx, parent+"/"+id, inner, append(slices.Clone(outer), path)); err != nil {
			return nil, err
		}
		if out == nil {
			out = map[string]run.NestedTemplate{}
		}
		out[id] = n
	}
	return out, nil
}
