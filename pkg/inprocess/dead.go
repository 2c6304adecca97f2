package inprocess

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/slipway-cdk/slipway/pkg/asl"
)

// settleDead ends the runs whose process is gone. In the control plane Step Functions tells of an execution
// that has ended badly, and a sweep finds what nobody told of; here whoever comes next does both. A dead
// execution is marked as ended only after its run is settled, so that a process that dies in the middle of
// this leaves the rest to the next one.
func (p *Plane) settleDead(ctx context.Context) error {
	running, err := p.executor.Store.List(ctx, asl.Query{Status: asl.StatusRunning})
	if err != nil {
		return fmt.Errorf("looking for runs whose process is gone: %w", err)
	}
	for _, x := range running {
		if p.Holder.Alive(ctx, x.Holder) {
			continue
		}
		var of struct {
			RunID string `json:"runId"`
		}
		if err := json.Unmarshal(x.Input, &of); err != nil {
			return fmt.Errorf("reading the input of execution %s: %w", x.ARN, err)
		}
		if err := p.settle(ctx, of.RunID); err != nil {
			return err
		}
		if _, err := p.executor.Stop(ctx, x.ARN, "Slipway.ProcessEnded", "The process that ran this execution has ended."); err != nil {
			return fmt.Errorf("ending execution %s: %w", x.ARN, err)
		}
	}
	return p.settleUnstarted(ctx)
}

// settleUnstarted settles the runs that are not closed and whose execution nobody has: their process has ended between
// asking for the run and starting it.
func (p *Plane) settleUnstarted(ctx context.Context) error {
	dead, err := p.Engine.Dead(ctx)
	for _, h := range dead {
		if err := p.settle(ctx, h.RunID); err != nil {
			return err
		}
	}
	return err
}

// settle runs the settle machine on a run and waits for its end.
func (p *Plane) settle(ctx context.Context, runID string) error {
	x, err := p.executor.Start(ctx, settleMachine, "", []byte(`{"runId":"`+runID+`"}`))
	if err != nil {
		return fmt.Errorf("settling run %s: %w", runID, err)
	}
	if x, err = p.executor.Wait(ctx, x.ARN); err != nil {
		return fmt.Errorf("settling run %s: %w", runID, err)
	}
	if x.Status != asl.StatusSucceeded {
		return fmt.Errorf("settling run %s: %s: %s", runID, x.Error, x.Cause)
	}
	return nil
}
