package main

import (
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/slipway-cdk/slipway/cli/views"
	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/controlplane"
	"github.com/slipway-cdk/slipway/pkg/doctor"
	"github.com/slipway-cdk/slipway/pkg/provider"
)

func newDoctor(env *environment, global *globalFlags) *cobra.Command {
	asJSON, printPolicy := false, false
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check credentials, state bucket, control plane and permissions",
		Long: `Doctor looks whether your account is fit for Slipway, and changes nothing: credentials, state bucket, control plane and
its release, what you may do, and whether the control plane's own resources are as they were deployed. It fails when
something is wrong; warnings alone are no failure.`,
		Example: `  slipway doctor

  # The IAM policy of those who deploy through the control plane
  slipway doctor --print-caller-policy`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			cfg, err := awsConfig(ctx, *global)
			if err != nil {
				return err
			}
			if printPolicy {
				d, err := controlplane.ReadDescriptor(ctx, ssm.NewFromConfig(cfg), global.Plane)
				if err != nil {
					return err
				}
				body, err := controlplane.CallerPolicy(d.Scope(global.Plane)).JSON()
				if err != nil {
					return err
				}
				return views.WriteStored(env.streams.Out, body)
			}
			choice, err := stateBucketChoice(*global)
			if err != nil {
				return err
			}
			checks := doctor.Examine(ctx, doctor.Patient{
				Config: cfg, Bucket: choice, Plane: global.Plane, Release: readVersion().Version,
				Providers: func(account string) *provider.Registry {
					accounts := &controlplane.Accounts{Base: cfg, Own: account, Clock: clock.Real{}}
					return accounts.Providers(clock.Real{}, nil)
				},
			})
			if asJSON {
				err = views.WriteJSON(env.streams.Out, views.NewDoctorDocument(checks))
			} else {
				env.streams.Checks(checks)
			}
			for _, c := range checks {
				if err == nil && c.Verdict == doctor.Failed {
					err = exitError{exitFailed}
				}
			}
			return err
		},
	}
	grouped(cmd.Flags(), groupOutput, func(fs *pflag.FlagSet) {
		fs.BoolVar(&printPolicy, "print-caller-policy", false, "print the IAM policy of those who deploy through the control plane")
	})
	jsonFlag(cmd, &asJSON, "print one JSON document")
	return cmd
}
