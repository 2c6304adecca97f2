package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

// check is one column of the matrix.
type check struct {
	name string
	run  func(*life) error
}

// checks are the columns, in their order. Each makes its own resource and leaves none.
var checks = []check{
	{"create", (*life).checkCreate},
	{"create again", (*life).checkAgain},
	{"another", (*life).checkAnother},
	{"change", (*life).checkChange},
	{"remove", (*life).checkRemove},
	{"delete", (*life).checkDelete},
	{"lost answers", func(l *life) error { return l.eachCall(answerLost) }},
	{"5xx", func(l *life) error { return l.eachCall(serverError) }},
	{"throttled", func(l *life) error { return l.eachCall(throttled) }},
	{"crash", (*life).checkCrash},
	{"calls", (*life).checkCalls},
}

// checkCreate: what is created reads as desired and has its attributes.
func (l *life) checkCreate() error {
	r, err := l.make(l.request(l.c.Type, "Resource", l.c.Properties))
	if err != nil {
		return err
	}
	if err := l.expect(r.id, l.c.Properties); err != nil {
		return err
	}
	for _, name := range l.c.Attributes {
		if at(r.attributes, name) == nil {
			return fmt.Errorf("there is no attribute %s", name)
		}
	}
	return l.remove(r)
}

// checkAgain: the same create again is the same resource, in this process's doubt and in another's.
func (l *life) checkAgain() error {
	req := l.request(l.c.Type, "Resource", l.c.Properties)
	r, err := l.make(req)
	if err != nil {
		return err
	}
	req.Repeat = true
	again, err := l.make(req)
	if err != nil {
		return err
	}
	if again.id != r.id {
		return fmt.Errorf("the same create again made %s, the first one %s", again.id, r.id)
	}
	next := req
	next.Token, next.Attempt = l.token(), 2
	if again, err = l.make(next); err != nil {
		return fmt.Errorf("the next attempt: %w", err)
	}
	if again.id != r.id {
		return fmt.Errorf("the next attempt made %s, the first one %s", again.id, r.id)
	}
	return l.remove(r)
}

// checkAnother: a create of another operation makes another resource, or is told that the name is taken.
func (l *life) checkAnother() error {
	r, err := l.make(l.request(l.c.Type, "Resource", l.c.Properties))
	if err != nil {
		return err
	}
	before, err := l.read(r.id, l.c.Properties)
	if err != nil {
		return err
	}
	other, err := l.make(l.request(l.c.Type, "Resource", l.c.Properties))
	var failure *provider.Error
	switch {
	case l.c.Named && !provider.IsAlreadyExists(err):
		return fmt.Errorf("a second create under the name answers: %w", orFine(err))
	case l.c.Named && errors.As(err, &failure) && failure.PhysicalID != "":
		return errors.New("the refused create claims the resource that was there before")
	case !l.c.Named && err != nil:
		return err
	case l.c.Shared:
		if other.id != r.id {
			return fmt.Errorf("a second create makes %s out of %s", other.id, r.id)
		}
	case !l.c.Named && other.id == r.id:
		return errors.New("a second create returns the first resource")
	case !l.c.Named:
		if err := l.remove(other); err != nil {
			return err
		}
	}
	after, err := l.read(r.id, l.c.Properties)
	if err != nil {
		return err
	}
	if text(before) != text(after) {
		return errors.New("the second create has touched the first resource")
	}
	return l.remove(r)
}

func orFine(err error) error {
	if err == nil {
		return errors.New("fine")
	}
	return err
}

// checkChange: every mutable property there and back, alone and with all others.
func (l *life) checkChange() error {
	r, err := l.make(l.request(l.c.Type, "Resource", l.c.Properties))
	if err != nil {
		return err
	}
	all := maps.Clone(l.c.Properties)
	for _, name := range slices.Sorted(maps.Keys(l.c.Change)) {
		all[name] = l.c.Change[name]
		if slices.Contains(l.c.Together, name) {
			continue
		}
		if r, err = l.update(r, with(l.c.Properties, name, l.c.Change[name])); err != nil {
			return fmt.Errorf("changing %s: %w", name, err)
		}
		if r, err = l.update(r, l.c.Properties); err != nil {
			return fmt.Errorf("changing %s back: %w", name, err)
		}
	}
	if r, err = l.update(r, all); err != nil {
		return fmt.Errorf("changing everything: %w", err)
	}
	if r, err = l.update(r, l.c.Properties); err != nil {
		return fmt.Errorf("changing everything back: %w", err)
	}
	return l.remove(r)
}

