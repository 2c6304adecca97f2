package inprocess

import (
	"context"
	"fmt"

	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// Cancel asks a run to end. The process that carries it sees that at its next decision; where that process is gone
// there is nobody to see it, and the run is settled here.
func (p *Plane) Cancel(ctx context.Context, runID, by string) error {
	if err := p.Engine.Cancel(ctx, runID, by); err != nil {
		return err
	}
	return p.settleDead(ctx)
}

// attend waits for the end of a run that another process carries, and settles it when that process ends first.
func (p *Plane) attend(ctx context.Context, runID string) error {
	for n := 0; ; n++ {
		h, err := p.Engine.Log.Header(ctx, runID)
		if err != nil {
			return fmt.Errorf("reading the header of run %s: %w", runID, err)
		}
		if h.Status == runlog.StatusClosed {
			return nil
		}
		if n%10 == 9 {
			// It may be another run's process that is gone: the deployment's that has not come to start this one.
			if running, err := p.Running(ctx, h.Execution); err == nil && !running {
				if err := p.settleDead(ctx); err != nil {
					return err
				}
			}
		}
		// Other processes tell real time.
		if err := (clock.Real{}).Sleep(ctx, 2*p.poll()); err != nil {
			return err
		}
	}
}

// ours reports whether this process carries an execution.
func (p *Plane) ours(ctx context.Context, name string) bool {
	x, err := p.executor.Describe(ctx, runExecutions+name)
	return err == nil && x.Holder == p.Holder.Name()
}
