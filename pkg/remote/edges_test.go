package remote_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/controlplane"
	"github.com/slipway-cdk/slipway/pkg/remote"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/upload/uploadtest"
)

// nobody starts executions that never begin.
type nobody struct{}

func (nobody) StartExecution(context.Context, string, []byte) error { return nil }

func TestAControlPlaneThatDoesNotBeginIsNotWaitedForForEver(t *testing.T) {
	w := newWorld(t)
	p := w.as(ann)
	clk := clock.NewFake(time.Date(2026, 11, 29, 21, 0, 0, 0, time.UTC))
	clk.AutoAdvance = true
	p.Clock, p.Start = clk, nobody{}
	p.Console = func(name string) string { return "https://console/" + name }
	asm := w.synthesized(webApp())
	id, err := p.Submit(w.ctx, asm, asm.Stacks, run.Submission{Command: runlog.CommandDeploy})
	if err == nil || !strings.Contains(err.Error(), "has not begun the run") || !run.ValidRunID(id) {
		t.Errorf("%s: %v", id, err)
	}
}

func TestAnExecutionThatIsNotTheRunsOwnIsRefused(t *testing.T) {
	w := newWorld(t)
	id := run.NewRunID(time.Now())
	good := run.PlannerInput{
		Action: run.ActionAdmit, RunID: id, Command: runlog.CommandDeploy, Upload: &run.UploadRef{Key: "inbox/web/app.zip"},
		Execution: run.ExecutionName("deployment", runlog.CommandDeploy, id),
	}
	for name, change := range map[string]func(*run.PlannerInput){
		"no run id":       func(in *run.PlannerInput) { in.RunID = "../../policy" },
		"no command":      func(in *run.PlannerInput) { in.Command = "" },
		"another command": func(in *run.PlannerInput) { in.Command = "format" },
		"no upload":       func(in *run.PlannerInput) { in.Upload = nil },
		"another name":    func(in *run.PlannerInput) { in.Execution = "deployment-destroy-" + id },
	} {
		in := good
		change(&in)
		var refused *run.HandlerError
		if _, err := w.plane.Engine.Admit(w.ctx, in); !errors.As(err, &refused) || refused.Name != run.ErrorBadRequest {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := w.plane.Log().Header(w.ctx, id); !errors.Is(err, runlog.ErrNotFound) {
		t.Errorf("a run was made: %v", err)
	}
}

func TestTheLinkIsOfThePartition(t *testing.T) {
	for partition, want := range map[string]string{
		"aws":        "https://eu-west-1.console.aws.amazon.com/states/home?region=eu-west-1#/v2/executions/details/arn:aws:states:eu-west-1:111122223333:execution:slipway-run:deployment-deploy-x",
		"aws-cn":     "https://eu-west-1.console.amazonaws.cn/states/home?region=eu-west-1#/v2/executions/details/arn:aws-cn:states:eu-west-1:111122223333:execution:slipway-run:deployment-deploy-x",
		"aws-us-gov": "https://eu-west-1.console.amazonaws-us-gov.com/states/home?region=eu-west-1#/v2/executions/details/arn:aws-us-gov:states:eu-west-1:111122223333:execution:slipway-run:deployment-deploy-x",
		"aws-iso":    "",
	} {
		d := controlplane.Descriptor{
			StateMachine: "arn:" + partition + ":states:eu-west-1:111122223333:stateMachine:slipway-run", Region: "eu-west-1", Account: "111122223333",
			UploadsBucket: "uploads", Table: "slipway",
		}
		p := remote.Connect(aws.Config{Region: "us-east-1"}, d, "AIDAX")
		if got := p.Link("x", runlog.CommandDeploy); got != want {
			t.Errorf("%s: %s", partition, got)
		}
		if account, region, err := p.Identity(context.Background()); err != nil || account != "111122223333" || region != "us-east-1" {
			t.Errorf("the identity is %s in %s, %v", account, region, err)
		}
	}
}

func TestAnUploadIsShownFromItsBeginToItsEndHoweverItEnds(t *testing.T) {
	w := newWorld(t)
	p := w.as(ann)
	var told []string
	p.WatchUploads(func() (func(done, total int64), func()) {
		told = append(told, "watch")
		return func(done, total int64) {
				switch done {
				case 0:
					told = append(told, "begin")
				case total:
					told = append(told, "all")
				}
			}, func() {
				told = append(told, "end")
			}
	})
	asm := w.synthesized(webApp())
	w.bucket.Fail = func(call, _ string) error {
		if call == "PutObject" {
			return uploadtest.Status(http.StatusServiceUnavailable)
		}
		return nil
	}
	sub := secretValue(runlog.CommandPlan, runlog.CommandDeploy)
	if _, err := p.Submit(w.ctx, asm, asm.Stacks, sub); err == nil {
		t.Fatal("it has not failed")
	}
	w.bucket.Fail = nil
	for range 2 { // the second time it is there
		if _, err := p.Submit(w.ctx, asm, asm.Stacks, sub); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"watch", "begin", "end", "watch", "begin", "all", "end", "watch", "end"}; !slices.Equal(told, want) {
		t.Errorf("it is told %v, want %v", told, want)
	}
}
