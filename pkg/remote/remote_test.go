package remote_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway-cdk/slipway/pkg/admission"
	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/objectstore"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/sandbox"
)

// secretValue is a submission with a value for the app's NoEcho parameter.
func secretValue(command, of runlog.Command) run.Submission {
	return run.Submission{
		Command: command, Of: of, Caller: "ann@laptop",
		Parameters: map[string]map[string]string{"web": {"Secret": password, "Shown": "two"}},
	}
}

func TestADeployThroughTheControlPlane(t *testing.T) {
	w := newWorld(t)
	p := w.as(ann)
	asm := w.synthesized(webApp())

	planned, err := p.Submit(w.ctx, asm, asm.Stacks, secretValue(runlog.CommandPlan, runlog.CommandDeploy))
	if err != nil {
		t.Fatal(err)
	}
	if h, err := p.Wait(w.ctx, planned); err != nil || h.Result != runlog.ResultSucceeded {
		t.Fatalf("the plan run ended as %s: %v, %v", h.Result, h.Diagnostics, err)
	}
	views, err := p.PlanViews(w.ctx, planned)
	if err != nil || len(views) != 1 || len(views[0].Changes) != 2 {
		t.Fatalf("the plan is %+v, %v", views, err)
	}
	sub := secretValue(runlog.CommandDeploy, "")
	sub.PlanRun = planned
	deployed, err := p.Submit(w.ctx, asm, asm.Stacks, sub)
	if err != nil {
		t.Fatal(err)
	}
	h, err := p.Wait(w.ctx, deployed)
	if err != nil || h.Result != runlog.ResultSucceeded || h.Counts.Created != 2 {
		t.Fatalf("the run ended as %s: %v %v, %v", h.Result, h.Failure, h.Diagnostics, err)
	}
	if h.Owner != "ann@laptop as AROAWEB:ann:slipway:"+deployed && h.Owner != "AROAWEB:ann:slipway:"+deployed {
		t.Errorf("its owner is %q", h.Owner)
	}
	// The assets were published out of the upload, before the stack.
	z, err := zip.NewReader(bytes.NewReader(w.published("code.zip")), int64(len(w.published("code.zip"))))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range z.File {
		names = append(names, f.Name)
	}
	if !slices.Equal(names, []string{"index.js", "lib/a.js"}) || string(w.published("page.html")) != "<html>" {
		t.Errorf("the asset holds %v", names)
	}
	// Outputs come by the report of the stack's run, and operations by the events.
	children, err := p.Log().ListRuns(w.ctx, runlog.Filter{Root: deployed})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range children {
		if c.Kind != runlog.KindStack {
			continue
		}
		if out, err := p.Outputs(w.ctx, c.RunID); err != nil || len(out) != 1 || out["Name"] != "two" {
			t.Errorf("the outputs are %v, %v", out, err)
		}
		if out, err := w.as(mallory).Outputs(w.ctx, c.RunID); err != nil || out != nil {
			t.Errorf("somebody else gets the outputs %v, %v", out, err)
		}
		ops, err := p.Log().Ops(w.ctx, c.RunID)
		if err != nil || len(ops) != 2 || ops[0].LogicalID != "Topic" || ops[0].Status != runlog.OpSucceeded || ops[0].PhysicalID == "" || ops[0].Before != nil {
			t.Errorf("the operations are %+v, %v", ops, err)
		}
	}
	// One archive serves both runs.
	if n := len(slices.DeleteFunc(w.bucket.Keys(), func(k string) bool { return !strings.HasSuffix(k, ".zip") })); n != 1 {
		t.Errorf("%d archives were uploaded: %v", n, w.bucket.Keys())
	}
	w.secretive()
	if r, err := w.plane.Sandbox().Show(w.ctx, sandbox.Caller{Account: sandbox.DefaultAccount, Region: sandbox.DefaultRegion}, "AWS::SSM::Parameter", valueID(t, w)); err != nil || r.Properties["Value"] != password {
		t.Errorf("the secret has not arrived: %v, %v", r.Properties["Value"], err)
	}
}

