package run

import (
	"context"
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
	"github.com/slipway-cdk/slipway/pkg/state"
	"github.com/slipway-cdk/slipway/pkg/template"
)

// stackTurn is a turn of a stack's own run.
type stackTurn struct {
	*turn
	ledger *ledger
	tmpl   *template.Template // nil for a destroy
	byID   map[string]plan.Operation
	// foreign: somebody else has written the record since this run saved it last.
	foreign bool
	// What this turn has made once and uses again: the resolver over the record as it stands, and the inputs of
	// ready operations, which nothing in this turn can change any more.
	resolves *intrinsic.Resolver
	inputs   map[string]operationInput
}

// decideStack renews the lock, folds results, saves the state, and chooses the next wave.
func (t *turn) decideStack(ctx context.Context) (Step, error) {
	e := t.e
	lock, err := e.States.Attach(ctx, t.h.Stack.Name, t.h.Stack.Region, t.h.Owner)
	if err != nil {
		return Step{}, err
	}
	s := &stackTurn{turn: t, byID: index(t.file.Plan), inputs: map[string]operationInput{}}
	if t.rollback != nil {
		maps.Copy(s.byID, index(*t.rollback))
	}
	if s.ledger, err = e.loadLedger(ctx, t.h.Stack); err != nil {
		return Step{}, err
	}
	// The renewal shows that the record was read under the lock. A process that was held up, and comes back when others
	// have worked on the stack, gets no further; and what it read before their work it can't save over it.
	if err := lock.Renew(ctx); err != nil {
		return Step{}, err
	}
	if t.n == 1 {
		s.ledger.settleOrphans(t.file.Orphans)
	}
	s.foreign = s.ledger.stateETag != t.h.StateETag
	if t.file.TemplateKey != "" {
		if s.tmpl, err = e.template(ctx, t.file.TemplateKey); err != nil {
			return Step{}, err
		}
	}
	if err := s.strike(ctx, s.byID); err != nil {
		return Step{}, err
	}
	wave, err := s.settleReady(ctx)
	if err != nil {
		return Step{}, err
	}
	if wave.Failed && wave.Done && s.stop == nil && s.mayRollBack() {
		if err := s.beginRollback(ctx); err != nil {
			return Step{}, err
		}
		if wave, err = s.settleReady(ctx); err != nil {
			return Step{}, err
		}
	}
	if err := e.saveLedger(ctx, s.ledger, t.h, t.file.interim(s.ledger)); err != nil {
		return Step{}, err
	}
	t.h.StateETag, t.h.SidecarETag = s.ledger.stateETag, s.ledger.sidecarETag
	s.tellConflicts(ctx)
	if wave.Done {
		if s.held(wave.Failed && s.mayRollBack()) {
			t.rec.Cancelled = t.stop
		}
		return Step{Kind: StepDone}, nil
	}
	wave = s.pace(wave)
	if len(wave.Start)+len(wave.Poll) == 0 {
		return t.waitFor(wave.Wait), nil
	}
	return s.dispatch(ctx, wave)
}

// settleReady folds, and ends every ready operation that needs no call, until what remains is work for the
// provisioners or a wait.
func (s *stackTurn) settleReady(ctx context.Context) (plan.Wave, error) {
	for {
		folded, err := s.e.foldResults(ctx, s.h.Stack, s.ledger, s.ops, s.byID, s.rec.Folded, s.foreign)
		if err != nil {
			return plan.Wave{}, err
		}
		s.foreign = false
		if len(folded) > len(s.rec.Folded) {
			s.resolves = nil
		}
		s.rec.Folded = folded
		wave := plan.Next(s.current(), s.states(), plan.Options{
			Concurrency: s.req.Options.Concurrency, Now: s.now(), KeepGoing: s.h.Command != runlog.CommandDeploy || s.rollback != nil,
			Stop: s.stop != nil,
		})
		ended := len(wave.Skip) > 0
		if err := s.skip(ctx, wave, s.byID); err != nil {
			return plan.Wave{}, err
		}
		for _, id := range wave.Start {
			done, err := s.endInline(ctx, s.byID[id])
			if err != nil {
				return plan.Wave{}, err
			}
			ended = ended || done
		}
		for _, id := range wave.Poll {
			planned := s.byID[id]
			if _, err := s.pollInput(ctx, planned); err != nil {
				if err := s.refuse(ctx, planned, err); err != nil {
					return plan.Wave{}, err
				}
				ended = true
			}
		}
		if !ended {
			return wave, nil
		}
	}
}

