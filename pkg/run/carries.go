package run

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// carries reports whether an execution may work on a run: its own first one, or a successor of that. Whoever may start
// executions may start one with the id of somebody else's run, and that must do nothing to the run. "" is a call that no
// execution makes.
func carries(h runlog.Header, execution string) bool {
	if execution == "" || execution == h.Execution || execution == executionOf(h) {
		return true
	}
	// A successor's name begins with the subject and the decision that it goes on with; where that was too long, with a
	// part of it and a digest.
	tail := "-" + string(h.Command) + "-" + h.RunID
	if !strings.HasSuffix(execution, tail) {
		return false
	}
	head := strings.TrimSuffix(execution, tail)
	if n, err := strconv.Atoi(head[strings.LastIndexByte(head, '-')+1:]); err == nil && successorOf(h, n) == execution {
		return true
	}
	for n := h.Decision + 1; n > 0; n-- {
		if successorOf(h, n) == execution {
			return true
		}
	}
	return false
}

// stranger refuses an execution that a run does not know.
func stranger(h runlog.Header, execution string) error {
	return &HandlerError{Name: ErrorBadRequest, Err: fmt.Errorf("run %s is not carried by execution %s", h.RunID, execution)}
}

// settleAsked settles a run, unless it was another's execution that has died.
func (e *Engine) settleAsked(ctx context.Context, in SettleInput) (Settled, error) {
	if in.Asked == nil || in.Asked.Dead == "" {
		return e.Settle(ctx, in.RunID)
	}
	h, err := e.Log.Header(ctx, in.RunID)
	if err != nil && !errors.Is(err, runlog.ErrNotFound) {
		return Settled{}, fmt.Errorf("reading the header of run %s: %w", in.RunID, err)
	}
	if err == nil && !carries(h, in.Asked.Dead) {
		e.logger().LogAttrs(ctx, slog.LevelWarn, "an execution has died that does not carry the run which it names",
			slog.String("run", in.RunID), slog.String("execution", in.Asked.Dead))
		return Settled{RunID: in.RunID, Settled: true}, nil
	}
	return e.Settle(ctx, in.RunID)
}
