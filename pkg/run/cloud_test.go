package run_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/provider"
)

// cloud is a provider with a memory: it keeps what exists, counts every call, honours tokens as Cloud Control
// does, and behaves for each step ("create Queue") as a test has told it to.
type cloud struct {
	clk clock.Clock

	mu      sync.Mutex
	live    map[string]thing   // by physical id
	done    map[string]outcome // by step and token
	calls   []call
	scripts map[string]script
	heard   map[string]int // by step
	serial  int
}

// thing is a live resource.
type thing struct {
	Type, LogicalID string
	Properties      map[string]any
}

// call is one call of the engine.
type call struct {
	step, physicalID, token string
	// snapshot is the final snapshot that a deletion was asked for.
	snapshot             string
	attempt              int
	properties, previous map[string]any
}

// outcome is what a token has led to.
type outcome struct {
	physicalID string
	err        *provider.Error
	readyAt    time.Time
}

// script says how a step behaves; the zero value succeeds at once.
type script struct {
	// takes is how long it is in flight.
	takes time.Duration
	// fails gives the failure of an attempt, nil for success.
	fails func(attempt int) *provider.Error
	// remnant: a failed creation leaves its resource behind.
	remnant bool
	// leaves is what a failed update leaves of the resource's properties.
	leaves map[string]any
	// id is the physical id that the step leads to, instead of a new one or the old one.
	id string
	// silent: of the nth call and poll of the step, counted together, nobody hears; it has its effect all the same.
	silent func(n int) bool
	// skip is the reason for which a deletion is skipped.
	skip string
	// before runs when the step is called.
	before func()
}

func newCloud(clk clock.Clock) *cloud {
	return &cloud{clk: clk, live: map[string]thing{}, done: map[string]outcome{}, scripts: map[string]script{}, heard: map[string]int{}}
}

// For implements run.Providers.
func (c *cloud) For(_ string, recorded provider.Route, _ []string) (provider.Provider, provider.Route, error) {
	if recorded != "" {
		return c, recorded, nil
	}
	return c, provider.RouteSDK, nil
}

func (c *cloud) script(step string, s script) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.scripts[step] = s
}

func fails(kind provider.Kind) func(int) *provider.Error {
	return func(int) *provider.Error {
		return &provider.Error{Kind: kind, Code: "Test" + string(kind), Message: "refused by the test"}
	}
}

// failsFirst makes the first call fail, and no other.
func failsFirst() func(int) *provider.Error {
	n := 0
	return func(attempt int) *provider.Error {
		if n++; n == 1 {
			return fails(provider.KindAccessDenied)(attempt)
		}
		return nil
	}
}

// failsUntil makes the attempts before n fail.
func failsUntil(n int, kind provider.Kind) func(int) *provider.Error {
	return func(attempt int) *provider.Error {
		if attempt < n {
			return fails(kind)(attempt)
		}
		return nil
	}
}

func (c *cloud) note(verb string, req provider.Request) script {
	step := verb + " " + req.LogicalID
	c.mu.Lock()
	c.calls = append(c.calls, call{
		step: step, physicalID: req.PhysicalID, token: req.Token, attempt: req.Attempt,
		properties: req.Properties, previous: req.Previous, snapshot: req.FinalSnapshot,
	})
	s := c.scripts[step]
	c.mu.Unlock()
	if s.before != nil {
		s.before()
	}
	return s
}

// once carries a step out, unless its token has been there: then the answer is what it was.
func (c *cloud) once(verb string, req provider.Request, do func(s script) outcome) (provider.Progress, error) {
	s := c.note(verb, req)
	c.mu.Lock()
	defer c.mu.Unlock()
	key := verb + " " + req.Token
	o, known := c.done[key]
	if !known {
		o = do(s)
		o.readyAt = c.clk.Now().Add(s.takes)
		if o.err == nil || !o.err.Undecided { // what was not taken is not remembered
			c.done[key] = o
		}
	}
	return c.answer(verb, req, o, s)
}

func (c *cloud) answer(verb string, req provider.Request, o outcome, s script) (provider.Progress, error) {
	if step := verb + " " + req.LogicalID; c.scripts[step].silent != nil {
		c.heard[step]++
		if c.scripts[step].silent(c.heard[step]) {
			return provider.Progress{}, &provider.Error{Kind: provider.KindUnavailable, Undecided: true, Message: "no answer"}
		}
	}
	if left := o.readyAt.Sub(c.clk.Now()); left > 0 {
		data, err := json.Marshal(verb + " " + req.Token)
		if err != nil {
			return provider.Progress{}, err
		}
		return provider.Progress{
			PhysicalID: o.physicalID, Handle: &provider.Handle{Version: 1, Provider: "test", Data: data},
			RetryAfter: min(left, 10*time.Second),
		}, nil
	}
	if o.err != nil {
		failure := *o.err
		return provider.Progress{}, &failure
	}
	return provider.Progress{Done: true, PhysicalID: o.physicalID, Attributes: attributes(o.physicalID), Skipped: s.skip}, nil
}