// before is the record that an operation starts from: the resource's own, or the old half that it removes.
func (s *stackTurn) before(planned plan.Operation) *state.Resource {
	if strings.HasSuffix(planned.ID, plan.OldSuffix) {
		for _, old := range s.ledger.cleanup {
			// Resources of different types can have one name.
			named := old.Resource.PhysicalID == planned.PhysicalID && old.Resource.ResourceType == planned.Type
			if planned.PhysicalID == "" && old.LogicalID == planned.LogicalID || named {
				return old.Resource
			}
		}
		return nil
	}
	return s.ledger.record.Resources[planned.LogicalID]
}

// pollInput is the input of an operation that has begun. What is in flight goes on with the very request that
// began it; a new attempt is resolved anew.
func (s *stackTurn) pollInput(ctx context.Context, planned plan.Operation) (operationInput, error) {
	op := s.ops[planned.ID]
	if retryDue(op) {
		return s.input(ctx, planned)
	}
	if in, ok := s.inputs[planned.ID]; ok {
		return in, nil
	}
	w, err := s.e.wave(ctx, s.h.RunID, op.Wave)
	if err != nil && !isAbsent(err) {
		return operationInput{}, err
	}
	raw, ok := w.Operations[planned.ID]
	if !ok {
		return s.input(ctx, planned)
	}
	var in operationInput
	if err := unmarshal(raw, &in); err != nil {
		return in, fmt.Errorf("reading the input of %s: %w", planned.ID, err)
	}
	in.Attempt = op.Attempt
	s.inputs[planned.ID] = in
	return in, nil
}

// input resolves what a provisioner needs for one operation.
func (s *stackTurn) input(ctx context.Context, planned plan.Operation) (operationInput, error) {
	if in, ok := s.inputs[planned.ID]; ok {
		return in, nil
	}
	in, err := s.resolve(ctx, planned)
	if err == nil {
		s.inputs[planned.ID] = in
	}
	return in, err
}

func (s *stackTurn) resolve(ctx context.Context, planned plan.Operation) (operationInput, error) {
	in := s.about()
	in.Operation, in.Attempt = planned, s.attempt(planned.ID)
	in.NewAccess, in.Uncounted = s.newAccess(planned), s.freed(s.ops[planned.ID])
	before := s.before(planned)
	if before != nil {
		raw, err := marshal(before)
		if err != nil {
			return in, fmt.Errorf("encoding the record of %s: %w", planned.LogicalID, err)
		}
		in.Before = raw
		in.Route = provider.Route(before.ProvisionedBy)
	}
	switch {
	case planned.Action == plan.ActionDelete || planned.Action == plan.ActionForget:
		in.FinalSnapshot = s.finalSnapshot(planned, before, "")
		return in, nil
	case strings.HasSuffix(planned.ID, plan.UndoSuffix):
		err := s.undoInput(ctx, planned, &in)
		return in, err
	}
	res := s.tmpl.Resources[planned.LogicalID]
	if res == nil {
		return in, fmt.Errorf("the template has no resource %s", planned.LogicalID)
	}
	resolver, err := s.resolver(ctx)
	if err != nil {
		return in, err
	}
	props, err := resolver.ResolveProperties(res.Properties, "Properties")
	if err != nil {
		return in, intrinsic.InResource(err, planned.LogicalID)
	}
	if props == nil {
		props = map[string]any{}
	}
	if t, ok := schema.Lookup(planned.Type); ok {
		props = diff.WithStackTags(t, props, s.file.StackTags)
	}
	v := s.veil()
	compared, err := v.conceal(ctx, &in, props, before, resolver.Resolve)
	if err != nil {
		return in, err
	}
	if err := secretWaits(intrinsic.HasUnknown(in.Properties)); err != nil {
		return in, intrinsic.InResource(err, planned.LogicalID)
	}
	if waits := intrinsic.HasUnknown(in.Properties); len(waits) > 0 {
		return in, intrinsic.InResource(diag.Errorf("a value it refers to does not exist", strings.Join(waits, ", ")), planned.LogicalID)
	}
	in.Dependencies = s.file.Dependencies[planned.LogicalID]
	in.DeletionPolicy, _ = res.DeletionPolicy.(string)
	in.UpdateReplacePolicy, _ = res.UpdateReplacePolicy.(string)
	in.WantAttributes, in.Wait = s.file.Attributes[planned.LogicalID], s.req.Options.Wait
	in.Operation = turned(planned, before, compared)
	if err := v.missingAtTurn(in.Operation, before, compared).Err(); err != nil {
		return in, err
	}
	if in.Operation.Action == plan.ActionReplace {
		in.FinalSnapshot = s.finalSnapshot(in.Operation, before, in.UpdateReplacePolicy)
		in.NameSuffix = token(s.h.RunID, planned.ID, "name", 1)[len("slipway-"):][:6]
		if planned.Type != recordedType(before) {
			in.Route = ""
		} else if via, wanted := s.req.Options.RecreateVia[planned.LogicalID]; wanted {
			in.Route = via
		}
	}
	return in, nil
}

