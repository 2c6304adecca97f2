package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/slipway-cdk/slipway/cli/views"
	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/inprocess"
)

// carrier starts `slipway runs carry` as a process of its own, in a session of its own: it outlives the terminal. What
// it says goes to a log.
func carrier(g globalFlags) inprocess.Carrier {
	return func(_ context.Context, runID string) (<-chan struct{}, error) {
		exe, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("finding slipway itself: %w", err)
		}
		path := carrierLog(g, runID)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return nil, err
		}
		log, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			return nil, err
		}
		defer log.Close() // the other process has its own
		// It must outlive this command, so it is bound to no context.
		cmd := exec.Command(exe, append([]string{"runs", "carry", runID}, whereFlags(g)...)...)
		cmd.Args[0] = os.Args[0]
		cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = log, log, ownSession()
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = cmd.Wait() // how it has ended is in its log
		}()
		return ended, nil
	}
}

// whereFlags make another process work where this one does. It has this one's environment, too.
func whereFlags(g globalFlags) []string {
	flags := []string{"--local", "--local-dir", g.LocalDir, "--sandbox-speed", strconv.FormatFloat(g.SandboxSpeed, 'g', -1, 64)}
	if g.Direct {
		flags = []string{"--direct"}
		for _, f := range []struct{ name, value string }{
			{"--state-bucket", g.StateBucket}, {"--state-prefix", g.StatePrefix}, {"--profile", g.Profile}, {"--plane", g.Plane},
		} {
			if f.value != "" {
				flags = append(flags, f.name, f.value)
			}
		}
	}
	if g.Region != "" {
		flags = append(flags, "--region", g.Region)
	}
	return flags
}

func carrierLog(g globalFlags, runID string) string {
	dir := g.LocalDir
	if g.Direct {
		dir = processDir()
	}
	return filepath.Join(dir, "logs", runID+".log")
}

// newRunsCarry is the command of the process that carries a detached run. People have no use for it.
func newRunsCarry(env *environment, global *globalFlags) *cobra.Command {
	return &cobra.Command{
		Use:    "carry RUN",
		Hidden: true,
		Short:  "Carry a detached run to its end",
		Args:   oneArgument("a RUN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return env.withPlane(ctx, global, func(plane Plane) error {
				p, ok := plane.(interface {
					Carry(ctx context.Context, runID string) error
				})
				if !ok {
					return diag.Errorf("a run is carried here only with --local or --direct", "")
				}
				follower, _ := env.follower(plane, "Run "+args[0], views.Expectation{})
				following, stop := context.WithCancel(ctx)
				defer stop()
				told := make(chan struct{})
				go func() {
					defer close(told)
					_, _ = follower.Follow(following, args[0]) // a log that breaks off must not end the run
				}()
				if err := p.Carry(ctx, args[0]); err != nil {
					return err
				}
				<-told
				return nil
			})
		},
	}
}

// detached says which run was started and how to follow it.
func (env *environment) detached(runID string, c change, f changeFlags, stacks []string) error {
	if f.JSON {
		return views.WriteJSON(env.streams.Out, views.NewStartedDocument(runID, c.command, stacks))
	}
	env.streams.Text("Started run %s.", runID)
	env.streams.Notice("`slipway runs watch %s` follows it, `slipway cancel %s` ends it.", runID, runID)
	return nil
}
