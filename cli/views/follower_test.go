package views

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// source is a run log that gets its events poll by poll.
type source struct {
	polls  []func(*source)
	status runlog.Status
	events []runlog.Event
	fail   error
	reads  int
}

func (s *source) Header(_ context.Context, runID string) (runlog.Header, error) {
	if len(s.polls) > 0 {
		s.polls[0](s)
		s.polls = s.polls[1:]
	}
	return runlog.Header{RunID: runID, Status: s.status, Result: runlog.ResultSucceeded}, s.fail
}

func (s *source) Events(_ context.Context, runID, after string) ([]runlog.Event, error) {
	var list []runlog.Event
	for _, e := range s.events {
		if e.RunID == runID && e.ID > after {
			list = append(list, e)
			s.reads++
		}
	}
	slices.SortFunc(list, func(a, b runlog.Event) int { return strings.Compare(a.ID, b.ID) })
	return list, nil
}

// recorder remembers what it was shown.
type recorder struct {
	ids      []string
	ticks    int
	finished int
}

func (r *recorder) Events(list []runlog.Event) {
	for _, e := range list {
		r.ids = append(r.ids, e.RunID+"/"+e.LogicalID+"/"+string(e.Type))
	}
}
func (r *recorder) Tick(time.Time) { r.ticks++ }
func (r *recorder) Finish()        { r.finished++ }

func event(runID string, wave int, id string, t runlog.EventType, second float64) runlog.Event {
	return runlog.Event{ID: runlog.EventID(wave, id, t, 1), Type: t, Time: at(second), RunID: runID, Root: "d1", LogicalID: id, Wave: wave}
}

func follow(t *testing.T, s *source) (*recorder, *Follower, error) {
	t.Helper()
	r := &recorder{}
	f := &Follower{Log: s, Clock: &clock.Fake{AutoAdvance: true}, Renderers: []Renderer{r}}
	_, err := f.Follow(t.Context(), "d1")
	return r, f, err
}

func add(list ...runlog.Event) func(*source) {
	return func(s *source) { s.events = append(s.events, list...) }
}

func closing(list ...runlog.Event) func(*source) {
	return func(s *source) {
		s.events = append(s.events, list...)
		s.status = runlog.StatusClosed
	}
}

func TestFollowerShowsEachEventOnceInTheOrderOfTime(t *testing.T) {
	child := event("d1", 1, "stack", runlog.StackStarted, 1)
	child.ChildRun = "s1"
	grandchild := event("s1", 2, "Nested", runlog.StackStarted, 4)
	grandchild.ChildRun = "n1"
	s := &source{polls: []func(*source){
		add(event("d1", 0, "", runlog.RunStarted, 0)),
		add(child, event("s1", 1, "B", runlog.OpStarted, 2)),
		// A sorts before B and comes later; the wave before the newest one gets a late event.
		add(event("s1", 1, "A", runlog.OpStarted, 3), event("s1", 2, "Z", runlog.OpStarted, 3.5)),
		add(grandchild, event("s1", 1, "A", runlog.OpDone, 3.8), event("n1", 1, "N", runlog.OpDone, 5)),
		closing(event("s1", runlog.FinalWave, "", runlog.RunFinished, 6), event("d1", runlog.FinalWave, "", runlog.RunFinished, 6)),
	}}
	r, f, err := follow(t, s)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"d1//RUN_STARTED", "d1/stack/STACK_STARTED", "s1/B/RESOURCE_STARTED", "s1/A/RESOURCE_STARTED", "s1/Z/RESOURCE_STARTED",
		"s1/A/RESOURCE_SUCCEEDED", "s1/Nested/STACK_STARTED", "n1/N/RESOURCE_SUCCEEDED", "s1//RUN_FINISHED", "d1//RUN_FINISHED",
	}
	if !slices.Equal(r.ids, want) {
		t.Errorf("shown:\n%s\nwant:\n%s", strings.Join(r.ids, "\n"), strings.Join(want, "\n"))
	}
	if r.finished != 1 || r.ticks != 4 {
		t.Errorf("Finish was called %d times and Tick %d times, want 1 and 4", r.finished, r.ticks)
	}
	if got := f.Runs(); !slices.Equal(got, []string{"d1", "s1", "n1"}) {
		t.Errorf("followed %v", got)
	}
}

