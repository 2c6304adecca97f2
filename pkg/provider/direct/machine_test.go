package direct

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/smithy-go"

	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/provider"
)

// store is a service that keeps things, with names or with ids that it makes up.
type store struct {
	things map[string]*thing
	made   int
	calls  []string
	// fail is asked before and after the effect of each call.
	fail func(call string, after bool) error
	// looks is how many looks each level takes.
	looks int
}

type thing struct {
	tags       map[string]string
	properties map[string]any
	seen       int
}

func coded(code string) error { return &smithy.GenericAPIError{Code: code} }

var errLost = errors.New("connection reset")

func (s *store) call(name string, do func() error) error {
	s.calls = append(s.calls, name)
	if s.fail != nil {
		if err := s.fail(name, false); err != nil {
			return err
		}
	}
	if err := do(); err != nil {
		return err
	}
	if s.fail != nil {
		return s.fail(name, true)
	}
	return nil
}

// with does something to a thing.
func (s *store) with(call, id string, do func(*thing)) error {
	return s.call(call, func() error {
		t := s.things[id]
		if t == nil {
			return coded("ResourceNotFoundException")
		}
		do(t)
		return nil
	})
}

func kind(identity Identity) Kind[*store] {
	put := func(property string) func(context.Context, *Call[*store]) error {
		return func(_ context.Context, c *Call[*store]) error {
			return c.Client.with("Put "+property, c.PhysicalID, func(t *thing) {
				if t.properties[property] = c.Properties[property]; !c.Has(property) {
					delete(t.properties, property)
				}
			})
		}
	}
	return Kind[*store]{
		Type: "AWS::SQS::Queue", Identity: identity, CreateOnly: []string{"QueueName"},
		Create: func(_ context.Context, c *Call[*store]) (id string, err error) {
			err = c.Client.call("Create", func() error {
				if id = c.Text("QueueName"); identity == ByMark {
					id = fmt.Sprint("id-", c.Client.made)
				}
				if c.Client.things[id] != nil {
					return coded("AlreadyExistsException")
				}
				c.Client.made++
				c.Client.things[id] = &thing{tags: c.Tags(), properties: maps.Clone(c.Properties)}
				return nil
			})
			return id, err
		},
		Find: func(_ context.Context, c *Call[*store]) (found Found, err error) {
			err = c.Client.call("Find", func() error {
				for id, t := range c.Client.things {
					if identity == ByMark && t.tags[MarkKey] == c.Mark() || identity == ByName && id == c.Text("QueueName") {
						found = Found{ID: id, Tags: t.tags}
					}
				}
				return nil
			})
			return found, err
		},
		Stable: func(_ context.Context, c *Call[*store]) (level Level, err error) {
			err = c.Client.with("Stable", c.PhysicalID, func(t *thing) {
				t.seen++
				level = Settled
				if n := c.Client.looks; n > 0 {
					level = min(Level(t.seen/n), Settled)
				}
			})
			return level, err
		},
		Facets: []Facet[*store]{
			{Properties: []string{"DelaySeconds"}, Created: true, Defaults: map[string]any{"DelaySeconds": 0}, Put: put("DelaySeconds")},
			{Properties: []string{"RedrivePolicy"}, Put: put("RedrivePolicy")},
		},
		Read: func(_ context.Context, c *Call[*store]) (live Live, err error) {
			err = c.Client.with("Read", c.PhysicalID, func(t *thing) {
				live = Live{Properties: maps.Clone(t.properties), Attributes: map[string]any{"Arn": c.PhysicalID}}
				live.Properties["Tags"] = TagModel(t.tags)
			})
			return live, err
		},
		Delete: func(_ context.Context, c *Call[*store]) error {
			return c.Client.with("Delete", c.PhysicalID, func(*thing) { delete(c.Client.things, c.PhysicalID) })
		},
	}
}

// bench is a provider over a store.
type bench struct {
	*testing.T
	store *store
	clock *clock.Fake
	p     provider.Provider
}

func newBench(t *testing.T, k Kind[*store]) *bench {
	b := &bench{T: t, store: &store{things: map[string]*thing{}}, clock: clock.NewFake(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))}
	b.p = &machine[*store]{kind: k, client: func(string, string) *store { return b.store }, clock: b.clock}
	return b
}

func request(properties map[string]any) provider.Request {
	return provider.Request{Type: "AWS::SQS::Queue", LogicalID: "Q", Properties: properties, Token: "t1", Operation: "op"}
}

