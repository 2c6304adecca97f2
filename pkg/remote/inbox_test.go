package remote_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"

	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/sandbox"
	"github.com/slipway-cdk/slipway/pkg/trigger"
)

// inboxExecution puts an archive into an inbox and returns the execution that is to start for it.
func inboxExecution(w *world, name, file string, body []byte) run.UploadExecution {
	w.Helper()
	key := "inbox/" + name + "/" + file
	return run.UploadExecution{RunID: run.NewRunID(time.Now()), Command: runlog.CommandDeploy, Upload: run.UploadRef{Key: key, Version: w.bucket.Store(key, body)}}
}

func (w *world) startUpload(x run.UploadExecution) {
	w.Helper()
	input, err := x.Input()
	if err != nil {
		w.Fatal(err)
	}
	if err := w.StartExecution(w.ctx, x.Name(), input); err != nil {
		w.Fatal(err)
	}
}

// stepFunctions starts executions for the trigger.
type stepFunctions struct{ w *world }

func (s stepFunctions) StartExecution(ctx context.Context, in *sfn.StartExecutionInput, _ ...func(*sfn.Options)) (*sfn.StartExecutionOutput, error) {
	if _, again := s.w.inputs[*in.Name]; again {
		return nil, &types.ExecutionAlreadyExists{} // it has ended by now
	}
	return &sfn.StartExecutionOutput{}, s.w.StartExecution(ctx, *in.Name, []byte(*in.Input))
}

func TestAPlainArchiveInAnInboxIsDeployedOnceHoweverOftenItIsTold(t *testing.T) {
	w := newWorld(t)
	w.policy(`{"version": 1, "rules": [{"inboxes": ["web"], "stacks": ["web-*"], "commands": ["deploy"]}]}`)
	files := webApp()
	files["slipway.json"] = `{"version": 1, "stacks": ["web"], "options": {"concurrency": 5}, "parameters": {"web": {"Shown": "three"}}}`
	key := "inbox/web/app.zip"
	version := w.bucket.Store(key, zipped(t, files))
	w.bucket.Store(key, []byte("a later version, with a notice of its own"))
	tr := &trigger.Trigger{
		Objects: w.bucket, Executions: stepFunctions{w}, Bucket: "uploads", Account: sandbox.DefaultAccount,
		Machine: "arn:aws:states:eu-west-1:111122223333:stateMachine:slipway-run", Clock: clock.NewFake(time.Date(2026, 11, 29, 21, 0, 0, 0, time.UTC)), Logger: w.quiet(),
	}
	var e trigger.Event
	e.Time = time.Date(2026, 11, 29, 21, 0, 0, 0, time.UTC)
	e.Detail.Bucket.Name, e.Detail.Object.Key, e.Detail.Object.VersionID, e.Detail.Object.Size = "uploads", key, version, 10
	var ids []string
	for i := range 3 {
		e.ID = strings.Repeat("x", i) // every delivery may have an id of its own
		started, err := tr.Handle(w.ctx, toJSON(t, e))
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, started.RunID)
	}
	if ids[0] != ids[1] || ids[1] != ids[2] {
		t.Fatalf("the runs are %v", ids)
	}
	h := w.header(ids[0])
	if h.Result != runlog.ResultSucceeded || h.Counts.Created != 2 {
		t.Fatalf("it ended as %s: %v", h.Result, h.Diagnostics)
	}
	roots, err := w.plane.Log().ListRuns(w.ctx, runlog.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, r := range roots {
		if r.Kind == runlog.KindDeployment {
			n++
		}
	}
	if n != 1 {
		t.Errorf("there are %d deployments", n)
	}
	if string(w.published("page.html")) != "<html>" {
		t.Error("the asset was not published")
	}
	rec, _, err := w.plane.States().Load(w.ctx, "web-app", sandbox.DefaultRegion)
	if err != nil || rec.Outputs["Name"] != "three" {
		t.Errorf("the outputs are %v, %v", rec.Outputs, err)
	}
}

func TestBadArchivesInAnInboxFailWithAReason(t *testing.T) {
	w := newWorld(t)
	w.policy(`{"version": 1, "rules": [{"inboxes": ["web"], "stacks": ["web-*"], "roles": ["arn:aws:iam::` + sandbox.DefaultAccount + `:role/web"]}]}`)
	with := func(change func(map[string]string)) []byte {
		files := webApp()
		change(files)
		return zipped(t, files)
	}
	for _, tt := range []struct {
		name, want string
		inbox      string
		body       []byte
	}{
		{"no archive", "not a zip archive", "web", []byte("hello")},
		{"zip slip", `"../../evil" leads out`, "web", with(func(f map[string]string) { f["../../evil"] = "x" })},
		{"no assembly", "no cloud assembly", "web", zipped(t, map[string]string{"a": "b"})},
		{"another stack", "none of your rules is for stack api", "web", with(func(f map[string]string) {
			f["manifest.json"] = strings.ReplaceAll(f["manifest.json"], "web-app", "api")
		})},
		{"a wider role", "allows role arn:aws:iam::" + sandbox.DefaultAccount + ":role/admin", "web", with(func(f map[string]string) {
			f["slipway.json"] = `{"version": 1, "options": {}, "role": "arn:aws:iam::` + sandbox.DefaultAccount + `:role/admin"}`
		})},
		{"an option that is not allowed", "option replace", "web", with(func(f map[string]string) {
			f["slipway.json"] = `{"version": 1, "options": {"replace": true}}`
		})},
		{"an option that nobody knows", "unknown field", "web", with(func(f map[string]string) {
			f["slipway.json"] = `{"version": 1, "options": {"admin": true}}`
		})},
		{"a secret", "for everybody to read", "web", with(func(f map[string]string) {
			f["slipway.json"] = `{"version": 1, "options": {}, "parameters": {"web": {"Secret": "x"}}}`
		})},
		{"an inbox without rules", "no rule of this control plane's policy is for inbox/api", "api", with(func(map[string]string) {})},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := &world{T: t, ctx: w.ctx, plane: w.plane, bucket: w.bucket, dir: w.dir, inputs: map[string]string{}}
			x := inboxExecution(w, tt.inbox, "app.zip", tt.body)
			w.startUpload(x)
			w.failed(x.RunID, tt.want)
		})
	}
	if left := w.records(); len(left) != 0 {
		t.Errorf("records were written: %v", left)
	}
	// Directly below inbox/ nobody stands for it.
	x := run.UploadExecution{RunID: run.NewRunID(time.Now()), Command: runlog.CommandDeploy, Upload: run.UploadRef{Key: "inbox/app.zip"}}
	w.startUpload(x)
	w.failed(x.RunID, "in nobody's place")
}
