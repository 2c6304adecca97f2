package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/slipway-cdk/slipway/cli/views"
	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/bootstrap"
	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/direct"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/statebucket"
)

// bootstrapFlags are the flags of bootstrap.
type bootstrapFlags struct {
	change     changeFlags
	Assembly   string
	Policies   []string
	NoRole     bool
	BucketOnly bool
	Destroy    bool
	Parameters []string
}

func newBootstrap(env *environment, global *globalFlags) *cobra.Command {
	f := &bootstrapFlags{}
	cmd := &cobra.Command{
		Use:   "bootstrap",
		Short: "Install or upgrade the control plane in your AWS account",
		Long: `Bootstrap makes the state bucket and the bucket for the control plane's functions, where they are not there, and deploys the
control plane's own stack with --direct: no CloudFormation, and no bootstrap of CDK's. Repeat it to upgrade in place, or to
complete what was interrupted.

Stacks are worked on under an execution role, which has the IAM policies that you name: there is no default for them.

--destroy removes the control plane. What keeps data stays: the state bucket, the run log, uploads, the key of secrets; and the
bucket for functions, while another control plane of the region has its functions there too.`,
		Example: `  # Install or upgrade
  slipway bootstrap --execution-policy arn:aws:iam::111122223333:policy/deploy

  # Only the state bucket, which is all that --direct needs
  slipway bootstrap --bucket-only

  # Try it in the simulated AWS
  slipway bootstrap --local --no-execution-role --yes`,
		Args:        noArguments,
		Annotations: map[string]string{jsonShape: jsonResult},
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			f.change.Concurrency = defaultConcurrency
			if err := bootstrap.CheckPolicies(f.Policies); err != nil {
				return err
			}
			if f.NoRole && len(f.Policies) > 0 {
				return usage("--no-execution-role and --execution-policy exclude each other", "")
			}
			if global.Local {
				return env.bootstrapLocal(ctx, *global, f)
			}
			return env.bootstrap(ctx, *global, f)
		},
	}
	grouped(cmd.Flags(), groupRun, func(fs *pflag.FlagSet) {
		fs.StringVar(&f.Assembly, "assembly", "", "`directory` of the control plane's assembly (default: the release's own)")
		fs.StringArrayVar(&f.Policies, "execution-policy", nil, "`ARN` of an IAM policy for the role that stacks are worked on under; may be repeated")
		fs.BoolVar(&f.NoRole, "no-execution-role", false, "make no execution role: the functions' own permissions count, or roles of yours")
		fs.StringArrayVar(&f.Parameters, "parameter", nil, "a parameter of the control plane's stack, as `NAME=VALUE`; may be repeated")
		fs.BoolVar(&f.BucketOnly, "bucket-only", false, "only make the state bucket")
		fs.BoolVar(&f.Destroy, "destroy", false, "remove the control plane")
		fs.BoolVarP(&f.change.Yes, "yes", "y", false, "don't ask")
		fs.BoolVar(&f.change.DryRun, "dry-run", false, "stop after it is shown what would be done")
	})
	jsonFlag(cmd, &f.change.JSON, "print one JSON document when it has ended")
	return cmd
}

// installation is what a bootstrap works on.
type installation struct {
	f               *bootstrapFlags
	asm             *assembly.Assembly
	account, region string
	name            string // the control plane's
	bucket          statebucket.Found
	parameters      map[string]string
}

// begin reads the assembly and what the command line says of the control plane.
func (f *bootstrapFlags) begin() (*installation, error) {
	in := &installation{f: f, parameters: map[string]string{}}
	for _, p := range f.Parameters {
		name, value, ok := strings.Cut(p, "=")
		if !ok || name == "" {
			return nil, usage(fmt.Sprintf("--parameter %q is not NAME=VALUE", p), "")
		}
		in.parameters[name] = value
	}
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding slipway itself: %w", err)
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	in.asm, err = bootstrap.FindAssembly(f.Assembly, program, dir)
	return in, err
}

