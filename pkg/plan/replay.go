package plan

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/diff"
	"github.com/slipway-cdk/slipway/pkg/graph"
	"github.com/slipway-cdk/slipway/pkg/schema"
	"github.com/slipway-cdk/slipway/pkg/state"
)

// ReplayInput is what the replay of a rollback journal is planned from.
type ReplayInput struct {
	Journal *state.Journal
	// Record is what is recorded now; nil when nothing is.
	Record *state.Record
	// Leftovers are what earlier runs have left to be cleaned up.
	Leftovers []Leftover
	// Lives reports whether the old half of a replacement still exists; see OldHalves.
	Lives func(*state.Resource) bool
	// RevertFailed also undoes what has failed: an update is taken back from what it attempted, and what a creation
	// has left is deleted.
	RevertFailed bool
	// Force gives up what can't be undone for want of a secret: it is left as it is, and leaves the journal.
	Force bool
	// Orphans are resources that the replay leaves as they are. One that was created leaves the record as an orphan.
	Orphans []string
}

// Replay is how a rollback journal is replayed.
type Replay struct {
	Plan Plan `json:"plan"`
	// Entries tell what becomes of every entry of the journal, newest segment first.
	Entries []Entry `json:"entries"`
	// Undone are the entries that are taken back, by Operation.Undoes.
	Undone map[string]Undone `json:"undone,omitempty"`
	// Segments are the segments of the journal, oldest first: what tells them from others.
	Segments []SegmentID `json:"segments"`
	// Initial: the oldest segment is of the stack's first deploy.
	Initial bool `json:"initial,omitempty"`
}

// SegmentID tells a segment of a journal from the others.
type SegmentID struct {
	RunID     string `json:"runId,omitempty"`
	Timestamp int64  `json:"timestamp"`
	Reason    string `json:"reason"`
}

// IDOf is the SegmentID of a segment.
func IDOf(seg state.Segment) SegmentID {
	return SegmentID{RunID: seg.RunID, Timestamp: seg.Timestamp, Reason: seg.Reason}
}

// Fate is what a replay does with an entry of the journal.
type Fate string

// The fates. Only EntryLost leaves something behind that was meant to be undone.
const (
	EntryUndone   Fate = "undo"
	EntryReverted Fate = "reverted" // it has been undone already
	EntryLeft     Fate = "left"     // it is left as it is, as was asked for
	EntryLost     Fate = "lost"     // it can't be undone; Reason says why
)

// Entry is one entry of the journal and its fate.
type Entry struct {
	// Segment is the index of its segment in Replay.Segments.
	Segment   int    `json:"segment"`
	LogicalID string `json:"logicalId"`
	Type      string `json:"type"`
	// Failed: the operation had failed.
	Failed bool `json:"failed,omitempty"`
	Fate   Fate `json:"fate"`
	// Reason says why nothing is undone, or what is lost by undoing it.
	Reason string `json:"reason,omitempty"`
	// Operations are the ids of the operations that undo it.
	Operations []string `json:"operations,omitempty"`
}

// Undone is an entry of the journal that is taken back, in the terms of plans.
type Undone struct {
	LogicalID string `json:"logicalId"`
	Type      string `json:"type"`
	Action    Action `json:"action"`
	// Before is the record from before the entry, nil for a creation.
	Before *state.Resource `json:"before,omitempty"`
	// PhysicalID is the resource that the entry has made or changed.
	PhysicalID string `json:"physicalId,omitempty"`
	// Failed: it had failed. Attempted is then what an update may have left the resource with.
	Failed    bool           `json:"failed,omitempty"`
	Attempted map[string]any `json:"attempted,omitempty"`
}

