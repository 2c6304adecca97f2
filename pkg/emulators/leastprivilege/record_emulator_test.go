//go:build emulators

package leastprivilege

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipway-cdk/slipway/pkg/admission"
	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/iampolicy/calls"
	"github.com/slipway-cdk/slipway/pkg/objectstore"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// recording is the file that package infra reads.
const recording = "../../../infra/testdata/calls.jsonl"

// app is an app of two stacks: one with everything that makes a function call AWS, and one that imports from it.
func app(t *testing.T, shown string) map[string]string {
	// Before and after an update together are more than an item of the table takes.
	big, err := json.Marshal(shown + strings.Repeat("x", 200_000))
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{
		"manifest.json": `{"version":"48.0.0","artifacts":{
			"web.assets":{"type":"cdk:asset-manifest","properties":{"file":"web.assets.json"}},
			"web":{"type":"aws:cloudformation:stack","displayName":"web","dependencies":["web.assets"],"properties":{"templateFile":"web.template.json","stackName":"web"}},
			"api":{"type":"aws:cloudformation:stack","displayName":"api","dependencies":["web"],"properties":{"templateFile":"api.template.json","stackName":"api"}}}}`,
		"web.template.json": fmt.Sprintf(`{"Parameters":{
				"Secret":{"Type":"String","NoEcho":true,"Default":"none"},
				"Version":{"Type":"AWS::SSM::Parameter::Value<String>","Default":"/cdk-bootstrap/hnb659fds/version"},
				"Image":{"Type":"AWS::SSM::Parameter::Value<String>","Default":"/aws/service/test/image"}},
			"Resources":{
				"Jobs":{"Type":"AWS::SQS::Queue","Properties":{"VisibilityTimeout":%s,"Tags":[{"Key":"zone","Value":{"Fn::Select":[0,{"Fn::GetAZs":""}]}},{"Key":"image","Value":{"Ref":"Image"}}]}},
				"Hidden":{"Type":"AWS::SSM::Parameter","Properties":{"Type":"String","Value":{"Ref":"Secret"},"Description":{"Fn::Sub":"${Version} ${Jobs}"}}},
				"Board":{"Type":"AWS::CloudWatch::Dashboard","Properties":{"DashboardName":"board","DashboardBody":%s}}},
			"Outputs":{"Queue":{"Value":{"Fn::GetAtt":["Jobs","Arn"]},"Export":{"Name":"Jobs"}}}}`, shown, big),
		"web.assets.json":   `{"version":"48.0.0","files":{"code":{"source":{"path":"asset.code","packaging":"zip"},"destinations":{"d":{"bucketName":"` + assets + `","objectKey":"code-` + shown + `.zip"}}}}}`,
		"asset.code/a.js":   "a",
		"api.template.json": `{"Resources":{"Topic":{"Type":"AWS::SNS::Topic","Properties":{"DisplayName":{"Fn::Select":[5,{"Fn::Split":[":",{"Fn::ImportValue":"Jobs"}]}]}}}}}`,
	}
}

// synthesized writes an app to a directory and reads it.
func (w *world) synthesized(files map[string]string) *assembly.Assembly {
	w.Helper()
	dir := w.TempDir()
	for name, body := range files {
		file := filepath.Join(dir, name)
		w.must(os.MkdirAll(filepath.Dir(file), 0o755))
		w.must(os.WriteFile(file, []byte(body), 0o600))
	}
	asm, err := assembly.Read(dir)
	w.must(err)
	return asm
}

