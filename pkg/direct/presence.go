package direct

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"

	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/inprocess"
	"github.com/slipway-cdk/slipway/pkg/objectstore"
	"github.com/slipway-cdk/slipway/pkg/runlog/objects"
)

const (
	// beatEvery is how often a process that carries runs says that it is alive.
	beatEvery = 15 * time.Second
	// fresh is how long after its last word a process still touches anything. A machine that was asleep, or cut off,
	// for longer leaves its runs to others.
	fresh = time.Minute
	// silent is how long after its last word a process is taken for dead. What is between the two is for what was on
	// its way when fresh had passed.
	silent = 2 * time.Minute
)

const processesPrefix = objects.Prefix + "processes/"

func processKey(name string) string { return processesPrefix + url.PathEscape(name) + ".json" }

// ErrSilent is in the chain of the error with which a process refuses to touch anything, because it has not been able
// to say that it is alive and others may be settling its runs.
var ErrSilent = errors.New("this process was held up or cut off for too long, and others may have taken over its runs")

// presence is this process as others see it. It implements inprocess.Holder.
//
// Times are those of the bucket: each process compares when objects were written with what the bucket's clock says now,
// which it knows from its own writes. Clocks that differ from machine to machine take no part.
type presence struct {
	process *inprocess.Process
	objects objectstore.Store
	clock   clock.Clock
	logger  *slog.Logger

	mu sync.Mutex
	// began is set once the process is known to others, last when it was last known to be alive, by its own clock.
	began bool
	last  time.Time
	lost  bool
	// ahead is what the bucket's clock is ahead of this machine's; known says whether it has been measured.
	ahead time.Duration
	known bool

	// dead are the processes of this machine that it has found dead.
	dead map[string]bool

	stop context.CancelFunc
	done chan struct{}
}

var _ inprocess.Holder = (*presence)(nil)

// Name implements inprocess.Holder.
func (p *presence) Name() string { return p.process.Name() }

// wall is the time of day. Without the monotonic reading, which stands still while a machine sleeps.
func (p *presence) wall() time.Time { return p.clock.Now().UTC() }

// Begin makes the process known, before anything is done in its name, and goes on saying that it is alive until Close.
func (p *presence) Begin(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.began {
		return nil
	}
	now := p.wall()
	if err := p.beat(ctx); err != nil {
		return fmt.Errorf("registering this process in the state bucket: %w", err)
	}
	if err := p.measure(ctx); err != nil {
		return err
	}
	p.began, p.last = true, now
	beating, stop := context.WithCancel(context.WithoutCancel(ctx))
	p.stop, p.done = stop, make(chan struct{})
	go p.beats(beating)
	return nil
}

// beat says that this process is alive. When it was written says when.
func (p *presence) beat(ctx context.Context) error {
	_, err := p.objects.Put(ctx, processKey(p.Name()), []byte("{}"), objectstore.Condition{})
	return err
}

// measure compares the bucket's clock with this machine's, by the object that beat has just written. LastModified has
// whole seconds, which silent has room for. The caller holds mu.
func (p *presence) measure(ctx context.Context) error {
	info, err := p.objects.Head(ctx, processKey(p.Name()))
	if err != nil {
		return fmt.Errorf("reading the clock of the state bucket: %w", err)
	}
	p.ahead, p.known = info.LastModified.Sub(p.wall()), true
	return nil
}

func (p *presence) beats(ctx context.Context) {
	defer close(p.done)
	for p.clock.Sleep(ctx, beatEvery) == nil {
		now := p.wall()
		if !p.Fresh() {
			return // what comes back to life after that is another process
		}
		if err := p.beat(ctx); err != nil {
			if ctx.Err() == nil {
				p.logger.WarnContext(ctx, "could not say that this process is alive", "error", err)
			}
			continue
		}
		p.mu.Lock()
		p.last = now
		p.mu.Unlock()
	}
}

// Fresh reports whether others still take this process for alive. Once they may not, it never is again.
func (p *presence) Fresh() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.began && p.wall().Sub(p.last) >= fresh {
		p.lost = true
	}
	return !p.lost
}

// Alive implements inprocess.Holder. This machine knows at once of its own processes; of others the bucket tells.
func (p *presence) Alive(ctx context.Context, name string) bool {
	switch p.process.Look(name) {
	case inprocess.Alive:
		return true
	case inprocess.Dead:
		// This machine has forgotten it now, and what it has last said in the bucket may still look fresh.
		p.mu.Lock()
		if p.dead == nil {
			p.dead = map[string]bool{}
		}
		p.dead[name] = true
		p.mu.Unlock()
		if err := p.objects.Delete(ctx, processKey(name), objectstore.Condition{}); err != nil {
			p.logger.WarnContext(ctx, "could not tell others that a process is dead", "process", name, "error", err)
		}
		return false
	}
	p.mu.Lock()
	dead := p.dead[name]
	p.mu.Unlock()
	if dead || name == "" {
		return false
	}
	info, err := p.objects.Head(ctx, processKey(name))
	if errors.Is(err, objectstore.ErrNotFound) {
		return false // it has ended in order
	}
	if err != nil {
		return true // nothing is known of it
	}
	// To know the bucket's time this process has to write to it.
	if err := p.Begin(ctx); err != nil {
		return true
	}
	p.mu.Lock()
	now := p.wall().Add(p.ahead)
	p.mu.Unlock()
	return now.Sub(info.LastModified) < silent
}

// Close tells others that this process is gone.
func (p *presence) Close(ctx context.Context) error {
	p.mu.Lock()
	began, stop, done := p.began, p.stop, p.done
	p.mu.Unlock()
	var err error
	if began {
		stop()
		<-done
		if err = p.objects.Delete(ctx, processKey(p.Name()), objectstore.Condition{}); err != nil {
			err = fmt.Errorf("taking this process out of the state bucket: %w", err)
		}
	}
	return errors.Join(err, p.process.Close())
}

// guarded is the HTTP client of everything that touches resources: it sends nothing once this process may count as
// dead. A call that was held up between the record of its intent and its request is caught here.
type guarded struct {
	next     aws.HTTPClient
	presence *presence
}

// Do implements aws.HTTPClient.
func (g guarded) Do(r *http.Request) (*http.Response, error) {
	if !g.presence.Fresh() {
		return nil, ErrSilent
	}
	return g.next.Do(r)
}

// guard returns the configuration for what touches resources.
func (p *presence) guard(cfg aws.Config) aws.Config {
	cfg = cfg.Copy()
	next := cfg.HTTPClient
	if next == nil {
		next = awshttp.NewBuildableClient()
	}
	cfg.HTTPClient = guarded{next: next, presence: p}
	return cfg
}
