package direct

import (
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/inprocess"
	"github.com/slipway-cdk/slipway/pkg/objectstore"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// machine registers a process on a machine of its own, whose clock is off by some time.
func machine(t *testing.T, b objectstore.Store, clk clock.Clock) *presence {
	t.Helper()
	process, err := inprocess.OpenProcess(t.TempDir(), "@host")
	if err != nil {
		t.Fatal(err)
	}
	return &presence{process: process, objects: b, clock: clk, logger: slog.New(slog.DiscardHandler)}
}

// pass lets time pass, step by step, so that the process on own comes to say that it is alive.
func pass(d time.Duration, server, own *clock.Fake) {
	for ; d > 0; d -= beatEvery {
		server.Advance(beatEvery)
		own.Advance(beatEvery) // this wakes it
		for own.Sleepers() == 0 {
			runtime.Gosched()
		}
	}
}

func begin(t *testing.T, p *presence, clk *clock.Fake) {
	t.Helper()
	if err := p.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	for clk.Sleepers() == 0 {
		runtime.Gosched()
	}
}

func TestAProcessIsAliveForAsLongAsItSaysSoWhateverTheClocksSay(t *testing.T) {
	server := clock.NewFake(noon)
	b := bucket(t, server)
	slow, quick := clock.NewFake(noon.Add(-time.Hour)), clock.NewFake(noon.Add(10*time.Minute))
	one, other := machine(t, b, slow), machine(t, b, quick)
	begin(t, one, slow)
	begin(t, other, quick)
	if !other.Alive(t.Context(), one.Name()) || !one.Alive(t.Context(), other.Name()) {
		t.Fatal("two processes that have just begun do not know of each other")
	}
	// The one is held up: only the other's time and the bucket's pass.
	pass(silent-2*beatEvery, server, quick)
	if !other.Alive(t.Context(), one.Name()) {
		t.Error("it is taken for dead too early")
	}
	pass(4*beatEvery, server, quick)
	if other.Alive(t.Context(), one.Name()) {
		t.Error("a process that says nothing is taken for alive")
	}
	if !one.Alive(t.Context(), other.Name()) {
		t.Error("a process that says that it is alive is taken for dead")
	}
	if err := errors.Join(one.Close(t.Context()), other.Close(t.Context())); err != nil {
		t.Error(err)
	}
	if left, err := b.List(t.Context(), processesPrefix); err != nil || len(left) != 0 {
		t.Errorf("%v, %v", left, err)
	}
}

func TestAProcessThatHasEndedInOrderIsDeadAtOnce(t *testing.T) {
	server := clock.NewFake(noon)
	b := bucket(t, server)
	one, other := machine(t, b, server), machine(t, b, server)
	begin(t, one, server)
	if err := one.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if other.Alive(t.Context(), one.Name()) || other.Alive(t.Context(), "") {
		t.Error("it is taken for alive")
	}
	if !other.Alive(t.Context(), other.Name()) {
		t.Error("a process takes itself for dead")
	}
	if err := other.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAKilledProcessOfThisMachineIsDeadAtOnceAndStaysDead(t *testing.T) {
	server := clock.NewFake(noon)
	b := bucket(t, server)
	dir := t.TempDir()
	process, err := inprocess.OpenProcess(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	p := &presence{process: process, objects: b, clock: server, logger: slog.New(slog.DiscardHandler)}
	elsewhere := machine(t, b, server)
	// What a killed process leaves: a file that nobody holds, and its last word in the bucket.
	if err := os.WriteFile(filepath.Join(dir, "killed.lock"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Put(t.Context(), processKey("killed"), []byte("{}"), objectstore.Condition{}); err != nil {
		t.Fatal(err)
	}
	if !elsewhere.Alive(t.Context(), "killed") {
		t.Error("another machine can't know yet")
	}
	for range 3 {
		if p.Alive(t.Context(), "killed") {
			t.Error("it is taken for alive")
		}
	}
	if elsewhere.Alive(t.Context(), "killed") {
		t.Error("another machine does not learn of it")
	}
	if err := errors.Join(p.Close(t.Context()), elsewhere.Close(t.Context())); err != nil {
		t.Error(err)
	}
}

type counting struct{ n int }

func (c *counting) Do(*http.Request) (*http.Response, error) {
	c.n++
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

func TestAProcessThatWasHeldUpTouchesNothingMore(t *testing.T) {
	server, own := clock.NewFake(noon), clock.NewFake(noon)
	b := bucket(t, server)
	p := machine(t, b, own)
	next := &counting{}
	client := p.guard(aws.Config{HTTPClient: next}).HTTPClient
	ask := func() error {
		r, err := http.NewRequest(http.MethodGet, "http://localhost/", nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(r)
		if err == nil {
			err = response.Body.Close()
		}
		return err
	}
	// Before it carries anything nobody can take anything over.
	own.Advance(time.Hour)
	server.Advance(time.Hour)
	if err := ask(); err != nil {
		t.Error(err)
	}
	begin(t, p, own)
	if err := ask(); err != nil {
		t.Error(err)
	}
	// The machine sleeps; when it wakes, its time has passed all at once.
	server.Advance(fresh)
	own.Advance(fresh)
	if err := ask(); !errors.Is(err, ErrSilent) {
		t.Errorf("the error is %v", err)
	}
	if next.n != 2 {
		t.Errorf("%d requests were sent, want 2", next.n)
	}
	// And it does not come back to life.
	if err := p.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p.Fresh() {
		t.Error("it has come back to life")
	}
}
