package main

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-cdk/slipway/cli/views"
	"github.com/slipway-cdk/slipway/pkg/state"
)

func newStateList(env *environment, global *globalFlags) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the stacks that have a record",
		Example: `  slipway state list --local
  slipway state list --json --local`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			return env.withPlane(ctx, global, func(plane Plane) error {
				refs, err := plane.States().List(ctx)
				if err != nil {
					return err
				}
				entries := []views.StateEntry{}
				for _, ref := range refs {
					e := views.StateEntry{Stack: ref.Stack, Region: ref.Region}
					rec, _, err := plane.States().Load(ctx, ref.Stack, ref.Region)
					var newer *state.VersionError
					switch {
					case err == nil:
						e.Resources = len(rec.Resources)
						e.LastModified = time.UnixMilli(rec.LastModified).UTC()
					case state.IsNotFound(err):
						continue // destroyed between the two reads
					case state.IsDamaged(err), errors.As(err, &newer):
						e.Damaged = true
					default:
						return err
					}
					lock, err := plane.States().ReadLock(ctx, ref.Stack, ref.Region)
					switch {
					case err == nil && lock.Unreadable:
						e.LockedBy = "an unreadable lock"
					case err == nil:
						e.LockedBy = lock.Owner
					case !state.IsNotFound(err):
						return err
					}
					entries = append(entries, e)
				}
				if asJSON {
					return views.WriteJSON(env.streams.Out, entries)
				}
				env.streams.StateTable(entries)
				return nil
			})
		},
	}
	jsonFlag(cmd, &asJSON, "print the list as one JSON document")
	return cmd
}
