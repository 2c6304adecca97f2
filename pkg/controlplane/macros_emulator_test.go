//go:build emulators

package controlplane

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"github.com/slipway-cdk/slipway/pkg/emulators"
	"github.com/slipway-cdk/slipway/pkg/macro"
	"github.com/slipway-cdk/slipway/pkg/objectstore"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

const snippetKey = "snippet.json"

// including is a template that has its queue's properties from a snippet, and is too large for a call itself.
func (tr *trial) including() string {
	return fmt.Sprintf(`{"Metadata":{"Long":%q},"Resources":{"Jobs":{"Type":"AWS::SQS::Queue","Properties":{
		"Fn::Transform":{"Name":"AWS::Include","Parameters":{"Location":"s3://%s/%s"}}}}}}`, strings.Repeat("x", macro.MaxInline), tr.plane.env.StateBucket, snippetKey)
}

// includes is whether the emulator runs the macro.
func includes(client *cloudformation.Client, body string) emulators.Capability {
	return emulators.Capability{
		Name: "CloudFormation: a change set runs AWS::Include", Cases: []string{"a snippet"},
		Probe: func(ctx context.Context) (string, error) {
			name, set := aws.String("slipway-probe"), aws.String("probe")
			_, err := client.CreateChangeSet(ctx, &cloudformation.CreateChangeSetInput{
				StackName: name, ChangeSetName: set, ChangeSetType: types.ChangeSetTypeCreate, TemplateBody: &body,
				Capabilities: []types.Capability{types.CapabilityCapabilityAutoExpand},
			})
			var got string
			if err == nil {
				var out *cloudformation.GetTemplateOutput
				if out, err = client.GetTemplate(ctx, &cloudformation.GetTemplateInput{StackName: name, ChangeSetName: set, TemplateStage: types.TemplateStageProcessed}); err == nil {
					got = aws.ToString(out.TemplateBody)
				}
			}
			saw := emulators.Unless(strings.Contains(got, "VisibilityTimeout"), "no")
			_, err = client.DeleteStack(ctx, &cloudformation.DeleteStackInput{StackName: name})
			return saw, err
		},
	}
}

func TestAStackWithMacrosIsDeployedByTheFunctions(t *testing.T) {
	tr := newTrial(t)
	ctx := t.Context()
	write := func(timeout int) {
		t.Helper()
		if _, err := tr.plane.Engine.Objects.Put(ctx, snippetKey, fmt.Appendf(nil, `{"VisibilityTimeout":%d}`, timeout), objectstore.Condition{}); err != nil {
			t.Fatal(err)
		}
	}
	write(40)
	client := cloudformation.NewFromConfig(emulators.Config(t))
	small := strings.Replace(tr.including(), strings.Repeat("x", macro.MaxInline), "", 1)
	leaveOut := emulators.LeaveOut(t, []emulators.Capability{includes(client, small)})
	t.Run("a snippet", func(t *testing.T) {
		leaveOut(t)
		deployed := tr.run(t, runlog.CommandDeploy, tr.including())
		if deployed.Result != runlog.ResultSucceeded || deployed.Counts.Created != 1 || len(deployed.Diagnostics) != 0 {
			t.Fatalf("the deploy ended as %+v", deployed)
		}
		write(50)
		changed := tr.run(t, runlog.CommandDeploy, tr.including())
		if changed.Result != runlog.ResultSucceeded || changed.Counts.Updated != 1 {
			t.Fatalf("the change ended as %+v", changed)
		}
		rec, _, err := tr.plane.Engine.States.Load(ctx, "App", trialRegion)
		if err != nil || fmt.Sprint(rec.Resources["Jobs"].Properties["VisibilityTimeout"]) != "50" {
			t.Errorf("the record is %+v, %v", rec, err)
		}
		out, err := client.ListStacks(ctx, &cloudformation.ListStacksInput{})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range out.StackSummaries {
			if s.StackStatus != types.StackStatusDeleteComplete && strings.HasPrefix(aws.ToString(s.StackName), "cdkd-macro-expand-") {
				t.Errorf("stack %s is left", aws.ToString(s.StackName))
			}
		}
	})
}