// checkRemove: a property that is removed goes back to its default.
func (l *life) checkRemove() error {
	full := maps.Clone(l.c.Properties)
	for name, value := range l.c.Change {
		if full[name] == nil && l.c.has(name) {
			full[name] = value
		}
	}
	r, err := l.make(l.request(l.c.Type, "Resource", full))
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(l.c.Removed)) {
		if full[name] == nil {
			return fmt.Errorf("%s can't be removed: the case gives it no value", name)
		}
		less := without(full, name)
		if r, err = l.update(r, less); err != nil {
			return fmt.Errorf("removing %s: %w", name, err)
		}
		live, err := l.read(r.id, less)
		if err != nil {
			return err
		}
		if want := l.c.Removed[name]; !slices.Contains(l.c.Unread, name) && text(live[name]) != text(want) {
			return fmt.Errorf("removing %s: it reads %s, want %s", name, text(live[name]), text(want))
		}
		if r, err = l.update(r, full); err != nil {
			return fmt.Errorf("putting %s back: %w", name, err)
		}
	}
	return l.remove(r)
}

func (c Case) has(name string) bool {
	_, ok := c.Removed[name]
	return ok
}

// checkDelete: what is deleted is gone, deleting it again is done, and its name is free.
func (l *life) checkDelete() error {
	r, err := l.make(l.request(l.c.Type, "Resource", l.c.Properties))
	if err != nil {
		return err
	}
	if err := l.remove(r); err != nil {
		return err
	}
	if err := l.remove(r); err != nil {
		return fmt.Errorf("again: %w", err)
	}
	if len(l.c.Change) > 0 && !l.c.Shared {
		name := slices.Sorted(maps.Keys(l.c.Change))[0]
		to := with(l.c.Properties, name, l.c.Change[name])
		_, err := l.settle(l.provider().Update, l.change(r, to))
		if l.c.Heals {
			if err == nil {
				r.properties = to
				err = l.remove(r)
			}
			if err != nil {
				return fmt.Errorf("making what is gone again: %w", err)
			}
		} else if !provider.IsNotFound(err) {
			return fmt.Errorf("changing what is gone: %w", orFine(err))
		}
	}
	if r, err = l.make(l.request(l.c.Type, "Resource", l.c.Properties)); err != nil {
		return fmt.Errorf("after the deletion: %w", err)
	}
	return l.remove(r)
}

// fault is what happens to a call.
type fault func() (answer error, sent bool)

func answerLost() (error, bool) { return errors.New("connection reset by peer"), true }

func serverError() (error, bool) {
	return &awshttp.ResponseError{ResponseError: &smithyhttp.ResponseError{
		Response: &smithyhttp.Response{Response: &http.Response{StatusCode: http.StatusInternalServerError, Header: http.Header{}}},
		Err:      &smithy.GenericAPIError{Code: "InternalFailure", Message: "injected"},
	}}, false
}

func throttled() (error, bool) {
	return &smithy.GenericAPIError{Code: "ThrottlingException", Message: "Rate exceeded"}, false
}

// eachCall does to the nth call of a create, of an update and of a deletion what the fault says, for every n: the step comes to
// the same end, and no second resource is made.
func (l *life) eachCall(f fault) error {
	for n := 1; n <= 30; n++ {
		hit := false
		l.wire.Lose = func(i int, _ string) (error, bool) {
			if i != n || hit {
				return nil, true
			}
			hit = true
			return f()
		}
		steps := 0
		during := func(do func() error) error {
			l.wire.Reset()
			hit = false
			err := do()
			if hit {
				steps++
			}
			return err
		}
		var r made
		err := during(func() (err error) {
			r, err = l.make(l.request(l.c.Type, "Resource", l.c.Properties))
			return err
		})
		if err == nil {
			err = l.onlyOne()
		}
		if err == nil && len(l.c.Change) > 0 {
			names := slices.DeleteFunc(slices.Sorted(maps.Keys(l.c.Change)), func(n string) bool { return slices.Contains(l.c.Together, n) })
			if l.c.Faults != "" {
				names = []string{l.c.Faults}
			}
			if len(names) > 0 {
				to := with(l.c.Properties, names[0], l.c.Change[names[0]])
				err = during(func() error { _, err := l.settle(l.provider().Update, l.change(r, to)); return err })
				if err == nil {
					l.wire.Lose = nilFault(l.wire.Lose, &hit)
					err = l.expect(r.id, to)
					r.properties = to
				}
			}
		}
		if err == nil {
			hit = false
			err = during(func() error {
				_, err := l.settle(l.provider().Delete, l.removal(l.c.Type, r))
				return err
			})
		}
		l.wire.Lose = nil
		if err == nil {
			err = l.expectGone(r)
		}
		if err != nil {
			return fmt.Errorf("call %d: %w", n, err)
		}
		if steps == 0 {
			return nil
		}
	}
	return nil
}

