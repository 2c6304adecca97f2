package main

import (
	"context"
	"testing"
	"time"

	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/bootstrap"
	"github.com/slipway-cdk/slipway/pkg/local"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/sandbox"
)

// installation deploys the control plane's own assembly against the sandbox.
type installation struct {
	*testing.T
	plane    *local.Plane
	assembly *assembly.Assembly
}

func (i installation) run(sub run.Submission) runlog.Header {
	i.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	sub.Caller = "test@host"
	id, err := i.plane.Submit(ctx, i.assembly, i.assembly.Stacks, sub)
	if err != nil {
		i.Fatal(err)
	}
	h, err := i.plane.Wait(ctx, id)
	if err != nil {
		i.Fatal(err)
	}
	if h.Result != runlog.ResultSucceeded {
		runs, err := i.plane.Log().ListRuns(ctx, runlog.Filter{Root: id})
		if err != nil {
			i.Error(err)
		}
		for _, r := range runs {
			for _, d := range r.Diagnostics {
				i.Log(d.Error())
			}
			events, err := i.plane.Log().Events(ctx, r.RunID, "")
			if err != nil {
				i.Error(err)
			}
			for _, ev := range events {
				if ev.Error != nil {
					i.Log(ev.LogicalID, ev.ResourceType, ev.Action, ev.Error.Code, ev.Error.Message)
				}
			}
		}
		i.Fatalf("%s ended as %s", sub.Command, h.Result)
	}
	return h
}

func (i installation) deploy(parameters map[string]string) runlog.Counts {
	i.Helper()
	return i.run(run.Submission{Command: runlog.CommandDeploy, Parameters: map[string]map[string]string{i.assembly.Stacks[0].ID: parameters}}).Counts
}

// inSandbox is the synthesized assembly, to be deployed in a sandbox of its own.
func inSandbox(t *testing.T) installation {
	t.Helper()
	asm, err := assembly.Read(assemblyDir(t))
	if err != nil {
		t.Fatal(err)
	}
	plane, err := local.Open(context.Background(), local.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Close(); err != nil {
			t.Error(err)
		}
	})
	return installation{T: t, plane: plane, assembly: asm}
}

func (i installation) live(f sandbox.Filter) []sandbox.Resource {
	i.Helper()
	found, err := i.plane.Sandbox().List(context.Background(), f)
	if err != nil {
		i.Fatal(err)
	}
	return found
}

func TestItDeploysInTheSandboxRedeploysAsNoChangesAndGoesAway(t *testing.T) {
	i := inSandbox(t)
	resources := len(readTemplate(t).Resources)

	if c := i.deploy(map[string]string{"StateBucketName": "acme-state"}); c.Created != resources {
		t.Errorf("the first deploy has created %d of %d resources", c.Created, resources)
	}
	if c := i.deploy(nil); c.Created+c.Updated+c.Replaced+c.Deleted+c.Failed+c.Skipped != 0 {
		t.Errorf("the second deploy is not without changes: %+v", c)
	}
	for _, role := range i.live(sandbox.Filter{Type: "AWS::IAM::Role"}) {
		if _, has := role.Properties["PermissionsBoundary"]; has {
			t.Errorf("role %s has a boundary that nobody has asked for", role.Identifier)
		}
	}

	// What can be chosen later changes in place: nothing that keeps data is replaced.
	changed := i.deploy(map[string]string{
		"LogRetentionDays": "7", "JournalDays": "30", "TableDeletionProtection": "false",
		"PermissionsBoundaryArn": "arn:aws:iam::111122223333:policy/boundary", "AlarmTopicArn": "arn:aws:sns:us-east-1:111122223333:alarms",
	})
	// Eight logs, five functions, nine roles, eight alarms and the table.
	if changed.Updated != 8+5+9+8+1 || changed.Created+changed.Replaced+changed.Deleted+changed.Failed != 0 {
		t.Errorf("the change of parameters has done %+v", changed)
	}

	i.run(run.Submission{Command: runlog.CommandDestroy, Options: run.Options{DeleteRetained: true}})
	for _, left := range i.live(sandbox.Filter{}) {
		t.Errorf("destroy has left %s %s", left.Type, left.Identifier)
	}
}

// TestTwoControlPlanesShareNoName: what is named alike can't be made twice, in the sandbox as on AWS.
func TestTwoControlPlanesShareNoName(t *testing.T) {
	i := inSandbox(t)
	resources := len(readTemplate(t).Resources)
	as := func(name string) installation {
		stack, own := *i.assembly.Stacks[0], *i.assembly
		stack.Name, own.Stacks = bootstrap.StackName(name), []*assembly.Stack{&stack}
		return installation{T: t, plane: i.plane, assembly: &own}
	}
	for _, name := range []string{"slipway", "other"} {
		if c := as(name).deploy(map[string]string{"StateBucketName": "acme-state", "NamePrefix": name, "TableDeletionProtection": "false"}); c.Created != resources {
			t.Errorf("%s: %d of %d resources were made", name, c.Created, resources)
		}
	}
	as("other").run(run.Submission{Command: runlog.CommandDestroy, Options: run.Options{DeleteRetained: true}})
	if left := as("slipway").live(sandbox.Filter{}); len(left) != resources {
		t.Errorf("%d resources are left of the first one's %d", len(left), resources)
	}
	if c := as("slipway").deploy(nil); c.Created+c.Updated+c.Replaced+c.Deleted+c.Failed+c.Skipped != 0 {
		t.Errorf("when the other is gone the first is not without changes: %+v", c)
	}
}
