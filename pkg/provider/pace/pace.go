// Package pace puts a token bucket in front of a provider: one for each account, region, service and kind of call,
// shared by everything that one process does. A bucket that is let down by its service shrinks its rate at once and
// wins it back slowly (additive increase, multiplicative decrease: https://en.wikipedia.org/wiki/Additive_increase/multiplicative_decrease),
// so that a wave settles at what the service takes instead of meeting its refusals over and over.
//
// What several processes do at a time is not known here; the planner paces that (plan.Pace).
package pace

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/provider"
)

// The bounds of a bucket, in calls per second. A bucket has no limit until its service throttles, and again once it has
// come back to the most; the least keeps a run going through the worst of times.
const (
	mostRate  = 40
	leastRate = 0.5
	// firstShrunk is where a bucket goes that has not been shrunk before: how much the service takes is not known.
	firstShrunk = 5
	// reaction is how long after a shrink further refusals are put down to calls that were made before it.
	reaction = time.Second
	// MaxWait is the longest that a call waits for its turn: well within the slack of a provisioner's lease.
	MaxWait = 10 * time.Second
)

// CodeHeldBack is the code of an undecided KindThrottled failure that the service has not seen: the call's turn is
// further away than MaxWait. RetryAfter says when it comes.
const CodeHeldBack = "HeldBack"

// Buckets are the token buckets of one process. The zero value with a Clock is ready to use, and safe for concurrent
// use.
type Buckets struct {
	Clock clock.Clock

	mu      sync.Mutex
	buckets map[lane]*bucket
}

// lane is what shares a bucket. AWS counts calls by account, region and service, and reads apart from writes.
type lane struct {
	account, region, service string
	reads                    bool
}

type bucket struct {
	limiter *rate.Limiter
	shrunk  time.Time // when it last was; zero for never
}

// Wrap puts the buckets in front of a provider.
func (b *Buckets) Wrap(p provider.Provider) provider.Provider { return &paced{next: p, buckets: b} }

// Rate is how many calls per second the bucket lets through now.
func (b *Buckets) Rate(account, region, service string) float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return float64(b.bucket(lane{account: account, region: region, service: service}).limiter.Limit())
}

// Service is the part of a resource type that names its service: "SQS" of "AWS::SQS::Queue".
func Service(typeName string) string {
	parts := strings.Split(typeName, "::")
	if len(parts) < 3 {
		return typeName
	}
	return parts[1]
}

// bucket returns the bucket of a lane. The caller holds the mutex.
func (b *Buckets) bucket(l lane) *bucket {
	if b.buckets == nil {
		b.buckets = map[lane]*bucket{}
	}
	if b.buckets[l] == nil {
		b.buckets[l] = &bucket{limiter: rate.NewLimiter(rate.Inf, 1)}
	}
	return b.buckets[l]
}

// wait takes a token, and waits for it. Where the token is further away than MaxWait none is taken.
func (b *Buckets) wait(ctx context.Context, l lane) error {
	b.mu.Lock()
	now := b.Clock.Now()
	turn := b.bucket(l).limiter.ReserveN(now, 1)
	delay := turn.DelayFrom(now)
	if delay > MaxWait {
		turn.CancelAt(now)
	}
	b.mu.Unlock()
	switch {
	case delay == 0:
		return nil
	case delay > MaxWait:
		return &provider.Error{
			Kind: provider.KindThrottled, Code: CodeHeldBack, RetryAfter: delay, Undecided: true,
			Message: fmt.Sprintf("%s has asked to slow down, and other calls to it come first", l.service),
		}
	}
	return b.Clock.Sleep(ctx, delay)
}

// learn adjusts the bucket to the answer of a call.
func (b *Buckets) learn(l lane, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	k, now := b.bucket(l), b.Clock.Now()
	at := float64(k.limiter.Limit())
	switch {
	case provider.IsThrottled(err):
		if !k.shrunk.IsZero() && now.Sub(k.shrunk) < reaction {
			return
		}
		k.shrunk = now
		k.limiter.SetLimitAt(now, rate.Limit(max(min(at, 2*firstShrunk)/2, leastRate)))
	case err == nil && at < mostRate:
		// At a rate of r calls per second, 1/r for each is one more call per second every second.
		next := rate.Limit(at + 1/max(at, 1))
		if next >= mostRate {
			next = rate.Inf
		}
		k.limiter.SetLimitAt(now, next)
	}
}

// paced is a provider behind buckets.
type paced struct {
	next    provider.Provider
	buckets *Buckets
}

var _ provider.Provider = (*paced)(nil)

func laneOf(req provider.Request, reads bool) lane {
	return lane{account: req.Account, region: req.Region, service: Service(req.Type), reads: reads}
}

func (p *paced) call(ctx context.Context, req provider.Request, do func() (provider.Progress, error)) (provider.Progress, error) {
	l := laneOf(req, false)
	if err := p.buckets.wait(ctx, l); err != nil {
		return provider.Progress{}, err
	}
	out, err := do()
	p.buckets.learn(l, answer(out, err))
	return out, err
}

// answer is what the service has said to a call: a provider that waits the throttling out itself returns no error.
func answer(out provider.Progress, err error) error {
	if err == nil && out.Throttled {
		return &provider.Error{Kind: provider.KindThrottled}
	}
	return err
}

// Create implements provider.Provider.
func (p *paced) Create(ctx context.Context, req provider.Request) (provider.Progress, error) {
	return p.call(ctx, req, func() (provider.Progress, error) { return p.next.Create(ctx, req) })
}

// Update implements provider.Provider.
func (p *paced) Update(ctx context.Context, req provider.Request) (provider.Progress, error) {
	return p.call(ctx, req, func() (provider.Progress, error) { return p.next.Update(ctx, req) })
}

// Delete implements provider.Provider.
func (p *paced) Delete(ctx context.Context, req provider.Request) (provider.Progress, error) {
	return p.call(ctx, req, func() (provider.Progress, error) { return p.next.Delete(ctx, req) })
}

// Poll implements provider.Provider. A poll is never held back for longer than MaxWait can serve: its operation is in
// flight, and a failure would be taken for the operation's. What an operation in flight has failed with is the
// service's answer to the write that began it.
func (p *paced) Poll(ctx context.Context, req provider.Request, h provider.Handle) (provider.Progress, error) {
	if held := p.buckets.wait(ctx, laneOf(req, true)); held != nil {
		if e, ok := held.(*provider.Error); ok { //nolint:errorlint // it is made here
			return provider.Progress{Handle: &h, RetryAfter: e.RetryAfter}, nil
		}
		return provider.Progress{}, held
	}
	out, err := p.next.Poll(ctx, req, h)
	said := answer(out, err)
	if provider.IsThrottled(said) {
		p.buckets.learn(laneOf(req, false), said)
	}
	p.buckets.learn(laneOf(req, true), said)
	return out, err
}

// Read implements provider.Provider.
func (p *paced) Read(ctx context.Context, req provider.Request) (provider.Snapshot, error) {
	l := laneOf(req, true)
	if err := p.buckets.wait(ctx, l); err != nil {
		return provider.Snapshot{}, err
	}
	out, err := p.next.Read(ctx, req)
	p.buckets.learn(l, err)
	return out, err
}
