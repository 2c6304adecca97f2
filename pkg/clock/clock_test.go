package clock

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestAFakeClockWakesThoseWhoseTimeHasCome(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	f := NewFake(start)
	woken := make(chan string, 2)
	for name, d := range map[string]time.Duration{"early": time.Second, "late": time.Minute} {
		go func() {
			if err := f.Sleep(context.Background(), d); err != nil {
				name = err.Error()
			}
			woken <- name
		}()
	}
	for f.Sleepers() < 2 {
	}
	f.Advance(time.Second)
	if got := <-woken; got != "early" {
		t.Errorf("%q woke first", got)
	}
	if f.Sleepers() != 1 {
		t.Errorf("%d sleep, want 1", f.Sleepers())
	}
	f.Advance(time.Hour)
	if got := <-woken; got != "late" {
		t.Errorf("%q woke second", got)
	}
	if want := start.Add(time.Hour + time.Second); !f.Now().Equal(want) {
		t.Errorf("the clock shows %s, want %s", f.Now(), want)
	}
}

func TestAnAdvancingFakeClockNeverWaits(t *testing.T) {
	f := NewFake(time.Unix(0, 0))
	f.AutoAdvance = true
	if err := f.Sleep(context.Background(), time.Hour); err != nil {
		t.Fatal(err)
	}
	if !f.Now().Equal(time.Unix(3600, 0)) {
		t.Errorf("the clock shows %s", f.Now())
	}
}

func TestEveryClockEndsItsSleepWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for name, c := range map[string]Clock{"real": Real{}, "scaled": Scaled{Speed: 2}, "instant": Scaled{}, "fake": NewFake(time.Unix(0, 0))} {
		if err := c.Sleep(ctx, time.Hour); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAnInstantClockDoesNotTakeTheTimeItIsAskedFor(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := (Scaled{}).Sleep(ctx, 10*time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := (Scaled{Speed: 1e9}).Sleep(ctx, time.Hour); err != nil {
		t.Fatal(err)
	}
}
