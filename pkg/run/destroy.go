package run

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/diff"
	"github.com/slipway-cdk/slipway/pkg/plan"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/state"
	"github.com/slipway-cdk/slipway/pkg/template"
)

// destroy plans the deletion of everything that the record holds. What is retained leaves the record and
// stays, unless it is to be deleted as well.
func (p *stackPlan) destroy(l *ledger, deleteRetained bool) diag.Diagnostics {
	fates, orphans, diags := destroyOrphans(l, deleteRetained)
	p.file.Orphans = fates
	for _, o := range orphans {
		p.view.Changes = append(p.view.Changes, diff.Change{LogicalID: o.LogicalID, Type: o.Type, Action: diff.ActionDelete, DeletionPolicy: o.Policy})
	}
	p.file.Plan = plan.BuildDestroy(l.stands, template.DeleteEdges(deployed(l.stands)), append(leftovers(l), orphans...)...)
	for i := range p.file.Plan.Operations {
		op := &p.file.Plan.Operations[i]
		if op.Action == plan.ActionForget && deleteRetained {
			op.Action = plan.ActionDelete
		}
		if !strings.HasSuffix(op.ID, plan.OldSuffix) {
			p.view.Changes = append(p.view.Changes, diff.Change{
				LogicalID: op.LogicalID, Type: op.Type, Action: diff.ActionDelete,
				Retain: op.Action == plan.ActionForget, DeletionPolicy: op.Policy,
			})
		}
	}
	return diags
}

// checkDestroy refuses to destroy a protected stack, and one whose exports a stack outside of this destroy
// still imports (reference §7.8). It has nothing to say of other commands.
func (e *Engine) checkDestroy(ctx context.Context, req Request) (diag.Diagnostics, error) {
	if req.Command != runlog.CommandDestroy && req.Of != runlog.CommandDestroy {
		return nil, nil
	}
	going := stackSet(req)
	var diags diag.Diagnostics
	for _, s := range req.Stacks {
		if s.TerminationProtection && !req.Options.RemoveProtection {
			diags = append(diags, diag.Diagnostic{
				Severity: diag.Error, Stack: s.Name, Summary: "stack " + s.Name + " is protected against termination",
				Next: "Set terminationProtection to false in the app, or pass --remove-protection.",
			})
		}
		importers, err := e.States.Importers(ctx, s.Name, s.Region, nil)
		if err != nil {
			more, err := refusal(err)
			if err != nil {
				return nil, err
			}
			diags = append(diags, more.InStack(s.Name)...)
			continue
		}
		for _, i := range importers {
			if !going[state.Ref{Stack: i.Stack, Region: state.Region(i.Region)}] {
				diags = append(diags, diag.Diagnostic{
					Severity: diag.Error, Stack: s.Name,
					Summary: fmt.Sprintf("stack %s (%s) still imports %s from %s", i.Stack, i.Region, i.ExportName, s.Name),
					Next:    "Destroy that stack first, or take the import out of it and deploy it.",
				})
			}
		}
	}
	return diags, nil
}

// importersFirst adds to the order of a destroy that what imports from a stack goes before it, whether the app
// says so or not.
func (e *Engine) importersFirst(ctx context.Context, stacks []StackRequest) ([]StackRequest, error) {
	stacks = slices.Clone(stacks)
	for _, producer := range stacks {
		importers, err := e.States.Importers(ctx, producer.Name, producer.Region, nil)
		if err != nil {
			return nil, err
		}
		for _, i := range importers {
			for k, s := range stacks {
				if s.Name != i.Stack || state.Region(s.Region) != state.Region(i.Region) ||
					slices.Contains(s.DependsOn, producer.Name) || slices.Contains(producer.DependsOn, s.Name) {
					continue
				}
				stacks[k].DependsOn = append(slices.Clone(s.DependsOn), producer.Name)
			}
		}
	}
	return stacks, nil
}

// finishDestroy removes the files of a stack of which nothing is left.
func (e *Engine) finishDestroy(ctx context.Context, h *runlog.Header, req Request, l *ledger) error {
	if len(l.record.Resources) > 0 || len(l.cleanup) > 0 {
		return nil
	}
	if err := e.emptied(ctx, h, l); err != nil {
		return err
	}
	e.withdrawExports(ctx, h, req)
	return nil
}

// emptied leaves of a stack that has no resources any more what still has to be known: its orphans. Without any, nothing.
func (e *Engine) emptied(ctx context.Context, h *runlog.Header, l *ledger) error {
	if empty(l) {
		return e.forget(ctx, h, l)
	}
	if len(l.record.Outputs) != 0 || len(l.record.Imports) != 0 || len(l.record.OutputReads) != 0 {
		l.record.Outputs, l.record.Imports, l.record.OutputReads, l.changed = map[string]any{}, nil, nil, true
	}
	gen := state.Generation{}
	if l.generation != nil {
		gen = *l.generation
	}
	if err := e.saveLedger(ctx, l, *h, gen); err != nil {
		return err
	}
	h.StateETag, h.SidecarETag = l.stateETag, l.sidecarETag
	return e.dropJournal(ctx, h, l)
}

// empty reports whether nothing of a stack is left, in AWS or as something to be remembered.
func empty(l *ledger) bool {
	return len(l.record.Resources) == 0 && len(l.cleanup) == 0 && len(l.record.Orphans) == 0
}

// forget removes the files of a stack of which nothing is left.
func (e *Engine) forget(ctx context.Context, h *runlog.Header, l *ledger) error {
	if l.stands != nil {
		if err := e.States.Delete(ctx, h.Stack.Name, h.Stack.Region, l.stateETag); err != nil {
			return err
		}
	}
	if l.sidecarETag != "" {
		if err := e.States.DeleteSidecar(ctx, h.Stack.Name, h.Stack.Region, l.sidecarETag); err != nil {
			return err
		}
	}
	return e.dropJournal(ctx, h, l)
}

// dropJournal removes the rollback journal as it stood when the run came to close: never one that a later run has begun.
func (e *Engine) dropJournal(ctx context.Context, h *runlog.Header, l *ledger) error {
	if l.journalETag == "" {
		return nil
	}
	return e.States.DeleteJournal(ctx, h.Stack.Name, h.Stack.Region, l.journalETag)
}
