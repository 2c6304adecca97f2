package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// deployFlags are the flags of deploy.
type deployFlags struct {
	app       appFlags
	selection selectionFlags
	change    changeFlags
	values    parameterFlags

	NoRollback              bool
	Replace                 bool
	RelaxVPCRoutes          bool
	ForceStatefulRecreation bool
	NoWait                  bool
	FullWait                bool
	ViaCloudControl         []string
	ViaDirect               []string
}

// recreate are the resources that another layer is to make again.
func (f *deployFlags) recreate() (map[string]provider.Route, error) {
	via := map[string]provider.Route{}
	for _, id := range f.ViaCloudControl {
		via[id] = provider.RouteCloudControl
	}
	for _, id := range f.ViaDirect {
		if _, twice := via[id]; twice {
			return nil, usage("--recreate-via-cc-api and --recreate-via-sdk-provider both name "+id, "")
		}
		via[id] = provider.RouteSDK
	}
	return via, nil
}

// wait is how far creates and updates are followed.
func (f *deployFlags) wait() (provider.WaitMode, error) {
	switch {
	case f.NoWait && f.FullWait:
		return "", usage("--no-wait and --full-wait exclude each other", "")
	case f.NoWait:
		return provider.WaitNone, nil
	case f.FullWait:
		return provider.WaitFull, nil
	}
	return provider.WaitDefault, nil
}

func newDeploy(env *environment, global *globalFlags) *cobra.Command {
	f := &deployFlags{}
	cmd := &cobra.Command{
		Use:   "deploy [STACK…]",
		Short: "Deploy stacks: show the plan, ask, and carry it out",
		Long: `Deploy synthesizes the app, shows what would change and why, asks, and carries it out.

A STACK is a name, a construct path ("Prod/Web") or a glob over either ("Prod/*"). What it depends on is
deployed with it. An app with a single stack needs no name.`,
		Example: `  # Deploy the only stack of the app
  slipway deploy --local

  # Deploy all stacks of an assembly that is already synthesized, without asking
  slipway deploy --all --yes --local --app cdk.out

  # With values for the parameters of its template
  slipway deploy Prod/Web --parameters Size=3 --parameters-file secrets.json --local

  # Wait for another deploy of the stack, and don't stay until this one has ended
  slipway deploy Prod/Web --wait-for-lock 10m --detach --yes --local

  # Only look
  slipway deploy Prod/Web --dry-run --local`,
		Annotations:       map[string]string{jsonShape: jsonResult},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			wait, err := f.wait()
			if err != nil {
				return err
			}
			via, err := f.recreate()
			if err != nil {
				return err
			}
			return env.withPlane(ctx, global, func(plane Plane) error {
				d, err := env.desired(ctx, plane, args, *global, f.app, f.selection, f.values)
				if err != nil {
					return err
				}
				return env.change(ctx, plane, d.asm, d.stacks, f.change, change{
					command: runlog.CommandDeploy, parameters: d.parameters,
					options: run.Options{
						SkipFinalSnapshot: f.change.SkipFinalSnapshot,
						Concurrency:       f.change.Concurrency, NoRollback: f.NoRollback, ForceStatefulRecreation: f.ForceStatefulRecreation,
						Replace: f.Replace, RelaxVPCRoutes: f.RelaxVPCRoutes, Wait: wait, RecreateVia: via,
					},
				})
			})
		},
	}
	f.selection.register(cmd.Flags(), "what they depend on")
	f.change.register(cmd, "deploy")
	grouped(cmd.Flags(), groupRun, func(fs *pflag.FlagSet) {
		fs.BoolVar(&f.NoRollback, "no-rollback", false, "keep what a failed deploy has done, to continue from there")
		fs.BoolVar(&f.Replace, "replace", false, "replace resources that keep a fixed name: the old one is deleted first")
		fs.BoolVar(&f.RelaxVPCRoutes, "relax-vpc-routes", false, "let functions and roles not wait for the VPC's routes where only DependsOn says so")
		fs.BoolVar(&f.NoWait, "no-wait", false, "don't wait for resources that are made and not ready yet: databases, gateways, load balancers")
		fs.BoolVar(&f.FullWait, "full-wait", false, "wait for all that CloudFormation waits for, distributions too")
		fs.StringArrayVar(&f.ViaCloudControl, "recreate-via-cc-api", nil, "make the resource with this logical `ID` again through Cloud Control; may be repeated")
		fs.StringArrayVar(&f.ViaDirect, "recreate-via-sdk-provider", nil, "make the resource with this logical `ID` again through its service's own API; may be repeated")
		fs.BoolVar(&f.ForceStatefulRecreation, "force-stateful-recreation", false, "allow the replacement of resources that hold data")
	})
	f.values.register(cmd.Flags())
	f.app.register(cmd.Flags())
	return cmd
}
