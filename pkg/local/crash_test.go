package local

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/sandbox"
)

// childSpec is what a test's child process is to do, as JSON in the environment.
type childSpec struct {
	Dir      string // of the plane
	Assembly string
	Command  runlog.Command
	Options  run.Options
	// Die is the step at which the process kills itself; empty for one that lives.
	Die string
	// Fail is a step that fails for good: "create New".
	Fail string
	// Start is the moment to begin at.
	Start time.Time
	// Gate is a file for which every call of a provider waits.
	Gate string
}

// childResult is what a child that has lived prints.
type childResult struct {
	Header runlog.Header
	Error  string
}

const childArgs = "SLIPWAY_TEST_CHILD_ARGS"

// child runs the part of a test that needs a process of its own.
func child(what string) int {
	if what != "run" {
		return 2
	}
	var spec childSpec
	if err := json.Unmarshal([]byte(os.Getenv(childArgs)), &spec); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	h, err := spec.run(context.Background())
	out := childResult{Header: h}
	if err != nil {
		out.Error = err.Error()
	}
	if err := json.NewEncoder(os.Stdout).Encode(out); err != nil {
		return 2
	}
	return 0
}

func (spec childSpec) run(ctx context.Context) (h runlog.Header, err error) {
	tr := &tracer{hit: func(step string, _ int) {
		for spec.Gate != "" && strings.HasPrefix(step, "before ") {
			if _, err := os.Stat(spec.Gate); err == nil {
				break
			}
			time.Sleep(2 * time.Millisecond)
		}
		if step == spec.Die {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // nothing more is done, however long the signal takes
		}
	}}
	asm, err := assembly.Read(spec.Assembly)
	if err != nil {
		return h, err
	}
	p, err := trace(ctx, Options{Dir: spec.Dir, WrapProvider: failing(spec.Fail)}, tr)
	if err != nil {
		return h, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	time.Sleep(time.Until(spec.Start))
	id, err := p.Submit(ctx, asm, asm.Stacks, run.Submission{Command: spec.Command, Options: spec.Options, Caller: "child@host"})
	if err != nil {
		return h, err
	}
	return p.Wait(ctx, id)
}

// command is the child as a process.
func (spec childSpec) command(t *testing.T) *exec.Cmd {
	t.Helper()
	args, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "SLIPWAY_TEST_CHILD=run", childArgs+"="+string(args))
	return cmd
}

// crash runs a child that is to die at its step.
func crash(t *testing.T, spec childSpec) {
	t.Helper()
	cmd := spec.command(t)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		t.Fatalf("the child has not died at %q: %v %s", spec.Die, err, out.String())
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); !ok || !status.Signaled() || status.Signal() != syscall.SIGKILL {
		t.Fatalf("the child has ended otherwise: %v %s", err, out.String())
	}
}

// crashApp has resources of every route, and between its versions an update in place, a replacement, one that
// has to delete first, a new resource and a removed one.
func crashApp(t *testing.T, version int) *assembly.Assembly {
	return writeApp(t, crashTemplates(version), nil)
}