// valueID is the physical id of the parameter that the app makes.
func valueID(t *testing.T, w *world) string {
	t.Helper()
	rec, _, err := w.plane.States().Load(w.ctx, "web-app", sandbox.DefaultRegion)
	if err != nil {
		t.Fatal(err)
	}
	return rec.Resources["Value"].PhysicalID
}

// secretive checks that the password stands nowhere that is kept: the uploads, the state bucket, the payloads.
func (w *world) secretive() {
	w.Helper()
	for _, key := range w.bucket.Keys() {
		body, _ := w.bucket.Body(key)
		if bytes.Contains(body, []byte(password)) {
			w.Errorf("the upload %s holds the secret", key)
		}
	}
	infos, err := w.plane.Engine.Objects.List(w.ctx, "")
	if err != nil {
		w.Fatal(err)
	}
	for _, i := range infos {
		obj, err := w.plane.Engine.Objects.Get(w.ctx, i.Key)
		if err != nil {
			w.Fatal(err)
		}
		if bytes.Contains(obj.Body, []byte(password)) {
			w.Errorf("the object %s holds the secret", i.Key)
		}
	}
	for name, input := range w.inputs {
		if strings.Contains(input, password) {
			w.Errorf("the input of %s holds the secret", name)
		}
		if !strings.HasPrefix(input, `{"runId":"`) || len(input) > 500 {
			w.Errorf("the input of %s is more than pointers: %s", name, input)
		}
	}
}

func TestADestroyNeedsNoArchive(t *testing.T) {
	w := newWorld(t)
	p := w.as(ann)
	asm := w.synthesized(webApp())
	for _, command := range []runlog.Command{runlog.CommandDeploy, runlog.CommandDestroy} {
		id, err := p.Submit(w.ctx, asm, asm.Stacks, run.Submission{Command: command})
		if err != nil {
			t.Fatal(err)
		}
		if h := w.header(id); h.Result != runlog.ResultSucceeded {
			t.Fatalf("the %s ended as %s: %v", command, h.Result, h.Diagnostics)
		}
	}
	if left := w.records(); len(left) != 0 {
		t.Errorf("records are left: %v", left)
	}
}

func TestARollbackIsAskedForByName(t *testing.T) {
	w := newWorld(t)
	p := w.as(ann)
	files := webApp()
	files["web.template.json"] = `{"Resources": {
		"First": {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": "one-name"}},
		"Second": {"Type": "AWS::SQS::Queue", "DependsOn": "First", "Properties": {"QueueName": "one-name"}}}}`
	asm := w.synthesized(files)
	id, err := p.Submit(w.ctx, asm, asm.Stacks, run.Submission{Command: runlog.CommandDeploy, Options: run.Options{NoRollback: true}})
	if err != nil {
		t.Fatal(err)
	}
	if h := w.header(id); h.Result != runlog.ResultFailed || h.Counts.Created != 1 {
		t.Fatalf("the deploy ended as %s: %+v %v", h.Result, h.Counts, h.Failure)
	}
	named := []*assembly.Stack{{ID: "web-app", Name: "web-app", DisplayName: "web-app", Account: sandbox.DefaultAccount, Region: sandbox.DefaultRegion}}
	sub := run.Submission{Command: runlog.CommandPlan, Of: runlog.CommandRollback}
	planned, err := p.Submit(w.ctx, nil, named, sub)
	if err != nil {
		t.Fatal(err)
	}
	if views, err := p.PlanViews(w.ctx, planned); err != nil || len(views) != 1 || len(views[0].Changes) == 0 {
		t.Errorf("the plan is %+v, %v", views, err)
	}
	id, err = p.Submit(w.ctx, nil, named, run.Submission{Command: runlog.CommandRollback, PlanRun: planned})
	if err != nil {
		t.Fatal(err)
	}
	if h := w.header(id); h.Result != runlog.ResultSucceeded || h.Counts.Deleted != 1 {
		t.Errorf("the rollback ended as %s: %+v %v", h.Result, h.Counts, h.Diagnostics)
	}
}

