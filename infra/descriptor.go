package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsssm"
	"github.com/aws/jsii-runtime-go"

	"github.com/slipway-cdk/slipway/pkg/controlplane"
)

// newDescriptor is the SSM parameter from which commands learn where the parts of this control plane are. Its
// members are controlplane.Descriptor's.
func newDescriptor(s settings, kept stores, fns functions, m machines) {
	awsssm.NewCfnParameter(s.stack, jsii.String("Descriptor"), &awsssm.CfnParameterProps{
		Name: jsii.String(controlplane.DescriptorParameter(*s.prefix)), Type: jsii.String("String"),
		Description: jsii.String("Slipway: where the parts of this control plane are"),
		Value: s.stack.ToJsonString(map[string]any{
			"version": controlplane.DescriptorVersion, "release": release,
			"stateMachineArn": m.run.AttrArn(), "table": kept.table.Ref(), "uploadsBucket": kept.uploads.Ref(),
			"region": awscdk.Aws_REGION(), "account": awscdk.Aws_ACCOUNT_ID(),
			"stateBucket": s.stateBucket, "stateBucketRegion": s.stateBucketRegion,
			"vaultKey": kept.vault.AttrArn(), "janitor": fns.janitor.AttrArn(),
		}, nil),
	})
}
