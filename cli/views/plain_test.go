package views

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/slipway-cdk/slipway/pkg/runlog"
)

func TestPlainIsOneLinePerChange(t *testing.T) {
	var out bytes.Buffer
	v := NewPlain(&out, "Deploying shop", Expectation{"shop": 5})
	for _, e := range story() {
		v.Events([]runlog.Event{e})
		v.Tick(e.Time)
	}
	v.Finish()
	golden(t, "plain.golden", out.String())
	if strings.Contains(out.String(), "\x1b") {
		t.Error("there is an escape in the plain view")
	}
	if n := len(v.Failures()); n != 1 {
		t.Errorf("%d failures remembered, want 1", n)
	}
}

func TestPlainHeartbeatBacksOff(t *testing.T) {
	var out bytes.Buffer
	v := NewPlain(&out, "Deploying shop", nil)
	planned := runEvent(runlog.Planned, 0, "s1")
	planned.Total = 3
	v.Events([]runlog.Event{planned, resource(runlog.OpStarted, 0, "Db", "AWS::RDS::DBInstance", "create")})
	var beats []int
	last := 0
	for s := range 1500 {
		v.Tick(at(float64(s)))
		if n := strings.Count(out.String(), "still working"); n > last {
			beats = append(beats, s)
			last = n
		}
	}
	want := []int{10, 30, 70, 150, 310, 610, 910, 1210}
	if len(beats) != len(want) {
		t.Fatalf("heartbeats at %v, want %v", beats, want)
	}
	for i := range want {
		if beats[i] != want[i] {
			t.Fatalf("heartbeats at %v, want %v", beats, want)
		}
	}
	first, _, _ := strings.Cut(out.String(), "\n")
	if first != "03:04:15  Deploying shop: still working, 0/3 done; creating shop/Db (10 s)" {
		t.Errorf("the heartbeat reads %q", first)
	}
	// A change is a sign of life: the next silence is broken after ten seconds again.
	v.Events([]runlog.Event{resource(runlog.OpDone, 1500, "Db", "AWS::RDS::DBInstance", "create")})
	v.Tick(at(1500))
	v.Tick(at(1509))
	if n := strings.Count(out.String(), "still working"); n != last {
		t.Errorf("a heartbeat came right after a change")
	}
	v.Tick(at(1510))
	if n := strings.Count(out.String(), "still working"); n != last+1 {
		t.Errorf("no heartbeat ten seconds after a change")
	}
}

func TestElapsed(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0.0 s", 0: "0.0 s", 1234 * time.Millisecond: "1.2 s", 59 * time.Second: "59 s",
		185 * time.Second: "3m 05s", 2*time.Hour + 3*time.Minute: "2h 03m",
	} {
		if got := Elapsed(d); got != want {
			t.Errorf("Elapsed(%v) = %q, want %q", d, got, want)
		}
	}
}
