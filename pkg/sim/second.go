package sim

import (
	"context"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/state"
)

// forceUnlock removes the lock of a stack, whoever has it, as somebody with force-unlock does who thinks that its
// holder is dead. Sometimes another tool takes it at once.
func (w *world) forceUnlock() {
	rng := w.s.faults.rng
	s := w.stacks[rng.IntN(len(w.stacks))]
	taken := rng.IntN(2) == 0
	held, err := w.states.ReadLock(context.Background(), s.name, region)
	if err != nil {
		return
	}
	w.s.note("somebody", "force-unlock", s.name+" "+held.Owner)
	w.forced[s.name] = true
	if runID, ours := state.RunOfOwner(held.Owner); ours {
		if h, err := w.log.Header(context.Background(), runID); err == nil && h.Status != runlog.StatusClosed {
			w.s.met[LostLock] = true
		}
	}
	w.unlocking = true
	_, err = w.states.ForceUnlock(context.Background(), s.name, region)
	w.unlocking = false
	if err != nil {
		panic(err) // memory does not fail
	}
	if taken {
		w.second(s)
	}
}

// secondWriter lets another tool work on a stack.
func (w *world) secondWriter() {
	w.second(w.stacks[w.s.faults.rng.IntN(len(w.stacks))])
}

// second is another tool: it takes the lock in its own format when that is free, changes one resource, saves the
// record on condition that it still is what was read, and gives the lock up.
func (w *world) second(s *stack) {
	rng := w.s.faults.rng
	what, at, tag := rng.IntN(4), rng.IntN(100), number(rng.IntN(1<<20))
	if w.others[s.name] {
		return // what two of them do to each other is not ours to mend
	}
	p := w.process("cdkd on " + s.name)
	p.steady = true
	w.others[s.name] = true
	go func() {
		defer func() {
			w.s.mu.Lock()
			defer w.s.mu.Unlock()
			delete(w.others, s.name)
		}()
		states := &state.Store{Objects: gatedObjects{p, w.objects}, Clock: p}
		ctx := context.Background()
		lock, err := states.Acquire(ctx, s.name, region, "somebody@cdkd:4711", "deploy")
		if err != nil {
			return
		}
		defer lock.Release(ctx) //nolint:errcheck // a lock that is gone is gone
		w.s.met[OtherTool] = true
		removed := "" // what it has removed from the account, in an earlier try
		for range 6 {
			rec, etag, err := states.Load(ctx, s.name, region)
			if err != nil || len(rec.Resources) == 0 {
				return
			}
			w.s.park(&gate{p: p, method: "works", detail: s.name})
			w.s.mu.Lock()
			if !forget(rec, removed) {
				removed = w.work(s, rec, what, at, tag)
			}
			w.s.mu.Unlock()
			// It rebuilds the top level from what it knows.
			rec.Orphans, rec.Extra = nil, nil
			if _, err = states.Save(ctx, rec, etag); err == nil || !strings.Contains(err.Error(), "modified") {
				return
			}
		}
	}()
}

// forget takes a resource out of a record, by type and physical id, and reports whether it was there.
func forget(rec *state.Record, key string) bool {
	for id, r := range rec.Resources {
		if r.ResourceType+" "+r.PhysicalID == key {
			delete(rec.Resources, id)
			return true
		}
	}
	return false
}

// work changes one resource of a record and the account. It returns what it has removed.
func (w *world) work(s *stack, rec *state.Record, what, at int, tag string) (removed string) {
	ids := sorted(rec.Resources)
	id := ids[at%len(ids)]
	r := rec.Resources[id]
	w.touched[s.name+"/"+id] = true
	c := w.cloud
	t := c.live[r.ResourceType+" "+r.PhysicalID]
	switch {
	case what == 0 && t != nil:
		if !w.forced[s.name] || !s.pinned(id) {
			c.removeLocked(t)
			delete(rec.Resources, id)
			return r.ResourceType + " " + r.PhysicalID
		}
	case what == 1:
		id, typ := "X"+tag, "AWS::EC2::InternetGateway"
		props := map[string]any{"Tags": []any{map[string]any{"Key": "text", "Value": s.name + "/" + id + " foreign"}}}
		pid := "foreign-" + tag
		if c.live[typ+" "+pid] == nil {
			c.live[typ+" "+pid] = &thing{typ: typ, id: pid, props: props, owner: s.name + "/" + id, foreign: true}
		}
		rec.Resources[id] = &state.Resource{PhysicalID: pid, ResourceType: typ, Properties: props, ProvisionedBy: "cc-api", Attributes: map[string]any{"InternetGatewayId": pid}}
	case t != nil && kindOf(t.typ).text == "Tags":
		props := map[string]any{}
		for k, v := range r.Properties {
			props[k] = v
		}
		props["Tags"] = []any{map[string]any{"Key": "text", "Value": s.name + "/" + id + " changed " + tag}}
		changed := *r
		changed.Properties = props
		rec.Resources[id] = &changed
		live := map[string]any{}
		for k, v := range t.props {
			live[k] = v
		}
		live["Tags"] = props["Tags"]
		t.props = live
	}
	return ""
}

func (s *stack) pinned(id string) bool { return len(s.resources) > 0 && s.resources[0].id == id }