func TestThePolicyRefusesWithAReason(t *testing.T) {
	w := newWorld(t)
	w.policy(`{"version": 1, "rules": [{"principals": ["AROAWEB:*"], "stacks": ["web-app"], "commands": ["deploy"]}, {"principals": ["AROAHUSH:*"], "stacks": ["*"]}]}`)
	asm := w.synthesized(webApp())
	for _, tt := range []struct {
		who  string
		sub  run.Submission
		want string
	}{
		{mallory, run.Submission{Command: runlog.CommandDeploy}, "no rule of this control plane's policy is for " + mallory},
		{ann, run.Submission{Command: runlog.CommandDestroy}, "allows destroy"},
		{ann, run.Submission{Command: runlog.CommandDeploy, Options: run.Options{Replace: true}}, "option replace"},
	} {
		id, err := w.as(tt.who).Submit(w.ctx, asm, asm.Stacks, tt.sub)
		if err != nil {
			t.Fatal(err)
		}
		w.failed(id, tt.want)
		if h := w.header(id); strings.Contains(h.Diagnostics.Error(), "HUSH") {
			t.Errorf("the refusal tells of others: %v", h.Diagnostics)
		}
	}
	if left := w.records(); len(left) != 0 {
		t.Errorf("records were written: %v", left)
	}
	w.policy(`{"version": 1, "rule": []}`)
	id, err := w.as(ann).Submit(w.ctx, asm, asm.Stacks, run.Submission{Command: runlog.CommandDeploy})
	if err != nil {
		t.Fatal(err)
	}
	w.failed(id, "its policy can't be used")
}

func TestAnUploadOfSomebodyElseIsNotARun(t *testing.T) {
	w := newWorld(t)
	asm := w.synthesized(webApp())
	theirs, err := w.as(ann).Submit(w.ctx, asm, asm.Stacks, run.Submission{Command: runlog.CommandDeploy})
	if err != nil {
		t.Fatal(err)
	}
	before := w.header(theirs)
	start := func(id string, command runlog.Command, key string) {
		t.Helper()
		x := run.UploadExecution{RunID: id, Command: command, Upload: run.UploadRef{Key: key}}
		input, err := x.Input()
		if err != nil {
			t.Fatal(err)
		}
		if err := w.StartExecution(w.ctx, x.Name()+"x", input); err != nil { // of another name
			t.Fatal(err)
		}
		if err := w.StartExecution(w.ctx, x.Name(), input); err != nil {
			t.Fatal(err)
		}
	}
	// A submission of mallory's for ann's run, and ann's for a run of mallory's making.
	w.bucket.Store(admission.SubmissionKey(mallory, theirs), []byte(`{"version":1,"runId":"`+theirs+`","command":"destroy","stacks":[{"id":"web","name":"web-app"}],"options":{}}`))
	start(theirs, runlog.CommandDestroy, admission.SubmissionKey(mallory, theirs))
	if after := w.header(theirs); after.Result != before.Result || after.Command != before.Command || after.Owner != before.Owner {
		t.Errorf("the run has become %+v", after)
	}
	other := run.NewRunID(time.Now())
	start(other, runlog.CommandDeploy, admission.SubmissionKey(ann, theirs))
	w.failed(other, "not a submission of this run")
	if len(w.records()) == 0 {
		t.Error("the stack is gone")
	}
}

