package plan_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/slipway-cdk/slipway/pkg/plan"
)

var paceNow = time.Date(2026, 11, 29, 21, 0, 0, 0, time.UTC)

func TestAPaceShrinksAtOnceAndGrowsSlowly(t *testing.T) {
	p := plan.Pace{}.Learn(0, 40, time.Second)
	if p.Limited() {
		t.Fatalf("a wave that went well is the reason for %+v", p)
	}
	p = p.Learn(30, 10, time.Second)
	if p.PerSecond != 5 || p.Tokens != 0 {
		t.Errorf("ten of forty were taken: %+v", p)
	}
	if p = p.Learn(1, 4, time.Second); p.PerSecond != 2.5 {
		t.Errorf("another throttled wave: %+v", p)
	}
	if p = p.Learn(0, 3, time.Second); p.PerSecond != 3.5 {
		t.Errorf("a wave that went well: %+v", p)
	}
	if again := p.Learn(0, 0, time.Second); again != p {
		t.Errorf("a wave without the service: %+v", again)
	}
	for range 20 {
		p = p.Learn(5, 0, time.Second)
	}
	if p.PerSecond != 0.5 {
		t.Errorf("the least pace is %v", p.PerSecond)
	}
	for range 40 {
		p = p.Learn(0, 1, time.Second)
	}
	if p != (plan.Pace{}) {
		t.Errorf("a service that has recovered is still held back: %+v", p)
	}
}

func TestTheFirstPaceIsWhatTheServiceHasTaken(t *testing.T) {
	for _, c := range []struct {
		taken int
		d     time.Duration
		want  float64
	}{{0, time.Second, 0.5}, {10, 5 * time.Second, 1}, {10, 0, 5}, {200, time.Second, 20}} {
		if got := (plan.Pace{}).Learn(1, c.taken, c.d).PerSecond; got != c.want {
			t.Errorf("%d in %s: %v per second, want %v", c.taken, c.d, got, c.want)
		}
	}
}

func TestAPaceLetsThroughWhatTimeBrings(t *testing.T) {
	p := plan.Pace{PerSecond: 2, At: paceNow}
	service := func(string) string { return "SNS" }
	begins := func(id string) bool { return id != "inflight" }
	w := plan.Wave{Start: []string{"a", "b", "c", "d"}, Poll: []string{"inflight"}, Waiting: 1}
	paces := map[string]plan.Pace{"SNS": p}
	got, left := w.Paced(paces, service, begins, paceNow.Add(time.Second))
	if !slices.Equal(got.Start, []string{"a", "b"}) || !slices.Equal(got.Poll, []string{"inflight"}) || got.Waiting != 3 || got.Wait != 0 {
		t.Errorf("%+v", got)
	}
	if left["SNS"].Tokens != 0 || !left["SNS"].At.Equal(paceNow.Add(time.Second)) {
		t.Errorf("%+v", left)
	}
	if len(w.Start) != 4 || paces["SNS"] != p {
		t.Error("the arguments have changed")
	}
	w.Poll = nil
	got, _ = w.Paced(left, service, begins, paceNow.Add(time.Second))
	if len(got.Start) != 0 || got.Wait != 500*time.Millisecond {
		t.Errorf("nothing is left, and it waits %s for %v", got.Wait, got.Start)
	}
	got, _ = w.Paced(left, service, begins, paceNow.Add(time.Hour))
	if len(got.Start) != 4 {
		t.Errorf("after an hour %v", got.Start)
	}
	w.Start = slices.Repeat([]string{"x"}, 30)
	got, _ = w.Paced(left, service, begins, paceNow.Add(time.Hour))
	if len(got.Start) != 4 {
		t.Errorf("an hour without a call lets %d through at once", len(got.Start))
	}
	got, left = w.Paced(map[string]plan.Pace{"SNS": {}}, service, begins, paceNow)
	if len(got.Start) != 30 || len(left) != 0 {
		t.Errorf("without a pace %d start, and %v is left", len(got.Start), left)
	}
}

// Whatever the paces, a wave is held back for a bounded time only, and nothing is lost or added.
func TestPacingLosesNothingAndComesToAnEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 60).Draw(t, "n")
		w := plan.Wave{}
		for i := range n {
			w.Start = append(w.Start, string(rune('A'+i)))
		}
		paces := map[string]plan.Pace{"S": {
			PerSecond: rapid.Float64Range(0.5, 40).Draw(t, "rate"), Tokens: rapid.Float64Range(0, 80).Draw(t, "tokens"), At: paceNow,
		}}
		now := paceNow.Add(time.Duration(rapid.Int64Range(-int64(time.Hour), int64(time.Hour)).Draw(t, "later")))
		for steps := 0; len(w.Start) > 0; steps++ {
			got, left := w.Paced(paces, func(string) string { return "S" }, func(string) bool { return true }, now)
			if got.Waiting != len(w.Start)-len(got.Start) || !slices.Equal(got.Start, w.Start[:len(got.Start)]) {
				t.Fatalf("of %v it lets through %v and counts %d as waiting", w.Start, got.Start, got.Waiting)
			}
			if len(got.Start) == 0 && (got.Wait <= 0 || got.Wait > 2*time.Second) {
				t.Fatalf("a wait of %s", got.Wait)
			}
			if steps > 200 {
				t.Fatal("it does not come to an end")
			}
			w.Start, paces, now = w.Start[len(got.Start):], left, now.Add(got.Wait)
		}
	})
}