// veil knows the secret places of the run's template.
func (s *stackTurn) veil() *veil {
	return &veil{e: s.e, s: s.req.Stacks[0], t: s.tmpl, f: s.file.Facts, masked: s.ledger.masked, told: s.told()}
}

func recordedType(r *state.Resource) string {
	if r == nil {
		return ""
	}
	return r.ResourceType
}

// resolver resolves against the record as it stands now. A resource that is not in the record is pending.
func (s *stackTurn) resolver(ctx context.Context) (*intrinsic.Resolver, error) {
	if s.resolves == nil {
		scope := s.file.Facts.scope(s.tmpl)
		scope.Resources = withoutMasked(resourcesOf(s.ledger.record), s.ledger.masked)
		if err := s.openAttributes(ctx, scope.Resources); err != nil {
			return nil, err
		}
		s.resolves = intrinsic.NewResolver(scope)
	}
	return s.resolves, nil
}

func resourcesOf(rec *state.Record) map[string]intrinsic.Resource {
	out := make(map[string]intrinsic.Resource, len(rec.Resources))
	for id, r := range rec.Resources {
		out[id] = intrinsic.Resource{Type: r.ResourceType, PhysicalID: r.PhysicalID, Properties: r.Properties, Attributes: r.Attributes}
	}
	return out
}

// dispatch writes the inputs of a wave and shows its items to the state machine.
func (s *stackTurn) dispatch(ctx context.Context, wave plan.Wave) (Step, error) {
	inputs := make(map[string]operationInput, len(wave.Start)+len(wave.Poll))
	var items []Item
	add := func(id string, in operationInput, err error) error {
		if err != nil {
			return fmt.Errorf("preparing %s: %w", id, err)
		}
		inputs[id] = in
		items = append(items, item(in.Operation))
		return nil
	}
	for _, id := range wave.Start {
		in, err := s.input(ctx, s.byID[id])
		if err := add(id, in, err); err != nil {
			return Step{}, err
		}
	}
	for _, id := range wave.Poll {
		in, err := s.pollInput(ctx, s.byID[id])
		if err := add(id, in, err); err != nil {
			return Step{}, err
		}
	}
	items, err := s.writeWave(ctx, inputs, items)
	if err != nil {
		return Step{}, err
	}
	if len(items) == 0 {
		return s.waitFor(0), nil
	}
	ev := runEvent(s.h, s.n, runlog.WaveStarted)
	ev.Wave, ev.Total = s.n, len(items)
	s.e.append(ctx, ev)
	slice := s.slice(len(items), s.inFlight()+len(wave.Start), wave.Waiting)
	return Step{Kind: StepWave, Wave: s.n, Slice: int(slice.Seconds()), Items: items}, nil
}

// inFlight counts the operations that have begun and not ended.
func (s *stackTurn) inFlight() int {
	n := 0
	for _, op := range s.ops {
		if !op.Status.Ended() || retryDue(op) {
			n++
		}
	}
	return n
}

// tellConflicts warns of resources whose record somebody else has changed while this run worked on them.
func (s *stackTurn) tellConflicts(ctx context.Context) {
	for _, id := range s.ledger.conflicts {
		d := conflict(s.h.Stack.Name, id)
		s.h.Diagnostics = append(s.h.Diagnostics, d)
		ev := runEvent(s.h, s.n, runlog.Warned)
		ev.ID = runlog.EventID(s.n, "conflict."+id, runlog.Warned, 0)
		ev.Wave, ev.LogicalID, ev.Message = s.n, id, d.Summary
		s.e.append(ctx, ev)
	}
	s.ledger.conflicts = nil
}

// conflict warns of a resource whose record somebody else has changed while this run worked on it.
func conflict(stack, id string) diag.Diagnostic {
	return diag.Diagnostic{
		Severity: diag.Warning, Stack: stack, LogicalID: id,
		Summary: "the record of " + id + " was changed by another tool during the run",
		Next:    "Compare the resource with its record: slipway drift " + stack + ".",
	}
}

// mayRollBack reports whether a failure of this run is to be undone.
func (s *stackTurn) mayRollBack() bool {
	return s.h.Command == runlog.CommandDeploy && s.rollback == nil && !s.req.Options.NoRollback && s.forwardFailed()
}

// forwardFailed reports whether an operation of the forward phase has failed: a cleanup that fails is not
// undone, it leaves something behind.
func (s *stackTurn) forwardFailed() bool {
	for id, op := range s.ops {
		if op.Status == runlog.OpFailed && s.byID[id].Phase == plan.PhaseForward {
			return true
		}
	}
	return false
}

// sortedIDs returns the keys of a map in order.
func sortedIDs[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
