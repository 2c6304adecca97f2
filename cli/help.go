package main

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// helpWidth is where flag descriptions wrap.
const helpWidth = 100

// helpText writes the help of a command: what it does, examples, subcommands and flags under headings. It is
// our own and not cobra's template, because cobra can't group flags and its template functions are global.
func helpText(cmd *cobra.Command) string {
	var b strings.Builder
	text := cmd.Long
	if text == "" {
		text = cmd.Short + "."
	}
	b.WriteString(strings.TrimSpace(text) + "\n\nUsage\n  ")
	if cmd.HasAvailableSubCommands() {
		b.WriteString(cmd.CommandPath() + " COMMAND [flags]\n")
	} else {
		b.WriteString(cmd.UseLine() + "\n")
	}
	if len(cmd.Aliases) > 0 {
		b.WriteString("\nAlso called\n  " + strings.Join(cmd.Aliases, ", ") + "\n")
	}
	if cmd.HasExample() {
		b.WriteString("\nExamples\n" + strings.Trim(cmd.Example, "\n") + "\n")
	}
	commandsHelp(&b, cmd)
	flagsHelp(&b, cmd)
	if cmd.HasAvailableSubCommands() {
		b.WriteString("\n`" + cmd.CommandPath() + " COMMAND --help` tells more about a command.\n")
	}
	return b.String()
}

func commandsHelp(b *strings.Builder, cmd *cobra.Command) {
	width := 0
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			width = max(width, len(c.Name()))
		}
	}
	section := func(title string, belongs func(*cobra.Command) bool) {
		first := true
		for _, c := range cmd.Commands() {
			if !c.IsAvailableCommand() || !belongs(c) {
				continue
			}
			if first {
				b.WriteString("\n" + title + "\n")
				first = false
			}
			b.WriteString("  " + c.Name() + strings.Repeat(" ", width-len(c.Name())+3) + c.Short + "\n")
		}
	}
	for _, g := range cmd.Groups() {
		section(g.Title, func(c *cobra.Command) bool { return c.GroupID == g.ID })
	}
	section("Commands", func(c *cobra.Command) bool { return c.GroupID == "" && c.Name() != "help" })
}

func flagsHelp(b *strings.Builder, cmd *cobra.Command) {
	headings := []string{groupSelection, groupRun, groupApp, groupOutput, groupWhere, ""}
	sets := map[string]*pflag.FlagSet{}
	collect := func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		heading := ""
		if a := f.Annotations[flagGroup]; len(a) > 0 {
			heading = a[0]
		}
		if sets[heading] == nil {
			sets[heading] = pflag.NewFlagSet("", pflag.ContinueOnError)
		}
		sets[heading].AddFlag(f)
	}
	cmd.LocalFlags().VisitAll(collect)
	cmd.InheritedFlags().VisitAll(collect)
	for _, h := range headings {
		if sets[h] == nil {
			continue
		}
		title := h
		if title == "" {
			title = "Other flags"
		}
		b.WriteString("\n" + title + "\n" + strings.TrimRight(sets[h].FlagUsagesWrapped(helpWidth), "\n") + "\n")
	}
}
