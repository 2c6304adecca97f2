package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/slipway-cdk/slipway/cli/views"
	"github.com/slipway-cdk/slipway/pkg/local"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/state"
)

// These tests run the command as processes of their own, on a simulated AWS whose calls take their time.

// processTest is the environment variable that makes the test binary the command.
const processTest = "SLIPWAY_PROCESS_TEST"

// project is a directory with an assembly of one stack, "line": three keys that follow one another, each of which takes Cloud
// Control some seconds.
type project struct {
	testing.TB
	dir string
}

func newProject(t *testing.T) project {
	p := project{t, t.TempDir()}
	p.write("manifest.json", `{"version": "48.0.0", "artifacts": {"line": {"type": "aws:cloudformation:stack",
		"environment": "aws://unknown-account/unknown-region", "displayName": "Line",
		"properties": {"templateFile": "line.template.json", "stackName": "line"}}}}`)
	p.write("line.template.json", `{"Resources": {
		"A": {"Type": "AWS::ApiGateway::ApiKey"},
		"B": {"Type": "AWS::ApiGateway::ApiKey", "DependsOn": "A"},
		"C": {"Type": "AWS::ApiGateway::ApiKey", "DependsOn": "B"}}}`)
	return p
}

func (p project) write(name, text string) {
	p.Helper()
	if err := os.MkdirAll(filepath.Join(p.dir, "app"), 0o700); err != nil {
		p.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(p.dir, "app", name), []byte(text), 0o600); err != nil {
		p.Fatal(err)
	}
}

// process is a slipway that runs.
type process struct {
	project
	cmd    *exec.Cmd
	stdout bytes.Buffer
	done   chan struct{}

	mu     sync.Mutex
	told   *sync.Cond
	stderr strings.Builder
	ended  bool
}

// begin starts a command in the project.
func (p project) begin(args ...string) *process {
	p.Helper()
	exe, err := os.Executable()
	if err != nil {
		p.Fatal(err)
	}
	x := &process{project: p, cmd: exec.Command(exe, append(args, "--local")...), done: make(chan struct{})}
	x.told = sync.NewCond(&x.mu)
	x.cmd.Dir, x.cmd.Stdout = p.dir, &x.stdout
	x.cmd.Env = append(os.Environ(), processTest+"=1", "HOME="+p.dir)
	pipe, err := x.cmd.StderrPipe()
	if err != nil {
		p.Fatal(err)
	}
	if err := x.cmd.Start(); err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { _ = x.cmd.Process.Kill() })
	go x.listen(pipe)
	return x
}

func (x *process) listen(pipe io.Reader) {
	lines := bufio.NewScanner(pipe)
	for lines.Scan() {
		x.mu.Lock()
		x.stderr.WriteString(lines.Text() + "\n")
		x.told.Broadcast()
		x.mu.Unlock()
	}
	_ = x.cmd.Wait()
	x.mu.Lock()
	x.ended = true
	x.told.Broadcast()
	x.mu.Unlock()
	close(x.done)
}

// until waits until the process has said something on standard error.
func (x *process) until(text string) {
	x.Helper()
	x.mu.Lock()
	defer x.mu.Unlock()
	for !strings.Contains(x.stderr.String(), text) {
		if x.ended {
			x.Fatalf("%v has ended and never said %q:\n%s%s", x.cmd.Args[1:], text, x.stdout.String(), x.stderr.String())
		}
		x.told.Wait()
	}
}

func (x *process) interrupt() {
	x.Helper()
	if err := x.cmd.Process.Signal(syscall.SIGINT); err != nil {
		x.Fatal(err)
	}
}

// end waits for the end of the process and checks its exit code.
func (x *process) end(code int) {
	x.Helper()
	<-x.done
	if got := x.cmd.ProcessState.ExitCode(); got != code {
		x.Fatalf("%v: exit code %d, want %d:\n%s%s", x.cmd.Args[1:], got, code, x.stdout.String(), x.stderr.String())
	}
}

// slipway runs a command to its end, which must be a good one, and decodes its JSON document.
func (p project) slipway(into any, args ...string) {
	p.Helper()
	x := p.begin(append(args, "--json")...)
	x.end(exitDone)
	if err := json.Unmarshal(x.stdout.Bytes(), into); err != nil {
		p.Fatalf("%v: %v:\n%s", args, err, x.stdout.String())
	}
}

// slow are the flags of a deploy whose keys take between half a second and two seconds each.
func slow(command string, more ...string) []string {
	return append([]string{command, "line", "--yes", "--app", "app", "--sandbox-speed", "10"}, more...)
}

