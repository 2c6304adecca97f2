package conformance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/slipway-cdk/slipway/pkg/provider"
)

// action is one of a provider's steps.
type action string

const (
	creating action = "create"
	updating action = "update"
	deleting action = "delete"
)

// tries is how many failures of a kind the engine allows an operation, the last one among them (pkg/run, ladders).
var tries = map[provider.Kind]int{
	provider.KindThrottled: 12, provider.KindUnavailable: 5, provider.KindConflict: 5,
	provider.KindPropagation: 65, provider.KindRecentlyDeleted: 12,
}

const (
	// inUseTries is that of a deletion that something stands in the way of.
	inUseTries = 9
	// maxDoubts is how often in a row nobody may know what a call has done (pkg/run).
	maxDoubts = 20
)

// drive carries a step out as the engine does: an undecided call again under its token, a failure that passes by the next
// attempt, and what a failed creation names is removed before it. Each call is another process's.
func (l *life) drive(do action, req provider.Request) (provider.Progress, error) {
	operation, failures, repeat := req.Operation, map[provider.Kind]int{}, false
	for attempt := 1; ; attempt++ {
		req.Token, req.Operation, req.Attempt = fmt.Sprintf("%s-%d", operation, attempt), operation, attempt
		p, err := l.once(do, req, &repeat)
		if err == nil {
			return p, nil
		}
		var failure *provider.Error
		if !errors.As(err, &failure) || failure.Undecided {
			return p, err
		}
		if do == creating && failure.PhysicalID != "" {
			remnant := req
			remnant.PhysicalID, remnant.Previous, remnant.Properties, remnant.Token = failure.PhysicalID, req.Properties, nil, req.Token+"-remnant"
			if _, err := l.settle(l.open()[req.Type].Delete, remnant); err != nil {
				return p, fmt.Errorf("removing what a failed creation has left: %w", err)
			}
		}
		most := tries[failure.Kind]
		if do == deleting && failure.Kind == provider.KindDependencyViolation {
			most = inUseTries
		}
		if failures[failure.Kind]++; failures[failure.Kind] >= most {
			return p, err
		}
		l.pass(max(failure.RetryAfter, time.Duration(min(failures[failure.Kind], 8))*time.Second))
	}
}

// once is one attempt, to its end.
func (l *life) once(do action, req provider.Request, repeat *bool) (p provider.Progress, err error) {
	doubts := 0
	for calls := 0; calls < 500; calls++ {
		req.Repeat = *repeat
		*repeat = true
		next := p
		switch own := l.open()[req.Type]; {
		case p.Handle != nil:
			next, err = l.poll(req, p)
		case do == creating:
			next, err = own.Create(context.Background(), req)
		case do == updating:
			next, err = own.Update(context.Background(), req)
		default:
			next, err = own.Delete(context.Background(), req)
		}
		switch {
		case err != nil && provider.IsUndecided(err) && doubts < maxDoubts:
			doubts++
			l.pass(time.Duration(min(1<<doubts, 30)) * time.Second)
			continue
		case err != nil || next.Done:
			return next, err
		}
		doubts, p = 0, next
	}
	return p, errors.New("the operation does not end")
}

// pass lets time go by.
func (l *lab) pass(d time.Duration) {
	l.clock.Advance(d)
	l.breathe(d)
}