func TestARunIsAdmittedOnce(t *testing.T) {
	w := newWorld(t)
	p := w.as(ann)
	asm := w.synthesized(webApp())
	id, err := p.Submit(w.ctx, asm, asm.Stacks, run.Submission{Command: runlog.CommandDeploy})
	if err != nil {
		t.Fatal(err)
	}
	first := w.header(id)
	// The planner is asked again, and by then the submission says something else.
	key := admission.SubmissionKey(ann, id)
	w.bucket.Store(key, []byte(`{}`))
	step, err := w.plane.Engine.Admit(w.ctx, run.PlannerInput{Action: run.ActionAdmit, RunID: id, Command: runlog.CommandDeploy, Upload: &run.UploadRef{Key: key}, Execution: first.Execution})
	if err != nil || step.Kind != run.StepDone {
		t.Errorf("%+v, %v", step, err)
	}
	if again := w.header(id); again.Version != first.Version {
		t.Errorf("the header was written again: %+v", again)
	}
}

func TestACrashInTheMiddleOfAnAdmissionIsGoneOnWith(t *testing.T) {
	w := newWorld(t)
	asm := w.synthesized(webApp())
	failing := errors.New("out of order")
	broken := 0
	w.bucket.Fail = func(call, key string) error {
		if call == "GetObject" && strings.HasSuffix(key, ".zip") && broken < 2 {
			broken++
			return failing
		}
		return nil
	}
	id, err := w.as(ann).Submit(w.ctx, asm, asm.Stacks, run.Submission{Command: runlog.CommandDeploy})
	if err != nil {
		t.Fatal(err)
	}
	if h := w.header(id); h.Result != runlog.ResultSucceeded || broken != 2 {
		t.Errorf("after %d failures it ended as %s: %v", broken, h.Result, h.Diagnostics)
	}
	// A bucket that stays broken fails the run instead of losing it.
	w.bucket.Fail = func(call, key string) error {
		if call == "GetObject" && strings.HasSuffix(key, ".zip") {
			return failing
		}
		return nil
	}
	if id, err = w.as(ann).Submit(w.ctx, asm, asm.Stacks, run.Submission{Command: runlog.CommandDeploy}); err != nil {
		t.Fatal(err)
	}
	if h, err := w.plane.Wait(w.ctx, id); err != nil || h.Result != runlog.ResultFailed || h.Failure == nil {
		t.Errorf("it ended as %s: %+v, %v", h.Result, h.Failure, err)
	}
}

func TestBadUploadsFailWithAReason(t *testing.T) {
	w := newWorld(t)
	asm := w.synthesized(webApp())
	id, err := w.as(ann).Submit(w.ctx, asm, asm.Stacks, run.Submission{Command: runlog.CommandDeploy})
	if err != nil {
		t.Fatal(err)
	}
	w.header(id)
	var archive []byte
	var digest string
	for _, key := range w.bucket.Keys() {
		if strings.HasSuffix(key, ".zip") {
			archive, _ = w.bucket.Body(key)
			digest = strings.TrimSuffix(key[strings.LastIndexByte(key, '/')+1:], ".zip")
		}
	}
	submit := func(change func(s *admission.Submission)) string {
		t.Helper()
		s := admission.NewSubmission(run.NewRunID(time.Now()), runlog.CommandDeploy)
		s.Assembly, s.Stacks = digest, []admission.Stack{{ID: "web"}}
		change(&s)
		body, err := s.Encode()
		if err != nil {
			t.Fatal(err)
		}
		w.bucket.Store(admission.SubmissionKey(ann, s.RunID), body)
		x := run.UploadExecution{RunID: s.RunID, Command: runlog.CommandDeploy, Upload: run.UploadRef{Key: admission.SubmissionKey(ann, s.RunID)}}
		input, err := x.Input()
		if err != nil {
			t.Fatal(err)
		}
		if err := w.StartExecution(w.ctx, x.Name(), input); err != nil {
			t.Fatal(err)
		}
		return s.RunID
	}
	other := strings.Repeat("a", 64)
	w.bucket.Store(admission.ArchiveKey(ann, other), archive)
	slip := strings.Repeat("b", 64)
	w.bucket.Store(admission.ArchiveKey(ann, slip), zipped(t, map[string]string{"manifest.json": "{}", "../evil": "x"}))
	plain := strings.Repeat("c", 64)
	w.bucket.Store(admission.ArchiveKey(ann, plain), zipped(t, webApp()))
	for _, tt := range []struct {
		want   string
		change func(s *admission.Submission)
	}{
		{"its digest is " + digest, func(s *admission.Submission) { s.Assembly = other }},
		{`entry "../evil" leads out`, func(s *admission.Submission) { s.Assembly = slip }},
		{"it has no index", func(s *admission.Submission) { s.Assembly = plain }},
		{"the upload is gone", func(s *admission.Submission) { s.Assembly = strings.Repeat("d", 64) }},
		{"has no assembly", func(s *admission.Submission) { s.Assembly = "../" + strings.Repeat("d", 61) }},
		{"it lacks api", func(s *admission.Submission) { s.Stacks = append(s.Stacks, admission.Stack{ID: "api"}) }},
		{"about no stack", func(s *admission.Submission) { s.Stacks = nil }},
		{"version is 7", func(s *admission.Submission) { s.Version = 7 }},
		{"for another run", func(s *admission.Submission) { s.Command = runlog.CommandDestroy }},
		{"for everybody to read", func(s *admission.Submission) {
			s.Parameters = map[string]map[string]string{"web": {"Secret": "x"}}
		}},
		{"sealed with another key", func(s *admission.Submission) { s.Sealed = make([]byte, 60) }},
	} {
		w.failed(submit(tt.change), tt.want)
	}
	if id := submit(func(*admission.Submission) {}); w.header(id).Result != runlog.ResultSucceeded {
		t.Errorf("a good one ended as %v", w.header(id).Diagnostics)
	}
}

