package run_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/asset"
	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/objectstore"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/state"
)

const (
	account = "111111111111"
	region  = "eu-west-1"
	caller  = "me@host"
)

// world is everything around an engine, and the engine.
type world struct {
	testing.TB
	clk     *clock.Fake
	objects *memObjects
	log     *memLog
	faults  *faults
	cloud   *cloud
	states  *state.Store // without faults
	engine  *run.Engine
	runs    int
	// machines are the executions, by name.
	machines map[string]*machine
	// unstartable executions can't be started, for the reason that is given if one is; vanishing ones are lost after the start.
	unstartable map[string]run.Refusal
	// deadHolders are processes that are known to be dead.
	deadHolders map[string]bool
	// published counts the publications of assets; unpublishable assets fail.
	published map[string]int
	// outcome is what becomes of every asset, nil: it is published.
	outcome       *asset.Outcome
	unpublishable map[string]error
	ssm           map[string]string
}

func newWorld(t testing.TB) *world {
	w := &world{
		TB: t, clk: clock.NewFake(time.Date(2026, 11, 29, 21, 0, 0, 0, time.UTC)), objects: newObjects(), log: newLog(), faults: &faults{},
		machines: map[string]*machine{}, unstartable: map[string]run.Refusal{}, deadHolders: map[string]bool{},
		published: map[string]int{}, unpublishable: map[string]error{}, ssm: map[string]string{},
	}
	w.clk.AutoAdvance = true
	w.cloud = newCloud(w.clk)
	w.states = &state.Store{Objects: w.objects, Clock: w.clk}
	w.engine = w.process("process-1")
	return w
}

// process is an engine in another process.
func (w *world) process(holder string) *run.Engine {
	objects := faultyObjects{w.objects, w.faults}
	return &run.Engine{
		Objects: objects, Log: faultyLog{w.log, w.faults}, States: &state.Store{Objects: objects, Clock: w.clk},
		Clock: w.clk, Providers: w.cloud, Assets: w, Facts: w, Executions: w, Holder: holder,
	}
}

// Running implements run.Executions.
func (w *world) Running(_ context.Context, name string) (bool, error) {
	m := w.machines[name]
	return m != nil && !m.ended, nil
}

// HolderAlive implements run.Executions.
func (w *world) HolderAlive(_ context.Context, holder string) bool { return !w.deadHolders[holder] }

// Zones implements run.Facts.
func (w *world) Zones(context.Context, string, string) ([]string, error) {
	return []string{region + "a", region + "b"}, nil
}

// SSMParameter implements run.Facts.
func (w *world) SSMParameter(_ context.Context, _, _, name string) (string, error) {
	if v, ok := w.ssm[name]; ok {
		return v, nil
	}
	return "", errors.New("there is no such parameter")
}

// Publish implements run.Publisher.
func (w *world) Publish(_ context.Context, a assembly.Asset, _ asset.Env) (asset.Outcome, error) {
	w.published[a.ID]++
	if err := w.unpublishable[a.ID]; err != nil {
		return asset.Outcome{}, err
	}
	if w.outcome != nil {
		return *w.outcome, nil
	}
	return asset.Outcome{Status: asset.Published}, nil
}

// object is a JSON object.
type object = map[string]any

func ref(id string) object          { return object{"Ref": id} }
func att(id, name string) object    { return object{"Fn::GetAtt": []any{id, name}} }
func importOf(export string) object { return object{"Fn::ImportValue": export} }

func topic(properties object) object {
	return object{"Type": "AWS::SNS::Topic", "Properties": properties}
}

func queue(properties object) object {
	return object{"Type": "AWS::SQS::Queue", "Properties": properties}
}

// resources is a template of these resources.
func resources(r object) object { return object{"Resources": r} }

// store puts a template where a request finds it.
func (w *world) store(template object) string {
	w.Helper()
	body, err := json.Marshal(template)
	if err != nil {
		w.Fatal(err)
	}
	key := run.TemplateKey(fmt.Sprintf("%x", sha256.Sum256(body)))
	if _, err := w.objects.Put(context.Background(), key, body, objectstore.Condition{}); err != nil {
		w.Fatal(err)
	}
	return key
}

// order is what a test asks for.
type order struct {
	stack    string
	command  runlog.Command
	template object
	options  run.Options
	change   func(*run.Request)
}

func (w *world) newRunID() string {
	w.runs++
	w.clk.Advance(time.Second)
	return fmt.Sprintf("20261129T2100%05dZ-%08x", w.runs, w.runs)
}

