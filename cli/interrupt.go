package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"github.com/slipway-cdk/slipway/cli/views"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// errInterrupted is the cause of a context that Ctrl-C has ended.
var errInterrupted = errors.New("interrupted")

// interrupts tells a command of a second Ctrl-C. The first ends the command's context.
type interrupts struct {
	// again is closed by the second; a nil channel never is.
	again chan struct{}
	// awaited: a command answers the second itself. Else it ends the process at once.
	awaited atomic.Bool
}

// interruptible returns a context that the first Ctrl-C or SIGTERM ends, so that the command can say what goes on
// without it or bring it to an end. The second makes the command leave at once, and the third needs no answer.
func interruptible(ctx context.Context) (context.Context, *interrupts, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	in := &interrupts{again: make(chan struct{})}
	signals := make(chan os.Signal, 3)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		cancel(errInterrupted)
		<-signals
		if !in.awaited.Load() {
			os.Exit(exitInterrupted)
		}
		close(in.again)
		<-signals
		os.Exit(exitInterrupted)
	}()
	return ctx, in, func() { signal.Stop(signals) }
}

// cancelOnInterrupt asks a run to end at the first Ctrl-C and leaves it at the second. leave ends the following; say
// tells the person at the terminal. It returns once done is closed or the run was left.
func (env *environment) cancelOnInterrupt(ctx context.Context, plane Plane, runID string, done <-chan struct{}, say func(string), leave func(error)) {
	var again <-chan struct{}
	if env.interrupts != nil {
		env.interrupts.awaited.Store(true)
		defer env.interrupts.awaited.Store(false)
		again = env.interrupts.again
	}
	select {
	case <-done:
		return
	case <-ctx.Done():
	}
	if !errors.Is(context.Cause(ctx), errInterrupted) {
		leave(context.Cause(ctx))
		return
	}
	say("Interrupted: cancelling run " + runID + ".")
	switch err := plane.Cancel(context.WithoutCancel(ctx), runID, caller(env.getenv)); {
	case errors.Is(err, run.ErrEnded):
		say("It is too late for that: " + err.Error() + ".")
	case err != nil:
		say("It could not be cancelled: " + err.Error() + ".")
	default:
		say("Nothing new begins. What is in flight is brought to its end and saved; nothing is undone.")
	}
	say("Press Ctrl-C again to leave at once.")
	select {
	case <-done:
	case <-again:
		leave(errInterrupted)
	}
}

// watchOrCancel follows a run like watch. The first Ctrl-C cancels the run, which is then followed to its end;
// interrupted tells so. The second returns at once, with errInterrupted.
func (env *environment) watchOrCancel(ctx context.Context, plane Plane, follower *views.Follower, runID string) (root runlog.Header, interrupted bool, err error) {
	watching, leave := context.WithCancelCause(context.WithoutCancel(ctx))
	defer leave(nil)
	notices := make(chan string, 8)
	follower.Notices = notices
	done, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		env.cancelOnInterrupt(ctx, plane, runID, done, func(text string) { notices <- text }, leave)
	}()
	root, err = watch(watching, plane, follower, runID)
	close(done)
	<-over
	if cause := context.Cause(watching); err != nil && errors.Is(cause, errInterrupted) {
		err = cause
	}
	for len(notices) > 0 {
		env.streams.Notice("%s", <-notices)
	}
	return root, errors.Is(context.Cause(ctx), errInterrupted), err
}
