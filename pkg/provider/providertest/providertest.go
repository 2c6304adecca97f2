// Package providertest is the conformance suite of provider.Provider: what every implementation must do with a
// resource from its creation to after its end, whichever service is behind it.
//
// A provider's test describes resources as cases and calls Run. The suite knows no service. It never sleeps: a
// subject whose operations take time hands in how time passes.
package providertest

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/schema"
)

// Subject is the provider under test.
type Subject struct {
	// Open returns the provider as a new process would: two of them share nothing but the service.
	Open    func(t *testing.T) provider.Provider
	Account string
	Region  string
	// Pass makes time pass for the service; nil when its operations take none.
	Pass func(time.Duration)
	// Unsupported is a type that the provider can't provision.
	Unsupported string
	// Look reads a resource past the provider, for providers that can't read; nil uses Read. It returns false when
	// there is no such resource.
	Look func(t *testing.T, req provider.Request) (map[string]any, bool)
}

// Case is one resource.
type Case struct {
	// Name tells cases of one type apart; the type when empty.
	Name string
	Type string
	// Properties are those to create with.
	Properties map[string]any
	// Named: the properties hold a name that only one resource can have. Otherwise two creates make two resources.
	Named bool
	// Change holds another value for mutable properties, also for some that Properties does not have. Each is changed
	// alone, then all together, and back.
	Change map[string]any
	// Optional lists properties without default whose removal must be seen. They are in Properties.
	Optional []string
	// CreateOnly holds another value for a property that can't be changed in place.
	CreateOnly map[string]any
	// Invalid holds a value that a property can't have.
	Invalid map[string]any
	// Attributes are names of attributes that must have a value after a create, in dotted form.
	Attributes []string
	// HeldBy makes resources that keep this one from being deleted, given its attributes; nil when nothing does.
	HeldBy func(attributes map[string]any) Case
}

// Run puts every case through its life and checks the provider's promises that need no resource.
func Run(t *testing.T, s Subject, cases []Case) {
	t.Helper()
	if s.Pass == nil {
		s.Pass = func(time.Duration) {}
	}
	for _, c := range cases {
		name := c.Name
		if name == "" {
			name = c.Type
		}
		t.Run(name, func(t *testing.T) {
			l := &life{T: t, s: s, c: c, p: s.Open(t), tokens: new(int)}
			t.Run("life", func(t *testing.T) { l.at(t).live() })
			t.Run("a resource that is gone", func(t *testing.T) { l.at(t).gone() })
			t.Run("a crash before the answer", func(t *testing.T) { l.at(t).crash() })
			t.Run("a token used for something else", func(t *testing.T) { l.at(t).tokenConflict() })
			t.Run("two operations at once", func(t *testing.T) { l.at(t).busy() })
			t.Run("a call that is cut off", func(t *testing.T) { l.at(t).cutOff() })
			t.Run("a final snapshot", func(t *testing.T) { l.at(t).finalSnapshot() })
			if len(c.Invalid) > 0 {
				t.Run("invalid properties", func(t *testing.T) { l.at(t).invalid() })
			}
			if c.HeldBy != nil {
				t.Run("in use", func(t *testing.T) { l.at(t).inUse() })
			}
		})
	}
	t.Run("an unsupported type", func(t *testing.T) {
		p := s.Open(t)
		_, err := p.Create(context.Background(), provider.Request{
			Account: s.Account, Region: s.Region, Stack: "Stack", LogicalID: "Resource", Type: s.Unsupported,
			Properties: map[string]any{}, Token: "unsupported", Attempt: 1,
		})
		if !provider.IsUnsupported(err) {
			t.Errorf("creating a %s: %v", s.Unsupported, err)
		}
	})
	t.Run("a handle of another provider or release", func(t *testing.T) {
		p := s.Open(t)
		for _, h := range []provider.Handle{
			{}, {Version: 999, Provider: "elsewhere", Data: json.RawMessage(`{}`)},
			{Version: 1, Provider: "elsewhere", Data: json.RawMessage(`{"requestToken":"x"}`)}, {Version: 1, Data: json.RawMessage(`[`)},
		} {
			req := provider.Request{Account: s.Account, Region: s.Region, LogicalID: "Resource", Type: cases[0].Type}
			if _, err := p.Poll(context.Background(), req, h); err == nil || provider.Retryable(err) || provider.IsNotFound(err) {
				t.Errorf("polling with %+v: %v", h, err)
			}
		}
	})
}