// bootstrapLocal deploys the control plane's stack to the simulated AWS, where there are no buckets to be made.
func (env *environment) bootstrapLocal(ctx context.Context, g globalFlags, f *bootstrapFlags) error {
	in, err := f.begin()
	if err != nil {
		return err
	}
	in.plane(g)
	return env.withPlane(ctx, &g, func(plane Plane) error {
		if in.account, in.region, err = plane.Identity(ctx); err != nil {
			return err
		}
		in.bucket = statebucket.Found{Name: statebucket.DefaultName(in.account), Region: in.region, Owner: in.account}
		return env.install(ctx, plane, in)
	})
}

// bootstrap makes the buckets and deploys the control plane to AWS.
func (env *environment) bootstrap(ctx context.Context, g globalFlags, f *bootstrapFlags) error {
	cfg, err := awsConfig(ctx, g)
	if err != nil {
		return err
	}
	account, err := direct.Account(ctx, cfg)
	if err != nil {
		return err
	}
	in := &installation{f: f}
	if !f.BucketOnly {
		if in, err = f.begin(); err != nil {
			return err
		}
		in.plane(g)
	}
	in.account, in.region = account, cfg.Region
	choice, err := stateBucketChoice(g)
	if err != nil {
		return err
	}
	in.bucket, err = statebucket.Resolve(ctx, cfg, account, cfg.Region, choice)
	absent := errors.Is(err, statebucket.ErrNone)
	switch {
	case absent:
		in.bucket = statebucket.Found{Name: choice.Bucket, Region: cfg.Region, Owner: account}
		if in.bucket.Name == "" {
			in.bucket.Name = statebucket.DefaultName(account)
		}
	case err != nil:
		return err
	}
	env.streams.Diagnostics(in.bucket.Warnings)
	if f.Destroy && absent {
		return diag.Errorf("there is nothing to remove", "account "+account+" has no state bucket")
	}
	if !f.Destroy {
		if err := env.makeBuckets(ctx, cfg, in, absent); err != nil || f.BucketOnly || f.change.DryRun && absent {
			return err
		}
	}
	g.Direct, g.StateBucket = true, in.bucket.Name
	return env.withPlane(ctx, &g, func(plane Plane) error {
		assets := bootstrap.AssetBucket(account, in.region)
		marked, err := bootstrap.MarkedBucket(ctx, plane.States().Objects, in.region)
		if err != nil {
			return err
		}
		if marked != "" {
			assets.Name = marked
		} else if !f.Destroy {
			if _, err := assets.Make(ctx, cfg); err != nil {
				return err
			}
		}
		bootstrap.Redirect(in.asm.Stacks[0], assets.Name)
		if err := env.install(ctx, plane, in); err != nil || f.change.DryRun {
			return err
		}
		switch {
		case f.Destroy && marked == "":
			others, err := bootstrap.RemoveAssets(ctx, cfg, plane.States(), assets, in.name)
			if len(others) > 0 {
				env.streams.Notice("Bucket %s stays: it holds the functions of other control planes in %s too: %s.", assets.Name, in.region, strings.Join(others, ", "))
			}
			return err
		case f.Destroy || f.NoRole:
			return nil
		}
		return env.admit(ctx, plane, in)
	})
}

// makeBuckets shows what is going to be made, asks where the state bucket is not there yet, and makes it.
func (env *environment) makeBuckets(ctx context.Context, cfg aws.Config, in *installation, absent bool) error {
	intent := views.BootstrapIntent{Account: in.account, Region: in.region, StateBucket: in.bucket.Name, NewBucket: absent}
	if !in.f.BucketOnly {
		parts, err := bootstrap.Parts(in.asm.Stacks[0].Template)
		if err != nil {
			return err
		}
		for _, p := range parts {
			intent.Parts = append(intent.Parts, views.BootstrapPart(p))
		}
		intent.Monthly = bootstrap.Monthly(parts)
	}
	env.streams.BootstrapIntent(intent)
	if in.f.change.DryRun {
		return nil
	}
	if absent && !in.f.change.Yes {
		if !env.streams.InTerminal {
			return diag.Diagnostics{{
				Severity: diag.Error, Summary: "approval is needed, and nobody can be asked", Detail: "standard input is not a terminal",
				Next: "Read what is said above, then repeat the command with --yes.",
			}}
		}
		yes, err := env.streams.Ask(ctx, "Make the state bucket?")
		if err != nil {
			return err
		}
		if !yes {
			return diag.Errorf("nothing was made", "it was not approved")
		}
	}
	made, err := bootstrap.StateBucket(in.bucket.Name, in.bucket.Region, in.account).Make(ctx, cfg)
	if err == nil && made {
		env.streams.Notice("Made bucket %s in %s.", in.bucket.Name, in.bucket.Region)
	}
	return err
}