// journal is the stack's rollback journal, nil when there is none.
func (p project) journal() *state.Journal {
	p.Helper()
	plane, err := local.Open(p.Context(), local.Options{Dir: filepath.Join(p.dir, ".slipway")})
	if err != nil {
		p.Fatal(err)
	}
	defer plane.Close() //nolint:errcheck // nothing was written
	j, _, err := plane.States().LoadJournal(p.Context(), "line", localRegion)
	if errors.Is(err, state.ErrNotFound) {
		return nil
	}
	if err != nil {
		p.Fatal(err)
	}
	return j
}

// converges deploys, and checks that all is well after it: the three keys exist, once, and nothing is locked.
func (p project) converges() views.ResultDocument {
	p.Helper()
	var doc views.ResultDocument
	p.slipway(&doc, "deploy", "--yes", "--app", "app")
	var live []views.SandboxEntry
	p.slipway(&live, "sandbox", "list")
	var stacks []views.StateEntry
	p.slipway(&stacks, "state", "list")
	if doc.Result != runlog.ResultSucceeded || len(live) != 3 || len(stacks) != 1 || stacks[0].Resources != 3 || stacks[0].LockedBy != "" {
		p.Errorf("deployed as %s; live %+v; recorded %+v", doc.Result, live, stacks)
	}
	if j := p.journal(); j != nil {
		p.Errorf("a rollback journal is left: %+v", j)
	}
	return doc
}

func TestCtrlCOnceSavesAndTheNextDeployGoesOn(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	x := p.begin(slow("deploy", "--json")...)
	x.until("created line/A")
	x.interrupt()
	x.end(exitInterrupted)
	var doc views.ResultDocument
	if err := json.Unmarshal(x.stdout.Bytes(), &doc); err != nil {
		t.Fatalf("%v:\n%s", err, x.stdout.String())
	}
	done := doc.Runs[0].Counts.Created
	if doc.Result != runlog.ResultFailed || done == 0 || done == 3 || !strings.Contains(doc.Runs[0].Error.Summary, "cancelled by") {
		t.Errorf("%+v", doc)
	}
	j := p.journal()
	if j == nil || len(j.Segments) != 1 || j.Segments[0].Reason != state.ReasonInterrupted || len(j.Segments[0].Operations) != done {
		t.Errorf("journal %+v, %d created", j, done)
	}
	if next := p.converges(); next.Runs[0].Counts.Created != 3-done || next.Runs[0].Counts.Unchanged != done {
		t.Errorf("the next deploy: %+v", next.Runs[0].Counts)
	}
}

func TestCtrlCTwiceLeavesAndTheNextDeploySettles(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	x := p.begin(slow("deploy")...)
	x.until("created line/A")
	x.interrupt()
	x.until("Press Ctrl-C again")
	x.interrupt()
	x.end(exitInterrupted)
	if text := x.stderr.String(); !strings.Contains(text, "no longer waiting for run") {
		t.Errorf("it does not say what goes on:\n%s", text)
	}
	p.converges()
	var runs []views.RunEntry
	p.slipway(&runs, "runs", "list", "--stack", "line")
	if len(runs) != 2 || runs[1].Status != runlog.StatusClosed || runs[1].Error == nil || !strings.Contains(runs[1].Error.Summary, "cancelled by") {
		t.Errorf("the runs: %+v", runs)
	}
}

func TestADeployIsCancelledFromAnotherProcess(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	x := p.begin(slow("deploy")...)
	x.until("created line/A")
	var done views.CancelDocument
	p.slipway(&done, "cancel", "line")
	watching := p.begin("runs", "watch", done.RunID[len(done.RunID)-8:])
	x.end(exitFailed)
	watching.end(exitFailed)
	for _, y := range []*process{x, watching} {
		if !strings.Contains(y.stderr.String(), "the run was cancelled by "+done.CancelledBy) {
			t.Errorf("%v does not say so:\n%s", y.cmd.Args[1:], y.stderr.String())
		}
	}
	var detail views.RunDetailDocument
	p.slipway(&detail, "runs", "show", "line")
	statuses := map[string]runlog.OpStatus{}
	for _, o := range detail.Runs[0].Operations {
		statuses[o.LogicalID] = o.Status
	}
	if detail.Result != runlog.ResultFailed || statuses["A"] != runlog.OpSucceeded || statuses["C"] != runlog.OpSkipped || detail.Next == "" {
		t.Errorf("%+v", detail)
	}
	p.converges()
	// A run that has ended can't be cancelled, and is told again.
	late := p.begin("cancel", done.RunID)
	late.end(exitFailed)
	if !strings.Contains(late.stderr.String(), "can't be cancelled any more") {
		t.Errorf("a late cancellation:\n%s", late.stderr.String())
	}
	again := p.begin("runs", "watch", done.RunID)
	again.end(exitFailed)
	if !strings.Contains(again.stderr.String(), "created line/A") {
		t.Errorf("the story of a run that has ended:\n%s", again.stderr.String())
	}
}

