package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipway-cdk/slipway/pkg/diag"
)

// The groups of commands in the help.
const (
	commandsDeploy  = "deploy"
	commandsInspect = "inspect"
	commandsLocal   = "local"
	commandsOther   = "other"
)

// newRoot builds the command tree. Building it opens nothing and reads no file, so that help is instant.
func newRoot(env *environment) *cobra.Command {
	global := &globalFlags{}
	root := &cobra.Command{
		Use:   "slipway",
		Short: "Deploy AWS CDK apps without CloudFormation",
		Long: `Slipway deploys AWS CDK apps without CloudFormation: it plans a graph of resources, deploys it in
waves of what can make progress now, and shows every step.`,
		Example: `  # Deploy every stack of the app in cdk.json to a simulated AWS on this machine
  slipway deploy --all --local

  # See what a deploy would change
  slipway diff --all --local`,
		SilenceUsage:  true,
		SilenceErrors: true,
		// Suggestions are ours: see subcommandsOnly.
		DisableSuggestions: false,
		CompletionOptions:  cobra.CompletionOptions{DisableDefaultCmd: true},
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			env.streams.Verbose = global.Verbose
			if err := global.choose(cmd.Flags()); err != nil {
				return err
			}
			return global.check(env.getenv)
		},
	}
	subcommandsOnly(root)
	global.register(root.PersistentFlags(), env.getenv)
	root.AddGroup(
		&cobra.Group{ID: commandsDeploy, Title: "Deploy"},
		&cobra.Group{ID: commandsInspect, Title: "Inspect"},
		&cobra.Group{ID: commandsLocal, Title: "Simulated AWS"},
		&cobra.Group{ID: commandsOther, Title: "Other"},
	)
	add := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	add(commandsDeploy, newDeploy(env, global), newDiff(env, global), newDestroy(env, global), newRollback(env, global), newCancel(env, global, "cancel"))
	add(commandsInspect, newSynth(env, global), newList(env, global), newRuns(env, global), newEvents(env, global), newState(env, global), newForceUnlock(env, global))
	add(commandsLocal, newSandbox(env, global))
	add(commandsOther, newBootstrap(env, global), newDoctor(env, global), newVersion(env), newCompletion(env))
	root.SetHelpCommandGroupID(commandsOther)
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { env.streams.Help(helpText(cmd)) })
	root.SetUsageFunc(func(cmd *cobra.Command) error { env.streams.Help(helpText(cmd)); return nil })
	root.SetOut(env.streams.Out)
	root.SetErr(env.streams.Err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usage(err.Error(), "`"+cmd.CommandPath()+" --help` lists the flags.")
	})
	return root
}

// subcommandsOnly makes cmd a group: alone it shows its help, and an unknown subcommand is an error with the
// nearest names.
func subcommandsOnly(cmd *cobra.Command) {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		d := diag.Diagnostic{
			Severity: diag.Error,
			Summary:  fmt.Sprintf("unknown command %q for %q", args[0], cmd.CommandPath()),
			Next:     "`" + cmd.CommandPath() + " --help` lists the commands.",
		}
		// cobra's own default distance, which it sets only where it writes the message itself.
		cmd.SuggestionsMinimumDistance = 2
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			d.Next = "Did you mean " + strings.Join(near, " or ") + "?"
		}
		return diag.Diagnostics{d}
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
}