func crashTemplates(version int) map[string]object {
	second := version == 2
	pick := func(a, b any) any {
		if second {
			return b
		}
		return a
	}
	queue := object{"VisibilityTimeout": 30, "Tags": []any{object{"Key": "topic", "Value": ref("Topic")}}}
	if second {
		queue["QueueName"] = "crash-inbox"
	}
	resources := object{
		"Topic": resource("AWS::SNS::Topic", object{"DisplayName": pick("one", "two")}),
		"Queue": resource("AWS::SQS::Queue", queue),
		"Name":  resource("AWS::SSM::Parameter", object{"Type": "String", "Value": att("Queue", "QueueName")}),
		"Role": resource("AWS::IAM::Role", object{"AssumeRolePolicyDocument": object{"Version": "2012-10-17", "Statement": []any{
			object{"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": object{"Service": "lambda.amazonaws.com"}},
		}}}),
		"Policy": resource("AWS::IAM::Policy", object{"PolicyName": "send", "Roles": []any{ref("Role")}, "PolicyDocument": object{
			"Version": "2012-10-17", "Statement": []any{object{"Effect": "Allow", "Action": "sqs:SendMessage", "Resource": att("Queue", "Arn")}},
		}}),
		"Function": with(resource("AWS::Lambda::Function", object{
			"Code": object{"ZipFile": "exports.handler = async () => 'ok';"}, "Handler": "index.handler", "Runtime": "nodejs22.x",
			"Role": att("Role", "Arn"), "Environment": object{"Variables": object{"QUEUE": ref("Queue")}},
		}), "DependsOn", "Policy"),
		"Seed":    resource("Custom::Seed", object{"ServiceToken": att("Function", "Arn"), "Greeting": pick("hello", "good day")}),
		"Seeded":  resource("AWS::SSM::Parameter", object{"Type": "String", "Value": att("Seed", "Token")}),
		"Network": resource("AWS::EC2::VPC", object{"CidrBlock": "10.9.0.0/16"}),
		"Subnet":  resource("AWS::EC2::Subnet", object{"VpcId": ref("Network"), "CidrBlock": "10.9.1.0/24"}),
		"RoutesA": resource("AWS::EC2::RouteTable", object{"VpcId": ref("Network")}),
		"RoutesB": resource("AWS::EC2::RouteTable", object{"VpcId": ref("Network")}),
		// A subnet has one route table at a time: the old association goes before the new one comes.
		"Routes": resource("AWS::EC2::SubnetRouteTableAssociation", object{"SubnetId": ref("Subnet"), "RouteTableId": ref(pick("RoutesA", "RoutesB").(string))}),
	}
	if second {
		resources["New"] = resource("AWS::SSM::Parameter", object{"Type": "String", "Value": ref("Topic")})
	} else {
		resources["Gone"] = resource("AWS::SSM::Parameter", object{"Type": "String", "Value": ref("Topic")})
	}
	return map[string]object{"Crash": {"Resources": resources, "Outputs": object{"Queue": object{"Value": ref("Queue")}}}}
}

// crashPhase is a command that is killed, with what is there before it.
type crashPhase struct {
	name    string
	base    string // directory of the plane to start from
	asm     *assembly.Assembly
	command runlog.Command
	// again is what is deployed after the crash.
	again *assembly.Assembly
	// steps are those of an undisturbed run, done what it makes the sandbox do.
	steps []string
	done  map[string]int
}

// TestDeployAfterACrashFinishesAndDuplicatesNothing kills a process after the sandbox has done something and before
// that is recorded, before it is asked to, and between the engine's own writes; then it deploys again, with no
// special flag and without waiting for a lock or lease to end.
func TestDeployAfterACrashFinishesAndDuplicatesNothing(t *testing.T) {
	began := time.Now()
	operations := map[string]bool{}
	kills := 0
	for _, ph := range crashPhases(t) {
		for _, step := range killSteps(ph.steps) {
			kills++
			if strings.HasPrefix(step, "after ") {
				operations[ph.name+" "+step] = true
			}
			t.Run(ph.name+"/"+strings.ReplaceAll(step, "/", "-"), func(t *testing.T) {
				began := time.Now()
				killAndRepeat(t, ph, step)
				if took := time.Since(began); took > 20*time.Second {
					t.Errorf("it took %s: something was waited for", took)
				}
			})
		}
	}
	if len(operations) < 20 {
		t.Errorf("a process was killed after %d different operations, at least 20 are wanted", len(operations))
	}
	t.Logf("%d kills, %d of them after different operations had been committed, in %s", kills, len(operations), time.Since(began).Round(time.Second))
}

// crashOptions: a queue holds data, and it is to be replaced.
var crashOptions = run.Options{ForceStatefulRecreation: true}

