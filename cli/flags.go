package main

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/slipway-cdk/slipway/pkg/controlplane"
	"github.com/slipway-cdk/slipway/pkg/diag"
)

// globalFlags are the flags of every command: where runs happen and how much is shown.
type globalFlags struct {
	Local        bool
	LocalDir     string
	Direct       bool
	StateBucket  string
	StatePrefix  string
	Profile      string
	SandboxSpeed float64
	Region       string
	// Plane is the name of the control plane.
	Plane   string
	Verbose bool
}

// localRegion is the sandbox's region when nothing names one.
const localRegion = "us-east-1"

const (
	// jsonShape marks a command whose failures are printed in the shape that its results have.
	jsonShape  = "slipway/json"
	jsonResult = "result"
	// flagGroup is the pflag annotation that holds a flag's heading in the help.
	flagGroup = "slipway/group"
)

// The headings of flags in the help, in their order there.
const (
	groupSelection = "Which stacks"
	groupRun       = "What happens"
	groupApp       = "The app"
	groupOutput    = "What is printed"
	groupWhere     = "Where it runs"
)

func (g *globalFlags) register(fs *pflag.FlagSet, getenv func(string) string) {
	on := func(name string) bool { v := getenv(name); return v != "" && v != "0" && v != "false" }
	grouped(fs, groupWhere, func(fs *pflag.FlagSet) {
		fs.BoolVar(&g.Local, "local", on("SLIPWAY_LOCAL"), "deploy to a simulated AWS on this machine (env SLIPWAY_LOCAL=1)")
		fs.StringVar(&g.LocalDir, "local-dir", cmp.Or(getenv("SLIPWAY_LOCAL_DIR"), ".slipway"), "`directory` of the simulated AWS and its state (env SLIPWAY_LOCAL_DIR)")
		fs.Float64Var(&g.SandboxSpeed, "sandbox-speed", 0, "simulated AWS at `N` times real time; 0 is instant")
		fs.StringVar(&g.Plane, "plane", cmp.Or(getenv("SLIPWAY_PLANE"), controlplane.DefaultName), "`name` of the control plane in your account (env SLIPWAY_PLANE)")
		fs.BoolVar(&g.Direct, "direct", on("SLIPWAY_DIRECT"), "deploy to AWS from this machine, with your own credentials (env SLIPWAY_DIRECT=1)")
		fs.StringVar(&g.StateBucket, "state-bucket", "", "`bucket` of the stacks' records, with --direct (env SLIPWAY_STATE_BUCKET, CDKD_STATE_BUCKET; default cdkd-state-ACCOUNT)")
		fs.StringVar(&g.StatePrefix, "state-prefix", "", "first part of the `keys` of records, with --direct (default \"cdkd\")")
		fs.StringVar(&g.Profile, "profile", "", "AWS `profile` whose credentials are used (env AWS_PROFILE)")
		fs.StringVar(&g.Region, "region", "", "`region` of stacks that name none (env AWS_REGION, AWS_DEFAULT_REGION)")
	})
	grouped(fs, groupOutput, func(fs *pflag.FlagSet) {
		fs.BoolVarP(&g.Verbose, "verbose", "v", false, "show the app's own output, and values in full")
	})
}

// choose lets a place that the command line names win over one that the environment names, and refuses two.
func (g *globalFlags) choose(fs *pflag.FlagSet) error {
	if !g.Local || !g.Direct {
		return nil
	}
	local, direct := fs.Changed("local"), fs.Changed("direct")
	if local == direct {
		return usage("--local and --direct exclude each other", "")
	}
	g.Local, g.Direct = local, direct
	return nil
}

// check completes the flags from the environment and refuses values that mean nothing.
func (g *globalFlags) check(getenv func(string) string) error {
	if g.SandboxSpeed < 0 {
		return usage("--sandbox-speed can't be negative", "0 is instant, 1 is real time, 60 is a minute a second")
	}
	g.Region = cmp.Or(g.Region, getenv("AWS_REGION"), getenv("AWS_DEFAULT_REGION"))
	if g.Region == "" && g.Local {
		g.Region = localRegion
	}
	return nil
}

// appFlags say which CDK app is meant and how it is synthesized.
type appFlags struct {
	App          string
	Context      []string
	Output       string
	Strict       bool
	IgnoreErrors bool
}

func (a *appFlags) register(fs *pflag.FlagSet) {
	grouped(fs, groupApp, func(fs *pflag.FlagSet) {
		fs.StringVarP(&a.App, "app", "a", "", "`command` that runs the app, or directory of a ready assembly (env SLIPWAY_APP, \"app\" in cdk.json)")
		fs.StringArrayVarP(&a.Context, "context", "c", nil, "context for the app as `key=value`; may be repeated")
		fs.StringVar(&a.Output, "output", "", "`directory` that the app writes its assembly to (default \"cdk.out\")")
		fs.BoolVar(&a.Strict, "strict", false, "refuse when a construct has left a warning")
		fs.BoolVar(&a.IgnoreErrors, "ignore-errors", false, "go on although a construct has left an error")
	})
}

// selectionFlags say which of the app's stacks are meant.
type selectionFlags struct {
	All         bool
	Exclusively bool
}

func (s *selectionFlags) register(fs *pflag.FlagSet, others string) {
	grouped(fs, groupSelection, func(fs *pflag.FlagSet) {
		fs.BoolVar(&s.All, "all", false, "all stacks of the app")
		fs.BoolVarP(&s.Exclusively, "exclusively", "e", false, "only the named stacks, without "+others)
	})
}

// jsonFlag adds --json to a command.
func jsonFlag(cmd *cobra.Command, into *bool, text string) {
	grouped(cmd.Flags(), groupOutput, func(fs *pflag.FlagSet) {
		fs.BoolVar(into, "json", false, text)
	})
}

func wantsJSON(cmd *cobra.Command) bool {
	f := cmd.Flags().Lookup("json")
	return f != nil && f.Value.String() == "true"
}

// grouped puts the flags that add defines under a heading of the help.
func grouped(fs *pflag.FlagSet, heading string, add func(*pflag.FlagSet)) {
	sub := pflag.NewFlagSet("", pflag.ContinueOnError)
	add(sub)
	sub.VisitAll(func(f *pflag.Flag) {
		if f.Annotations == nil {
			f.Annotations = map[string][]string{}
		}
		f.Annotations[flagGroup] = []string{heading}
		fs.AddFlag(f)
	})
}

// usage is a command line that means nothing.
func usage(summary, next string) error {
	return diag.Diagnostics{{Severity: diag.Error, Summary: summary, Next: next}}
}

// noArguments refuses arguments.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage(fmt.Sprintf("slipway %s takes no arguments, but got %q", cmd.Name(), args[0]), "`"+cmd.CommandPath()+" --help` shows its flags.")
	}
	return nil
}

// oneArgument asks for exactly one argument, called as the help calls it.
func oneArgument(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return usage(cmd.CommandPath()+" needs "+what, "`"+cmd.CommandPath()+" --help` shows an example.")
		case len(args) > 1:
			return usage(fmt.Sprintf("%s takes one argument, but got %d", cmd.CommandPath(), len(args)), "`"+cmd.CommandPath()+" --help` shows an example.")
		}
		return nil
	}
}
