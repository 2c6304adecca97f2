package plan

import (
	"cmp"
	"slices"
	"time"
)

// MaxItems is the most operations in one wave: the items of the state machine's Map, whose input must stay
// well under 256 KiB.
const MaxItems = 200

// MapWidth is how many items of a wave the state machine works on at once.
const MapWidth = 40

// Status is where an operation stands, as Next sees it.
type Status string

// The statuses. An operation without a state is waiting.
const (
	StatusWaiting   Status = ""
	StatusRunning   Status = "running" // begun, and to be polled (or tried again) from NotBefore on
	StatusSucceeded Status = "succeeded"
	StatusFailed    Status = "failed" // for good: an attempt that is to be repeated is running
	StatusSkipped   Status = "skipped"
)

// Ended reports whether nothing more will happen to the operation.
func (s Status) Ended() bool {
	return s == StatusSucceeded || s == StatusFailed || s == StatusSkipped
}

// OpState is the state of one operation.
type OpState struct {
	Status Status
	// NotBefore is the earliest useful moment for the next poll. Zero means now.
	NotBefore time.Time
}

// Options tune the choice of a wave.
type Options struct {
	// Now is the present; polls are due from their NotBefore on.
	Now time.Time
	// Concurrency, when it is below MapWidth, caps the operations in flight: those of the wave and those
	// that are running. 0, and anything from MapWidth up, leaves it to the Map.
	Concurrency int
	// KeepGoing starts what does not depend on a failure although something has failed. Cleanup and
	// rollback always go on: what they leave out stays behind.
	KeepGoing bool
	// Stop begins nothing, in any phase: what runs is polled to its end, and the rest is skipped then.
	Stop bool
}

// Wave is what to do now.
type Wave struct {
	// Start are operations to begin, Poll ones to continue; together at most MaxItems, each list by the
	// number of operations that wait for it (most first), ties in plan order.
	Start []string
	Poll  []string
	// Skip are operations that will never run, in plan order: what they depend on has failed or is skipped,
	// or the run ends after a failure. Because gives the id of the failed operation behind each, where one is.
	Skip    []string
	Because map[string]string
	// Wait is how long to wait until a poll is due, when there is nothing else to do and Done is false.
	Wait time.Duration
	// Waiting counts the operations that have not begun and are in no list: what the work in flight may
	// still unblock. 0 once nothing new will start.
	Waiting int
	// Done: nothing is running and nothing more will start, once Skip is recorded.
	Done bool
	// Failed: an operation has failed.
	Failed bool
}

// Next chooses the next wave: everything that can make progress now. It is a pure function of the plan and
// the states, so a repeated decision is the same decision.
//
// An operation is ready when all it depends on has succeeded and all it comes after has ended; one of the cleanup phase also needs every
// operation of the forward phase to have succeeded. After a failure in the forward phase nothing new starts,
// and what runs is polled to its end; so it is for a run that is stopped. An operation that can never run, because it depends on something that
// is not in the plan or on itself, is skipped: Next always comes to an end.
//
// It takes O(V·E/64) for a plan of V operations with E dependencies: 10,000 operations in about 20 ms.
func Next(p Plan, states map[string]OpState, opts Options) Wave {
	n := newChoice(p, states)
	var w Wave
	w.Failed = n.failed
	stopped := n.forwardFailed && !opts.KeepGoing || opts.Stop

	n.spreadFailures()
	for i, op := range p.Operations {
		switch {
		case n.blocked[i]:
			w.skip(op.ID, n.cause[i])
		case n.status[i] != StatusWaiting || opts.Stop:
		case op.Phase == PhaseCleanup && n.forwardFailed:
			// Decided below: the cleanup is out of the question, but not before the rest has ended.
		case stopped && op.Phase == PhaseForward:
		case n.ready(i):
			w.Start = append(w.Start, op.ID)
		}
	}
	running := 0
	var soonest time.Time
	for i, op := range p.Operations {
		if n.status[i] != StatusRunning {
			continue
		}
		running++
		at := states[op.ID].NotBefore
		if !at.After(opts.Now) {
			w.Poll = append(w.Poll, op.ID)
		} else if soonest.IsZero() || at.Before(soonest) {
			soonest = at
		}
	}
	if running == 0 && len(w.Start) == 0 {
		// Whatever still waits will never run: the run has failed, or the plan is not one.
		w.Done = true
		for i, op := range p.Operations {
			if n.status[i] == StatusWaiting && !n.blocked[i] {
				if opts.Stop {
					w.skip(op.ID, "")
					continue
				}
				w.skip(op.ID, n.firstFailed)
				w.Failed = true
			}
		}
		w.inPlanOrder(n)
		return w
	}
	n.limit(&w, running, opts)
	for i := range p.Operations {
		if n.status[i] == StatusWaiting && !n.blocked[i] {
			w.Waiting++
		}
	}
	w.Waiting -= len(w.Start)
	if stopped {
		w.Waiting = 0
	}
	if len(w.Start) == 0 && len(w.Poll) == 0 {
		w.Wait = soonest.Sub(opts.Now)
	}
	return w
}