// The planner ends and starts some operations itself: the id of such an event begins with wave 0 however late
// it is. A stack's run has to be known when it starts.
func TestFollowerShowsAnEventOfNoWaveAtOnce(t *testing.T) {
	late := event("d1", 0, "stack.web", runlog.StackStarted, 2)
	late.ChildRun = "s2"
	s := &source{polls: []func(*source){
		add(event("d1", 9, "X", runlog.OpStarted, 1)),
		add(late, event("s2", 1, "Api", runlog.OpStarted, 3)),
		add(event("d1", 9, "X", runlog.OpDone, 4)),
		closing(event("d1", runlog.FinalWave, "", runlog.RunFinished, 5)),
	}}
	r, _, err := follow(t, s)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"d1/X/RESOURCE_STARTED", "d1/stack.web/STACK_STARTED", "s2/Api/RESOURCE_STARTED", "d1/X/RESOURCE_SUCCEEDED", "d1//RUN_FINISHED"}
	if !slices.Equal(r.ids, want) {
		t.Errorf("shown %v, want %v", r.ids, want)
	}
}

func TestFollowerFindsOldEventsOfALargeRunInTime(t *testing.T) {
	s := &source{}
	for w := 1; w <= 300; w++ {
		s.polls = append(s.polls, add(event("d1", w, "R", runlog.OpDone, float64(w))))
	}
	shownAt := 0
	s.polls = append(s.polls, add(event("d1", 0, "Late", runlog.OpSkip, 301)))
	for range 2 * followSweep {
		s.polls = append(s.polls, func(*source) { shownAt++ })
	}
	s.polls = append(s.polls, closing())
	r := &recorder{}
	seen := 0
	watch := &watcher{recorder: r, on: func() {
		if seen == 0 && len(r.ids) == 301 {
			seen = shownAt
		}
	}}
	f := &Follower{Log: s, Clock: &clock.Fake{AutoAdvance: true}, Renderers: []Renderer{watch}}
	if _, err := f.Follow(t.Context(), "d1"); err != nil {
		t.Fatal(err)
	}
	if len(r.ids) != 301 || seen > followSweep {
		t.Errorf("%d events shown, the late one after %d polls", len(r.ids), seen)
	}
}

// watcher looks after every poll.
type watcher struct {
	*recorder
	on func()
}

func (w *watcher) Tick(now time.Time) {
	w.recorder.Tick(now)
	w.on()
}

func TestFollowerDoesNotReadTheWholeRunAgainAtEveryPoll(t *testing.T) {
	s := &source{}
	for w := 1; w <= 1000; w++ {
		s.polls = append(s.polls, add(event("d1", w, "R", runlog.OpStarted, float64(w)), event("d1", w, "R", runlog.OpDone, float64(w))))
	}
	s.polls = append(s.polls, closing())
	if _, _, err := follow(t, s); err != nil {
		t.Fatal(err)
	}
	// Everything at every poll would be 1,000,000 events.
	if s.reads > 120_000 {
		t.Errorf("%d events were read for 2000", s.reads)
	}
}

func TestFollowerOutlastsAFailingStoreForAWhile(t *testing.T) {
	down := errors.New("the store is down")
	s := &source{polls: []func(*source){
		func(s *source) { s.fail = down }, func(*source) {}, func(s *source) { s.fail = nil },
		closing(event("d1", runlog.FinalWave, "", runlog.RunFinished, 3)),
	}}
	r, _, err := follow(t, s)
	if err != nil || len(r.ids) != 1 {
		t.Errorf("after a short failure: %v, shown %v", err, r.ids)
	}
	r, _, err = follow(t, &source{fail: down})
	if !errors.Is(err, down) {
		t.Errorf("a store that stays down gives %v", err)
	}
	if r.finished != 1 {
		t.Error("the renderer was not finished")
	}
	if _, _, err = follow(t, &source{fail: runlog.ErrNotFound}); !errors.Is(err, runlog.ErrNotFound) {
		t.Errorf("a run that does not exist gives %v", err)
	}
}

func TestFollowerStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := &source{polls: []func(*source){func(*source) { cancel() }}}
	r := &recorder{}
	_, err := (&Follower{Log: s, Clock: clock.Real{}, Renderers: []Renderer{r}}).Follow(ctx, "d1")
	if !errors.Is(err, context.Canceled) || r.finished != 1 {
		t.Errorf("got %v, finished %d times", err, r.finished)
	}
}

func TestNDJSONWritesEachEventAsALine(t *testing.T) {
	var out strings.Builder
	v := NewNDJSON(&out)
	e := event("d1", 1, "A", runlog.OpDone, 1)
	e.Message = "a <b> \x7f"
	v.Events([]runlog.Event{e, e})
	if got := strings.Count(out.String(), "\n"); got != 2 {
		t.Errorf("%d lines for 2 events", got)
	}
	if !strings.Contains(out.String(), `"message":"a <b> \u007f"`) {
		t.Errorf("written: %s", out.String())
	}
	broken := NewNDJSON(failingWriter{})
	broken.Events([]runlog.Event{e})
	if broken.Err() == nil {
		t.Error("a failed write is not reported")
	}
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, fmt.Errorf("disk full") }
