package sim

import (
	"bytes"
	"context"
	"errors"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/objectstore"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/state"
)

// watchObject sees every write of an object before it is made.
func (w *world) watchObject(key string, was objectstore.Object, body []byte, cond objectstore.Condition) {
	switch {
	case strings.HasPrefix(key, "slipway/runs/") && body != nil:
		if was.Body != nil && !bytes.Equal(was.Body, body) {
			w.violate("what a run decides is decided once", "%s is written again as something else", key)
		}
	case strings.HasSuffix(key, "/lock.json"):
		w.watchLock(was, body)
	case strings.HasSuffix(key, "/state.json") && cond == (objectstore.Condition{}):
		w.violate("every write of a record is conditional", "%s is written without a condition", key)
	}
}

// watchLock: a lock of ours goes, or becomes another's, only after the run is closed.
func (w *world) watchLock(was objectstore.Object, body []byte) {
	if was.Body == nil || w.unlocking {
		return
	}
	before, after := ownerIn(was.Body), ownerIn(body)
	if before == after {
		return
	}
	runID, ours := state.RunOfOwner(before)
	if !ours {
		if before != after && !strings.HasPrefix(before, "somebody@cdkd") || body != nil {
			w.violate("nobody takes another tool's lock", "the lock of %s becomes %q", before, after)
		}
		return
	}
	h, err := w.log.Header(context.Background(), runID)
	if err == nil && h.Status != runlog.StatusClosed {
		w.violate("a lock is freed after the end of its run has been told", "run %s is %s and its lock goes", runID, h.Status)
	}
}

func ownerIn(body []byte) string {
	_, after, _ := strings.Cut(string(body), `"owner": "`)
	owner, _, _ := strings.Cut(after, `"`)
	return owner
}

// watchOp sees every record of an operation before it is stored: nobody begins anything on a stack without its lock.
func (w *world) watchOp(h runlog.Header, op runlog.Op) {
	if h.Kind != runlog.KindStack || op.Status != runlog.OpIntent || op.Lease.Holder == "" || w.forced[h.Stack.Name] {
		return
	}
	held, err := w.states.ReadLock(context.Background(), h.Stack.Name, region)
	switch {
	case errors.Is(err, state.ErrNotFound):
		w.violate("nobody works on a stack without its lock", "run %s begins %s and there is no lock", h.RunID, op.OpID)
	case err == nil && held.Owner != h.Owner:
		w.violate("nobody works on a stack without its lock", "run %s begins %s under the lock of %s", h.RunID, op.OpID, held.Owner)
	}
}

// settled checks what must hold whenever everybody has settled.
func (w *world) settled(when string) {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	w.checkRuns(when)
	named := map[string]string{}
	for _, s := range w.stacks {
		w.checkStack(s, when, named)
	}
	for _, key := range sorted(w.cloud.live) {
		t := w.cloud.live[key]
		stackName, id, _ := strings.Cut(t.owner, "/")
		if named[key] != "" || t.foreign || w.mayBeRetained(stackName, id) {
			continue
		}
		w.violate("everything live is named by a record, its orphans or its cleanup list", "%s: %s of %s is live and nothing names it", when, key, t.owner)
	}
}

func (w *world) mayBeRetained(stackName, id string) bool {
	for _, s := range w.stacks {
		if s.name == stackName {
			return s.ever[id]
		}
	}
	return false
}

func (w *world) checkRuns(when string) {
	ctx := context.Background()
	list, err := w.log.ListRuns(ctx, runlog.Filter{})
	if err != nil {
		panic(err) // memory does not fail
	}
	for _, h := range list {
		if h.Status != runlog.StatusClosed {
			w.violate("every run is closed", "%s: run %s (%s %s) is %s", when, h.RunID, h.Command, h.Stack.Name, h.Status)
			continue
		}
		events := w.log.ends(h.RunID)
		for _, ev := range events {
			if ev.Result != h.Result || ev.Counts == nil || *ev.Counts != h.Counts {
				w.violate("the terminal event agrees with the header", "%s: run %s is %s and has told %s", when, h.RunID, h.Result, ev.Result)
			}
		}
		if n := len(events); n != 1 {
			w.violate("a run has exactly one terminal event", "%s: run %s has told its end %d times", when, h.RunID, n)
		}
	}
}

