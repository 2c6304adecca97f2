package providertest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/provider"
)

// live creates, changes and deletes the resource.
func (l *life) live() {
	create := l.request(l.token())
	r := l.must(l.p.Create, create)
	l.expect(r, "after the create", l.c.Properties)
	for _, name := range l.c.Attributes {
		if attribute(r.attributes, name) == nil {
			l.Errorf("there is no attribute %s", name)
		}
	}
	if again := l.must(l.s.Open(l.T).Create, create); again.id != r.id {
		l.Errorf("the same create again made %s, the first one %s", again.id, r.id)
	}
	l.another(r)
	r = l.changes(r)
	l.removals(r)
	l.createOnly(r)
	l.end(r)
}

// another creates a second resource from the same properties.
func (l *life) another(r made) {
	l.Helper()
	before, _ := l.look(r)
	p, err := l.settle(l.p.Create, l.request(l.token()))
	if l.c.Named {
		if !provider.IsAlreadyExists(err) {
			l.Fatalf("a second create under the name answers %v", err)
		}
		var e *provider.Error
		if errors.As(err, &e) && e.PhysicalID != "" {
			l.Error("the failed create claims the resource that was there before")
		}
	} else {
		if err != nil {
			l.Fatalf("a second create: %v", err)
		}
		if p.PhysicalID == r.id {
			l.Fatal("a second create returns the first resource")
		}
		second := made{p.PhysicalID, p.Attributes}
		l.must(l.p.Delete, l.removal(second, l.c.Properties))
		if _, found := l.look(second); found {
			l.Error("the second resource is still there")
		}
	}
	after, found := l.look(r)
	if !found || !sameJSON(before, after) {
		l.Error("the second create has touched the first resource")
	}
}

// changes updates every mutable property alone and all of them together, each time there and back.
func (l *life) changes(r made) made {
	l.Helper()
	names := slices.Sorted(maps.Keys(l.c.Change))
	update := func(when string, previous, desired map[string]any) {
		l.Helper()
		req := l.change(r, previous, desired)
		next := l.must(l.p.Update, req)
		if next.id != r.id {
			l.Errorf("%s: the update made %s out of %s", when, next.id, r.id)
		}
		l.expect(r, when, desired)
		for name := range previous {
			if _, kept := desired[name]; !kept {
				l.expectGone(r, when, name)
			}
		}
		if again := l.must(l.s.Open(l.T).Update, req); again.id != r.id {
			l.Errorf("%s: the same update again made %s", when, again.id)
		}
		l.expect(r, when+", repeated", desired)
		r.attributes = next.attributes
	}
	all := clone(l.c.Properties)
	for _, name := range names {
		changed := with(l.c.Properties, name, l.c.Change[name])
		update("with another "+name, l.c.Properties, changed)
		update("with the first "+name, changed, l.c.Properties)
		all[name] = l.c.Change[name]
	}
	if len(names) > 1 {
		update("with everything changed", l.c.Properties, all)
		update("with nothing changed", all, all)
		update("with everything as it was", all, l.c.Properties)
	}
	return r
}

func (l *life) removals(r made) {
	l.Helper()
	for _, name := range l.c.Optional {
		less := without(l.c.Properties, name)
		req := l.change(r, l.c.Properties, less)
		next := l.must(l.p.Update, req)
		l.expectGone(r, "removed", name)
		l.expect(r, "without "+name, less)
		l.must(l.p.Update, l.change(next, less, l.c.Properties))
		l.expect(r, "with "+name+" again", l.c.Properties)
	}
}

func (l *life) expectGone(r made, when, name string) {
	l.Helper()
	if live, _ := l.look(r); live[name] != nil {
		if want, before := l.c.Properties[name]; !before || sameJSON(want, live[name]) {
			l.Errorf("%s: %s is still there", when, name)
		}
	}
}

// createOnly asks for changes in place of what can't change.
func (l *life) createOnly(r made) {
	l.Helper()
	before, _ := l.look(r)
	for _, name := range slices.Sorted(maps.Keys(l.c.CreateOnly)) {
		_, err := l.settle(l.p.Update, l.change(r, l.c.Properties, with(l.c.Properties, name, l.c.CreateOnly[name])))
		if err != nil && !provider.IsImmutable(err) {
			l.Errorf("changing %s: %v", name, err)
		}
	}
	if after, found := l.look(r); !found || !sameJSON(before, after) {
		l.Error("a create-only property has changed")
	}
}

