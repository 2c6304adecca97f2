package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/state"
)

func newForceUnlock(env *environment, global *globalFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "force-unlock STACK",
		Short: "Remove the lock of a stack whose owner is dead",
		Long: `Force-unlock removes the lock of a stack, whoever holds it. Use it only when its owner is dead: two
deploys of one stack at a time can lose track of resources. A dead run of Slipway itself needs no unlocking,
the next deploy settles it. STACK is the stack's name.`,
		Example:           `  slipway force-unlock guestbook-web --local`,
		Args:              oneArgument("the name of a STACK"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			asked := ""
			if cmd.Flags().Changed("region") {
				asked = global.Region
			}
			return env.withPlane(ctx, global, func(plane Plane) error {
				region, err := lockedRegion(ctx, plane.States(), args[0], asked)
				if err != nil {
					return err
				}
				var held *state.StandingLock
				if region != "" {
					if held, err = plane.States().ForceUnlock(ctx, args[0], region); err != nil {
						return err
					}
				}
				if held == nil {
					return diag.Diagnostics{{
						Severity: diag.Error,
						Summary:  fmt.Sprintf("stack %q is not locked", args[0]),
						Detail:   "there is no lock of that name" + inRegion(asked),
						Next:     "Check the name: `slipway state list` shows the stacks and their locks.",
					}}
				}
				env.streams.Text("Unlocked stack %s in %s, which was held by %s.", args[0], region, holder(*held))
				return nil
			})
		},
	}
}

// holder says who held a lock, and for what.
func holder(l state.StandingLock) string {
	if l.Unreadable {
		return "an unreadable lock"
	}
	who := l.Owner
	if who == "" {
		who = "somebody who left no name"
	}
	if l.Operation != "" {
		who += " for " + l.Operation
	}
	return who + " until " + time.UnixMilli(l.ExpiresAt).UTC().Format("2006-01-02 15:04:05 UTC")
}