// checkStack checks the files of a stack and collects what they name.
func (w *world) checkStack(s *stack, when string, named map[string]string) {
	ctx := context.Background()
	if lock, err := w.states.ReadLock(ctx, s.name, region); err == nil && !w.leftByTheDead(lock) {
		w.violate("no lock is left", "%s: stack %s is locked by %s", when, s.name, lock.Owner)
	}
	rec, _, err := w.states.Load(ctx, s.name, region)
	if err != nil && !state.IsNotFound(err) {
		w.violate("every file loads", "%s: %v", when, err)
		return
	}
	sidecar, _, err := w.states.LoadSidecar(ctx, s.name, region)
	if err != nil && !state.IsNotFound(err) {
		w.violate("every file loads", "%s: %v", when, err)
		return
	}
	if _, _, err := w.states.LoadJournal(ctx, s.name, region); err != nil && !state.IsNotFound(err) {
		w.violate("every file loads", "%s: %v", when, err)
	}
	for _, old := range sidecar.Pending(rec) {
		named[old.Resource.ResourceType+" "+old.Resource.PhysicalID] = "cleanup"
	}
	if rec == nil {
		return
	}
	for _, o := range rec.Orphans {
		named[o.Resource.ResourceType+" "+o.Resource.PhysicalID] = "orphans"
	}
	for _, id := range sorted(rec.Resources) {
		r := rec.Resources[id]
		key := r.ResourceType + " " + r.PhysicalID
		if named[key] == "record" {
			w.violate("a resource is recorded once", "%s: %s is recorded twice", when, key)
		}
		named[key] = "record"
		t := w.cloud.live[key]
		owner := s.name + "/" + id
		switch {
		case w.touched[owner] || w.untold(s, id, r.ResourceType):
		case t == nil:
			w.violate("everything recorded is live", "%s: %s is recorded as %s and does not exist", when, owner, key)
		}
	}
}

// untold: nobody but its handler could tell that the resource has been removed, by another tool or by a run that has taken
// the lock of another one that went on. Its name is kept.
func (w *world) untold(s *stack, id, typ string) bool {
	return kindOf(typ).custom && (w.forced[s.name] || w.touched[s.name+"/"+id])
}

// leftByTheDead: the process has died between the end of the run and its lock. Without a control plane there is no
// sweep, and the next run takes such a lock over.
func (w *world) leftByTheDead(lock state.StandingLock) bool {
	runID, ours := state.RunOfOwner(lock.Owner)
	if !ours || !w.local || w.s.phase != phaseUnsettled {
		return false
	}
	h, err := w.log.Header(context.Background(), runID)
	return err == nil && h.Status == runlog.StatusClosed
}

// converged checks that the redeploy has worked, that what is recorded is what is live, and that another deploy finds
// nothing to do.
func (w *world) converged(runID string) {
	ctx := context.Background()
	w.s.mu.Lock()
	h, err := w.log.Header(ctx, runID)
	if err != nil || h.Result != runlog.ResultSucceeded {
		w.violate("the last version can be deployed again", "run %s is %s: %s", runID, h.Result, failureOf(h))
	}
	for _, s := range w.stacks {
		rec, _, err := w.states.Load(ctx, s.name, region)
		if err != nil {
			w.violate("the last version can be deployed again", "%v", err)
			break
		}
		for _, r := range s.resources {
			is := rec.Resources[r.id]
			if is == nil || is.ResourceType != r.typ {
				w.violate("the record holds the last version", "%s/%s is recorded as %v", s.name, r.id, is)
				continue
			}
			t := w.cloud.live[is.ResourceType+" "+is.PhysicalID]
			if t == nil && w.untold(s, r.id, is.ResourceType) {
				continue
			}
			if t == nil {
				w.violate("everything recorded is live", "%s/%s is recorded as %s and does not exist", s.name, r.id, is.PhysicalID)
				continue
			}
			recorded, live := textOf(is.ResourceType, is.Properties), textOf(t.typ, t.props)
			if recorded != live && !w.touched[s.name+"/"+r.id] {
				w.violate("what is recorded is what is live", "%s/%s is recorded as %q and is %q", s.name, r.id, recorded, live)
			}
		}
	}
	before := w.cloud.mutations
	w.s.mu.Unlock()
	again := w.redeploy("again")
	w.quiesce()
	w.s.mu.Lock()
	h, err = w.log.Header(ctx, again)
	counts := h.Counts
	counts.Unchanged = 0
	if err != nil || h.Result != runlog.ResultSucceeded || counts != (runlog.Counts{}) || w.cloud.mutations != before {
		w.violate("deployed again, nothing changes", "run %s is %s %+v, %d changes: %s", again, h.Result, h.Counts, w.cloud.mutations-before, failureOf(h))
	}
	w.s.mu.Unlock()
	w.settled("after the second deploy")
}

func failureOf(h runlog.Header) string {
	if h.Failure == nil {
		return ""
	}
	return h.Failure.Summary + ": " + h.Failure.Detail
}

// nothing checks that a destroy has left nothing but what is to be retained.
func (w *world) nothing() {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	for _, s := range w.stacks {
		rec, _, err := w.states.Load(context.Background(), s.name, region)
		// What a rollback has left standing under its policy is remembered.
		if !state.IsNotFound(err) && (err != nil || len(rec.Resources) > 0 || len(rec.Orphans) == 0) {
			w.violate("a destroy leaves nothing", "stack %s still has a record: %v", s.name, err)
		}
	}
	for _, key := range sorted(w.cloud.live) {
		t := w.cloud.live[key]
		stackName, id, _ := strings.Cut(t.owner, "/")
		if !t.foreign && !w.mayBeRetained(stackName, id) {
			w.violate("a destroy leaves nothing", "%s of %s is still live", key, t.owner)
		}
	}
}
