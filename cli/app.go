package main

import (
	"context"
	"os"

	"github.com/slipway-cdk/slipway/cli/views"
	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/synth"
)

// synthesize runs the app, or reads the assembly that --app names. plane tells the account and region that
// the app is synthesized for; it may be nil.
func (env *environment) synthesize(ctx context.Context, plane Plane, a appFlags, g globalFlags) (*assembly.Assembly, error) {
	values, err := synth.ParseContext(a.Context)
	if err != nil {
		return nil, err
	}
	opts := synth.Options{App: a.App, Output: a.Output, Region: g.Region, Context: values}
	// Without a home directory there is no .cdk.json of the user's, which is the usual case anyway.
	opts.HomeDir, _ = os.UserHomeDir()
	if plane != nil {
		account, region, err := plane.Identity(ctx)
		if err != nil {
			return nil, err
		}
		opts.Account = account
		if opts.Region == "" {
			opts.Region = region
		}
	}
	if g.Verbose {
		opts.Stderr = env.streams.Passthrough()
	}
	env.lookups(&opts, plane, g)
	env.streams.Working("Synthesizing the app")
	return synth.Run(ctx, opts)
}

// ready waits for what a plane has been looking for while the app was synthesized.
func (env *environment) ready(ctx context.Context, plane Plane) error {
	p, ok := plane.(interface {
		Ready(context.Context) (diag.Diagnostics, error)
	})
	if !ok {
		return nil
	}
	found, err := p.Ready(ctx)
	env.streams.Diagnostics(found)
	return err
}

// chooseStacks selects stacks and says which others come along.
func (env *environment) chooseStacks(asm *assembly.Assembly, patterns []string, opts assembly.SelectOptions) ([]*assembly.Stack, error) {
	selected, added, err := assembly.Select(asm, patterns, opts)
	if err != nil {
		return nil, err
	}
	for _, s := range added {
		if opts.Dependents {
			env.streams.Notice("Including %s, which depends on a selected stack (--exclusively leaves it out).", s.DisplayName)
		} else {
			env.streams.Notice("Including %s, which a selected stack depends on (--exclusively leaves it out).", s.DisplayName)
		}
	}
	return selected, nil
}

// annotations shows what the constructs of stacks have left to say. An error annotation refuses, and with
// --strict a warning too.
func (env *environment) annotations(stacks []*assembly.Stack, a appFlags) error {
	var fatal diag.Diagnostics
	for _, s := range stacks {
		for _, m := range s.Messages {
			d := diag.Diagnostic{Severity: diag.Warning, Summary: m.Text, Stack: s.Name, Path: m.Path}
			switch {
			case m.Level == assembly.LevelInfo:
				env.streams.Note(m.Text, d.Where())
			case m.Level == assembly.LevelError && !a.IgnoreErrors:
				d.Severity = diag.Error
				d.Next = "Correct the construct, or give --ignore-errors to go on."
				fatal = append(fatal, d)
			case m.Level == assembly.LevelWarning && a.Strict:
				d.Severity = diag.Error
				d.Next = "Correct the construct, or leave out --strict."
				fatal = append(fatal, d)
			default:
				env.streams.Diagnostics(diag.Diagnostics{d})
			}
		}
	}
	return fatal.Err()
}

// withPlane opens the plane for f and closes it afterwards.
func (env *environment) withPlane(ctx context.Context, g *globalFlags, f func(Plane) error) (err error) {
	plane, err := env.open(ctx, *g)
	if err != nil {
		return err
	}
	defer func() {
		if closing := plane.Close(); err == nil {
			err = closing
		}
	}()
	if p, ok := plane.(uploadingPlane); ok {
		p.WatchUploads(func() (func(done, total int64), func()) { return env.streams.Upload(env.clock.Now) })
	}
	return f(plane)
}

// withOptionalPlane opens the plane for a command that can do without: with --local or --direct it tells the account that the app
// is synthesized for.
func (env *environment) withOptionalPlane(ctx context.Context, g *globalFlags, f func(Plane) error) error {
	if !g.Local && !g.Direct {
		return f(nil)
	}
	return env.withPlane(ctx, g, f)
}

func stackEntries(stacks []*assembly.Stack) []views.StackEntry {
	list := []views.StackEntry{}
	for _, s := range stacks {
		e := views.StackEntry{ID: s.ID, DisplayName: s.DisplayName, Name: s.Name, Account: s.Account, Region: s.Region, DependsOn: s.DependsOn}
		if e.DependsOn == nil {
			e.DependsOn = []string{}
		}
		list = append(list, e)
	}
	return list
}

// desired is what the app and the command line ask for.
type desired struct {
	asm        *assembly.Assembly
	stacks     []*assembly.Stack
	parameters map[string]map[string]string
}

// desired synthesizes the app, chooses its stacks with what they depend on, refuses those with error annotations,
// and finds the values of their parameters.
func (env *environment) desired(ctx context.Context, plane Plane, args []string, global globalFlags, app appFlags, selection selectionFlags, values parameterFlags) (d desired, err error) {
	if d.asm, err = env.synthesize(ctx, plane, app, global); err != nil {
		return d, err
	}
	if err = env.ready(ctx, plane); err != nil {
		return d, err
	}
	if d.stacks, err = env.chooseStacks(d.asm, args, assembly.SelectOptions{All: selection.All, Exclusively: selection.Exclusively}); err != nil {
		return d, err
	}
	if err = env.annotations(d.stacks, app); err != nil {
		return d, err
	}
	d.parameters, err = values.resolve(d.stacks)
	return d, err
}
