package run

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/intrinsic"
	"github.com/slipway-cdk/slipway/pkg/plan"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/state"
	"github.com/slipway-cdk/slipway/pkg/template"
)

// stackTurn is a turn of a stack's own run.
type stackTurn struct {
	*turn
	ledger *ledger
	tmpl   *template.Template // nil for a destroy
	byID   map[string]plan.Operation
}

// decideStack renews the lock, folds results, saves the state, and chooses the next wave.
func (t *turn) decideStack(ctx context.Context) (Step, error) {
	e := t.e
	lock, err := e.States.Attach(ctx, t.h.Stack.Name, t.h.Stack.Region, t.h.Owner)
	if err != nil {
		return Step{}, err
	}
	if err := lock.Renew(ctx); err != nil {
		return Step{}, err
	}
	s := &stackTurn{turn: t, byID: index(t.current())}
	if s.ledger, err = e.loadLedger(ctx, t.h.Stack); err != nil {
		return Step{}, err
	}
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
	if wave.Failed && wave.Done && s.mayRollBack() {
		if err := s.beginRollback(ctx); err != nil {
			return Step{}, err
		}
		if wave, err = s.settleReady(ctx); err != nil {
			return Step{}, err
		}
	}
	if err := e.saveLedger(ctx, s.ledger, t.h.RunID, t.file.generation()); err != nil {
		return Step{}, err
	}
	t.h.StateETag, t.h.SidecarETag = s.ledger.stateETag, s.ledger.sidecarETag
	if wave.Done {
		return Step{Kind: StepDone}, nil
	}
	if len(wave.Start)+len(wave.Poll) == 0 {
		return t.waitStep(wave.Wait), nil
	}
	return s.dispatch(ctx, wave)
}

// settleReady folds, and ends every ready operation that needs no call, until what remains is work for the
// provisioners or a wait.
func (s *stackTurn) settleReady(ctx context.Context) (plan.Wave, error) {
	for {
		folded, err := s.ledger.foldAll(s.ops, s.byID, s.rec.Folded)
		if err != nil {
			return plan.Wave{}, err
		}
		s.rec.Folded = folded
		wave := plan.Next(s.current(), s.states(), plan.Options{
			Concurrency: s.req.Options.Concurrency, Now: s.e.Clock.Now(), KeepGoing: s.h.Command == runlog.CommandDestroy || s.rollback != nil,
		})
		ended := len(wave.Skip) > 0
		if err := s.skip(ctx, wave.Skip, s.byID); err != nil {
			return plan.Wave{}, err
		}
		for _, id := range wave.Start {
			done, err := s.endInline(ctx, s.byID[id])
			if err != nil {
				return plan.Wave{}, err
			}
			ended = ended || done
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
			if planned.PhysicalID == "" && old.LogicalID == planned.LogicalID || old.Resource.PhysicalID == planned.PhysicalID {
				return old.Resource
			}
		}
		return nil
	}
	return s.ledger.record.Resources[planned.LogicalID]
}

// input resolves what a provisioner needs for one operation.
func (s *stackTurn) input(planned plan.Operation) (operationInput, error) {
	in := s.about()
	in.Operation, in.Attempt = planned, s.attempt(planned.ID)
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
		return in, nil
	case strings.HasSuffix(planned.ID, plan.UndoSuffix):
		return in, s.undoInput(planned, &in)
	}
	res := s.tmpl.Resources[planned.LogicalID]
	if res == nil {
		return in, fmt.Errorf("the template has no resource %s", planned.LogicalID)
	}
	props, err := s.resolver().ResolveProperties(res.Properties, "Properties")
	if err != nil {
		return in, intrinsic.InResource(err, planned.LogicalID)
	}
	if waits := intrinsic.HasUnknown(props); len(waits) > 0 {
		return in, intrinsic.InResource(diag.Errorf("a value it refers to does not exist", strings.Join(waits, ", ")), planned.LogicalID)
	}
	if props == nil {
		props = map[string]any{}
	}
	in.Properties = props
	in.Dependencies = s.file.Dependencies[planned.LogicalID]
	in.DeletionPolicy, _ = res.DeletionPolicy.(string)
	in.UpdateReplacePolicy, _ = res.UpdateReplacePolicy.(string)
	in.WantAttributes = s.file.Attributes[planned.LogicalID]
	in.Operation = turned(planned, before, props)
	if in.Operation.Action == plan.ActionReplace {
		in.NameSuffix = token(s.h.RunID, planned.ID, "name", 1)[len("slipway-"):][:6]
		if planned.Type != recordedType(before) {
			in.Route = ""
		}
	}
	return in, nil
}

func recordedType(r *state.Resource) string {
	if r == nil {
		return ""
	}
	return r.ResourceType
}

// resolver resolves against the record as it stands now. A resource that is not in the record is pending.
func (s *stackTurn) resolver() *intrinsic.Resolver {
	scope := s.file.Facts.scope(s.tmpl)
	scope.Resources = resourcesOf(s.ledger.record)
	return intrinsic.NewResolver(scope)
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
	ids := slices.Concat(wave.Start, wave.Poll)
	inputs := make(map[string]operationInput, len(ids))
	step := Step{Kind: StepWave, Wave: s.n, Slice: int(longSlice.Seconds())}
	for _, id := range ids {
		in, err := s.input(s.byID[id])
		if err != nil {
			return Step{}, fmt.Errorf("preparing %s: %w", id, err)
		}
		inputs[id] = in
		step.Items = append(step.Items, item(in.Operation))
	}
	if wave.Waiting > 0 {
		step.Slice = int(shortSlice.Seconds())
	}
	if err := s.writeWave(ctx, inputs); err != nil {
		return Step{}, err
	}
	ev := runEvent(s.h, s.n, runlog.WaveStarted)
	ev.Wave, ev.Total = s.n, len(ids)
	s.e.append(ctx, ev)
	return step, nil
}

// template reads and parses a stored template.
func (e *Engine) template(ctx context.Context, key string) (*template.Template, error) {
	obj, err := e.Objects.Get(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("reading the template %s: %w", key, err)
	}
	t, err := template.Parse(obj.Body)
	if err != nil {
		return nil, err
	}
	return t, nil
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
