package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

// lab makes resources at an emulator.
type lab struct {
	// open returns the providers as a new process would have them.
	open    func() map[string]provider.Provider
	clock   *clock.Fake
	wire    *direct.Recorder
	account string
	region  string
	// breathe lets the emulator get on while an operation waits.
	breathe func(time.Duration)
	// plain makes what cases need of types without a direct provider, by plain calls.
	plain map[string]func(properties map[string]any) (id string, remove func() error, err error)
	// seed makes the tokens of this run differ from those of any other.
	seed   string
	broken bool // the emulator has broken a connection off
	tokens int
	// waits counts the polls that looked again at what was not there yet: how many there are is the emulator's doing.
	waits int
}

// life is one resource of a case.
type life struct {
	*lab
	c Case
	// needs are the resources that the case refers to.
	needs map[string]made
	order []Need
	// all are the resources that make has made, and those that it has left when it failed.
	all []made
}

type made struct {
	id         string
	attributes map[string]any
	properties map[string]any
	remove     func() error // of what is made by plain calls
}

func (l *lab) token() string {
	l.tokens++
	return fmt.Sprintf("conf-%s-%d", l.seed, l.tokens)
}

// request is a create of the case's resource, in an operation of its own.
func (l *life) request(typeName, logicalID string, properties map[string]any) provider.Request {
	token := l.token()
	return provider.Request{
		Account: l.account, Region: l.region, Stack: "Conf" + l.seed, LogicalID: logicalID, Type: typeName,
		Properties: properties, Token: token, Operation: token, Attempt: 1, WantAttributes: l.c.Attributes, Wait: provider.WaitFull,
	}
}

func (l *life) change(r made, to map[string]any) provider.Request {
	req := l.request(l.c.Type, "Resource", to)
	req.PhysicalID, req.Attributes, req.Previous = r.id, r.attributes, r.properties
	return req
}

func (l *life) removal(typeName string, r made) provider.Request {
	req := l.request(typeName, "Resource", nil)
	req.PhysicalID, req.Attributes, req.Previous = r.id, r.attributes, r.properties
	return req
}

type step func(context.Context, provider.Request) (provider.Progress, error)

// settle makes a step and polls to its end. Each poll is another process's.
func (l *lab) settle(do step, req provider.Request) (provider.Progress, error) {
	progress, err := do(context.Background(), req)
	for range 400 {
		if err != nil || progress.Done {
			return progress, err
		}
		progress, err = l.poll(req, progress)
	}
	return progress, errors.New("the operation does not end")
}

func (l *lab) poll(req provider.Request, p provider.Progress) (provider.Progress, error) {
	if p.Handle == nil {
		return p, errors.New("a step that is not done has no handle")
	}
	raw, err := json.Marshal(p.Handle)
	if err != nil {
		return p, err
	}
	var h provider.Handle
	if err := json.Unmarshal(raw, &h); err != nil {
		return p, err
	}
	l.clock.Advance(p.RetryAfter)
	l.breathe(p.RetryAfter)
	before := len(l.wire.Calls())
	next, err := l.open()[req.Type].Poll(context.Background(), req, h)
	if calls := l.wire.Calls(); before > 0 && len(calls) > before && looksAgain(calls[before-1], calls[before]) {
		l.waits++
	}
	return next, err
}

// looksAgain: a call repeats the one before it, which was answered.
func looksAgain(last, call direct.WireCall) bool {
	return last.Operation == call.Operation && last.Err == nil && call.Err == nil
}

// provider returns the type's provider in a process of its own.
func (l *life) provider() provider.Provider { return l.open()[l.c.Type] }

func (l *life) make(req provider.Request) (made, error) {
	p, err := l.settle(l.open()[req.Type].Create, req)
	r := made{id: p.PhysicalID, attributes: p.Attributes, properties: req.Properties}
	if failure := new(provider.Error); errors.As(err, &failure) {
		r.id = failure.PhysicalID
	}
	if r.id != "" {
		l.all = append(l.all, r)
	}
	if err != nil {
		return made{}, fmt.Errorf("creating %s: %w", req.Type, err)
	}
	return r, nil
}

// update changes a resource and checks what it reads as, then sends the same update again.
func (l *life) update(r made, to map[string]any) (made, error) {
	req := l.change(r, to)
	for _, when := range []string{"", " again"} {
		p, err := l.settle(l.provider().Update, req)
		if err != nil {
			return r, fmt.Errorf("updating%s: %w", when, err)
		}
		if p.PhysicalID != r.id {
			return r, fmt.Errorf("updating%s made %s out of %s", when, p.PhysicalID, r.id)
		}
		if err := l.expect(r.id, to); err != nil {
			return r, fmt.Errorf("updating%s: %w", when, err)
		}
	}
	return made{id: r.id, attributes: r.attributes, properties: to}, nil
}

// remove deletes a resource and checks that it is gone.
func (l *life) remove(r made) error {
	if _, err := l.settle(l.provider().Delete, l.removal(l.c.Type, r)); err != nil {
		return fmt.Errorf("deleting: %w", err)
	}
	return l.expectGone(r)
}