func attributes(id string) map[string]any {
	return map[string]any{"Arn": "arn:" + id, "TopicArn": "arn:" + id, "TopicName": id}
}

func (c *cloud) Create(_ context.Context, req provider.Request) (provider.Progress, error) {
	return c.once("create", req, func(s script) outcome {
		id := s.id
		if id == "" {
			c.serial++
			id = fmt.Sprintf("%s-%d", req.LogicalID, c.serial)
		}
		if s.fails != nil {
			if err := s.fails(req.Attempt); err != nil {
				if s.remnant {
					err.PhysicalID = id
					c.live[id] = thing{req.Type, req.LogicalID, req.Properties}
				}
				return outcome{err: err}
			}
		}
		c.live[id] = thing{req.Type, req.LogicalID, req.Properties}
		return outcome{physicalID: id}
	})
}

func (c *cloud) Update(_ context.Context, req provider.Request) (provider.Progress, error) {
	return c.once("update", req, func(s script) outcome {
		if s.fails != nil {
			if err := s.fails(req.Attempt); err != nil {
				if half, ok := c.live[req.PhysicalID]; ok && s.leaves != nil {
					half.Properties = s.leaves
					c.live[req.PhysicalID] = half
				}
				return outcome{err: err}
			}
		}
		old, ok := c.live[req.PhysicalID]
		if !ok {
			return outcome{err: &provider.Error{Kind: provider.KindNotFound, Message: "there is no " + req.PhysicalID}}
		}
		id := req.PhysicalID
		if s.id != "" {
			id = s.id
		}
		c.live[id] = thing{old.Type, req.LogicalID, req.Properties}
		return outcome{physicalID: id}
	})
}

func (c *cloud) Delete(_ context.Context, req provider.Request) (provider.Progress, error) {
	return c.once("delete", req, func(s script) outcome {
		if s.fails != nil {
			if err := s.fails(req.Attempt); err != nil {
				return outcome{err: err}
			}
		}
		if s.skip == "" {
			delete(c.live, req.PhysicalID)
		}
		return outcome{physicalID: req.PhysicalID}
	})
}

func (c *cloud) Poll(_ context.Context, req provider.Request, h provider.Handle) (provider.Progress, error) {
	s := c.note("poll", req)
	c.mu.Lock()
	defer c.mu.Unlock()
	var key string
	if err := json.Unmarshal(h.Data, &key); err != nil {
		return provider.Progress{}, err
	}
	o, ok := c.done[key]
	if !ok {
		return provider.Progress{}, &provider.Error{Kind: provider.KindNotFound, Message: "there is no such request"}
	}
	verb, _, _ := strings.Cut(key, " ")
	return c.answer(verb, req, o, s)
}

func (c *cloud) Read(_ context.Context, req provider.Request) (provider.Snapshot, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if strings.HasPrefix(req.Type, "Custom::") {
		return provider.Snapshot{}, &provider.Error{Kind: provider.KindUnsupported} // only its handler could tell
	}
	r, ok := c.live[req.PhysicalID]
	if !ok {
		return provider.Snapshot{}, &provider.Error{Kind: provider.KindNotFound}
	}
	return provider.Snapshot{PhysicalID: req.PhysicalID, Properties: r.Properties, Attributes: attributes(req.PhysicalID)}, nil
}

// steps lists the calls of a kind, in order: "create", or "create Queue".
func (c *cloud) steps(prefix string) []call {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []call
	for _, call := range c.calls {
		if call.step == prefix || strings.HasPrefix(call.step, prefix+" ") {
			out = append(out, call)
		}
	}
	return out
}

// effects counts the calls of every step by token: a repeated token has no effect of its own.
func (c *cloud) effects() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	tokens := map[string]map[string]bool{}
	for _, call := range c.calls {
		if strings.HasPrefix(call.step, "poll ") {
			continue
		}
		if tokens[call.step] == nil {
			tokens[call.step] = map[string]bool{}
		}
		tokens[call.step][call.token] = true
	}
	out := map[string]int{}
	for step, set := range tokens {
		out[step] = len(set)
	}
	return out
}

// exists lists the physical ids of what is live.
func (c *cloud) exists() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.live))
}

func (c *cloud) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = nil
}

var _ provider.Provider = (*cloud)(nil)
