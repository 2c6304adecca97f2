package controlplane

import (
	"context"
	"encoding/json"
	"log/slog"

	"github.com/slipway-cdk/slipway/pkg/run"
)

// Planner opens a run, decides its waves and closes it.
func (p *Plane) Planner(ctx context.Context, payload []byte) ([]byte, error) {
	return p.expire(ctx, p.Engine.HandlePlanner, payload)
}

// Provisioner carries out one operation on one resource.
func (p *Plane) Provisioner(ctx context.Context, payload []byte) ([]byte, error) {
	return p.Engine.HandleProvisioner(ctx, payload)
}

// Publisher publishes one asset.
func (p *Plane) Publisher(ctx context.Context, payload []byte) ([]byte, error) {
	return p.Engine.HandlePublisher(ctx, payload)
}

// Janitor settles a run whose execution has died, or sweeps for all of those.
func (p *Plane) Janitor(ctx context.Context, payload []byte) ([]byte, error) {
	return p.expire(ctx, p.Engine.HandleJanitor, payload)
}

// expire lets the journal of a run go, some time after its end. It comes after everything else: the run is
// closed and its lock free. Should it fail, the journal stays, which costs a little storage and nothing else.
func (p *Plane) expire(ctx context.Context, handle func(context.Context, []byte) ([]byte, error), payload []byte) ([]byte, error) {
	out, err := handle(ctx, payload)
	if err != nil || p.env.JournalRetention == 0 {
		return out, err
	}
	for _, runID := range endedRuns(payload, out) {
		if _, err := p.log.Expire(ctx, runID, p.clock.Now().Add(p.env.JournalRetention)); err != nil && p.Engine.Logger != nil {
			p.Engine.Logger.LogAttrs(ctx, slog.LevelWarn, "the journal will not expire", slog.String("runId", runID), slog.String("error", clip(err.Error())))
		}
	}
	return out, nil
}

// endedRuns returns the runs that an answer of the planner or the janitor says are over.
func endedRuns(payload, answer []byte) []string {
	var asked struct {
		Action string `json:"action"`
		RunID  string `json:"runId"`
	}
	var told struct {
		Kind    run.StepKind `json:"kind"`
		Settled bool         `json:"settled"`
		Ended   []string     `json:"ended"`
	}
	if json.Unmarshal(payload, &asked) != nil || json.Unmarshal(answer, &told) != nil {
		return nil
	}
	if asked.Action == run.ActionClose || told.Kind == run.StepRefused || told.Kind == run.StepEnded || told.Settled {
		return []string{asked.RunID}
	}
	return told.Ended
}