// submit requests a run of one stack and makes its execution.
func (w *world) submit(o order) *machine {
	w.Helper()
	id := w.newRunID()
	req := run.Request{
		Version: run.RequestVersion, RunID: id, Command: o.command, Caller: caller, Region: region, Options: o.options, CreatedAt: w.clk.Now(),
		Stacks: []run.StackRequest{{StackRef: stackRef(o.stack), DisplayName: o.stack}},
	}
	if o.template != nil {
		req.Stacks[0].TemplateKey = w.store(o.template)
	}
	if o.change != nil {
		o.change(&req)
	}
	w.put("slipway/runs/"+id+"/request.json", req)
	h := runlog.Header{
		RunID: id, Kind: runlog.KindStack, Command: o.command, Stack: stackRef(o.stack), Root: id, Owner: state.Owner(caller, id),
		Status: runlog.StatusNew, CreatedAt: w.clk.Now(),
	}
	h.Execution = run.ExecutionName(o.stack, o.command, id)
	if _, err := w.log.CreateRun(context.Background(), h); err != nil {
		w.Fatal(err)
	}
	return w.start(h.Execution, id)
}

func (w *world) put(key string, v any) {
	w.Helper()
	body, err := json.Marshal(v)
	if err != nil {
		w.Fatal(err)
	}
	if _, err := w.objects.Put(context.Background(), key, body, objectstore.Condition{}); err != nil {
		w.Fatal(err)
	}
}

// lock puts a lock as another tool writes it.
func (w *world) lock(stack, body string) {
	w.Helper()
	w.putRaw(w.states.LockKey(stack, region), body)
}

func (w *world) putRaw(key, body string) {
	w.Helper()
	if _, err := w.objects.Put(context.Background(), key, []byte(body), objectstore.Condition{}); err != nil {
		w.Fatal(err)
	}
}

func stackRef(name string) runlog.StackRef {
	return runlog.StackRef{Account: account, Region: region, Name: name}
}

// deploy runs a deploy of the stack "App" to its end.
func (w *world) deploy(template object, options ...func(*run.Options)) runlog.Header {
	w.Helper()
	return w.finish(w.submitDeploy(template, options...))
}

func (w *world) submitDeploy(template object, options ...func(*run.Options)) *machine {
	w.Helper()
	o := order{stack: "App", command: runlog.CommandDeploy, template: template, options: run.Options{ForceStatefulRecreation: true}}
	for _, fn := range options {
		fn(&o.options)
	}
	return w.submit(o)
}

func noRollback(o *run.Options) { o.NoRollback = true }

func (w *world) destroy() runlog.Header {
	w.Helper()
	return w.finish(w.submit(order{stack: "App", command: runlog.CommandDestroy}))
}

// finish runs an execution, and those it starts, to the end, and returns the header.
func (w *world) finish(m *machine) runlog.Header {
	w.Helper()
	for i := 0; ; i++ {
		busy := false
		for _, name := range sortedNames(w.machines) {
			if !w.machines[name].ended {
				w.machines[name].step()
				busy = true
			}
		}
		if !busy {
			return w.header(m.runID)
		}
		if i > 20000 {
			w.Fatalf("run %s does not come to an end: %s", m.runID, w.story(m.runID))
		}
	}
}

func (w *world) header(runID string) runlog.Header {
	w.Helper()
	h, err := w.log.Header(context.Background(), runID)
	if err != nil {
		w.Fatal(err)
	}
	return h
}

// settle asks the janitor until the run is settled, and returns how long it was to wait.
func (w *world) settle(e *run.Engine, runID string) time.Duration {
	w.Helper()
	var waited time.Duration
	for range 1000 {
		var s run.Settled
		if err := w.call(e.HandleJanitor, run.SettleInput{Action: run.ActionSettle, RunID: runID}, &s); err != nil {
			w.faults.revive()
			w.clk.Advance(time.Second)
			continue
		}
		if s.Settled {
			return waited
		}
		waited += time.Duration(s.Seconds) * time.Second
		w.clk.Advance(time.Duration(s.Seconds) * time.Second)
	}
	w.Fatalf("run %s is not settled: %s", runID, w.story(runID))
	return 0
}

// call invokes a handler with JSON, as Lambda does.
func (w *world) call(handler func(context.Context, []byte) ([]byte, error), in, out any) error {
	w.Helper()
	payload, err := json.Marshal(in)
	if err != nil {
		w.Fatal(err)
	}
	answer, err := handler(context.Background(), payload)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(answer, out); err != nil {
		w.Fatal(err)
	}
	return nil
}

// request is what a run was asked to do.
func (w *world) request(runID string) run.Request {
	w.Helper()
	req, err := w.engine.Request(context.Background(), runID)
	if err != nil {
		w.Fatal(err)
	}
	return req
}

func sortedNames(machines map[string]*machine) []string { return slices.Sorted(maps.Keys(machines)) }

