package main

import "github.com/spf13/cobra"

func newState(env *environment, global *globalFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "state",
		Short: "Look at the records of deployed stacks",
		Long:  "State looks at the records of deployed stacks: what Slipway knows to be there. It needs no app.",
		Example: `  slipway state list --local
  slipway state show guestbook-web --local`,
	}
	subcommandsOnly(cmd)
	cmd.AddCommand(newStateList(env, global), newStateShow(env, global))
	return cmd
}