// BuildReplay plans the undoing of what a rollback journal tells, the newest segment first, by the rules of
// BuildRollback (reference §1.4, §8.6). It may be repeated: what has been undone already, what the record holds no
// more, and what it holds another resource of is not touched.
//
// Operations that are not in each other's way run side by side. Their order is that of the dependencies in the
// record; where a resource was changed by several segments, each undo waits for that of the newer one.
func BuildReplay(in ReplayInput) Replay {
	r := &replay{in: in, now: map[string]*state.Resource{}, took: map[string]int{}}
	r.out.Undone, r.out.Segments, r.out.Entries = map[string]Undone{}, []SegmentID{}, []Entry{}
	r.out.Plan.Version = Version
	if in.Record != nil {
		for id, res := range in.Record.Resources {
			r.now[id] = res
		}
	}
	for _, seg := range in.Journal.Segments {
		r.out.Segments = append(r.out.Segments, IDOf(seg))
	}
	r.out.Initial = len(in.Journal.Segments) > 0 && in.Journal.Segments[0].InitialDeploy
	for i, seg := range slices.Backward(in.Journal.Segments) {
		for _, op := range slices.Backward(seg.FailedOperations) {
			r.failed(i, op)
		}
		for _, op := range slices.Backward(seg.Operations) {
			r.completed(i, op)
		}
	}
	r.out.Plan.Operations = arrange(r.undos, r.order())
	return r.out
}

// OldHalves lists the resources that replacements of the journal have superseded: whether they still exist decides
// how the replacements are taken back.
func OldHalves(j *state.Journal) []*state.Resource {
	var out []*state.Resource
	for _, seg := range j.Segments {
		for _, op := range seg.Operations {
			if op.ChangeType == state.ChangeUpdate && op.PreviousState != nil && replaced(op) {
				out = append(out, op.PreviousState)
			}
		}
	}
	return out
}

// replaced: an update in cdkd's terms that has led to another resource.
func replaced(op state.CompletedOperation) bool {
	was := op.PreviousState
	return op.PhysicalID != "" && (op.PhysicalID != was.PhysicalID || op.ResourceType != was.ResourceType)
}

// replay is the working memory of BuildReplay.
type replay struct {
	in  ReplayInput
	out Replay
	// now is the record as it will be when everything that is planned so far has been undone.
	now   map[string]*state.Resource
	undos []*undoing
	// took counts the undoings of a resource.
	took map[string]int
}

// order is the graph of what depends on what, as it stands in the record.
func (r *replay) order() *graph.Graph {
	g := graph.New(0)
	if r.in.Record != nil {
		for _, id := range sorted(r.in.Record.Resources) {
			g.AddNode(id)
		}
		for _, id := range sorted(r.in.Record.Resources) {
			for _, d := range r.in.Record.Resources[id].Dependencies {
				if g.Has(d) && d != id {
					g.AddEdge(d, id)
				}
			}
		}
	}
	// Records of different ages can contradict each other.
	for cycles := g.Cycles(); len(cycles) > 0; cycles = g.Cycles() {
		for _, c := range cycles {
			e := c.Edges[len(c.Edges)-1]
			g.RemoveEdge(e.From, e.To)
		}
	}
	undone := map[string]bool{}
	for _, u := range r.undos {
		undone[u.node] = true
	}
	return g.Contract(func(id string) bool { return undone[id] })
}

func (r *replay) entry(segment int, id, typ string, failed bool, fate Fate, reason string) {
	r.out.Entries = append(r.out.Entries, Entry{
		Segment: segment, LogicalID: id, Type: typ, Failed: failed, Fate: fate, Reason: reason,
	})
	if fate == EntryLost {
		r.out.Plan.Irreversible = append(r.out.Plan.Irreversible, Irreversible{ID: id, LogicalID: id, Reason: reason})
	}
}

// completed plans what becomes of an operation that had succeeded.
func (r *replay) completed(segment int, op state.CompletedOperation) {
	id, current := op.LogicalID, r.now[op.LogicalID]
	settle := func(fate Fate, reason string) { r.entry(segment, id, op.ResourceType, false, fate, reason) }
	orphan := slices.Contains(r.in.Orphans, id)
	switch {
	case op.ChangeType == state.ChangeDelete && current == nil:
		settle(EntryLost, reasonDeleted)
	case op.ChangeType == state.ChangeDelete:
		settle(EntryReverted, "it exists again")
	case current == nil:
		settle(EntryReverted, "the record has it no more")
	case op.ChangeType == state.ChangeCreate && op.PhysicalID != "" && current.PhysicalID != op.PhysicalID:
		settle(EntryLost, "the record holds another resource under its name: "+current.PhysicalID)
	case op.ChangeType == state.ChangeCreate:
		policy := current.DeletionPolicy
		if orphan {
			policy = "Retain"
		}
		r.undo(segment, Undone{LogicalID: id, Type: current.ResourceType, Action: ActionCreate, PhysicalID: current.PhysicalID}, policy, oldLives, "")
		delete(r.now, id)
	case orphan:
		settle(EntryLeft, "--orphan")
	case op.PreviousState == nil:
		settle(EntryLost, "the journal does not say what it was like before")
	default:
		r.update(segment, op, current)
	}
}