// record is the record of a stack, nil when there is none.
func (w *world) record(stack string) *state.Record {
	w.Helper()
	rec, _, err := w.states.Load(context.Background(), stack, region)
	if state.IsNotFound(err) {
		return nil
	}
	if err != nil {
		w.Fatal(err)
	}
	return rec
}

// pending lists the physical ids that wait for their cleanup.
func (w *world) pending(stack string) []string {
	w.Helper()
	c, _, err := w.states.LoadSidecar(context.Background(), stack, region)
	if state.IsNotFound(err) {
		return nil
	}
	if err != nil {
		w.Fatal(err)
	}
	var out []string
	for _, old := range c.Pending(w.record(stack)) {
		out = append(out, old.Resource.PhysicalID)
	}
	slices.Sort(out)
	return out
}

func (w *world) journal(stack string) *state.Journal {
	w.Helper()
	j, _, err := w.states.LoadJournal(context.Background(), stack, region)
	if state.IsNotFound(err) {
		return nil
	}
	if err != nil {
		w.Fatal(err)
	}
	return j
}

// stripped is a JSON file without what differs from run to run: times, run ids, the order in which operations
// end.
func stripped(t testing.TB, body []byte) string {
	t.Helper()
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatal(err)
	}
	strip(v)
	out, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func logicalID(v any) string {
	m, _ := v.(map[string]any)
	id, _ := m["logicalId"].(string)
	return id
}

func strip(v any) {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range []string{"lastModified", "timestamp", "runId", "since"} {
			delete(v, name)
		}
		for _, x := range v {
			strip(x)
		}
	case []any:
		for _, x := range v {
			strip(x)
		}
		slices.SortStableFunc(v, func(a, b any) int { return strings.Compare(logicalID(a), logicalID(b)) })
	}
}

// story is what a run has told, for a failing test.
func (w *world) story(runID string) string {
	events, err := w.log.Events(context.Background(), runID, "")
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for _, ev := range events {
		fmt.Fprintf(&b, "\n  %s %s %s %s", ev.ID, ev.Action, ev.Result, ev.Message)
		if ev.Error != nil {
			fmt.Fprintf(&b, " %s: %s", ev.Error.Code, ev.Error.Message)
		}
		if ev.Failure != nil {
			fmt.Fprintf(&b, " %+v", *ev.Failure)
		}
	}
	h, _ := w.log.Header(context.Background(), runID)
	for _, d := range h.Diagnostics {
		fmt.Fprintf(&b, "\n  %s", d.Error())
	}
	return b.String()
}

// events lists the events of a type.
func (w *world) events(runID string, t runlog.EventType) []runlog.Event {
	w.Helper()
	all, err := w.log.Events(context.Background(), runID, "")
	if err != nil {
		w.Fatal(err)
	}
	return slices.DeleteFunc(all, func(ev runlog.Event) bool { return ev.Type != t })
}

// sound checks what must hold after every run, however it has ended: it is closed, has told its end once and
// truly, and the stack's lock is free.
func (w *world) sound(runID string) {
	w.Helper()
	w.told(runID)
	stack := w.header(runID).Stack.Name
	if lock, err := w.states.ReadLock(context.Background(), stack, region); stack != "" && err == nil {
		w.Errorf("stack %s is still locked by %s", stack, lock.Owner)
	}
}

// told checks the end of a run that does not have the lock.
func (w *world) told(runID string) {
	w.Helper()
	h := w.header(runID)
	if h.Status != runlog.StatusClosed || h.Result == "" {
		w.Errorf("run %s is %s with result %q", runID, h.Status, h.Result)
	}
	ends := w.events(runID, runlog.RunFinished)
	if len(ends) != 1 || ends[0].Result != h.Result || *ends[0].Counts != h.Counts {
		w.Errorf("run %s is %s %+v and has told its end as %+v", runID, h.Result, h.Counts, ends)
	}
}

// accounted checks that record, cleanup list and cloud agree on what there is, over all the stacks.
func (w *world) accounted(stacks ...string) {
	w.Helper()
	named := map[string]bool{}
	for _, stack := range stacks {
		if rec := w.record(stack); rec != nil {
			for id, r := range rec.Resources {
				named[r.PhysicalID] = true
				if _, live := w.cloud.live[r.PhysicalID]; !live {
					w.Errorf("%s is recorded as %s, which does not exist", id, r.PhysicalID)
				}
			}
			for _, o := range rec.Orphans {
				named[o.Resource.PhysicalID] = true
			}
		}
		for _, id := range w.pending(stack) {
			named[id] = true
		}
	}
	for _, call := range slices.Concat(w.cloud.steps("update"), w.cloud.steps("delete")) {
		if call.physicalID == "" {
			w.Errorf("%s was called for no resource at all", call.step)
		}
	}
	for _, id := range w.cloud.exists() {
		if !named[id] {
			w.Errorf("%s exists and nothing names it", id)
		}
	}
}
