// Infra is the CDK app of Slipway's control plane: one stack that holds what the functions of package
// controlplane need and the state machines of package statemachine. Its template serves every
// installation: what differs between two is in the template's parameters.
//
//	make synth
//
// The context value "dist" names the directory of the functions' archives, ../dist without it.
//
// The release is linked in: -ldflags "-X main.release=v1.2.3".
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"
)

// stackName is the stack's name and the first part of its template's file name.
const stackName = "SlipwayControlPlane"

// release is the release of Slipway that this is built from.
var release = "dev"

func main() {
	defer jsii.Close()
	app := newApp(nil)
	dist := "../dist"
	if v, ok := app.Node().TryGetContext(jsii.String("dist")).(string); ok && v != "" {
		dist = v
	}
	found, err := findArchives(dist)
	if err != nil {
		fmt.Fprintln(os.Stderr, "infra:", err)
		os.Exit(1)
	}
	newControlPlane(app, found)
	check(app)
	broken, err := problems(*app.Synth(nil).Directory())
	if err == nil && len(broken) > 0 {
		err = fmt.Errorf("the template breaks rules:\n%s", strings.Join(broken, "\n"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "infra:", err)
		jsii.Close()
		os.Exit(1)
	}
}

// newApp makes the app; outDir is where the assembly goes, nil for where the caller's CDK_OUTDIR says.
func newApp(outDir *string) awscdk.App {
	return awscdk.NewApp(&awscdk.AppProps{
		Outdir: outDir,
		// The template holds what is described here and nothing that CDK adds for its own statistics.
		AnalyticsReporting: jsii.Bool(false),
		Context: &map[string]any{
			// SAM finds a function's archive by this metadata.
			"aws:cdk:enable-asset-metadata": true,
		},
	})
}

// newControlPlane adds the stack of the control plane. The parts refer to each other in one direction: stores,
// functions, machines, rules, watch. Only the functions must know the run state machine, which comes after
// them; they know it by its name.
func newControlPlane(app awscdk.App, found archives) {
	stack := awscdk.NewStack(app, jsii.String(stackName), &awscdk.StackProps{
		Description: jsii.String("Slipway's control plane: deploys CDK apps without CloudFormation"),
		Synthesizer: awscdk.NewDefaultStackSynthesizer(&awscdk.DefaultStackSynthesizerProps{
			// The rule reads an SSM parameter of CDK's bootstrap stack, which other tools than CDK's need not have.
			GenerateBootstrapVersionRule: jsii.Bool(false),
		}),
	})
	// CDK's validation puts a parameter's default where Fn::If leaves the property out.
	for id, reason := range map[string]string{
		"W1030": "without a boundary, a topic or a key there is no property",
		"F3031": "without subnets there is no VPC", "E1150": "without security groups there is no VPC",
	} {
		awscdk.Validations_Of(stack).Acknowledge(&awscdk.Acknowledgment{Id: jsii.String("CloudFormation-Validate::" + id), Reason: jsii.String(reason)})
	}
	s := settings{stack: stack, parameters: newParameters(stack)}
	kept := newStores(s)
	undelivered := newUndelivered(s)
	fns := newFunctions(s, kept, undelivered, found)
	m := newMachines(s, fns)
	newRules(s, kept, fns, m, undelivered)
	newCallers(s, kept, m)
	newWatch(s, kept, fns, m, undelivered)
	newDescriptor(s, kept, fns, m)
	newOutputs(s, kept, fns, m)
}

// newOutputs tells what the command line and the administrator need to find.
func newOutputs(s settings, kept stores, fns functions, m machines) {
	for _, o := range []struct {
		id, description string
		value           *string
	}{
		{"RunStateMachineArn", "Starts a run: its input is {\"runId\": …}", m.run.AttrArn()},
		{"TableName", "The run log", kept.table.Ref()},
		{"UploadsBucketName", "Where assemblies are uploaded to (uploads/) and dropped into (inbox/)", kept.uploads.Ref()},
		{"VaultKeyArn", "Encrypts the secrets of runs", kept.vault.AttrArn()},
		{"PlannerRoleArn", "The planner's role: recovers what a dead run has begun", fns.planner.role.AttrArn()},
		{"ProvisionerRoleArn", "The provisioner's role: needs the permissions for the resources of your stacks", fns.provisioner.role.AttrArn()},
		{"PublisherRoleArn", "The publisher's role: writes assets where a stack has no role of its own", fns.publisher.role.AttrArn()},
		{"JanitorRoleArn", "The janitor's role: recovers what a dead run has begun", fns.janitor.role.AttrArn()},
	} {
		awscdk.NewCfnOutput(s.stack, jsii.String(o.id), &awscdk.CfnOutputProps{Description: jsii.String(o.description), Value: o.value})
	}
}
