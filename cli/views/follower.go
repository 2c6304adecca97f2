package views

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// Renderer shows events. Follower calls it from one goroutine, so it needs no lock.
type Renderer interface {
	// Events gets new events in the order in which they happened, each exactly once.
	Events(list []runlog.Event)
	// Tick is called at every poll, with or without events, so that clocks and heartbeats move on.
	Tick(now time.Time)
	// Finish is called once, at the end: nothing may be left that a later print would disturb.
	Finish()
}

// RunSource is the part of a run log that is followed.
type RunSource interface {
	Header(ctx context.Context, runID string) (runlog.Header, error)
	Events(ctx context.Context, runID, after string) ([]runlog.Event, error)
}

const (
	// followInterval is short enough to look live and long enough to cost nothing on a local store.
	followInterval = 60 * time.Millisecond
	// followPerRun stretches the interval when many stacks deploy at once, so that reads stay bounded.
	followPerRun = 4 * time.Millisecond
	// followWhole is how many events a run may have to be read as a whole at every poll, and followSweep the
	// number of polls after which a larger one is.
	followWhole = 256
	followSweep = 16
	// followPatience is how long a failing store is asked again before the follower gives up.
	followPatience = 30 * time.Second
)

// Follower reads the events of a deployment run and of every run it starts, until the deployment's run is
// closed, and hands them to its renderers.
type Follower struct {
	Log       RunSource
	Clock     clock.Clock
	Renderers []Renderer
	// Notices, when set, are lines that somebody else has to say while the run is followed.
	Notices <-chan string
	// Every, when set, is the least time between two looks.
	Every time.Duration

	runs  []*followedRun
	known map[string]bool
}

// followedRun is the reading position in one run.
//
// Event ids sort by wave and then by operation, so a later event may have a smaller id than one already read:
// within a wave, and where the planner itself ends an operation outside of any wave. Known ids are therefore
// dropped and much is read again: a small run as a whole, of a large one the two newest waves at every poll
// and the whole from time to time and at its end.
type followedRun struct {
	id     string
	seen   map[string]bool
	wave   int
	polls  int
	closed bool
}

// after is the id to read from.
func (r *followedRun) after() string {
	r.polls++
	if len(r.seen) <= followWhole || r.polls%followSweep == 0 || r.wave <= 1 {
		return ""
	}
	return fmt.Sprintf("%05d", r.wave-1)
}

// Follow returns when the run's header is CLOSED and all its events have been shown, or when ctx ends. A
// failing store is retried for a while; the run itself is not touched in any case.
func (f *Follower) Follow(ctx context.Context, runID string) (runlog.Header, error) {
	defer func() {
		for _, r := range f.Renderers {
			r.Finish()
		}
	}()
	f.known = map[string]bool{}
	f.runs = nil
	f.add(runID)
	var failingSince time.Time
	for {
		header, err := f.poll(ctx, runID)
		now := f.Clock.Now()
		switch {
		case ctx.Err() != nil:
			return header, ctx.Err()
		case err == nil:
			failingSince = time.Time{}
			if header.Status == runlog.StatusClosed {
				return header, nil
			}
		case errors.Is(err, runlog.ErrNotFound):
			return header, err
		case failingSince.IsZero():
			failingSince = now
		case now.Sub(failingSince) > followPatience:
			return header, err
		}
		f.notice()
		for _, r := range f.Renderers {
			r.Tick(now)
		}
		interval := max(followInterval, followPerRun*time.Duration(f.open()), f.Every)
		if err := f.Clock.Sleep(ctx, interval); err != nil {
			return header, err
		}
	}
}

// noticer is a renderer that can show a line of text among the events.
type noticer interface{ Notice(text string) }

func (f *Follower) notice() {
	for len(f.Notices) > 0 {
		text := <-f.Notices
		for _, r := range f.Renderers {
			if n, ok := r.(noticer); ok {
				n.Notice(text)
			}
		}
	}
}