func (l *life) expectGone(r made) error {
	req := l.removal(l.c.Type, r)
	snap, err := l.look(req)
	if provider.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading what is deleted: %w", err)
	}
	return fmt.Errorf("%s is still there: %v", r.id, slices.Sorted(maps.Keys(snap.Properties)))
}

// expect checks that a resource reads as desired.
func (l *life) expect(id string, desired map[string]any) error {
	live, err := l.read(id, desired)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(desired)) {
		if slices.Contains(l.c.Unread, name) {
			continue
		}
		if !direct.Covers(l.c.Type, name, live[name], desired[name]) {
			return fmt.Errorf("%s reads %s, want %s", name, text(live[name]), text(desired[name]))
		}
	}
	if tags := text(live); strings.Contains(tags, direct.MarkKey) {
		return errors.New("the mark can be read")
	}
	return nil
}

func (l *life) read(id string, recorded map[string]any) (map[string]any, error) {
	req := l.request(l.c.Type, "Resource", nil)
	req.PhysicalID, req.Previous = id, recorded
	snap, err := l.look(req)
	if err != nil {
		return nil, fmt.Errorf("reading: %w", err)
	}
	if snap.PhysicalID != id {
		return nil, fmt.Errorf("reading %s returns %s", id, snap.PhysicalID)
	}
	return snap.Properties, nil
}

// look reads once more when the emulator has broken the connection off.
func (l *life) look(req provider.Request) (provider.Snapshot, error) {
	snap, err := l.provider().Read(context.Background(), req)
	for range 3 {
		if !provider.IsUnavailable(err) {
			break
		}
		snap, err = l.provider().Read(context.Background(), req)
	}
	return snap, err
}

// prepare makes what the case needs and returns the case with its references resolved.
func (l *life) prepare() error {
	l.needs = map[string]made{}
	for _, n := range l.c.Needs {
		v, err := resolve(n.Properties, l.ref)
		if err != nil {
			return err
		}
		properties, _ := v.(map[string]any)
		if properties == nil {
			properties = map[string]any{}
		}
		if l.open()[n.Type] == nil {
			if l.plain == nil || l.plain[n.Type] == nil {
				return fmt.Errorf("%s, which %s needs, has no direct provider", n.Type, l.c.Name)
			}
			id, remove, err := l.plain[n.Type](properties)
			if err != nil {
				return fmt.Errorf("making what it needs: %w", err)
			}
			l.needs[n.ID], l.order = made{id: id, remove: remove}, append(l.order, n)
			continue
		}
		r, err := l.make(l.request(n.Type, n.ID, properties))
		if err != nil {
			return fmt.Errorf("making what it needs: %w", err)
		}
		l.needs[n.ID], l.order = r, append(l.order, n)
	}
	for _, part := range []*map[string]any{&l.c.Properties, &l.c.Change, &l.c.Removed} {
		v, err := resolve(*part, l.ref)
		if err != nil {
			return err
		}
		if *part, _ = v.(map[string]any); *part == nil {
			*part = map[string]any{}
		}
	}
	return nil
}

// leave deletes what can be deleted after a check has failed: other checks of the same emulator count what there is. What resists
// stays; the failure is told already.
func (l *life) leave() {
	for _, r := range slices.Backward(l.all) {
		_, _ = l.settle(l.provider().Delete, l.removal(l.c.Type, r))
	}
	_ = l.clear()
}

// clear deletes what the case needed.
func (l *life) clear() error {
	var first error
	for i := len(l.order) - 1; i >= 0; i-- {
		n := l.order[i]
		if remove := l.needs[n.ID].remove; remove != nil {
			if err := remove(); err != nil && first == nil {
				first = fmt.Errorf("deleting what it needed: %w", err)
			}
			continue
		}
		if _, err := l.settle(l.open()[n.Type].Delete, l.removal(n.Type, l.needs[n.ID])); err != nil && first == nil {
			first = fmt.Errorf("deleting what it needed: %w", err)
		}
	}
	return first
}

func (l *life) ref(id, attribute string) (any, error) {
	switch {
	case id == "AWS" && attribute == "" || strings.HasPrefix(id, "AWS::"):
		switch id {
		case "AWS::Region":
			return l.region, nil
		case "AWS::AccountId":
			return l.account, nil
		case "AWS::Partition":
			return "aws", nil
		}
	case id == "Seed":
		return l.seed, nil
	}
	r, ok := l.needs[id]
	if !ok {
		return nil, fmt.Errorf("there is no %s", id)
	}
	if attribute == "" {
		return r.id, nil
	}
	v := at(r.attributes, attribute)
	if v == nil {
		return nil, fmt.Errorf("%s has no %s", id, attribute)
	}
	return v, nil
}

// at reads a dotted name from flat or nested attributes.
func at(attributes map[string]any, name string) any {
	if v, ok := attributes[name]; ok {
		return v
	}
	head, rest, nested := strings.Cut(name, ".")
	inner, ok := attributes[head].(map[string]any)
	if !nested || !ok {
		return nil
	}
	return at(inner, rest)
}

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return "no JSON"
	}
	return string(b)
}

func with(properties map[string]any, name string, value any) map[string]any {
	out := maps.Clone(properties)
	out[name] = value
	return out
}

func without(properties map[string]any, name string) map[string]any {
	out := maps.Clone(properties)
	delete(out, name)
	return out
}