func zipped(t *testing.T, files map[string]string) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, body := range files {
		f, err := z.Create(name)
		if err == nil {
			_, err = f.Write([]byte(body))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// byCaller carries out a command as a caller does, and returns the deployment's header.
func (w *world) byCaller(command, of runlog.Command, asm *assembly.Assembly, change func(*run.Submission)) runlog.Header {
	w.Helper()
	p := w.caller()
	sub := run.Submission{Command: command, Of: of, Caller: "ann@laptop", Options: run.Options{ForceStatefulRecreation: true}}
	if change != nil {
		change(&sub)
	}
	id, err := p.Submit(w.Context(), asm, asm.Stacks, sub)
	w.must(err)
	h, err := p.Wait(w.Context(), id)
	w.must(err)
	_, err = p.Log().Events(w.Context(), id, "")
	w.must(err)
	_, err = p.Log().ListRuns(w.Context(), runlog.Filter{})
	w.must(err)
	_, err = p.Log().ListRuns(w.Context(), runlog.Filter{Open: true})
	w.must(err)
	if h.Result != runlog.ResultSucceeded {
		for _, d := range h.Diagnostics {
			w.Log(d.Error(), d.Detail)
		}
	}
	return h
}

func (w *world) want(h runlog.Header, result runlog.Result, what string) {
	w.Helper()
	if h.Result != result {
		w.Errorf("%s ended as %s: %+v %v", what, h.Result, h.Failure, h.Diagnostics)
	}
}

func (w *world) rules(roles string) {
	w.put(stateBucket, admission.PolicyKey, []byte(`{"version":1,"rules":[{"principals":["`+userID+`"],"inboxes":["ci"],"stacks":["*"],"commands":["deploy","destroy","rollback","plan","cancel"],"options":["*"]`+roles+`}]}`))
}

// TestEveryCallOfWholeRunsIsRecorded plays what control planes are for, once under an execution role and once with the
// functions' own rights, and what becomes of runs that die.
func TestEveryCallOfWholeRunsIsRecorded(t *testing.T) {
	if emulators := os.Getenv("SLIPWAY_TEST_EMULATOR"); emulators == "moto" {
		return // it has neither the conditions of S3 nor every service that is called
	}
	w := newWorld(t)
	secret := func(s *run.Submission) {
		s.Parameters = map[string]map[string]string{"web": {"Secret": "correct-horse"}}
	}
	for i, roles := range []string{`,"roles":[{"arn":"` + role + `","externalId":"acme"}]`, ""} {
		w.rules(roles)
		first, second := w.synthesized(app(t, fmt.Sprint(30+i))), w.synthesized(app(t, fmt.Sprint(60+i)))
		w.want(w.byCaller(runlog.CommandPlan, runlog.CommandDeploy, first, secret), runlog.ResultSucceeded, "the plan")
		w.want(w.byCaller(runlog.CommandDeploy, "", first, secret), runlog.ResultSucceeded, "the deploy")
		w.want(w.byCaller(runlog.CommandDeploy, "", second, secret), runlog.ResultSucceeded, "the update")
		broken := app(t, fmt.Sprint(90+i))
		broken["web.template.json"] = strings.Replace(broken["web.template.json"], `"Board":{`, `"Bad":{"Type":"AWS::SQS::Queue","DependsOn":"Jobs","Properties":{"VisibilityTimeout":-1}},"Board":{`, 1)
		w.want(w.byCaller(runlog.CommandDeploy, "", w.synthesized(broken), secret), runlog.ResultFailed, "the broken deploy")
		w.deadRuns(i)
		w.want(w.byCaller(runlog.CommandDestroy, "", second, nil), runlog.ResultSucceeded, "the destroy")
		w.inbox(i)
	}
	w.compare()
	// What comes after is counted, and not recorded.
	w.count()
}

// inbox puts an archive into an inbox; its deployment is told of twice.
func (w *world) inbox(i int) {
	w.Helper()
	key := fmt.Sprintf("inbox/ci/app-%d.zip", i)
	files := app(w.T, fmt.Sprint(120+i))
	files["slipway.json"] = `{"version":1,"stacks":["web"]}`
	version := w.put(uploads, key, zipped(w.T, files))
	for range 2 {
		started, err := w.trigger.Handle(w.Context(), notice(key, version))
		w.must(err)
		h, err := w.planes["planner"].Engine.Log.Header(w.Context(), started.RunID)
		w.must(err)
		w.want(h, runlog.ResultSucceeded, "the inbox's deployment")
	}
	_, err := w.trigger.Handle(w.Context(), notice(fmt.Sprintf("inbox/ci/gone-%d.zip", i), "absent"))
	w.must(err)
}

// deadRuns has two runs die in the midst of a creation: the next run settles the first, the janitor the second. Then the
// janitor sweeps.
func (w *world) deadRuns(i int) {
	w.Helper()
	planner := w.planes["planner"].Engine
	stack := run.StackRequest{StackRef: runlog.StackRef{Account: account, Region: region, Name: fmt.Sprintf("dead-%d", i)}, DisplayName: "dead"}
	if i == 0 {
		stack.Role = &run.Role{ARN: role, ExternalID: "acme"}
	}
	stack.TemplateKey = run.TemplateKey(fmt.Sprint("dead-", i))
	_, err := planner.Objects.Put(w.Context(), stack.TemplateKey, []byte(`{"Resources":{"Q":{"Type":"AWS::SQS::Queue","Properties":{"VisibilityTimeout":5}},"R":{"Type":"AWS::SQS::Queue","DependsOn":"Q"}}}`), objectstore.Condition{})
	w.must(err)
	var id string
	for range 2 {
		now := time.Now().UTC()
		h, err := planner.Submit(w.Context(), run.Request{
			Version: run.RequestVersion, RunID: run.NewRunID(now), Command: runlog.CommandDeploy, Caller: "me@host", Region: region, CreatedAt: now,
			Stacks: []run.StackRequest{stack},
		})
		w.must(err)
		id = w.dieInTheMidst(h.RunID)
	}
	var settled run.Settled
	for !settled.Settled {
		w.call("janitor", run.SettleInput{Action: run.ActionSettle, RunID: id}, &settled)
	}
	var swept run.Swept
	w.call("janitor", run.SettleInput{Action: run.ActionSweep}, &swept)
}

// dieInTheMidst opens a deployment and its stack's run, and loses the call of its first operation; nobody goes on with it.
// It returns the stack's run.
func (w *world) dieInTheMidst(deployment string) string {
	w.Helper()
	var step run.Step
	ask := func(action, id string, decision int) run.Step {
		w.call("planner", run.PlannerInput{Action: action, RunID: id, Decision: decision}, &step)
		return step
	}
	ask(run.ActionOpen, deployment, 0)
	wave := ask(run.ActionNext, deployment, 1)
	if len(wave.Items) != 1 || wave.Items[0].ChildRun == "" {
		w.Fatalf("the deployment starts %+v", wave)
	}
	child := wave.Items[0].ChildRun
	opened := ask(run.ActionOpen, child, 0)
	for opened.Kind == run.StepWait { // it settles the one before
		opened = ask(run.ActionNext, child, 1)
	}
	wave = ask(run.ActionNext, child, 1)
	if wave.Kind != run.StepWave {
		w.Fatalf("the stack's run starts %+v", wave)
	}
	w.router.lost.Store(true)
	var status run.OperationStatus
	w.call("provisioner", run.ProvisionInput{RunID: child, Wave: wave.Wave, Epoch: wave.Epoch, Slice: 1, Op: wave.Items[0].Op}, &status)
	w.router.lost.Store(false)
	return child
}

// compare holds what was recorded against the recording in the repository.
func (w *world) compare() {
	w.Helper()
	got, err := w.recorder.Calls()
	w.must(err)
	for i := range got {
		got[i].Resource = strings.ReplaceAll(got[i].Resource, w.vaultKey, "arn:aws:kms:"+region+":"+account+":key/vault")
	}
	var made bytes.Buffer
	w.must(calls.Write(&made, got))
	if os.Getenv("SLIPWAY_RECORD_CALLS") != "" {
		w.must(os.MkdirAll(filepath.Dir(recording), 0o755))
		w.must(os.WriteFile(recording, made.Bytes(), 0o644))
		return
	}
	known, err := os.ReadFile(recording)
	w.must(err)
	for line := range strings.Lines(made.String()) {
		if !strings.Contains(string(known), line) {
			w.Errorf("this call is not in the recording: %s", line)
		}
	}
}