// update plans the taking back of an update or a replacement.
func (r *replay) update(segment int, op state.CompletedOperation, current *state.Resource) {
	id, was := op.LogicalID, op.PreviousState
	settle := func(fate Fate, reason string) { r.entry(segment, id, op.ResourceType, false, fate, reason) }
	undone := Undone{LogicalID: id, Type: current.ResourceType, Action: ActionUpdate, Before: was, PhysicalID: current.PhysicalID}
	old, reason := oldLives, ""
	switch {
	case replaced(op) && same(current, was):
		settle(EntryReverted, "the record holds its old half")
		return
	case op.PhysicalID != "" && current.PhysicalID != op.PhysicalID:
		settle(EntryLost, "the record holds another resource under its name: "+current.PhysicalID)
		return
	case replaced(op):
		undone.Action = ActionReplace
		if !r.in.Lives(was) {
			old = oldGone
			if !diff.Coexist(current, was) {
				old = oldMakesWay
			}
			undone.Type = was.ResourceType
			if diff.Stateful(was) {
				reason = emptied(id, id).Reason
			}
		}
	case recordsEqual(current, was):
		settle(EntryReverted, "the record is as it was")
		return
	case reflect.DeepEqual(current.Properties, was.Properties):
		undone.Action = ActionRecord
	}
	needsValues := undone.Action == ActionUpdate || undone.Action == ActionReplace && old != oldLives
	if path := masked(was.Properties, nil); needsValues && path != "" && r.in.Force {
		settle(EntryLost, withheld(path))
		return
	}
	if reason != "" {
		r.out.Plan.Irreversible = append(r.out.Plan.Irreversible, emptied(id, id))
	}
	r.undo(segment, undone, current.DeletionPolicy, old, reason)
	r.now[id] = was
	if old == oldGone || old == oldMakesWay {
		// Its new id is not known yet: an older segment means it all the same.
		again := *was
		r.now[id] = &again
	}
}

// failed plans what becomes of an operation that had failed.
func (r *replay) failed(segment int, op state.FailedOperation) {
	id, current := op.LogicalID, r.now[op.LogicalID]
	settle := func(fate Fate, reason string) { r.entry(segment, id, op.ResourceType, true, fate, reason) }
	switch was := op.PreviousState; {
	case op.ChangeType == state.ChangeDelete:
		settle(EntryReverted, "its deletion has failed")
	case !r.in.RevertFailed:
		settle(EntryLeft, "it has failed; --revert-failed undoes what it may have changed")
	case slices.Contains(r.in.Orphans, id):
		settle(EntryLeft, "--orphan")
	case op.ChangeType == state.ChangeCreate:
		r.failedCreation(segment, op, current)
	case was == nil || current == nil:
		settle(EntryReverted, "the record has it no more")
	case op.PhysicalID != "" && op.PhysicalID != current.PhysicalID:
		settle(EntryLost, "the record holds another resource under its name: "+current.PhysicalID)
	case op.AttemptedProperties == nil:
		settle(EntryReverted, "nothing was sent for it")
	case op.ResourceType != was.ResourceType || replaces(op):
		settle(EntryReverted, "it was to be replaced, and its old half has not been touched")
	case masked(was.Properties, nil) != "" && r.in.Force:
		settle(EntryLost, withheld(masked(was.Properties, nil)))
	default:
		r.undo(segment, Undone{
			LogicalID: id, Type: current.ResourceType, Action: ActionUpdate, Before: was, PhysicalID: current.PhysicalID,
			Failed: true, Attempted: op.AttemptedProperties,
		}, current.DeletionPolicy, oldLives, "")
		r.now[id] = was
	}
}

