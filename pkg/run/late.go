package run

import (
	"context"
	"fmt"

	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// checkFirst looks, after the first save of a stack's record, whether the run still was this step's own. The condition of
// that save is only that there is no record, which is true again once others have destroyed the stack: a step that was
// held up for so long would bring back a record of what is gone.
//
// Then every resource in it is looked at, and what is gone is taken out again. The record is not simply removed: whoever
// has fenced the step may have relied on it already.
func (e *Engine) checkFirst(ctx context.Context, l *ledger, h runlog.Header) error {
	now, err := e.Log.Header(ctx, h.RunID)
	if err != nil {
		return fmt.Errorf("reading the header of run %s: %w", h.RunID, err)
	}
	if now.Status == h.Status && now.Epoch == h.Epoch {
		return nil
	}
	var gone []string
	for _, id := range sortedIDs(l.stands.Resources) {
		found, err := e.look(ctx, h.Stack, l.stands.Resources[id])
		if err != nil {
			return err
		}
		if !found.live {
			gone = append(gone, id)
		}
	}
	for _, id := range gone {
		delete(l.record.Resources, id)
	}
	switch {
	case len(gone) == 0:
	case empty(l):
		err = e.States.Delete(ctx, h.Stack.Name, h.Stack.Region, l.stateETag)
	default:
		_, err = e.States.Save(ctx, l.record, l.stateETag)
	}
	if err != nil {
		return fmt.Errorf("taking back the record of stack %s: %w", h.Stack.Name, err)
	}
	return fmt.Errorf("run %s: %w", h.RunID, runlog.ErrFenced)
}