func TestStacksThatCannotBeAreRefused(t *testing.T) {
	w := newWorld(t)
	asm := w.synthesized(webApp())
	for _, change := range []func(*assembly.Stack){
		func(s *assembly.Stack) { s.Name = "web/../other" },
		func(s *assembly.Stack) { s.Account = "me" },
		func(s *assembly.Stack) { s.Region = "eu-west-1/deployments" },
	} {
		s := *asm.Stacks[0]
		change(&s)
		id, err := w.as(ann).Submit(w.ctx, nil, []*assembly.Stack{&s}, run.Submission{Command: runlog.CommandDestroy})
		if err != nil {
			t.Fatal(err)
		}
		w.failed(id, "names a stack that can't be")
	}
}

func TestImagesAreRefusedBeforeAnythingIsUploaded(t *testing.T) {
	w := newWorld(t)
	files := webApp()
	files["web.assets.json"] = `{"version": "48.0.0", "dockerImages": {"i": {"source": {"directory": "asset.code"}, "destinations": {"d": {"repositoryName": "r", "imageTag": "t"}}}}}`
	asm := w.synthesized(files)
	_, err := w.as(ann).Submit(w.ctx, asm, asm.Stacks, run.Submission{Command: runlog.CommandDeploy})
	if err == nil || !strings.Contains(err.Error(), "container image") || len(w.bucket.Keys()) != 0 {
		t.Errorf("%v; uploaded: %v", err, w.bucket.Keys())
	}
	// Whoever goes past the command line is refused by the control plane.
	x := inboxExecution(w, "web", "app.zip", zipped(t, files))
	w.policy(`{"version": 1, "rules": [{"inboxes": ["web"], "stacks": ["*"]}]}`)
	w.startUpload(x)
	w.failed(x.RunID, "container image")
}