// life is one case under test.
type life struct {
	*testing.T
	s      Subject
	c      Case
	p      provider.Provider
	tokens *int // shared by everything that is done for one case
}

func (l *life) at(t *testing.T) *life {
	next := *l
	next.T = t
	return &next
}

// token returns one that this test has not used.
func (l *life) token() string {
	*l.tokens++
	sum := sha256.Sum256([]byte(l.c.Type + "\x00" + l.c.Name))
	return fmt.Sprintf("%x-%d", sum[:16], *l.tokens)
}

func (l *life) request(token string) provider.Request {
	return provider.Request{
		Account: l.s.Account, Region: l.s.Region, Stack: "Stack", LogicalID: "Resource", Type: l.c.Type,
		Properties: clone(l.c.Properties), Token: token, Attempt: 1, WantAttributes: l.c.Attributes,
	}
}

// change is the request to update a resource from one set of properties to another.
func (l *life) change(r made, previous, desired map[string]any) provider.Request {
	req := l.request(l.token())
	req.PhysicalID, req.Attributes = r.id, r.attributes
	req.Previous, req.Properties = clone(previous), clone(desired)
	return req
}

func (l *life) removal(r made, properties map[string]any) provider.Request {
	req := l.change(r, properties, nil)
	req.Properties = nil
	return req
}

// made is what is known of a resource.
type made struct {
	id         string
	attributes map[string]any
}

type step func(context.Context, provider.Request) (provider.Progress, error)

// settle makes a step and polls until it has ended. Each handle crosses a process: it is stored and read again,
// and another provider polls.
func (l *life) settle(do step, req provider.Request) (provider.Progress, error) {
	l.Helper()
	progress, err := do(context.Background(), req)
	for range 1000 {
		if err != nil || progress.Done {
			l.checkEnd(progress, err)
			return progress, err
		}
		progress, err = l.poll(req, progress)
	}
	l.Fatal("the operation does not end")
	return progress, err
}

func (l *life) poll(req provider.Request, progress provider.Progress) (provider.Progress, error) {
	l.Helper()
	if progress.Handle == nil {
		l.Fatal("a step that is not done has no handle")
	}
	if progress.RetryAfter < 0 || progress.RetryAfter > 10*time.Minute {
		l.Errorf("the next poll is due in %s", progress.RetryAfter)
	}
	l.s.Pass(max(progress.RetryAfter, time.Second))
	stored, err := json.Marshal(progress.Handle)
	if err != nil {
		l.Fatal(err)
	}
	var h provider.Handle
	if err := json.Unmarshal(stored, &h); err != nil {
		l.Fatal(err)
	}
	return l.s.Open(l.T).Poll(context.Background(), req, h)
}

func (l *life) checkEnd(p provider.Progress, err error) {
	l.Helper()
	if err != nil && (p.Done || p.Handle != nil) {
		l.Errorf("a failed step returns %+v", p)
	}
	if err == nil && p.Handle != nil {
		l.Error("a step that is done has a handle")
	}
}

// must is settle that has to succeed.
func (l *life) must(do step, req provider.Request) made {
	l.Helper()
	p, err := l.settle(do, req)
	if err != nil {
		l.Fatalf("%s: %v", l.c.Type, err)
	}
	if p.PhysicalID == "" {
		l.Fatal("there is no physical id")
	}
	return made{p.PhysicalID, p.Attributes}
}

// look reads a resource's properties.
func (l *life) look(r made) (map[string]any, bool) {
	l.Helper()
	req := l.request("")
	req.PhysicalID, req.Properties = r.id, nil
	if l.s.Look != nil {
		return l.s.Look(l.T, req)
	}
	snap, err := l.p.Read(context.Background(), req)
	if provider.IsNotFound(err) {
		return nil, false
	}
	if err != nil {
		l.Fatalf("reading: %v", err)
	}
	if snap.PhysicalID != r.id {
		l.Errorf("reading %s returns %s", r.id, snap.PhysicalID)
	}
	return snap.Properties, true
}

// expect checks that a resource has the desired properties, except those that are never read.
func (l *life) expect(r made, when string, desired map[string]any) {
	l.Helper()
	live, found := l.look(r)
	if !found {
		l.Fatalf("%s: the resource is not there", when)
	}
	t, ok := schema.Lookup(l.c.Type)
	if !ok {
		t = &schema.Type{}
	}
	for name, want := range desired {
		if diff := missing(t, []string{name}, want, live[name]); diff != "" {
			l.Errorf("%s: %s", when, diff)
		}
	}
}
