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
// The same holds for a run that has saved a record before, which others have removed since: what it has seen to exist a
// moment ago may have gone with it.
//
// Then every resource in it is looked at, and what is gone is taken out again. So is what nobody can read, a custom
// resource, when others have closed the run over another record than the one that this step has put: they have recorded
// all that it had made, and that record was removed with it. Not so where a record stood that said the same already. The
// record is not simply removed: whoever has fenced the step may have relied on it already.
func (e *Engine) checkFirst(ctx context.Context, l *ledger, h runlog.Header, stood bool) error {
	now, err := e.Log.Header(ctx, h.RunID)
	if err != nil {
		return fmt.Errorf("reading the header of run %s: %w", h.RunID, err)
	}
	fenced := now.Status != h.Status || now.Epoch != h.Epoch
	removed := fenced && !stood && now.Status == runlog.StatusClosed && now.StateETag != l.stateETag
	if !fenced && h.StateETag == "" {
		return nil
	}
	for _, id := range sortedIDs(l.stands.Resources) {
		found, err := e.look(ctx, h.Stack, l.stands.Resources[id])
		if err != nil {
			return err
		}
		if !found.live || removed && found.unread {
			delete(l.record.Resources, id)
		}
	}
	if len(l.record.Resources) != len(l.stands.Resources) {
		if l.stateETag, err = e.States.Save(ctx, l.record, l.stateETag); err != nil {
			return fmt.Errorf("taking back a part of the record of stack %s: %w", h.Stack.Name, err)
		}
		l.stands = l.record
		l.record = copyRecord(l.stands, runlog.StackRef{})
	}
	if !fenced {
		return nil
	}
	if empty(l) {
		if err := e.States.Delete(ctx, h.Stack.Name, h.Stack.Region, l.stateETag); err != nil {
			return fmt.Errorf("taking back the record of stack %s: %w", h.Stack.Name, err)
		}
	}
	return fmt.Errorf("run %s: %w", h.RunID, runlog.ErrFenced)
}