// failedCreation plans the removal of what a creation that failed has left.
func (r *replay) failedCreation(segment int, op state.FailedOperation, current *state.Resource) {
	id := op.LogicalID
	if current != nil && op.PhysicalID != "" && current.PhysicalID == op.PhysicalID {
		r.undo(segment, Undone{
			LogicalID: id, Type: current.ResourceType, Action: ActionCreate, PhysicalID: current.PhysicalID, Failed: true,
		}, current.DeletionPolicy, oldLives, "")
		delete(r.now, id)
		return
	}
	for _, l := range r.in.Leftovers {
		if l.LogicalID != id || l.Type != op.ResourceType || op.PhysicalID != "" && l.PhysicalID != op.PhysicalID {
			continue
		}
		if l.RunID != "" && l.RunID != r.out.Segments[segment].RunID {
			continue
		}
		removal := Operation{
			ID: r.id(id) + OldSuffix, Kind: KindResource, Action: ActionDelete, Phase: PhaseRollback, LogicalID: id, Type: l.Type,
			Policy: l.Policy, PhysicalID: l.PhysicalID,
		}
		r.undos = append(r.undos, &undoing{node: id, segment: segment, ops: []Operation{removal}})
		r.entry(segment, id, op.ResourceType, true, EntryUndone, "")
		r.out.Entries[len(r.out.Entries)-1].Operations = []string{removal.ID}
		return
	}
	r.entry(segment, id, op.ResourceType, true, EntryReverted, "it has left nothing")
}

// id makes the id of the next undoing of a resource.
func (r *replay) id(logicalID string) string {
	r.took[logicalID]++
	if n := r.took[logicalID]; n > 1 {
		return fmt.Sprintf("%s.%d%s", logicalID, n, UndoSuffix)
	}
	return logicalID + UndoSuffix
}

// undo plans the taking back of an entry.
func (r *replay) undo(segment int, undone Undone, policy string, old oldHalf, reason string) {
	id := r.id(undone.LogicalID)
	of := strings.TrimSuffix(id, UndoSuffix)
	ops := takeBack(Operation{ID: of, Action: undone.Action, LogicalID: undone.LogicalID, Type: undone.Type, Policy: policy}, id, old)
	if len(ops) == 2 {
		ops[1].PhysicalID, ops[1].Type = undone.PhysicalID, r.now[undone.LogicalID].ResourceType
	}
	r.out.Undone[of] = undone
	r.undos = append(r.undos, &undoing{node: undone.LogicalID, segment: segment, ops: ops, spared: undone.Failed && undone.Action == ActionUpdate})
	r.entry(segment, undone.LogicalID, undone.Type, undone.Failed, EntryUndone, reason)
	entry := &r.out.Entries[len(r.out.Entries)-1]
	for _, op := range ops {
		entry.Operations = append(entry.Operations, op.ID)
	}
}

// replaces reports whether a failed update was a replacement: then its old half was not touched.
func replaces(op state.FailedOperation) bool {
	t, _ := schema.Lookup(op.ResourceType)
	action, _ := diff.Reassess(t, op.ResourceType, op.PreviousState.Properties, op.AttemptedProperties)
	return action == diff.ActionReplace
}

// same reports whether two records are of one resource.
func same(a, b *state.Resource) bool {
	return a.PhysicalID == b.PhysicalID && a.ResourceType == b.ResourceType
}

// recordsEqual reports whether there is nothing to take back between two records of one resource.
func recordsEqual(a, b *state.Resource) bool {
	return same(a, b) && a.DeletionPolicy == b.DeletionPolicy && a.UpdateReplacePolicy == b.UpdateReplacePolicy &&
		slices.Equal(a.Dependencies, b.Dependencies) && reflect.DeepEqual(a.Properties, b.Properties)
}

// mask is what the record holds in place of a secret (reference §7.7).
const mask = "***"

// masked returns the path of the first value that is recorded as "***", "" when there is none.
func masked(v any, at []string) string {
	switch v := v.(type) {
	case string:
		if strings.Contains(v, mask) {
			return strings.Join(at, ".")
		}
	case map[string]any:
		for _, k := range sorted(v) {
			if found := masked(v[k], append(slices.Clone(at), k)); found != "" {
				return found
			}
		}
	case []any:
		for i, x := range v {
			if found := masked(x, append(slices.Clone(at), fmt.Sprint(i))); found != "" {
				return found
			}
		}
	}
	return ""
}

// MaskedPath is the path of the first of a record's properties whose value is not kept but stands as "***", "" when
// there is none: such a record can't be sent to anybody.
func MaskedPath(properties map[string]any) string { return masked(properties, nil) }

func withheld(path string) string {
	return "the value that Properties." + path + " had is a secret and is not kept"
}
