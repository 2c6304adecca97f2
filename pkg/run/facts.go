package run

import (
	"context"
	"errors"
	"fmt"

	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/intrinsic"
	"github.com/slipway-cdk/slipway/pkg/schema"
	"github.com/slipway-cdk/slipway/pkg/state"
	"github.com/slipway-cdk/slipway/pkg/template"
)

// facts is everything outside the record that a template's values depend on, fetched once when a run opens:
// every later step of the run resolves against the same facts.
type facts struct {
	Parameters map[string]any   `json:"parameters,omitempty"`
	NoEcho     noEcho           `json:"noEcho,omitzero"`
	Conditions map[string]bool  `json:"conditions,omitempty"`
	Pseudo     intrinsic.Pseudo `json:"pseudo"`
	// Imports are the values of exports that the template imports; ImportedFrom names their producers.
	Imports      map[string]any `json:"imports,omitempty"`
	ImportedFrom []state.Import `json:"importedFrom,omitempty"`
	// StackOutputs are the values of Fn::GetStackOutput, by intrinsic.StackOutput.Key.
	StackOutputs map[string]any      `json:"stackOutputs,omitempty"`
	OutputsFrom  []state.OutputRead  `json:"outputsFrom,omitempty"`
	Zones        map[string][]string `json:"zones,omitempty"`

	// clear are the bound values of the NoEcho parameters; given the texts of the others, as they were given.
	clear map[string]any
	given map[string]string
	// unknown are the parameters of a nested stack whose value the deploy of its parent decides. They only exist
	// while a plan is shown.
	unknown []string

	// pendingImports and pendingOutputs are known after another stack of the same deployment has run. They
	// only exist while a plan is shown.
	pendingImports map[string]bool
	pendingOutputs map[string]bool
}

// scope builds the resolver's scope, without resources.
func (f facts) scope(t *template.Template) *intrinsic.Scope {
	return &intrinsic.Scope{
		Template: t, Parameters: f.values(), Conditions: f.Conditions, Pseudo: f.Pseudo,
		Imports: f.Imports, PendingImports: f.pendingImports,
		StackOutputs: f.StackOutputs, PendingStackOutputs: f.pendingOutputs,
		Zones: f.Zones, Schema: schema.Lookup,
	}
}

// published is what the stacks of a deployment that come earlier in it will publish: values that are known
// already, and names whose value a deploy decides.
type published struct {
	values  map[string]any  // export name → value
	pending map[string]bool // export name
	outputs map[string]any  // intrinsic.StackOutput key → value
	unknown map[string]bool // intrinsic.StackOutput key
	gone    map[string]bool // export name that the deploy takes away
}

func newPublished() *published {
	return &published{
		values: map[string]any{}, pending: map[string]bool{},
		outputs: map[string]any{}, unknown: map[string]bool{}, gone: map[string]bool{},
	}
}

// gather fetches the facts of one stack. It returns the template with its loops and computed names written
// out, which everything after it works on. l holds what is deployed of it. An error is a failure of a
// store.
func (e *Engine) gather(ctx context.Context, req Request, s StackRequest, t *template.Template, l *ledger, earlier *published) (facts, *template.Template, diag.Diagnostics, error) {
	f := facts{Pseudo: pseudoOf(s, l.stands)}
	params, err := e.parameters(ctx, req.root(), s, t, l.generation)
	if err != nil {
		diags, err := refusal(err)
		return f, nil, diags, err
	}
	ssm := map[string]any{}
	for _, name := range params.needed() {
		v, err := e.Facts.SSMParameter(ctx, s.Account, s.Region, name)
		if err != nil {
			return f, nil, diag.Diagnostics{{
				Severity: diag.Error, Stack: s.Name, Path: "Parameters",
				Summary: fmt.Sprintf("SSM parameter %s can't be read", name), Detail: err.Error(),
				Next: "Create the parameter, or give the template parameter another value.",
			}}, nil
		}
		ssm[template.SSMFact(name)] = v
	}
	diags, err := params.bind(ctx, &f, ssm)
	if err != nil {
		if diags, err := refusal(err); err == nil {
			return f, nil, diags, nil
		}
		return f, nil, nil, err
	}
	if diags.HasErrors() {
		return f, nil, diags, nil
	}
	t = params.t

	needs, more := intrinsic.Needed(f.scope(t))
	if diags = append(diags, more...); diags.HasErrors() {
		return f, nil, diags, nil
	}
	f.Zones = map[string][]string{}
	for _, region := range needs.Zones {
		zones, err := e.Facts.Zones(ctx, s.Account, region)
		if err != nil {
			return f, nil, append(diags, diag.Diagnostic{
				Severity: diag.Error, Stack: s.Name, Summary: "the availability zones of " + region + " can't be read", Detail: err.Error(),
			}), nil
		}
		f.Zones[region] = zones
	}
	if more, err = e.fetchImports(ctx, req, s, needs.Imports, earlier, &f); err != nil {
		return f, nil, nil, err
	}
	diags = append(diags, more...)
	if more, err = e.fetchOutputs(ctx, s, needs.StackOutputs, earlier, &f); err != nil {
		return f, nil, nil, err
	}
	diags = append(diags, more...)
	diags = append(diags, readsSecret(s, f)...)
	return f, t, diags, nil
}