// finalSnapshot asks for one before the deletion: either it is taken and the resource goes, or it can't be taken, and the resource
// stays.
func (l *life) finalSnapshot() {
	l.Helper()
	r := l.must(l.p.Create, l.request(l.token()))
	req := l.removal(r, l.c.Properties)
	req.FinalSnapshot = "last-one"
	_, err := l.settle(l.p.Delete, req)
	_, there := l.look(r)
	switch {
	case err == nil && there:
		l.Error("the deletion with a final snapshot has not deleted")
	case err != nil && !provider.IsUnsupported(err):
		l.Errorf("deleting with a final snapshot: %v", err)
	case err != nil && !there:
		l.Errorf("a final snapshot can't be taken (%v), and the resource is gone", err)
	}
	l.must(l.p.Delete, l.removal(r, l.c.Properties))
}

func (l *life) end(r made) {
	l.Helper()
	req := l.removal(r, l.c.Properties)
	p, err := l.p.Delete(context.Background(), req)
	var handle *provider.Handle
	for err == nil && !p.Done {
		handle = p.Handle
		p, err = l.poll(req, p)
	}
	if err != nil || p.Skipped != "" {
		l.Fatalf("the delete: %v %s", err, p.Skipped)
	}
	if _, found := l.look(r); found {
		l.Fatal("the resource is still there")
	}
	if handle != nil {
		if p, err := l.s.Open(l.T).Poll(context.Background(), req, *handle); err != nil || !p.Done {
			l.Errorf("the poll of a finished delete: %+v, %v", p, err)
		}
	}
	l.must(l.s.Open(l.T).Delete, req)
	l.must(l.p.Delete, l.removal(r, l.c.Properties))
}

// gone asks about a resource that somebody else has deleted.
func (l *life) gone() {
	r := l.must(l.p.Create, l.request(l.token()))
	l.must(l.p.Delete, l.removal(r, l.c.Properties))
	if _, found := l.look(r); found {
		l.Error("the resource is still there")
	}
	if names := slices.Sorted(maps.Keys(l.c.Change)); len(names) > 0 && l.s.Look == nil {
		_, err := l.settle(l.p.Update, l.change(r, l.c.Properties, with(l.c.Properties, names[0], l.c.Change[names[0]])))
		if !provider.IsNotFound(err) {
			l.Errorf("changing %s of what is gone: %v", names[0], err)
		}
	}
	// The name is free again.
	again := l.must(l.p.Create, l.request(l.token()))
	l.must(l.p.Delete, l.removal(again, l.c.Properties))
}

// crash loses the process after the service has accepted a step: once with the stored handle, once without.
func (l *life) crash() {
	create := l.request(l.token())
	first, err := l.p.Create(context.Background(), create)
	if err != nil {
		l.Fatal(err)
	}
	// The answer was lost: the step is made again under its token by another process.
	r := l.must(l.s.Open(l.T).Create, create)
	if first.Handle != nil {
		p, err := l.poll(create, first)
		if err != nil || !p.Done || p.PhysicalID != r.id {
			l.Errorf("the first handle leads to %+v, %v", p, err)
		}
	}
	if len(l.c.Change) > 0 {
		name := slices.Sorted(maps.Keys(l.c.Change))[0]
		changed := with(l.c.Properties, name, l.c.Change[name])
		update := l.change(r, l.c.Properties, changed)
		if _, err := l.p.Update(context.Background(), update); err != nil {
			l.Fatal(err)
		}
		l.must(l.s.Open(l.T).Update, update)
		l.expect(r, "after the repeated update", changed)
	}
	remove := l.removal(r, l.c.Properties)
	if _, err := l.p.Delete(context.Background(), remove); err != nil {
		l.Fatal(err)
	}
	l.must(l.s.Open(l.T).Delete, remove)
	if _, found := l.look(r); found {
		l.Error("the resource is still there")
	}
}

// tokenConflict uses a create's token for another create.
func (l *life) tokenConflict() {
	names := slices.Sorted(maps.Keys(l.c.Change))
	if len(names) == 0 {
		return
	}
	create := l.request(l.token())
	r := l.must(l.p.Create, create)
	other := create
	other.Properties = with(l.c.Properties, names[0], l.c.Change[names[0]])
	if _, err := l.settle(l.p.Create, other); provider.KindOf(err) != provider.KindTokenConflict {
		l.Errorf("another create with the token: %v", err)
	}
	l.expect(r, "after the conflict", l.c.Properties)
	l.must(l.p.Delete, l.removal(r, l.c.Properties))
}