// crashPhases runs the app's life once without a crash and keeps what stands between the commands.
func crashPhases(t *testing.T) []*crashPhase {
	v1, v2 := crashApp(t, 1), crashApp(t, 2)
	phases := []*crashPhase{
		{name: "first deploy", asm: v1, command: runlog.CommandDeploy, again: v1},
		{name: "change", asm: v2, command: runlog.CommandDeploy, again: v2},
		{name: "destroy", asm: v2, command: runlog.CommandDestroy, again: v2},
	}
	dir := t.TempDir()
	for _, ph := range phases {
		ph.base = t.TempDir()
		copyPlane(t, dir, ph.base)
		before := sandboxWork(t, dir)
		tr := &tracer{}
		p, err := trace(context.Background(), Options{Dir: dir}, tr)
		if err != nil {
			t.Fatal(err)
		}
		h := submit(t, p, ph.asm, run.Submission{Command: ph.command, Options: crashOptions})
		if h.Result != runlog.ResultSucceeded {
			t.Fatalf("%s without a crash: %s", ph.name, story(t, p, h))
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		ph.steps = tr.steps()
		ph.done = minus(sandboxWork(t, dir), before)
	}
	return phases
}

// killSteps chooses where to kill.
func killSteps(steps []string) []string {
	var out []string
	polls, befores, ops := 0, 0, 0
	for _, s := range steps {
		switch {
		case strings.HasPrefix(s, "after create "), strings.HasPrefix(s, "after update "), strings.HasPrefix(s, "after delete "):
			out = append(out, s)
		case strings.HasPrefix(s, "after poll "):
			if polls++; polls%3 == 1 {
				out = append(out, s)
			}
		case strings.HasPrefix(s, "before "):
			if befores++; befores%6 == 1 {
				out = append(out, s)
			}
		case strings.HasPrefix(s, "op "):
			if ops++; ops%9 == 1 {
				out = append(out, s)
			}
		case strings.HasPrefix(s, "event ") && !strings.HasSuffix(s, string(runlog.RunFinished)):
		default:
			out = append(out, s)
		}
	}
	return out
}

func killAndRepeat(t *testing.T, ph *crashPhase, step string) {
	dir := t.TempDir()
	copyPlane(t, ph.base, dir)
	before := sandboxWork(t, dir)
	crash(t, childSpec{Dir: dir, Assembly: ph.asm.Dir, Command: ph.command, Options: crashOptions, Die: step})

	p := openPlane(t, Options{Dir: dir})
	dead := newestRun(t, p)
	want := wantedResult(t, p, dead)
	h := submit(t, p, ph.asm, run.Submission{Command: ph.command, Options: crashOptions})
	if h.Result != runlog.ResultSucceeded {
		t.Fatalf("the next %s: %s", ph.command, story(t, p, h))
	}
	if got := minus(sandboxWork(t, dir), before); !maps.Equal(got, ph.done) {
		t.Errorf("both runs together have done something else than one without a crash:\n got %v\nwant %v", got, ph.done)
	}
	settled(t, p, "after the second run")
	if dead.RunID != "" {
		if was := header(t, p, dead.RunID); was.Result != want {
			t.Errorf("the dead run is %s, want %s", was.Result, want)
		}
	}
	if ph.command == runlog.CommandDestroy {
		destroyAll(t, p, ph.asm)
		return
	}
	sound(t, p, ph.asm, "after the second run")
	unchanged(t, p, ph.asm, "third run")
}

// TestACrashWhileTheDeadAreSettledIsSettledToo kills the process that settles a run of a dead one, at each of its
// writes and calls.
func TestACrashWhileTheDeadAreSettledIsSettledToo(t *testing.T) {
	change := crashPhases(t)[1]
	first := childSpec{Assembly: change.asm.Dir, Command: change.command, Options: crashOptions, Die: "after create Queue"}
	first.Dir = t.TempDir()
	copyPlane(t, change.base, first.Dir)
	before := sandboxWork(t, first.Dir)
	crash(t, first)

	// What the settling of it takes, until the next run begins.
	dir := t.TempDir()
	copyPlane(t, first.Dir, dir)
	tr := &tracer{}
	p, err := trace(context.Background(), Options{Dir: dir}, tr)
	if err != nil {
		t.Fatal(err)
	}
	if h := submit(t, p, change.asm, run.Submission{Command: change.command, Options: crashOptions}); h.Result != runlog.ResultSucceeded {
		t.Fatal(story(t, p, h))
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	steps := tr.steps()
	steps = steps[:slices.Index(steps, "put request.json")]
	if len(steps) < 8 {
		t.Fatalf("settling takes %d steps only: %v", len(steps), steps)
	}
	for _, step := range steps {
		t.Run(step, func(t *testing.T) {
			dir := t.TempDir()
			copyPlane(t, first.Dir, dir)
			second := first
			second.Dir, second.Die = dir, step
			crash(t, second)
			p := openPlane(t, Options{Dir: dir})
			h := submit(t, p, change.asm, run.Submission{Command: change.command, Options: crashOptions})
			if h.Result != runlog.ResultSucceeded {
				t.Fatalf("the third deploy: %s", story(t, p, h))
			}
			if got := minus(sandboxWork(t, dir), before); !maps.Equal(got, change.done) {
				t.Errorf("all runs together have done something else than one without a crash:\n got %v\nwant %v", got, change.done)
			}
			sound(t, p, change.asm, "after the third deploy")
			unchanged(t, p, change.asm, "fourth deploy")
		})
	}
}

// TestACrashWhileRollingBackIsFinishedByTheNextDeploy kills a process at the steps by which a failed change is undone.
func TestACrashWhileRollingBackIsFinishedByTheNextDeploy(t *testing.T) {
	change := crashPhases(t)[1]
	const fault = "create New"
	dir := t.TempDir()
	copyPlane(t, change.base, dir)
	tr := &tracer{}
	p, err := trace(context.Background(), Options{Dir: dir, WrapProvider: failing(fault)}, tr)
	if err != nil {
		t.Fatal(err)
	}
	if h := submit(t, p, change.asm, run.Submission{Command: change.command, Options: crashOptions}); h.Result != runlog.ResultFailed {
		t.Fatalf("a deploy that fails at %q is %s", fault, h.Result)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	steps := tr.steps()
	steps = steps[slices.Index(steps, "put rollback.json"):]
	for _, step := range killSteps(steps) {
		t.Run(step, func(t *testing.T) {
			dir := t.TempDir()
			copyPlane(t, change.base, dir)
			crash(t, childSpec{Dir: dir, Assembly: change.asm.Dir, Command: change.command, Options: crashOptions, Fail: fault, Die: step})
			p := openPlane(t, Options{Dir: dir})
			h := submit(t, p, change.asm, run.Submission{Command: change.command, Options: crashOptions})
			if h.Result != runlog.ResultSucceeded {
				t.Fatalf("the next deploy: %s", story(t, p, h))
			}
			sound(t, p, change.asm, "after the next deploy")
			unchanged(t, p, change.asm, "third deploy")
			destroyAll(t, p, change.asm)
		})
	}
}

// wantedResult is how a run has to end whose process has died: FAILED, or as it has told before it died.
func wantedResult(t *testing.T, p *Plane, dead runlog.Header) runlog.Result {
	t.Helper()
	events, err := p.Log().Events(context.Background(), dead.RunID, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, ev := range events {
		if ev.Type == runlog.RunFinished {
			return ev.Result
		}
	}
	return runlog.ResultFailed
}

func header(t *testing.T, p *Plane, runID string) runlog.Header {
	t.Helper()
	h, err := p.Log().Header(context.Background(), runID)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// newestRun is the deployment that was submitted last; the zero header when there is none.
func newestRun(t *testing.T, p *Plane) runlog.Header {
	t.Helper()
	runs, err := p.Log().ListRuns(context.Background(), runlog.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range runs {
		if h.Kind == runlog.KindDeployment {
			return h
		}
	}
	return runlog.Header{}
}

// copyPlane copies the files of a plane that nobody has open.
func copyPlane(t *testing.T, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

// sandboxWork counts what the sandbox has done: its successful requests, by operation and type, and the invocations
// of custom resource handlers.
func sandboxWork(t *testing.T, dir string) map[string]int {
	t.Helper()
	done := map[string]int{}
	file := filepath.Join(dir, sandbox.DatabaseName)
	if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) {
		return done
	}
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(20000)")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	rows, err := db.Query(`SELECT operation || ' ' || type, count(*) FROM requests WHERE status = 'SUCCESS' GROUP BY 1
		UNION ALL SELECT 'invocation of a custom resource', count(*) FROM responses`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close() //nolint:errcheck // Err tells
	for rows.Next() {
		var what string
		var n int
		if err := rows.Scan(&what, &n); err != nil {
			t.Fatal(err)
		}
		done[what] = n
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return done
}

func minus(a, b map[string]int) map[string]int {
	out := map[string]int{}
	for _, k := range slices.Sorted(maps.Keys(a)) {
		if n := a[k] - b[k]; n != 0 {
			out[k] = n
		}
	}
	return out
}
