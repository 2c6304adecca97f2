package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

func newCompletion(env *environment) *cobra.Command {
	shells := []string{"bash", "fish", "powershell", "zsh"}
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "Print a script that completes commands and flags",
		Long:  "Completion prints a script for bash, fish, powershell or zsh that completes commands and flags.",
		Example: `  # bash, for this session
  source <(slipway completion bash)

  # zsh, for good
  slipway completion zsh > "${fpath[1]}/_slipway"`,
		Args:      oneArgument("the name of a SHELL: " + strings.Join(shells, ", ")),
		ValidArgs: shells,
		RunE: func(cmd *cobra.Command, args []string) error {
			root, out := cmd.Root(), env.streams.Out
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(out, true)
			case "fish":
				return root.GenFishCompletion(out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(out)
			case "zsh":
				return root.GenZshCompletion(out)
			default:
				return usage(fmt.Sprintf("no completion for the shell %q", args[0]), "There is one for "+strings.Join(shells, ", ")+".")
			}
		},
	}
}
