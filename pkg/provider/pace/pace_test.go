package pace

import (
	"context"
	"errors"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/provider"
)

// scripted answers every call with what answer says.
type scripted struct {
	provider.Provider
	calls  int
	answer func() error
}

func (s *scripted) Create(context.Context, provider.Request) (provider.Progress, error) {
	s.calls++
	return provider.Progress{Done: true}, s.answer()
}

func (s *scripted) Poll(context.Context, provider.Request, provider.Handle) (provider.Progress, error) {
	s.calls++
	return provider.Progress{Done: true}, s.answer()
}

func (s *scripted) Read(context.Context, provider.Request) (provider.Snapshot, error) {
	s.calls++
	return provider.Snapshot{}, s.answer()
}

var errThrottled = &provider.Error{Kind: provider.KindThrottled}

func setUp() (*clock.Fake, *Buckets, *scripted, provider.Provider) {
	clk := clock.NewFake(time.Date(2026, 11, 29, 21, 0, 0, 0, time.UTC))
	clk.AutoAdvance = true
	b, s := &Buckets{Clock: clk}, &scripted{answer: func() error { return nil }}
	return clk, b, s, b.Wrap(s)
}

var request = provider.Request{Account: "111111111111", Region: "eu-west-1", Type: "AWS::SQS::Queue"}

func create(t *testing.T, p provider.Provider) error {
	t.Helper()
	_, err := p.Create(t.Context(), request)
	return err
}

func (b *Buckets) at() float64 { return b.Rate(request.Account, request.Region, "SQS") }

func TestNothingIsHeldBackBeforeTheServiceSaysSo(t *testing.T) {
	clk, b, s, p := setUp()
	began := clk.Now()
	for range 500 {
		if err := create(t, p); err != nil {
			t.Fatal(err)
		}
	}
	if took := clk.Now().Sub(began); took != 0 || s.calls != 500 || b.at() != float64(rate.Inf) {
		t.Errorf("%d calls took %s at %v per second", s.calls, took, b.at())
	}
}

func TestOneRefusalOfManyCallsAtOnceCountsOnce(t *testing.T) {
	clk, b, s, p := setUp()
	s.answer = func() error { return errThrottled }
	l := laneOf(request, false)
	for range 20 {
		b.learn(l, errThrottled)
	}
	if b.at() != firstShrunk {
		t.Errorf("20 refusals at once leave %v calls per second", b.at())
	}
	clk.Advance(reaction)
	if err := create(t, p); !provider.IsThrottled(err) || b.at() != firstShrunk/2.0 {
		t.Errorf("%v, and %v calls per second are left", err, b.at())
	}
	for range 50 {
		clk.Advance(time.Minute)
		_ = create(t, p)
	}
	if b.at() != leastRate {
		t.Errorf("a service that never answers leaves %v calls per second", b.at())
	}
}

func TestARateIsWonBackByOneCallPerSecondEverySecond(t *testing.T) {
	clk, b, _, p := setUp()
	b.learn(laneOf(request, false), errThrottled)
	began := clk.Now()
	for b.at() < 15 {
		if err := create(t, p); err != nil {
			t.Fatal(err)
		}
	}
	if took := clk.Now().Sub(began); took < 8*time.Second || took > 12*time.Second {
		t.Errorf("from 5 to 15 calls per second took %s", took)
	}
	for b.at() != float64(rate.Inf) {
		if err := create(t, p); err != nil {
			t.Fatal(err)
		}
	}
	if took := clk.Now().Sub(began); took < 30*time.Second || took > 40*time.Second {
		t.Errorf("until nothing was held back took %s", took)
	}
}

func TestACallWhoseTurnIsFarAwayIsNotMade(t *testing.T) {
	_, b, s, p := setUp()
	b.learn(laneOf(request, false), errThrottled)
	now := b.Clock.Now()
	for range 100 { // what other goroutines have reserved
		b.bucket(laneOf(request, false)).limiter.ReserveN(now, 1)
	}
	err := create(t, p)
	var failure *provider.Error
	if !errors.As(err, &failure) || failure.Kind != provider.KindThrottled || failure.Code != CodeHeldBack || !failure.Undecided || failure.RetryAfter <= MaxWait || s.calls != 0 {
		t.Fatalf("%+v after %d calls", err, s.calls)
	}
	var again *provider.Error
	if err := create(t, p); !errors.As(err, &again) || again.RetryAfter != failure.RetryAfter {
		t.Error("a call that was not made has used up its turn")
	}
	if b.at() != firstShrunk {
		t.Errorf("holding back has changed the rate to %v", b.at())
	}
}

