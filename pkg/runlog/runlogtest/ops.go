package runlogtest

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/runlog"
)

func putOp(t *testing.T, s runlog.Store, runID string, op runlog.Op) runlog.Op {
	t.Helper()
	put, err := s.PutOp(ctx(), runID, runlog.StatusOpen, op)
	if err != nil {
		t.Fatalf("PutOp(%s): %v", op.OpID, err)
	}
	return put
}

func intent(opID string) runlog.Op {
	return runlog.Op{
		OpID: opID, Kind: "resource", Action: "create", LogicalID: opID, Attempt: 1, Token: "t-" + opID, Epoch: 1, Wave: 1,
		Status: runlog.OpIntent,
	}
}

func opRoundTrip(t *testing.T, s runlog.Store) {
	create(t, s, header("r1"))
	want := fullOp()
	put := putOp(t, s, "r1", want)
	got, err := s.Op(ctx(), "r1", want.OpID)
	if err != nil {
		t.Fatal(err)
	}
	ops, err := s.Ops(ctx(), "r1")
	if err != nil || len(ops) != 1 {
		t.Fatalf("Ops = %v, %v", ops, err)
	}
	for _, g := range []runlog.Op{got, ops[0]} {
		same(t, "before", g.Before, want.Before)
		same(t, "after", g.After, want.After)
		same(t, "handle", g.Handle.Data, want.Handle.Data)
		g.Before, g.After, g.Handle.Data = put.Before, put.After, put.Handle.Data
		equal(t, "operation", g, put)
	}
	// Members that are gone are gone.
	bare := intent(want.OpID)
	bare.Version = put.Version
	bare = putOp(t, s, "r1", bare)
	if got, err = s.Op(ctx(), "r1", want.OpID); err != nil {
		t.Fatal(err)
	}
	equal(t, "bare operation", got, bare)
}

func opVersions(t *testing.T, s runlog.Store) {
	create(t, s, header("r1"))
	first := putOp(t, s, "r1", intent("A"))
	if first.Version == 0 {
		t.Fatal("a stored operation has version 0")
	}
	_, err := s.PutOp(ctx(), "r1", runlog.StatusOpen, intent("A"))
	wantErr(t, err, runlog.ErrConflict)
	change := first
	change.Status = runlog.OpRunning
	second := putOp(t, s, "r1", change)
	if second.Version == first.Version {
		t.Fatal("the version stayed")
	}
	_, err = s.PutOp(ctx(), "r1", runlog.StatusOpen, first)
	wantErr(t, err, runlog.ErrConflict)
	ghost := intent("B")
	ghost.Version = 1
	_, err = s.PutOp(ctx(), "r1", runlog.StatusOpen, ghost)
	wantErr(t, err, runlog.ErrConflict)
	got, err := s.Op(ctx(), "r1", "A")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "operation", got, second)
}

func opStatusFence(t *testing.T, s runlog.Store) {
	for _, stands := range []runlog.Status{runlog.StatusNew, runlog.StatusOpen, runlog.StatusSettling, runlog.StatusClosed} {
		h := header("run-" + string(stands))
		h.Status = stands
		create(t, s, h)
		for _, in := range []runlog.Status{runlog.StatusNew, runlog.StatusOpen, runlog.StatusSettling, runlog.StatusClosed} {
			_, err := s.PutOp(ctx(), h.RunID, in, intent("op-"+string(in)))
			if in == stands {
				if err != nil {
					t.Fatalf("status %s: %v", stands, err)
				}
				continue
			}
			wantErr(t, err, runlog.ErrFenced)
			_, err = s.Op(ctx(), h.RunID, "op-"+string(in))
			wantErr(t, err, runlog.ErrNotFound)
		}
	}
}

func opEpochFence(t *testing.T, s runlog.Store) {
	h := create(t, s, header("r1"))
	put := putOp(t, s, "r1", intent("A"))
	h.Epoch = 2
	update(t, s, h)
	_, err := s.PutOp(ctx(), "r1", runlog.StatusOpen, put)
	wantErr(t, err, runlog.ErrFenced)
	_, err = s.PutOp(ctx(), "r1", runlog.StatusOpen, intent("B"))
	wantErr(t, err, runlog.ErrFenced)
	early := intent("C")
	early.Epoch = 3
	_, err = s.PutOp(ctx(), "r1", runlog.StatusOpen, early)
	wantErr(t, err, runlog.ErrFenced)
	put.Epoch = 2
	if _, err := s.PutOp(ctx(), "r1", runlog.StatusOpen, put); err != nil {
		t.Fatal(err)
	}
}