func (w *Wave) skip(id, because string) {
	w.Skip = append(w.Skip, id)
	if because == "" {
		return
	}
	if w.Because == nil {
		w.Because = map[string]string{}
	}
	w.Because[id] = because
}

func (w *Wave) inPlanOrder(n *choice) {
	slices.SortFunc(w.Skip, func(a, b string) int { return n.index[a] - n.index[b] })
}

// choice is the working memory of one decision, by position in the plan.
type choice struct {
	plan   Plan
	index  map[string]int
	status []Status
	// blocked: waiting, and never to run; cause is the failed operation behind it.
	blocked []bool
	cause   []string
	// failed: anything has; forwardFailed: something of the forward phase has, or was skipped; forwardDone:
	// all of it has succeeded.
	failed, forwardFailed, forwardDone bool
	firstFailed                        string
}

func newChoice(p Plan, states map[string]OpState) *choice {
	n := &choice{
		plan: p, index: make(map[string]int, len(p.Operations)), status: make([]Status, len(p.Operations)),
		blocked: make([]bool, len(p.Operations)), cause: make([]string, len(p.Operations)), forwardDone: true,
	}
	for i, op := range p.Operations {
		n.index[op.ID] = i
		n.status[i] = states[op.ID].Status
		if n.status[i] == StatusFailed {
			n.failed = true
			n.firstFailed = cmp.Or(n.firstFailed, op.ID)
		}
		if op.Phase == PhaseForward {
			n.forwardFailed = n.forwardFailed || n.status[i] == StatusFailed || n.status[i] == StatusSkipped
			n.forwardDone = n.forwardDone && n.status[i] == StatusSucceeded
		}
	}
	return n
}

// ready reports whether everything that the operation waits for has succeeded, or has ended where that is enough.
func (n *choice) ready(i int) bool {
	op := n.plan.Operations[i]
	if op.Phase == PhaseCleanup && !n.forwardDone {
		return false
	}
	for _, d := range op.DependsOn {
		if j, ok := n.index[d]; !ok || n.status[j] != StatusSucceeded {
			return false
		}
	}
	for _, d := range op.After {
		// What will never run is as good as ended.
		if j, ok := n.index[d]; ok && !n.status[j].Ended() && !n.blocked[j] {
			return false
		}
	}
	return true
}

// spreadFailures marks every waiting operation that depends, directly or not, on one that has failed or is
// skipped.
func (n *choice) spreadFailures() {
	dependents := make([][]int, len(n.status))
	var queue []int
	for i, op := range n.plan.Operations {
		for _, d := range op.DependsOn {
			if j, ok := n.index[d]; ok {
				dependents[j] = append(dependents[j], i)
			}
		}
		if n.status[i] == StatusFailed {
			n.cause[i] = op.ID
			queue = append(queue, i)
		}
	}
	for i, s := range n.status {
		if s == StatusSkipped {
			queue = append(queue, i)
		}
	}
	for len(queue) > 0 {
		i := queue[0]
		queue = queue[1:]
		for _, d := range dependents[i] {
			if n.status[d] == StatusWaiting && !n.blocked[d] {
				n.blocked[d], n.cause[d] = true, n.cause[i]
				queue = append(queue, d)
			}
		}
	}
}

// limit orders the lists and cuts them: what most operations wait for comes first, and at equal rank a poll
// before a start, since it may end what is begun.
func (n *choice) limit(w *Wave, running int, opts Options) {
	rank := n.plan.graph().TransitiveDependents()
	type candidate struct {
		id   string
		poll bool
	}
	all := make([]candidate, 0, len(w.Start)+len(w.Poll))
	for _, id := range w.Poll {
		all = append(all, candidate{id, true})
	}
	for _, id := range w.Start {
		all = append(all, candidate{id, false})
	}
	slices.SortStableFunc(all, func(a, b candidate) int {
		if c := cmp.Compare(rank[b.id], rank[a.id]); c != 0 {
			return c
		}
		if a.poll != b.poll {
			if a.poll {
				return -1
			}
			return 1
		}
		return n.index[a.id] - n.index[b.id]
	})
	starts := MaxItems
	if opts.Concurrency > 0 && opts.Concurrency < MapWidth {
		starts = max(0, opts.Concurrency-running)
	}
	w.Start, w.Poll = nil, nil
	for _, c := range all {
		switch {
		case len(w.Start)+len(w.Poll) == MaxItems:
			return
		case c.poll:
			w.Poll = append(w.Poll, c.id)
		case len(w.Start) < starts:
			w.Start = append(w.Start, c.id)
		}
	}
}
