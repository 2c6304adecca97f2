package inprocess

import (
	"context"
	"errors"
	"fmt"

	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// Carrier starts another process that calls Carry for a run, and returns a channel that is closed when that process
// has ended.
type Carrier func(ctx context.Context, runID string) (ended <-chan struct{}, err error)

// Carry carries a run that was submitted to be detached, and returns when it has ended. The execution is made by name,
// so that it is carried once, whoever else tries.
func (p *Plane) Carry(ctx context.Context, runID string) error {
	h, err := p.Engine.Log.Header(ctx, runID)
	if err != nil {
		return fmt.Errorf("reading the header of run %s: %w", runID, err)
	}
	if h.Status == runlog.StatusNew {
		if err := p.start(ctx, h); err != nil {
			return err
		}
	}
	_, err = p.Wait(ctx, runID)
	return err
}

func (p *Plane) start(ctx context.Context, h runlog.Header) error {
	if _, err := p.executor.Start(ctx, runMachine, h.Execution, []byte(`{"runId":"`+h.RunID+`"}`)); err != nil {
		return fmt.Errorf("starting run %s: %w", h.RunID, err)
	}
	return nil
}

// handOver gives a run to a process of its own, and returns once that process carries it. Until then this process is
// the one that has submitted the run: if it dies before, the run is closed as one that was not started, and a carrier
// that comes late finds it closed.
func (p *Plane) handOver(ctx context.Context, h runlog.Header) error {
	if p.Carrier == nil {
		return diag.Errorf("the run can't be detached", "nothing here can carry it on")
	}
	ended, err := p.Carrier(ctx, h.RunID)
	if err != nil {
		return fmt.Errorf("starting a process for run %s: %w", h.RunID, err)
	}
	for {
		now, err := p.Engine.Log.Header(ctx, h.RunID)
		if err != nil {
			return fmt.Errorf("reading the header of run %s: %w", h.RunID, err)
		}
		running, err := p.Running(ctx, h.Execution)
		if err != nil {
			return fmt.Errorf("asking for the execution of run %s: %w", h.RunID, err)
		}
		if running || now.Status != runlog.StatusNew {
			return nil
		}
		select {
		case <-ended:
			return errors.Join(
				diag.Errorf("the run was not started", "the process that was to carry run "+h.RunID+" has ended; its log tells why"),
				p.settle(ctx, h.RunID))
		default:
		}
		if err := (clock.Real{}).Sleep(ctx, p.poll()); err != nil {
			return err
		}
	}
}