// settle follows a step to its end through stored handles.
func (b *bench) settle(do func(context.Context, provider.Request) (provider.Progress, error), req provider.Request) (provider.Progress, error) {
	b.Helper()
	progress, err := do(b.Context(), req)
	for range 1000 {
		if err != nil || progress.Done {
			return progress, err
		}
		raw, _ := json.Marshal(progress.Handle)
		var h provider.Handle
		if err := json.Unmarshal(raw, &h); err != nil {
			b.Fatal(err)
		}
		b.clock.Advance(progress.RetryAfter)
		progress, err = b.p.Poll(b.Context(), req, h)
	}
	b.Fatal("it does not end")
	return progress, err
}

// once fails a call the first time.
func once(call string, after bool, err error) func(string, bool) error {
	done := false
	return func(c string, a bool) error {
		if c != call || a != after || done {
			return nil
		}
		done = true
		return err
	}
}

func TestALostAnswerMakesNoSecondResource(t *testing.T) {
	for _, identity := range []Identity{ByName, ByMark} {
		for _, after := range []bool{false, true} {
			b := newBench(t, kind(identity))
			b.store.fail = once("Create", after, errLost)
			begun := b.clock.Now()
			p, err := b.settle(b.p.Create, request(map[string]any{"QueueName": "q"}))
			if err != nil || b.store.made != 1 || b.store.things[p.PhysicalID] == nil {
				t.Errorf("identity %d, made %t: %d things, %+v, %v", identity, after, b.store.made, p, err)
			}
			if waited := b.clock.Now().Sub(begun); identity == ByMark && !after && waited < defaultWindow {
				t.Errorf("the create was made again after %s", waited)
			}
		}
	}
}

func TestAnEarlierProcessesCreateIsFound(t *testing.T) {
	for _, identity := range []Identity{ByName, ByMark} {
		b := newBench(t, kind(identity))
		req := request(map[string]any{"QueueName": "q", "RedrivePolicy": "r"})
		first, err := b.settle(b.p.Create, req)
		if err != nil {
			t.Fatal(err)
		}
		req.Token, req.Repeat = "t2", true // the next attempt has another token
		again, err := b.settle(b.p.Create, req)
		if err != nil || again.PhysicalID != first.PhysicalID || b.store.made != 1 {
			t.Errorf("identity %d: %+v, %v", identity, again, err)
		}
	}
}

func TestAForeignResourceIsNotTaken(t *testing.T) {
	for _, lookFirst := range []bool{false, true} {
		k := kind(ByName)
		k.LookFirst = lookFirst
		b := newBench(t, k)
		b.store.things["q"] = &thing{tags: map[string]string{"a": "b"}, properties: map[string]any{}}
		_, err := b.settle(b.p.Create, request(map[string]any{"QueueName": "q"}))
		var failure *provider.Error
		if !errors.As(err, &failure) || failure.Kind != provider.KindAlreadyExists || failure.PhysicalID != "" {
			t.Errorf("look first %t: %v", lookFirst, err)
		}
		if lookFirst && slices.Contains(b.store.calls, "Create") {
			t.Error("the create was made though the name is taken")
		}
	}
}