// lock takes the stack's lock as another tool does, and returns what frees it.
func (p project) lock() (free func()) {
	p.Helper()
	plane, err := local.Open(p.Context(), local.Options{Dir: filepath.Join(p.dir, ".slipway")})
	if err != nil {
		p.Fatal(err)
	}
	lock, err := plane.States().Acquire(p.Context(), "line", localRegion, "somebody@else:1", "deploy")
	if err != nil {
		p.Fatal(err)
	}
	return func() {
		p.Helper()
		if err := errors.Join(lock.Release(p.Context()), plane.Close()); err != nil {
			p.Fatal(err)
		}
	}
}

func TestThoseWhoWaitForALockHaveTheirTurn(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	free := p.lock()
	first := p.begin(slow("deploy", "--wait-for-lock", "5m")...)
	first.until("place 1 in the line")
	second := p.begin(slow("destroy", "--wait-for-lock", "5m")...)
	second.until("place 2 in the line")
	hasty := p.begin(slow("deploy")...)
	hasty.end(exitFailed)
	if text := hasty.stderr.String(); !strings.Contains(text, "2 runs are waiting for its lock") || !strings.Contains(text, "--wait-for-lock 10m") {
		t.Errorf("a deploy that does not wait is told:\n%s", text)
	}
	free()
	first.end(exitDone)
	second.end(exitDone)
	if text := first.stdout.String(); !strings.Contains(text, "3 created") {
		t.Errorf("the deploy:\n%s", text)
	}
	var runs []views.RunEntry
	p.slipway(&runs, "runs", "list", "--stack", "line")
	var order []string
	for _, r := range runs {
		order = append(order, string(r.Command)+" "+string(r.Result))
	}
	if len(order) != 3 || runs[1].StartedAt.Before(runs[2].FinishedAt) {
		t.Errorf("the runs: %v", order)
	}
	var live []views.SandboxEntry
	if p.slipway(&live, "sandbox", "list"); len(live) > 0 {
		t.Errorf("the destroy has left %+v", live)
	}
}

// detach begins a deploy in a process of its own, and returns its run.
func (p project) detach(more ...string) string {
	p.Helper()
	var doc views.StartedDocument
	p.slipway(&doc, slow("deploy", append(more, "--detach")...)...)
	if doc.Result != "STARTED" || len(doc.Runs) != 1 {
		p.Fatalf("%+v", doc)
	}
	return doc.Runs[0].RunID
}

func TestADetachedDeployGoesOnByItself(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	id := p.detach()
	watching := p.begin("runs", "watch", id, "--json")
	watching.until("created line/A")
	// To stop watching is not to cancel.
	watching.interrupt()
	watching.end(exitInterrupted)
	again := p.begin("runs", "watch", id)
	again.end(exitDone)
	if text := again.stdout.String(); !strings.Contains(text, "SUCCEEDED") || !strings.Contains(text, "3 created") {
		t.Errorf("it ended as:\n%s", text)
	}
	if next := p.converges(); next.Runs[0].Counts.Unchanged != 3 {
		t.Errorf("the next deploy: %+v", next.Runs[0].Counts)
	}
	log, err := os.ReadFile(filepath.Join(p.dir, ".slipway", "logs", id+".log"))
	if err != nil || !strings.Contains(string(log), "created line/C") {
		t.Errorf("the log of its process: %v\n%s", err, log)
	}
}

func TestADetachedDeployWhoseProcessDiesIsSettled(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	id := p.detach()
	held, err := filepath.Glob(filepath.Join(p.dir, ".slipway", "processes", "*.lock"))
	if err != nil || len(held) != 1 {
		t.Fatalf("the processes that hold something: %v, %v", held, err)
	}
	text, _, _ := strings.Cut(filepath.Base(held[0]), "-")
	pid, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	watching := p.begin("runs", "watch", id)
	watching.until("created line/A")
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	watching.end(exitFailed)
	if text := watching.stderr.String(); !strings.Contains(text, "the run was interrupted") {
		t.Errorf("who watches is told:\n%s", text)
	}
	p.converges()
}