func fenceBeforeConflict(t *testing.T, s runlog.Store) {
	h := create(t, s, header("r1"))
	putOp(t, s, "r1", intent("A"))
	h.Status, h.Epoch = runlog.StatusSettling, 2
	update(t, s, h)
	_, err := s.PutOp(ctx(), "r1", runlog.StatusOpen, intent("A"))
	wantErr(t, err, runlog.ErrFenced)
}

func refusedOp(t *testing.T, s runlog.Store) {
	h := create(t, s, header("r1"))
	put := putOp(t, s, "r1", intent("A"))
	h.Status, h.Epoch = runlog.StatusSettling, 2
	update(t, s, h)
	late := put
	late.Status, late.PhysicalID = runlog.OpSucceeded, "too late"
	_, err := s.PutOp(ctx(), "r1", runlog.StatusOpen, late)
	wantErr(t, err, runlog.ErrFenced)
	got, err := s.Op(ctx(), "r1", "A")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "operation", got, put)
}

func opWithoutRun(t *testing.T, s runlog.Store) {
	_, err := s.PutOp(ctx(), "none", runlog.StatusOpen, intent("A"))
	if !errors.Is(err, runlog.ErrNotFound) && !errors.Is(err, runlog.ErrFenced) {
		t.Fatalf("error is %v", err)
	}
	if ops, err := s.Ops(ctx(), "none"); err != nil || len(ops) != 0 {
		t.Fatalf("Ops = %v, %v", ops, err)
	}
}

func raceOp(t *testing.T, s runlog.Store) {
	create(t, s, header("r1"))
	first := func(i int) error {
		op := intent("A")
		op.Lease.Holder = fmt.Sprint("racer ", i)
		_, err := s.PutOp(ctx(), "r1", runlog.StatusOpen, op)
		return err
	}
	won := winner(t, race(30, first), runlog.ErrConflict)
	stored, err := s.Op(ctx(), "r1", "A")
	if err != nil || stored.Lease.Holder != fmt.Sprint("racer ", won) {
		t.Fatalf("racer %d has won, the lease is of %q, %v", won, stored.Lease.Holder, err)
	}
	next := func(i int) error {
		op := stored
		op.Lease.Holder = fmt.Sprint("second ", i)
		_, err := s.PutOp(ctx(), "r1", runlog.StatusOpen, op)
		return err
	}
	won = winner(t, race(30, next), runlog.ErrConflict)
	if got, err := s.Op(ctx(), "r1", "A"); err != nil || got.Lease.Holder != fmt.Sprint("second ", won) {
		t.Fatalf("racer %d has won, the lease is of %q, %v", won, got.Lease.Holder, err)
	}
}

// raceFence lets intents and the fence run at once: what was accepted must be visible to whoever has fenced.
func raceFence(t *testing.T, s runlog.Store) {
	const n = 40
	h := create(t, s, header("r1"))
	var accepted atomic.Int64
	var seen []runlog.Op
	errs := race(n+1, func(i int) error {
		if i < n {
			_, err := s.PutOp(ctx(), "r1", runlog.StatusOpen, intent(fmt.Sprintf("op%02d", i)))
			if err == nil {
				accepted.Add(1)
			}
			return err
		}
		fenced := h
		fenced.Status, fenced.Epoch = runlog.StatusSettling, h.Epoch+1
		if _, err := s.UpdateHeader(ctx(), fenced); err != nil {
			return err
		}
		var err error
		seen, err = s.Ops(ctx(), "r1")
		return err
	})
	for i, err := range errs {
		if err != nil && (i == n || !errors.Is(err, runlog.ErrFenced)) {
			t.Fatalf("racer %d: %v", i, err)
		}
	}
	if int64(len(seen)) != accepted.Load() {
		t.Fatalf("%d intents were accepted, %d were there after the fence", accepted.Load(), len(seen))
	}
}

func opsOrder(t *testing.T, s runlog.Store) {
	create(t, s, header("r1"))
	create(t, s, header("r10"))
	ids := []string{"Queue", "A", "Queue.old", "asset.1", "b", "Z", "Queue.undo", "stack.App~Kid", "B"}
	for _, id := range ids {
		putOp(t, s, "r1", intent(id))
	}
	putOp(t, s, "r10", intent("other"))
	ops, err := s.Ops(ctx(), "r1")
	if err != nil {
		t.Fatal(err)
	}
	got := make([]string, 0, len(ops))
	for _, op := range ops {
		got = append(got, op.OpID)
	}
	slices.Sort(ids)
	if !slices.Equal(got, ids) {
		t.Fatalf("Ops = %v, want %v", got, ids)
	}
}
