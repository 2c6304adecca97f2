package main

import (
	"encoding/json"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/jsii-runtime-go"

	"github.com/slipway-cdk/slipway/pkg/controlplane"
	"github.com/slipway-cdk/slipway/pkg/iampolicy"
)

// newCallers is the policy of those who deploy through this control plane. The stack attaches it to nobody: who
// deploys is not its business.
func newCallers(s settings, kept stores, m machines) {
	scope := controlplane.CallerScope{
		Plane: *s.prefix, Partition: *awscdk.Aws_PARTITION(), Region: *awscdk.Aws_REGION(), Account: *awscdk.Aws_ACCOUNT_ID(),
		StateMachine: *m.run.AttrArn(), Table: *kept.table.Ref(), UploadsBucket: *kept.uploads.Ref(), VaultKey: *kept.vault.AttrArn(),
		UploadsKey: *s.uploadsKey, TableKey: *s.tableKey,
	}
	var statements []any
	for _, st := range controlplane.CallerPolicy(scope).Statement {
		switch st.Sid {
		case controlplane.UploadsKeyStatement:
			statements = append(statements, when(s.hasUploadsKey, plain(st)))
		case controlplane.TableKeyStatement:
			statements = append(statements, when(s.hasTableKey, plain(st)))
		default:
			statements = append(statements, plain(st))
		}
	}
	policy := awsiam.NewCfnManagedPolicy(s.stack, jsii.String("CallerPolicy"), &awsiam.CfnManagedPolicyProps{
		// The name is generated, so that the stack can be deployed without CAPABILITY_NAMED_IAM.
		Description:    jsii.String("Slipway: lets whoever has it deploy through the control plane, within its own policy"),
		PolicyDocument: map[string]any{"Version": iampolicy.Version, "Statement": statements},
	})
	awscdk.NewCfnOutput(s.stack, jsii.String("CallerPolicyArn"), &awscdk.CfnOutputProps{
		Description: jsii.String("Attach it to those who deploy"), Value: policy.Ref(),
	})
}

// plain is a statement as the template has it.
func plain(s iampolicy.Statement) map[string]any {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // it is made of texts
	}
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		panic(err)
	}
	return m
}
