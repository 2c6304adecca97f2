package run

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/plan"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/state"
)

// ledger is the recorded state of one stack while a run works on it: the record, the old halves that wait for
// their deletion, and what is needed to save both conditionally.
type ledger struct {
	record *state.Record
	// stands is the record as it was loaded or last saved, nil when there is none.
	stands      *state.Record
	stateETag   string
	sidecar     *state.Sidecar
	sidecarETag string
	// journalETag is that of the rollback journal, where it was looked at: at the end of a run.
	journalETag string
	cleanup     []state.OldHalf
	// generation is what the sidecar knows of the record as it was loaded, nil when nothing; masked its digests of
	// what the record holds as "***", kept up to date.
	generation *state.Generation
	masked     map[string]string
	// changed: the record differs from what stands; cleanupChanged: the old halves do.
	changed, cleanupChanged bool
	// asked are the live resources that folding has to know of, by type and physical id, and answers what is known.
	asked   map[string]*state.Resource
	answers map[string]answer
	// conflicts names the resources whose record somebody else has changed meanwhile.
	conflicts []string
}

// loadLedger reads a stack's record and sidecar.
func (e *Engine) loadLedger(ctx context.Context, ref runlog.StackRef) (*ledger, error) {
	l := &ledger{}
	rec, etag, err := e.States.Load(ctx, ref.Name, ref.Region)
	switch {
	case state.IsNotFound(err):
	case err != nil:
		return nil, err
	default:
		l.stands, l.stateETag = rec, etag
	}
	sidecar, etag, err := e.States.LoadSidecar(ctx, ref.Name, ref.Region)
	switch {
	case state.IsNotFound(err):
		l.sidecar = &state.Sidecar{StackName: ref.Name, Region: ref.Region}
	case err != nil:
		return nil, err
	default:
		l.sidecar, l.sidecarETag = sidecar, etag
	}
	standing, err := state.Digest(l.stands)
	if err != nil {
		return nil, err
	}
	l.masked = map[string]string{}
	if l.generation = l.sidecar.For(standing); l.generation != nil {
		maps.Copy(l.masked, l.generation.Masked)
	}
	l.cleanup = l.sidecar.Pending(l.stands)
	l.record = copyRecord(l.stands, ref)
	return l, nil
}

// copyRecord copies what folding changes: the map of resources, not the resources.
func copyRecord(rec *state.Record, ref runlog.StackRef) *state.Record {
	if rec == nil {
		return &state.Record{
			Version: state.SchemaVersion, StackName: ref.Name, Region: ref.Region,
			Resources: map[string]*state.Resource{}, Outputs: map[string]any{},
		}
	}
	c := *rec
	c.Resources = maps.Clone(rec.Resources)
	if c.Resources == nil {
		c.Resources = map[string]*state.Resource{}
	}
	return &c
}

// saveLedger saves what has changed: the sidecar before the record.
func (e *Engine) saveLedger(ctx context.Context, l *ledger, h runlog.Header, gen state.Generation) error {
	l.sidecar.Cleanup = slices.Clone(l.cleanup)
	for i := range l.sidecar.Cleanup {
		if l.sidecar.Cleanup[i].RunID == "" {
			l.sidecar.Cleanup[i].RunID = h.RunID
			l.sidecar.Cleanup[i].Since = e.Clock.Now().UnixMilli()
		}
	}
	gen.RunID, gen.Masked = h.RunID, l.masked
	switch {
	case l.changed:
		was, err := state.Digest(l.stands)
		if err != nil {
			return err
		}
		saved, err := e.States.SaveWithSidecar(ctx, state.Save{
			Record: l.record, StateETag: l.stateETag, Was: was,
			Sidecar: l.sidecar, SidecarETag: l.sidecarETag, Next: gen,
		})
		l.sidecar, l.sidecarETag = saved.Sidecar, saved.SidecarETag
		if err != nil {
			return err
		}
		first := l.stateETag == ""
		l.stateETag = saved.StateETag
		l.stands = l.record
		l.record = copyRecord(l.stands, runlog.StackRef{})
		if first {
			if err := e.checkFirst(ctx, l, h, saved.Stood); err != nil {
				return err
			}
		}
	case l.cleanupChanged || l.describesAnew(gen):
		if err := l.describe(gen); err != nil {
			return err
		}
		etag, err := e.States.SaveSidecar(ctx, l.sidecar, l.sidecarETag)
		if err != nil {
			return err
		}
		l.sidecarETag = etag
	}
	l.changed, l.cleanupChanged = false, false
	return nil
}

// describesAnew reports whether a generation says something else of the standing record than the sidecar does.
func (l *ledger) describesAnew(gen state.Generation) bool {
	if l.stands == nil {
		return false
	}
	was := state.Generation{}
	if l.generation != nil {
		was = *l.generation
	}
	return !maps.Equal(was.Parameters, gen.Parameters) || !maps.Equal(was.NoEcho, gen.NoEcho) || !maps.Equal(was.Masked, gen.Masked)
}

// describe puts a generation of the standing record into the sidecar, where the record itself does not change.
func (l *ledger) describe(gen state.Generation) error {
	if l.stands == nil {
		return nil
	}
	standing, err := state.Digest(l.stands)
	if err != nil {
		return err
	}
	gen.StateDigest = standing
	if l.sidecar.Next.StateDigest != standing {
		l.sidecar.Previous = nil
	}
	l.sidecar.Next = gen
	return nil
}

// mask puts down the digests of a resource's places, by path, in place of those that it had.
func (l *ledger) mask(id string, digests map[string]string) {
	maps.DeleteFunc(l.masked, func(key, _ string) bool { return strings.HasPrefix(key, id+".") })
	for path, digest := range digests {
		l.masked[id+"."+path] = digest
	}
}

// foldAll folds every ended operation that is not in folded yet, in the order in which they ended, and
// returns the grown list. With foreign it also looks at those that are: at the last one of each resource, and at
// what was cleaned up.
func (l *ledger) foldAll(ops map[string]runlog.Op, byID map[string]plan.Operation, folded []string, foreign bool) ([]string, error) {
	done := make(map[string]bool, len(folded))
	for _, key := range folded {
		done[key] = true
	}
	var ended []runlog.Op
	for id, op := range ops {
		if _, known := byID[id]; known && op.Status.Ended() && (foreign || !done[foldKey(op)]) {
			ended = append(ended, op)
		}
	}
	slices.SortFunc(ended, endedBefore)
	words := lastWords(ended)
	for _, op := range ended {
		again := done[foldKey(op)]
		if again && !words[foldKey(op)] && !strings.HasSuffix(op.OpID, plan.OldSuffix) {
			continue
		}
		if err := l.fold(op, byID[op.OpID], ops, again, foreign); err != nil {
			return nil, err
		}
		if !again {
			folded = append(folded, foldKey(op))
		}
	}
	return folded, nil
}

// endedBefore orders operations by when they have ended. The wave comes first: it is one count for the whole run, while
// each process has a clock of its own, and what undoes an operation is in a later wave.
func endedBefore(a, b runlog.Op) int {
	return cmp.Or(cmp.Compare(a.Wave, b.Wave), a.FinishedAt.Compare(b.FinishedAt), strings.Compare(a.OpID, b.OpID))
}

// foldKey names one attempt at an operation in the list of what has been folded.
func foldKey(op runlog.Op) string { return fmt.Sprintf("%s#%d", op.OpID, op.Attempt) }
