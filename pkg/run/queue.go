package run

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/objectstore"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/state"
)

// Runs that wait for the lock of a stack stand in a line: a ticket for each, an object below the stack's own prefix
// whose key sorts by when the run came. Whoever comes looks at the line first, so nobody overtakes. A ticket counts as
// long as its run can still use it; that of a run that has ended or died, or whose time is over, is removed by whoever
// sees it. Where that was a mistake, the run puts it back in the same place at its next look.

// MaxWaitForLock is the longest that a run may wait for a lock, in seconds. Every look at the lock adds to the history
// of the run's execution, which has a limit.
const MaxWaitForLock = 2 * 60 * 60

// arrival is slipway/runs/{id}/queue.json: when a run began to wait for the lock, and until when it does. It is
// written once, before the ticket, so that every try finds the same place in the line.
type arrival struct {
	At    time.Time `json:"at"`
	Until time.Time `json:"until"`
}

// ticket is one place in the line.
type ticket struct {
	RunID string `json:"runId"`
	arrival

	key string
}

func arrivalKey(runID string) string { return "slipway/runs/" + runID + "/queue.json" }

func (e *Engine) ticketKey(h runlog.Header, a arrival) string {
	return fmt.Sprintf("%s%013d~%s.json", e.States.QueuePrefix(h.Stack.Name, h.Stack.Region), a.At.UnixMilli(), h.RunID)
}

// runOfTicket is the run that a ticket's key names.
func runOfTicket(key string) string {
	_, id, _ := strings.Cut(key[strings.LastIndex(key, "/")+1:], "~")
	return strings.TrimSuffix(id, ".json")
}

// awaitLock takes the stack's lock when it is this run's turn. Else it says for how many seconds to wait, or, for a run
// that does not wait or has waited long enough, what is in the way.
func (e *Engine) awaitLock(ctx context.Context, h runlog.Header, req Request) (refused *diag.Diagnostic, wait int, err error) {
	line, own, err := e.line(ctx, h)
	if err != nil {
		return nil, 0, err
	}
	ahead := 0
	for _, t := range line {
		if own == "" || t.key < own {
			ahead++
		}
	}
	held, wait, err := e.lockInTurn(ctx, h, ahead)
	switch {
	case err != nil || wait > 0:
		return nil, wait, err
	case held == nil && ahead == 0:
		if own == "" {
			return nil, 0, nil
		}
		return nil, 0, e.dropTicket(ctx, own)
	case held != nil && held.Holder.Owner == h.Owner:
		// It has the lock since an earlier try, which may have died before it gave up its ticket.
		return nil, 0, e.leaveLine(ctx, h)
	}
	if req.Options.WaitForLock <= 0 {
		return inTheWay(h, held, ahead, false), 0, nil
	}
	a, err := e.arrive(ctx, h, req)
	if err != nil {
		return nil, 0, err
	}
	now := e.Clock.Now()
	if !now.Before(a.Until) {
		return inTheWay(h, held, ahead, true), 0, e.leaveLine(ctx, h)
	}
	e.tellWaiting(ctx, h, held, ahead)
	seconds := patience(now.Sub(a.At))
	return nil, seconds, e.linger(ctx, time.Duration(seconds)*time.Second/3)
}

// lockInTurn takes the lock where nobody is ahead; else it only looks who has it. held is the lock that stands, nil
// where this run has taken it or none stands.
func (e *Engine) lockInTurn(ctx context.Context, h runlog.Header, ahead int) (held *state.LockedError, wait int, err error) {
	if ahead == 0 {
		return e.lock(ctx, h)
	}
	standing, err := e.States.ReadLock(ctx, h.Stack.Name, h.Stack.Region)
	switch {
	case state.IsNotFound(err):
		return nil, 0, nil
	case err != nil:
		return nil, 0, err
	}
	held = &state.LockedError{Holder: standing.LockInfo, Stack: standing.Stack, Region: standing.Region, Standing: standing, Now: e.Clock.Now()}
	if standing.Owner == h.Owner {
		lock, err := e.States.Attach(ctx, h.Stack.Name, h.Stack.Region, h.Owner)
		if err != nil {
			return nil, 0, err
		}
		return held, 0, lock.Renew(ctx)
	}
	return held, 0, nil
}

// line lists the runs that wait for the lock, in order, and removes the tickets that don't count any more. own is the
// key of this run's ticket, wherever it stands or would stand; "" for a run that has not begun to wait.
func (e *Engine) line(ctx context.Context, h runlog.Header) (line []ticket, own string, err error) {
	infos, err := e.Objects.List(ctx, e.States.QueuePrefix(h.Stack.Name, h.Stack.Region))
	if err != nil {
		return nil, "", fmt.Errorf("listing the runs that wait for stack %s: %w", h.Stack.Name, err)
	}
	for _, info := range infos {
		if runOfTicket(info.Key) == h.RunID {
			own = info.Key
			continue
		}
		t, waits, err := e.waiting(ctx, info.Key)
		if err != nil {
			return nil, "", err
		}
		if waits {
			line = append(line, t)
			continue
		}
		if err := e.dropTicket(ctx, info.Key); err != nil {
			return nil, "", err
		}
	}
	if own == "" && len(line) > 0 {
		var a arrival
		err := getJSON(ctx, e.Objects, arrivalKey(h.RunID), &a)
		switch {
		case err == nil:
			own = e.ticketKey(h, a)
		case !isAbsent(err):
			return nil, "", err
		}
	}
	return line, own, nil
}