// pseudoOf gives the pseudo parameters of a stack: one that cdkd has deployed keeps the stack id that its names
// were made from.
func pseudoOf(s StackRequest, rec *state.Record) intrinsic.Pseudo {
	p := intrinsic.PseudoFor(s.Account, s.Region, s.Name)
	if rec == nil {
		return p
	}
	recorded := make([]any, 0, len(rec.Resources)+1)
	recorded = append(recorded, rec.Outputs)
	for _, r := range rec.Resources {
		recorded = append(recorded, r.Properties, r.PhysicalID)
	}
	return p.WithRecordedStackID(recorded...)
}

// fetchImports finds the values of imported exports: first what this deployment is about to publish, then
// the exports index.
func (e *Engine) fetchImports(ctx context.Context, req Request, s StackRequest, names []string, earlier *published, f *facts) (diag.Diagnostics, error) {
	var diags diag.Diagnostics
	f.Imports, f.pendingImports = map[string]any{}, map[string]bool{}
	for _, name := range names {
		if earlier != nil && earlier.pending[name] {
			f.pendingImports[name] = true
			continue
		}
		if earlier != nil && !earlier.gone[name] {
			if v, ok := earlier.values[name]; ok {
				f.Imports[name] = v
				continue
			}
		}
		found, err := e.States.LookupExport(ctx, req.Region, name, state.Ref{Stack: s.Name, Region: s.Region})
		if errors.Is(err, state.ErrNotFound) || (err == nil && earlier != nil && earlier.gone[name]) {
			diags = append(diags, diag.Diagnostic{
				Severity: diag.Error, Stack: s.Name,
				Summary: "no stack exports " + name,
				Detail:  "the template imports it with Fn::ImportValue",
				Next:    "Deploy the stack that exports it first, or together with this one.",
			})
			continue
		}
		if err != nil {
			more, err := refusal(fmt.Errorf("looking up the export %s: %w", name, err))
			if err != nil {
				return nil, err
			}
			diags = append(diags, more.InStack(s.Name)...)
			continue
		}
		f.Imports[name] = found.Value
		f.ImportedFrom = append(f.ImportedFrom, state.Import{
			SourceStack: found.ProducerStack, SourceRegion: found.ProducerRegion, ExportName: name,
		})
	}
	return diags, nil
}

// fetchOutputs finds the values of Fn::GetStackOutput in the records of their stacks.
func (e *Engine) fetchOutputs(ctx context.Context, s StackRequest, wanted []intrinsic.StackOutput, earlier *published, f *facts) (diag.Diagnostics, error) {
	var diags diag.Diagnostics
	f.StackOutputs, f.pendingOutputs = map[string]any{}, map[string]bool{}
	for _, o := range wanted {
		key := o.Key()
		if earlier != nil && earlier.unknown[key] {
			f.pendingOutputs[key] = true
			continue
		}
		if earlier != nil {
			if v, ok := earlier.outputs[key]; ok {
				f.StackOutputs[key] = v
				continue
			}
		}
		problem := diag.Diagnostic{
			Severity: diag.Error, Stack: s.Name,
			Summary: fmt.Sprintf("stack %s in %s has no output %s", o.Stack, o.Region, o.Output),
			Detail:  "the template reads it with Fn::GetStackOutput",
			Next:    "Deploy that stack first, or correct the name.",
		}
		if o.RoleARN != "" {
			problem.Summary = "Fn::GetStackOutput with a RoleArn needs an AWS account to assume the role in"
			diags = append(diags, problem)
			continue
		}
		rec, _, err := e.States.Load(ctx, o.Stack, o.Region)
		if err != nil && !state.IsNotFound(err) {
			more, err := refusal(err)
			if err != nil {
				return nil, err
			}
			diags = append(diags, more.InStack(s.Name)...)
			continue
		}
		v, ok := any(nil), false
		if rec != nil {
			v, ok = rec.Outputs[o.Output]
		}
		if !ok {
			diags = append(diags, problem)
			continue
		}
		f.StackOutputs[key] = v
		f.OutputsFrom = append(f.OutputsFrom, state.OutputRead{SourceStack: o.Stack, SourceRegion: o.Region, OutputName: o.Output})
	}
	return diags, nil
}