// busy begins a second operation on a resource while the first one runs, where operations take time.
func (l *life) busy() {
	names := slices.Sorted(maps.Keys(l.c.Change))
	if len(names) == 0 {
		return
	}
	r := l.must(l.p.Create, l.request(l.token()))
	changed := with(l.c.Properties, names[0], l.c.Change[names[0]])
	req := l.change(r, l.c.Properties, changed)
	p, err := l.p.Update(context.Background(), req)
	if err != nil {
		l.Fatal(err)
	}
	if p.Handle != nil && p.RetryAfter > 0 {
		if _, err := l.p.Update(context.Background(), l.change(r, l.c.Properties, changed)); !provider.IsConflict(err) {
			l.Errorf("an update during an update: %v", err)
		}
		if _, err := l.p.Delete(context.Background(), l.removal(r, l.c.Properties)); !provider.IsConflict(err) {
			l.Errorf("a delete during an update: %v", err)
		}
	}
	for !p.Done {
		if p, err = l.poll(req, p); err != nil {
			l.Fatal(err)
		}
	}
	l.expect(r, "after the first update", changed)
	l.must(l.p.Delete, l.removal(r, l.c.Properties))
}

// cutOff ends a call's context before the service answers; the step can then be made again.
func (l *life) cutOff() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	create := l.request(l.token())
	if _, err := l.p.Create(ctx, create); !provider.IsUnavailable(err) || !errors.Is(err, context.Canceled) {
		l.Errorf("a create that is cut off: %v", err)
	}
	r := l.must(l.p.Create, create)
	l.must(l.p.Delete, l.removal(r, l.c.Properties))
}

func (l *life) invalid() {
	for _, name := range slices.Sorted(maps.Keys(l.c.Invalid)) {
		req := l.request(l.token())
		req.Properties = with(l.c.Properties, name, l.c.Invalid[name])
		_, err := l.settle(l.p.Create, req)
		if provider.KindOf(err) != provider.KindInvalid {
			l.Errorf("creating with a bad %s: %v", name, err)
		}
		if text, ok := l.c.Invalid[name].(string); ok && err != nil && text != "" && strings.Contains(err.Error(), text) {
			l.Errorf("the error repeats the value of %s", name)
		}
		var e *provider.Error
		if errors.As(err, &e) && e.PhysicalID != "" {
			l.Errorf("a refused create names %s as left behind", e.PhysicalID)
		}
	}
	r := l.must(l.p.Create, l.request(l.token()))
	for name, value := range l.c.Invalid {
		if _, err := l.settle(l.p.Update, l.change(r, l.c.Properties, with(l.c.Properties, name, value))); provider.KindOf(err) != provider.KindInvalid {
			l.Errorf("updating to a bad %s: %v", name, err)
		}
	}
	l.expect(r, "after refused updates", l.c.Properties)
	l.must(l.p.Delete, l.removal(r, l.c.Properties))
}

// inUse deletes a resource that another one refers to.
func (l *life) inUse() {
	r := l.must(l.p.Create, l.request(l.token()))
	holder := *l
	holder.c = l.c.HeldBy(r.attributes)
	held := holder.must(holder.p.Create, holder.request(l.token()))
	if _, err := l.settle(l.p.Delete, l.removal(r, l.c.Properties)); !provider.IsDependencyViolation(err) {
		l.Errorf("deleting what a %s uses: %v", holder.c.Type, err)
	}
	l.expect(r, "after the refused delete", l.c.Properties)
	holder.must(holder.p.Delete, holder.removal(held, holder.c.Properties))
	l.must(l.p.Delete, l.removal(r, l.c.Properties))
}

// attribute reads a dotted name from flat or nested attributes.
func attribute(attributes map[string]any, name string) any {
	if v, ok := attributes[name]; ok {
		return v
	}
	head, rest, nested := strings.Cut(name, ".")
	inner, ok := attributes[head].(map[string]any)
	if !nested || !ok {
		return nil
	}
	return attribute(inner, rest)
}

func sameJSON(a, b any) bool {
	return jsonOf(a) == jsonOf(b)
}