func TestAPollThatIsHeldBackIsStillInFlight(t *testing.T) {
	_, b, s, p := setUp()
	reads := laneOf(request, true)
	b.learn(reads, errThrottled)
	for range 100 {
		b.bucket(reads).limiter.ReserveN(b.Clock.Now(), 1)
	}
	h := provider.Handle{Version: 7, Provider: "x"}
	out, err := p.Poll(t.Context(), request, h)
	if err != nil || out.Done || out.Handle == nil || out.Handle.Version != 7 || out.RetryAfter <= MaxWait || s.calls != 0 {
		t.Errorf("%+v, %v after %d calls", out, err, s.calls)
	}
}

func TestWhatARequestInFlightHasMetSlowsTheWrites(t *testing.T) {
	_, b, s, p := setUp()
	s.answer = func() error { return errThrottled }
	if _, err := p.Poll(t.Context(), request, provider.Handle{}); !provider.IsThrottled(err) {
		t.Fatal(err)
	}
	if b.at() != firstShrunk {
		t.Errorf("writes go on at %v per second", b.at())
	}
}

func TestServicesAccountsRegionsAndReadsHaveBucketsOfTheirOwn(t *testing.T) {
	_, b, _, _ := setUp()
	b.learn(laneOf(request, false), errThrottled)
	for name, other := range map[string]provider.Request{
		"service": {Account: request.Account, Region: request.Region, Type: "AWS::SNS::Topic"},
		"account": {Account: "222222222222", Region: request.Region, Type: request.Type},
		"region":  {Account: request.Account, Region: "us-east-1", Type: request.Type},
	} {
		if got := b.bucket(laneOf(other, false)).limiter.Limit(); got != rate.Inf {
			t.Errorf("another %s is held back to %v", name, got)
		}
	}
	if got := b.bucket(laneOf(request, true)).limiter.Limit(); got != rate.Inf {
		t.Errorf("reads are held back to %v", got)
	}
}

func TestAWaitEndsWithItsContext(t *testing.T) {
	clk, b, s, p := setUp()
	clk.AutoAdvance = false
	l := laneOf(request, false)
	b.learn(l, errThrottled)
	b.bucket(l).limiter.ReserveN(clk.Now(), 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Create(ctx, request); !errors.Is(err, context.Canceled) || s.calls != 0 {
		t.Errorf("%v after %d calls", err, s.calls)
	}
}

func TestTheServiceOfAType(t *testing.T) {
	for typeName, want := range map[string]string{"AWS::SQS::Queue": "SQS", "Custom::Seed": "Custom::Seed", "A::B::C::MODULE": "B", "": ""} {
		if got := Service(typeName); got != want {
			t.Errorf("the service of %q is %q", typeName, got)
		}
	}
}

// A provider that waits a throttling out in its own phases returns a handle, not an error.
func TestAThrottlingThatAProviderWaitsOutSlowsTheWrites(t *testing.T) {
	for name, do := range map[string]func(provider.Provider) error{
		"a create": func(p provider.Provider) error { _, err := p.Create(t.Context(), request); return err },
		"a poll": func(p provider.Provider) error {
			_, err := p.Poll(t.Context(), request, provider.Handle{})
			return err
		},
	} {
		_, b, s, _ := setUp()
		if err := do(b.Wrap(waiting{s})); err != nil {
			t.Fatal(err)
		}
		if b.at() != firstShrunk {
			t.Errorf("%s: the rate is %v", name, b.at())
		}
	}
}

// waiting waits every throttling out.
type waiting struct{ *scripted }

func (waiting) Create(context.Context, provider.Request) (provider.Progress, error) {
	return provider.Progress{Handle: &provider.Handle{}, Throttled: true}, nil
}

func (waiting) Poll(context.Context, provider.Request, provider.Handle) (provider.Progress, error) {
	return provider.Progress{Handle: &provider.Handle{}, Throttled: true}, nil
}
