// Command slipway deploys AWS CDK apps without CloudFormation.
//
// This package reads flags, asks the engine through Plane, and picks a view; package views prints. Each
// command is one file.
package main

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/slipway-cdk/slipway/cli/views"
	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// The exit codes. Scripts rely on them.
const (
	exitDone        = 0
	exitFailed      = 1 // failed, refused, or differences under diff --fail
	exitPartial     = 2 // finished, but something was skipped or left behind
	exitInterrupted = 130
)

func main() {
	env := &environment{
		streams: views.NewStreams(os.Stdin, os.Stdout, os.Stderr, os.Getenv),
		getenv:  os.Getenv,
		clock:   clock.Real{},
		open:    openPlane,

		simulation: simulationOf,
	}
	ctx, interrupts, stop := interruptible(context.Background())
	env.interrupts = interrupts
	code := execute(ctx, env, os.Args[1:])
	stop()
	os.Exit(code)
}

// environment is what the commands get from outside, so that tests can put something else there.
type environment struct {
	streams *views.Streams
	getenv  func(string) string
	clock   clock.Clock
	open    func(context.Context, globalFlags) (Plane, error)

	simulation func(Plane) (simulation, bool)
	// interrupts tells of a second Ctrl-C; nil where nobody can press it.
	interrupts *interrupts
}

// exitError ends a command that has already said everything, with its exit code.
type exitError struct{ code int }

func (e exitError) Error() string { return "the command failed" }

// exitOf is the exit code of a deployment's result, as an error.
func exitOf(r runlog.Result) error {
	switch r {
	case runlog.ResultSucceeded:
		return nil
	case runlog.ResultPartial:
		return exitError{exitPartial}
	default:
		return exitError{exitFailed}
	}
}

// execute runs one command line and returns its exit code.
func execute(ctx context.Context, env *environment, args []string) int {
	root := newRoot(env)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitDone
	}
	var exit exitError
	if errors.As(err, &exit) {
		return exit.code
	}
	list := problems(cmd, err)
	code := exitFailed
	if errors.Is(context.Cause(ctx), errInterrupted) {
		code = exitInterrupted
		list = diag.Errorf("interrupted", "")
	}
	env.streams.Diagnostics(list)
	if wantsJSON(cmd) {
		if err := views.WriteJSON(env.streams.Out, failureDocument(cmd, list)); err != nil {
			env.streams.Diagnostics(diag.From(err))
		}
	}
	return code
}

// problems turns an error into diagnostics that always hold an error.
func problems(cmd *cobra.Command, err error) diag.Diagnostics {
	list := diag.From(err)
	if !list.HasErrors() {
		list = append(list, diag.Diagnostic{Severity: diag.Error, Summary: "slipway " + cmd.Name() + " failed"})
	}
	return list
}

func failureDocument(cmd *cobra.Command, list diag.Diagnostics) any {
	first := *views.FirstError(list)
	if cmd.Annotations[jsonShape] == jsonResult {
		return views.ResultDocument{Result: runlog.ResultFailed, Runs: []views.RunDocument{}, Error: &first, Diagnostics: list}
	}
	return views.FailureDocument{Error: first, Diagnostics: list}
}