// install deploys or removes the stacks of a control plane.
func (env *environment) install(ctx context.Context, plane Plane, in *installation) error {
	own := in.asm.Stacks[0]
	stacks := []*assembly.Stack{own}
	values := map[string]map[string]string{own.ID: in.parameters}
	in.parameters["StateBucketName"] = in.bucket.Name
	if in.bucket.Region != in.region {
		in.parameters["StateBucketRegion"] = in.bucket.Region
	}
	if !in.f.NoRole {
		role, err := env.roleStack(ctx, plane, in)
		if err != nil {
			return err
		}
		if role != nil {
			stacks = append(stacks, role)
		}
	}
	if in.f.Destroy {
		if err := bootstrap.Remember(ctx, plane.States(), own.Name, in.region, env.clock.Now()); err != nil {
			return err
		}
		return env.change(ctx, plane, in.asm, stacks, in.f.change, change{command: runlog.CommandDestroy, options: run.Options{Concurrency: defaultConcurrency}})
	}
	if err := bootstrap.CheckRegion(ctx, plane.States(), in.name, in.region); err != nil {
		return err
	}
	if err := bootstrap.Recall(ctx, plane.States(), own.Name, in.region); err != nil {
		return err
	}
	return env.change(ctx, plane, in.asm, stacks, in.f.change, change{
		command: runlog.CommandDeploy, parameters: values, options: run.Options{Concurrency: defaultConcurrency},
	})
}

// roleStack is the stack with the execution role; nil where there is none to be removed.
func (env *environment) roleStack(ctx context.Context, plane Plane, in *installation) (*assembly.Stack, error) {
	refs, err := plane.States().List(ctx)
	if err != nil {
		return nil, err
	}
	recorded := false
	for _, r := range refs {
		recorded = recorded || r.Stack == bootstrap.RoleStackName(in.name) && r.Region == in.region
	}
	switch {
	case in.f.Destroy && !recorded:
		return nil, nil
	case !in.f.Destroy && !recorded && len(in.f.Policies) == 0:
		if in.f.Policies, err = env.askPolicies(ctx); err != nil {
			return nil, err
		}
	}
	return bootstrap.RoleStack(in.asm.Stacks[0].Name, in.name, in.region, in.f.Policies)
}

// plane takes the control plane's name over from the command line.
func (in *installation) plane(g globalFlags) {
	if in.parameters["NamePrefix"] == "" {
		in.parameters["NamePrefix"] = g.Plane
	}
	in.name = in.parameters["NamePrefix"]
	in.asm.Stacks[0].Name = bootstrap.StackName(in.name)
}

// askPolicies asks for the policies of a new execution role.
func (env *environment) askPolicies(ctx context.Context) ([]string, error) {
	needed := diag.Diagnostics{{
		Severity: diag.Error, Summary: "the policies of the execution role are needed",
		Detail: "stacks are worked on under a role, and what it may do is yours to decide",
		Next:   "Name them with --execution-policy ARN, which may be repeated, or give --no-execution-role.",
	}}
	if !env.streams.InTerminal {
		return nil, needed
	}
	line, err := env.streams.AskText(ctx, "ARNs of the IAM policies that say what your stacks may be made of:")
	if err != nil {
		return nil, err
	}
	policies := strings.FieldsFunc(line, func(r rune) bool { return r == ',' || r == ' ' })
	if len(policies) == 0 {
		return nil, needed
	}
	return policies, bootstrap.CheckPolicies(policies)
}

// admit makes the control plane work under the execution role.
func (env *environment) admit(ctx context.Context, plane Plane, in *installation) error {
	rec, _, err := plane.States().Load(ctx, bootstrap.RoleStackName(in.name), in.region)
	if err != nil {
		return err
	}
	role, _ := rec.Outputs["RoleArn"].(string)
	stands, err := bootstrap.WritePolicy(ctx, plane.States().Objects, role)
	if err == nil && !stands {
		env.streams.Notice("The policy slipway/policy.json is yours and was left as it is; the execution role is %s.", role)
	}
	return err
}