// waiting reads a ticket and reports whether its run still waits.
func (e *Engine) waiting(ctx context.Context, key string) (t ticket, waits bool, err error) {
	obj, err := e.Objects.Get(ctx, key)
	if isAbsent(err) {
		return t, false, nil
	}
	if err != nil {
		return t, false, fmt.Errorf("reading %s: %w", key, err)
	}
	if unmarshal(obj.Body, &t) != nil || !e.Clock.Now().Before(t.Until) {
		return t, false, nil // its time is over, or it is no ticket
	}
	t.key = key
	h, err := e.Log.Header(ctx, runOfTicket(key))
	switch {
	case errors.Is(err, runlog.ErrNotFound):
		return t, false, nil
	case err != nil:
		return t, false, fmt.Errorf("reading the header of run %s: %w", runOfTicket(key), err)
	case h.Status != runlog.StatusNew || h.Result != "":
		return t, false, nil // it has the lock, or has ended
	}
	running, err := e.Executions.Running(ctx, executionOf(h))
	if err != nil {
		return t, false, fmt.Errorf("asking for the execution of run %s: %w", h.RunID, err)
	}
	return t, running, nil
}

// arrive puts this run into the line, unless it stands there.
func (e *Engine) arrive(ctx context.Context, h runlog.Header, req Request) (arrival, error) {
	at := e.Clock.Now().UTC().Truncate(time.Millisecond)
	a := arrival{At: at, Until: at.Add(time.Duration(min(req.Options.WaitForLock, MaxWaitForLock)) * time.Second)}
	if err := putOnce(ctx, e.Objects, arrivalKey(h.RunID), &a); err != nil {
		return a, err
	}
	return a, putOnce(ctx, e.Objects, e.ticketKey(h, a), &ticket{RunID: h.RunID, arrival: a})
}

// leaveLine gives up a run's place, if it has one.
func (e *Engine) leaveLine(ctx context.Context, h runlog.Header) error {
	var a arrival
	err := getJSON(ctx, e.Objects, arrivalKey(h.RunID), &a)
	if isAbsent(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return e.dropTicket(ctx, e.ticketKey(h, a))
}

func (e *Engine) dropTicket(ctx context.Context, key string) error {
	if err := e.Objects.Delete(ctx, key, objectstore.Condition{}); err != nil && !isAbsent(err) {
		return fmt.Errorf("removing %s: %w", key, err)
	}
	return nil
}

// patience is how many seconds pass until the next look at the lock: 1, 1, 2, 3, 5, then 10.
func patience(waited time.Duration) int {
	for _, step := range []struct {
		until   time.Duration
		seconds int
	}{{2 * time.Second, 1}, {4 * time.Second, 2}, {7 * time.Second, 3}, {20 * time.Second, 5}} {
		if waited < step.until {
			return step.seconds
		}
	}
	return 10
}

// linger waits in real time where the clock is scaled: what another process does is not sped up by it, and looking
// again and again would only fill the run's history.
func (e *Engine) linger(ctx context.Context, d time.Duration) error {
	if e.Outside == nil {
		return nil
	}
	return e.Outside.Sleep(ctx, d)
}

func others(n int) string {
	if n == 1 {
		return "1 run is waiting for its lock"
	}
	return fmt.Sprintf("%d runs are waiting for its lock", n)
}

// inTheWay says why a run can't have the lock: who holds it, and how many came before.
func inTheWay(h runlog.Header, held *state.LockedError, ahead int, waited bool) *diag.Diagnostic {
	d := &diag.Diagnostic{Severity: diag.Error, Stack: h.Stack.Name, Summary: "stack " + h.Stack.Name + " is locked", Next: "Run the command again when the other run is done, or let it wait with --wait-for-lock 10m."}
	switch {
	case held != nil:
		d.Detail = held.Error()
	case ahead > 0:
		d.Summary = "it is not this run's turn on stack " + h.Stack.Name
	}
	if ahead > 0 {
		d.Detail = strings.TrimPrefix(d.Detail+"; "+others(ahead), "; ")
		d.Next = "Run the command again with --wait-for-lock 10m: it takes its place in the line."
	}
	if waited {
		d.Summary += ", and the time to wait is over"
		d.Next = "Run the command again when the other run is done, or give it more time with --wait-for-lock."
	}
	return d
}

// tellWaiting writes an event whenever it changes for what the run waits.
func (e *Engine) tellWaiting(ctx context.Context, h runlog.Header, held *state.LockedError, ahead int) {
	ev := runEvent(h, 0, runlog.WaitingForLock)
	ev.Message = fmt.Sprintf("place %d in the line", ahead+1)
	if held != nil {
		ev.Message = "the lock is held by " + held.Standing.Who() + "; " + ev.Message
	}
	ev.ID = runlog.EventID(0, "lock."+digest(ev.Message)[:8], runlog.WaitingForLock, 0)
	e.append(ctx, ev)
}
