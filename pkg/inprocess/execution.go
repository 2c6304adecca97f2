package inprocess

import (
	"context"
	"fmt"
)

// StartExecution starts an execution of the run machine by name, as Step Functions does for whoever may: one that is
// there already is left as it is.
func (p *Plane) StartExecution(ctx context.Context, name string, input []byte) error {
	if _, err := p.executor.Start(ctx, runMachine, name, input); err != nil {
		return fmt.Errorf("starting execution %s: %w", name, err)
	}
	return nil
}

// WaitExecution returns once an execution that StartExecution has started has ended, whichever way.
func (p *Plane) WaitExecution(ctx context.Context, name string) error {
	if _, err := p.executor.Wait(ctx, runExecutions+name); err != nil {
		return fmt.Errorf("waiting for execution %s: %w", name, err)
	}
	return nil
}