func TestWithoutTagsOnlyWhatAnEarlierCallCanHaveMadeIsTaken(t *testing.T) {
	k := kind(ByName)
	k.Find = func(_ context.Context, c *Call[*store]) (Found, error) {
		return Found{ID: "q", Properties: c.Client.things["q"].properties}, nil
	}
	for _, c := range []struct {
		name   string
		stands map[string]any
		repeat bool
		ours   bool
	}{
		{"as desired, an earlier call", map[string]any{"QueueName": "q", "DelaySeconds": "5"}, true, true},
		{"as desired, no earlier call", map[string]any{"QueueName": "q", "DelaySeconds": "5"}, false, false},
		{"otherwise, an earlier call", map[string]any{"QueueName": "q", "DelaySeconds": "6"}, true, false},
	} {
		b := newBench(t, k)
		b.store.things["q"] = &thing{properties: c.stands}
		req := request(map[string]any{"QueueName": "q", "DelaySeconds": json.Number("5")})
		req.Repeat = c.repeat
		if _, err := b.settle(b.p.Create, req); (err == nil) != c.ours || !c.ours && !provider.IsAlreadyExists(err) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestWaitModesStopAtTheirLevels(t *testing.T) {
	for mode, looks := range map[provider.WaitMode]int{provider.WaitNone: 3, provider.WaitDefault: 6, provider.WaitFull: 9} {
		b := newBench(t, kind(ByName))
		b.store.looks = 3
		req := request(map[string]any{"QueueName": "q"})
		req.Wait = mode
		if _, err := b.settle(b.p.Create, req); err != nil {
			t.Fatal(err)
		}
		if seen := b.store.things["q"].seen; seen != looks {
			t.Errorf("mode %q looked %d times, want %d", mode, seen, looks)
		}
	}
}

func TestWaitingLeavesRoomForFailures(t *testing.T) {
	b := newBench(t, kind(ByName))
	b.store.looks = 3 * maxTries
	looked := 0
	b.store.fail = func(call string, after bool) error {
		if call != "Stable" || after {
			return nil
		}
		if looked++; looked == 2*maxTries {
			return errLost
		}
		return nil
	}
	if _, err := b.settle(b.p.Create, request(map[string]any{"QueueName": "q"})); err != nil || looked < 2*maxTries {
		t.Errorf("after %d looks: %v", looked, err)
	}
}

func TestAnUpdatePutsOnlyWhatDiffers(t *testing.T) {
	b := newBench(t, kind(ByName))
	was := map[string]any{"QueueName": "q", "DelaySeconds": "5", "RedrivePolicy": `{"a":1}`}
	if _, err := b.settle(b.p.Create, request(was)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		to   map[string]any
		puts []string
	}{
		{"nothing", map[string]any{"QueueName": "q", "DelaySeconds": json.Number("5"), "RedrivePolicy": map[string]any{"a": json.Number("1")}}, nil},
		{"a value", map[string]any{"QueueName": "q", "DelaySeconds": "6", "RedrivePolicy": `{"a":1}`}, []string{"Put DelaySeconds"}},
		{"a removed property", map[string]any{"QueueName": "q", "RedrivePolicy": `{"a":1}`}, []string{"Put DelaySeconds"}},
		{"both", map[string]any{"QueueName": "q"}, []string{"Put DelaySeconds", "Put RedrivePolicy"}},
	} {
		b.store.calls = nil
		req := request(c.to)
		req.PhysicalID, req.Previous = "q", was
		if _, err := b.settle(b.p.Update, req); err != nil {
			t.Fatal(err)
		}
		puts := slices.DeleteFunc(b.store.calls, func(call string) bool { return !strings.HasPrefix(call, "Put") })
		if !slices.Equal(puts, c.puts) {
			t.Errorf("%s: %v", c.name, puts)
		}
	}
	if live := b.store.things["q"].properties; live["DelaySeconds"] != 0 || live["RedrivePolicy"] != nil {
		t.Errorf("removed properties are %v", live)
	}
	req := request(map[string]any{"QueueName": "other"})
	req.PhysicalID, req.Previous = "q", map[string]any{"QueueName": "q"}
	if _, err := b.p.Update(t.Context(), req); !provider.IsImmutable(err) {
		t.Errorf("another name: %v", err)
	}
}

func TestAFacetIsRepeatedInItsPlaceAndNamesWhatStandsWhenItFails(t *testing.T) {
	b := newBench(t, kind(ByName))
	b.store.fail = once("Put RedrivePolicy", false, coded("ThrottlingException"))
	req := request(map[string]any{"QueueName": "q", "RedrivePolicy": "r"})
	if p, err := b.p.Create(t.Context(), req); err != nil || !p.Throttled || p.PhysicalID != "q" {
		t.Errorf("throttled: %+v, %v", p, err)
	}
	b = newBench(t, kind(ByName))
	b.store.fail = once("Put RedrivePolicy", false, coded("ThrottlingException"))
	if _, err := b.settle(b.p.Create, req); err != nil || b.store.made != 1 {
		t.Errorf("throttled once: %v", err)
	}
	b = newBench(t, kind(ByName))
	b.store.fail = func(call string, _ bool) error {
		if call == "Put RedrivePolicy" {
			return coded("AccessDenied")
		}
		return nil
	}
	_, err := b.settle(b.p.Create, req)
	var failure *provider.Error
	if !errors.As(err, &failure) || failure.Kind != provider.KindAccessDenied || failure.PhysicalID != "q" {
		t.Errorf("refused: %v", err)
	}
}

func TestWhatIsNeverDecidedIsSaidSo(t *testing.T) {
	b := newBench(t, kind(ByName))
	b.store.fail = func(call string, after bool) error {
		if call == "Create" && !after {
			return errLost
		}
		return nil
	}
	if _, err := b.settle(b.p.Create, request(map[string]any{"QueueName": "q"})); !provider.IsUndecided(err) {
		t.Errorf("a create that is never answered: %v", err)
	}
}

func TestWhatDoesNotBecomeUsableTimesOut(t *testing.T) {
	b := newBench(t, kind(ByName))
	b.store.looks = 1 << 20
	_, err := b.settle(b.p.Create, request(map[string]any{"QueueName": "q"}))
	var failure *provider.Error
	if !errors.As(err, &failure) || failure.Kind != provider.KindTimeout || failure.PhysicalID != "q" {
		t.Errorf("%v", err)
	}
}

func TestADeletionIsFollowedUntilTheResourceIsGone(t *testing.T) {
	k, looks := kind(ByName), 0
	k.Gone = func(context.Context, *Call[*store]) (bool, error) {
		if looks++; looks == 3 {
			return false, coded("ResourceNotFoundException")
		}
		return false, nil
	}
	b := newBench(t, k)
	b.store.things["q"] = &thing{}
	req := request(nil)
	req.PhysicalID = "q"
	if p, err := b.settle(b.p.Delete, req); err != nil || !p.Done || looks != 3 {
		t.Errorf("%d looks, %v", looks, err)
	}
	if p, err := b.settle(b.p.Delete, req); err != nil || !p.Done {
		t.Errorf("deleted again: %v", err)
	}
}

func TestTheMarkIsNotRead(t *testing.T) {
	b := newBench(t, kind(ByName))
	tags := []any{map[string]any{"Key": "k", "Value": "v"}}
	p, err := b.settle(b.p.Create, request(map[string]any{"QueueName": "q", "Tags": tags}))
	if err != nil || b.store.things["q"].tags[MarkKey] == "" {
		t.Fatalf("%v, tags %v", err, b.store.things["q"].tags)
	}
	if got, _ := Document(p.Observed["Tags"]); got != `[{"Key":"k","Value":"v"}]` {
		t.Errorf("tags read %s", got)
	}
}

func TestAnotherProvidersHandleIsRefused(t *testing.T) {
	b := newBench(t, kind(ByName))
	for _, h := range []provider.Handle{{}, {Version: 2, Provider: "direct"}, {Version: 1, Provider: "else"}, {Version: 1, Provider: "direct", Data: json.RawMessage(`{}`)}} {
		if _, err := b.p.Poll(t.Context(), request(nil), h); err == nil || provider.Retryable(err) {
			t.Errorf("%+v: %v", h, err)
		}
	}
}

func TestACallThatIsCutOffMayBeMadeAgain(t *testing.T) {
	b := newBench(t, kind(ByName))
	ctx, cancel := context.WithCancel(t.Context())
	b.store.fail = func(string, bool) error { cancel(); return errLost }
	if _, err := b.p.Create(ctx, request(map[string]any{"QueueName": "q"})); !provider.IsUnavailable(err) || !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestAFacetOfSeveralCallsWaitsBetweenThem(t *testing.T) {
	k := kind(ByName)
	left := 3
	k.Facets = []Facet[*store]{{Properties: []string{"RedrivePolicy"}, Put: func(_ context.Context, c *Call[*store]) error {
		return c.Client.with("Put", c.PhysicalID, func(t *thing) { t.seen, left = 0, left-1 })
	}}}
	put := k.Facets[0].Put
	k.Facets[0].Put = func(ctx context.Context, c *Call[*store]) error {
		if err := put(ctx, c); err != nil || left <= 0 {
			return err
		}
		return ErrAgain
	}
	b := newBench(t, k)
	b.store.looks = 2
	if _, err := b.settle(b.p.Create, request(map[string]any{"QueueName": "q", "RedrivePolicy": "r"})); err != nil {
		t.Fatal(err)
	}
	want := "Create Stable Stable Put Stable Stable Put Stable Stable Put Stable Stable Stable Stable Read"
	if got := strings.Join(b.store.calls, " "); got != want {
		t.Errorf("the calls are\n%s, want\n%s", got, want)
	}
	left = maxRounds * 2
	req := request(map[string]any{"QueueName": "q", "RedrivePolicy": "s"})
	req.PhysicalID, req.Previous = "q", map[string]any{"QueueName": "q", "RedrivePolicy": "r"}
	if _, err := b.settle(b.p.Update, req); provider.KindOf(err) != provider.KindTimeout {
		t.Errorf("a facet without end ends with %v", err)
	}
}