func TestCancel(t *testing.T) {
	w := newWorld(t)
	asm := w.synthesized(webApp())
	id, err := w.as(ann).Submit(w.ctx, asm, asm.Stacks, run.Submission{Command: runlog.CommandDeploy})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.as(ann).Cancel(w.ctx, id, "ann@laptop"); !errors.Is(err, run.ErrEnded) {
		t.Errorf("cancelling a run that has ended: %v", err)
	}
	if err := w.as(ann).Cancel(w.ctx, run.NewRunID(time.Now()), "ann@laptop"); err == nil || !strings.Contains(err.Error(), "there is no run") {
		t.Errorf("cancelling what is not there: %v", err)
	}
	w.policy(`{"version": 1, "rules": [{"principals": ["` + mallory + `"], "stacks": ["other"]}, {"principals": ["` + ann + `"], "stacks": ["web-app"]}]}`)
	// A run that nobody has begun yet.
	fresh := run.Request{Version: run.RequestVersion, RunID: run.NewRunID(time.Now()), Command: runlog.CommandDeploy, Stacks: []run.StackRequest{{
		StackRef: runlog.StackRef{Account: sandbox.DefaultAccount, Region: sandbox.DefaultRegion, Name: "web-app"},
	}}}
	if _, err := w.plane.Engine.Submit(w.ctx, fresh); err != nil {
		t.Fatal(err)
	}
	if err := w.as(mallory).Cancel(w.ctx, fresh.RunID, "mallory"); err == nil || !strings.Contains(err.Error(), "there is no run") {
		t.Errorf("somebody without a rule: %v", err)
	}
	if err := w.as(ann).Cancel(w.ctx, fresh.RunID, "ann@laptop"); err != nil {
		t.Fatal(err)
	}
	h, err := w.plane.Log().Header(w.ctx, fresh.RunID)
	if err != nil {
		t.Fatal(err)
	}
	if c, err := w.plane.Engine.Cancellation(w.ctx, h); err != nil || c == nil || c.By != "ann@laptop as "+ann {
		t.Errorf("it was cancelled by %+v, %v", c, err)
	}
}

func TestWhatNeedsTheRecordsNamesDirect(t *testing.T) {
	w := newWorld(t)
	_, err := w.as(ann).States().List(w.ctx)
	var diags diag.Diagnostics
	if !errors.As(err, &diags) || !strings.Contains(diags[0].Next, "--direct") {
		t.Errorf("%v", err)
	}
	if _, err := w.as(ann).States().ForceUnlock(w.ctx, "web-app", "eu-west-1"); err == nil || errors.Is(err, objectstore.ErrNotFound) {
		t.Errorf("%v", err)
	}
}

func TestASecretInTheAssemblyIsNotUploaded(t *testing.T) {
	w := newWorld(t)
	files := webApp()
	files["manifest.json"] = strings.ReplaceAll(files["manifest.json"], `"stackName"`, `"parameters": {"Secret": "`+password+`"}, "stackName"`)
	asm := w.synthesized(files)
	if _, err := w.as(ann).Submit(w.ctx, asm, asm.Stacks, run.Submission{Command: runlog.CommandDeploy}); err == nil || !strings.Contains(err.Error(), "parameter Secret") {
		t.Errorf("%v", err)
	}
	if len(w.bucket.Keys()) != 0 {
		t.Errorf("uploaded: %v", w.bucket.Keys())
	}
}

func TestStacksThatAreNotMeantAreNotDeployed(t *testing.T) {
	w := newWorld(t)
	files := maps.Clone(webApp())
	files["manifest.json"] = strings.TrimSuffix(files["manifest.json"], "}}") + `,
		"api": {"type": "aws:cloudformation:stack", "properties": {"templateFile": "web.template.json"}}}}`
	asm := w.synthesized(files)
	var only []*assembly.Stack
	for _, s := range asm.Stacks {
		if s.Name == "api" {
			only = append(only, s)
		}
	}
	id, err := w.as(ann).Submit(w.ctx, asm, only, run.Submission{Command: runlog.CommandDeploy})
	if err != nil {
		t.Fatal(err)
	}
	if h := w.header(id); h.Result != runlog.ResultSucceeded {
		t.Fatalf("%v", h.Diagnostics)
	}
	for _, key := range w.records() {
		if strings.Contains(key, "web-app") {
			t.Errorf("there is %s", key)
		}
	}
}