// nilFault keeps a fault from happening until hit is cleared.
func nilFault(f func(int, string) (error, bool), hit *bool) func(int, string) (error, bool) {
	*hit = true
	return f
}

// onlyOne checks that the call that makes a resource was sent once.
func (l *life) onlyOne() error {
	if l.c.Creates == "" {
		return nil
	}
	sent := 0
	for _, call := range l.wire.Calls() {
		if call.Operation == l.c.Creates && call.Sent {
			sent++
		}
	}
	if sent != 1 {
		return fmt.Errorf("%s was sent %d times", l.c.Creates, sent)
	}
	return nil
}

// checkCrash loses the process after the nth call of a create has been answered, for every n; another process makes the same
// create again.
func (l *life) checkCrash() error {
	for n := 1; n <= 30; n++ {
		ctx, crash := context.WithCancel(context.Background())
		hit := false
		l.wire.Reset()
		l.wire.Lose = func(i int, _ string) (error, bool) {
			if i != n || hit {
				return nil, true
			}
			hit = true
			crash()
			return context.Canceled, true
		}
		req := l.request(l.c.Type, "Resource", l.c.Properties)
		p, err := l.provider().Create(ctx, req)
		for err == nil && !p.Done && !hit {
			p, err = l.poll(req, p)
		}
		crash()
		l.wire.Lose = nil
		req.Repeat = true
		r, err := l.make(req)
		if err == nil {
			err = l.onlyOne()
		}
		if err == nil {
			err = l.expect(r.id, l.c.Properties)
		}
		if err == nil {
			err = l.remove(r)
		}
		if err != nil {
			return fmt.Errorf("after call %d: %w", n, err)
		}
		if !hit {
			return nil
		}
	}
	return nil
}

// checkCalls counts what goes over the wire, however long the emulator lets it wait.
func (l *life) checkCalls() error {
	reset := func() {
		l.wire.Reset()
		l.waits = 0
	}
	reset()
	count := func(what string, limit int) error {
		calls, made := l.wire.Calls(), len(l.wire.Calls())-l.waits
		reset()
		if made > limit {
			return fmt.Errorf("%s makes %d calls, at most %d are allowed: %v", what, made, limit, operations(calls))
		}
		return nil
	}
	r, err := l.make(l.request(l.c.Type, "Resource", l.c.Properties))
	if err != nil {
		return err
	}
	if err := count("the create", l.c.Calls.Create); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(l.c.Change)) {
		if slices.Contains(l.c.Together, name) {
			continue
		}
		to := with(l.c.Properties, name, l.c.Change[name])
		reset()
		if _, err := l.settle(l.provider().Update, l.change(r, to)); err != nil {
			return fmt.Errorf("changing %s: %w", name, err)
		}
		if err := count("changing "+name, l.c.Calls.Update); err != nil {
			return err
		}
		r.properties = to
		if _, err := l.settle(l.provider().Update, l.change(r, l.c.Properties)); err != nil {
			return fmt.Errorf("changing %s back: %w", name, err)
		}
		r.properties = l.c.Properties
	}
	reset()
	if _, err := l.settle(l.provider().Delete, l.removal(l.c.Type, r)); err != nil {
		return err
	}
	return count("the deletion", l.c.Calls.Delete)
}

func operations(calls []direct.WireCall) []string {
	var names []string
	for _, c := range calls {
		names = append(names, c.Operation)
	}
	return names
}

// missingCall is the call that the emulator does not have, if the last check met one: it said so itself.
func missingCall(calls []direct.WireCall) string {
	for _, c := range slices.Backward(calls) {
		if c.Answer != nil && unimplemented(c.Answer) {
			return c.Operation
		}
	}
	return ""
}

func unimplemented(err error) bool {
	var response *awshttp.ResponseError
	if errors.As(err, &response) && response.HTTPStatusCode() == http.StatusNotImplemented {
		return true
	}
	// A path that a server does not know is answered with a page, not with one of the service's errors.
	var malformed *smithy.DeserializationError
	if errors.As(err, &response) && response.HTTPStatusCode() == http.StatusNotFound && errors.As(err, &malformed) {
		return true
	}
	var api smithy.APIError
	if errors.As(err, &api) {
		switch api.ErrorCode() {
		case "NotImplemented", "NotImplementedException", "InvalidAction", "UnknownOperationException", "UnknownOperation", "UnsupportedOperation":
			return true
		}
	}
	said := strings.ToLower(err.Error())
	return strings.Contains(said, "not been implemented") || strings.Contains(said, "not implemented") || strings.Contains(said, "not yet implemented") ||
		strings.Contains(said, "unknown action:")
}

// connectionBroken: there is no answer because the connection ended, which an emulator may do to anybody.
func connectionBroken(err error) bool {
	var network *net.OpError
	return errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}