func (f *Follower) add(runID string) {
	if runID == "" || f.known[runID] {
		return
	}
	f.known[runID] = true
	f.runs = append(f.runs, &followedRun{id: runID, seen: map[string]bool{}})
}

func (f *Follower) open() int {
	n := 0
	for _, r := range f.runs {
		if !r.closed {
			n++
		}
	}
	return n
}

// poll reads what is new in every followed run and shows it. The header is read before the events: when it
// says CLOSED, no event can come after this read.
func (f *Follower) poll(ctx context.Context, root string) (runlog.Header, error) {
	header, err := f.Log.Header(ctx, root)
	if err != nil {
		return header, fmt.Errorf("reading the header of run %s: %w", root, err)
	}
	last := header.Status == runlog.StatusClosed
	var batch []runlog.Event
	// f.runs grows while it is walked: a child is read in the same poll that learns of it.
	for i := 0; i < len(f.runs); i++ {
		r := f.runs[i]
		if r.closed && !last {
			continue
		}
		list, err := f.read(ctx, r, last)
		batch = append(batch, list...)
		if err != nil {
			f.show(batch)
			return header, err
		}
		for _, e := range list {
			f.add(e.ChildRun)
		}
	}
	f.show(batch)
	return header, nil
}

func (f *Follower) read(ctx context.Context, r *followedRun, all bool) ([]runlog.Event, error) {
	after := ""
	if !all {
		after = r.after()
	}
	list, err := f.fetch(ctx, r, after)
	if err != nil {
		return nil, err
	}
	if r.closed && after != "" {
		rest, err := f.fetch(ctx, r, "")
		if err != nil {
			r.closed = false
			return list, err
		}
		list = append(list, rest...)
	}
	return list, nil
}

func (f *Follower) fetch(ctx context.Context, r *followedRun, after string) ([]runlog.Event, error) {
	stored, err := f.Log.Events(ctx, r.id, after)
	if err != nil {
		return nil, fmt.Errorf("reading the events of run %s: %w", r.id, err)
	}
	var list []runlog.Event
	for _, e := range stored {
		if r.seen[e.ID] {
			continue
		}
		r.seen[e.ID] = true
		list = append(list, e)
		if e.Wave > r.wave && e.Wave < runlog.FinalWave {
			r.wave = e.Wave
		}
		if e.Type == runlog.RunFinished {
			r.closed = true
		}
	}
	return list, nil
}

func (f *Follower) show(batch []runlog.Event) {
	if len(batch) == 0 {
		return
	}
	SortEvents(batch)
	for _, r := range f.Renderers {
		r.Events(batch)
	}
}

// SortEvents puts events of any number of runs in the order in which they happened. At equal times a start
// comes before an end, and the end of a run comes last.
func SortEvents(list []runlog.Event) {
	slices.SortStableFunc(list, func(a, b runlog.Event) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(rank(a), rank(b)), cmp.Compare(a.ID, b.ID))
	})
}

func rank(e runlog.Event) int {
	switch e.Type {
	case runlog.RunStarted:
		return 0
	case runlog.WaitingForLock, runlog.RunningMacros, runlog.Planned:
		return 1
	case runlog.WaveStarted:
		return 2
	case runlog.OpStarted, runlog.AssetStarted, runlog.StackStarted:
		return 3
	case runlog.OpProgress, runlog.OpRetry, runlog.Warned:
		return 4
	case runlog.RollbackStarted:
		return 6
	case runlog.StackFinished:
		return 8
	case runlog.RunFinished:
		return 9 - boolInt(e.RunID != e.Root)*2
	default:
		return 5
	}
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Runs lists the ids of the followed runs, the deployment's first, the others as they became known.
func (f *Follower) Runs() []string {
	ids := make([]string, 0, len(f.runs))
	for _, r := range f.runs {
		ids = append(ids, r.id)
	}
	return ids
}
