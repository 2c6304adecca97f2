package local

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/sandbox"
	"github.com/slipway-cdk/slipway/pkg/state"
)

// faults makes steps of resources fail and counts the calls.
type faults struct {
	mu sync.Mutex
	// fail is asked before every call of a step ("create Queue"), with the number of the call.
	fail  func(step string, nth int) *provider.Error
	calls map[string]int
}

func (f *faults) decorator() func(provider.Provider) provider.Provider {
	return through(func(step string, req provider.Request, call func() (provider.Progress, error)) (provider.Progress, error) {
		step += " " + req.LogicalID
		f.mu.Lock()
		if f.calls == nil {
			f.calls = map[string]int{}
		}
		f.calls[step]++
		var failure *provider.Error
		if f.fail != nil {
			failure = f.fail(step, f.calls[step])
		}
		f.mu.Unlock()
		if failure != nil {
			return provider.Progress{}, failure
		}
		return call()
	})
}

// on makes one step fail, every time, with a kind.
func (f *faults) on(step string, kind provider.Kind) {
	f.set(func(s string, _ int) *provider.Error {
		if s != step {
			return nil
		}
		return &provider.Error{Kind: kind, Code: string(kind), Message: "refused by the test"}
	})
}

// once makes the first call of a step fail.
func (f *faults) once(step string, kind provider.Kind) {
	f.set(func(s string, nth int) *provider.Error {
		if s != step || nth > 1 {
			return nil
		}
		return &provider.Error{Kind: kind, Code: string(kind), Message: "refused by the test"}
	})
}

func (f *faults) set(fail func(step string, nth int) *provider.Error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail, f.calls = fail, map[string]int{}
}

func (f *faults) called(step string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[step]
}

// world is everything that a command may change: the record of the stack and what lives.
type world struct {
	Record object
	Live   map[string]object
}

func worldOf(t *testing.T, p *Plane, stack string) world {
	t.Helper()
	ctx := context.Background()
	w := world{Live: map[string]object{}}
	rec, _, err := p.States().Load(ctx, stack, p.region)
	switch {
	case state.IsNotFound(err):
	case err != nil:
		t.Fatal(err)
	default:
		data, err := rec.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(data, &w.Record); err != nil {
			t.Fatal(err)
		}
		delete(w.Record, "lastModified")
	}
	live, err := p.Sandbox().List(ctx, sandbox.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range live {
		w.Live[r.Region+" "+r.Type+" "+r.Identifier] = r.Properties
	}
	return w
}

// reversibleApp changes as crashApp does, without what can't be undone.
func reversibleApp(t *testing.T, version int) *assembly.Assembly {
	templates := crashTemplates(version)
	resources := templates["Crash"]["Resources"].(object)
	delete(resources, "Routes")
	return writeApp(t, templates, nil)
}

func deployWith(t *testing.T, p *Plane, asm *assembly.Assembly, opts run.Options) runlog.Header {
	t.Helper()
	opts.ForceStatefulRecreation = true
	return submit(t, p, asm, run.Submission{Command: runlog.CommandDeploy, Options: opts})
}

// leftOver lists the files of a stack beside its record: lock, journal, sidecar.
func leftOver(t *testing.T, p *Plane, stack string) []string {
	t.Helper()
	infos, err := p.engine.Objects.List(context.Background(), "")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, i := range infos {
		if strings.Contains(i.Key, "/"+stack+"/") && !strings.HasSuffix(i.Key, "/state.json") && !strings.Contains(i.Key, "/deployments/") {
			out = append(out, i.Key)
		}
	}
	return out
}

func TestAFailedChangeIsRolledBackToWhatWasBefore(t *testing.T) {
	for _, step := range []string{
		"create New", "create Queue", "update Topic", "update Name", "update Policy", "update Function", "update Seed",
	} {
		t.Run(step, func(t *testing.T) {
			f := &faults{}
			p := openPlane(t, Options{Dir: t.TempDir(), WrapProvider: f.decorator()})
			v1, v2 := reversibleApp(t, 1), reversibleApp(t, 2)
			if h := deployWith(t, p, v1, run.Options{}); h.Result != runlog.ResultSucceeded {
				t.Fatal(story(t, p, h))
			}
			before := worldOf(t, p, "Crash")
			f.once(step, provider.KindInvalid)
			h := deployWith(t, p, v2, run.Options{})
			if h.Result != runlog.ResultFailed || h.Failure == nil {
				t.Fatalf("the deploy is %s with %v", h.Result, h.Failure)
			}
			if want := strings.Fields(step)[1]; h.Failure.LogicalID != want {
				t.Errorf("the failure names %q, want %q", h.Failure.LogicalID, want)
			}
			if d := cmp.Diff(before, worldOf(t, p, "Crash")); d != "" {
				t.Errorf("the rollback has not restored what was before (-before +after):\n%s\n%s", d, story(t, p, h))
			}
			settled(t, p, "after the rollback")
			unchanged(t, p, v1, "the old version after the rollback")
			f.set(nil)
			if h := deployWith(t, p, v2, run.Options{}); h.Result != runlog.ResultSucceeded {
				t.Fatalf("the change without the fault: %s", story(t, p, h))
			}
			sound(t, p, v2, "the change without the fault")
			destroyAll(t, p, v2)
		})
	}
}

func TestAFirstDeployThatFailsLeavesNothing(t *testing.T) {
	for _, step := range []string{"create Topic", "create Queue", "create Function", "create Policy", "create Seed", "create Seeded"} {
		t.Run(step, func(t *testing.T) {
			f := &faults{}
			f.on(step, provider.KindInvalid)
			p := openPlane(t, Options{Dir: t.TempDir(), WrapProvider: f.decorator()})
			asm := crashApp(t, 1)
			if h := deployWith(t, p, asm, run.Options{}); h.Result != runlog.ResultFailed {
				t.Fatalf("the deploy is %s", h.Result)
			}
			if w := worldOf(t, p, "Crash"); w.Record != nil || len(w.Live) > 0 {
				t.Errorf("left: the record %v, resources %v", w.Record != nil, slices.Sorted(maps.Keys(w.Live)))
			}
			if left := leftOver(t, p, "Crash"); len(left) > 0 {
				t.Errorf("files are left: %v", left)
			}
			settled(t, p, "after the rollback")
			f.set(nil)
			if h := deployWith(t, p, asm, run.Options{}); h.Result != runlog.ResultSucceeded {
				t.Fatalf("without the fault: %s", story(t, p, h))
			}
			sound(t, p, asm, "without the fault")
		})
	}
}

func TestWithoutRollbackTheNextDeployResumes(t *testing.T) {
	f := &faults{}
	f.on("create Function", provider.KindInvalid)
	dir := t.TempDir()
	p := openPlane(t, Options{Dir: dir, WrapProvider: f.decorator()})
	asm := crashApp(t, 1)
	h := deployWith(t, p, asm, run.Options{NoRollback: true})
	if h.Result != runlog.ResultFailed || h.Counts.Created == 0 || h.Counts.Failed != 1 || h.Counts.Skipped == 0 {
		t.Fatalf("the deploy is %s with %+v", h.Result, h.Counts)
	}
	w := worldOf(t, p, "Crash")
	if w.Record == nil || len(w.Live) != h.Counts.Created {
		t.Fatalf("%d resources live, %d were created, there is a record: %v", len(w.Live), h.Counts.Created, w.Record != nil)
	}
	settled(t, p, "after the failure")
	journal, _, err := p.States().LoadJournal(context.Background(), "Crash", p.region)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(journal.Segments); n != 1 || len(journal.Segments[0].Operations) != h.Counts.Created || len(journal.Segments[0].FailedOperations) != 1 {
		t.Errorf("the rollback journal has %d segments: %+v", n, journal.Segments)
	}
	before := sandboxWork(t, dir)
	f.set(nil)
	again := deployWith(t, p, asm, run.Options{})
	if again.Result != runlog.ResultSucceeded {
		t.Fatalf("the next deploy: %s", story(t, p, again))
	}
	total := len(crashTemplates(1)["Crash"]["Resources"].(object))
	if again.Counts.Created != total-h.Counts.Created || again.Counts.Updated+again.Counts.Replaced+again.Counts.Deleted != 0 {
		t.Errorf("the next deploy has %+v, %d of %d were there", again.Counts, h.Counts.Created, total)
	}
	creates := 0
	for what, n := range minus(sandboxWork(t, dir), before) {
		if strings.HasPrefix(what, "CREATE ") || strings.HasPrefix(what, "invocation ") {
			creates += n
		} else {
			t.Errorf("the next deploy has also made the sandbox do %s", what)
		}
	}
	if creates != again.Counts.Created {
		t.Errorf("the sandbox has created %d, want %d", creates, again.Counts.Created)
	}
	if _, _, err := p.States().LoadJournal(context.Background(), "Crash", p.region); !state.IsNotFound(err) {
		t.Errorf("the rollback journal still stands after a success: %v", err)
	}
	sound(t, p, asm, "after the next deploy")
	unchanged(t, p, asm, "third deploy")
}

func TestPassingFaultsAreRetried(t *testing.T) {
	for _, kind := range []provider.Kind{provider.KindThrottled, provider.KindUnavailable, provider.KindConflict} {
		t.Run(string(kind), func(t *testing.T) {
			f := &faults{}
			f.set(func(step string, nth int) *provider.Error {
				if nth > 2 || strings.HasPrefix(step, "read ") || strings.HasPrefix(step, "poll ") {
					return nil
				}
				return &provider.Error{Kind: kind, Code: string(kind), Message: "not now"}
			})
			p := openPlane(t, Options{Dir: t.TempDir(), WrapProvider: f.decorator()})
			asm := crashApp(t, 1)
			h := deployWith(t, p, asm, run.Options{})
			if h.Result != runlog.ResultSucceeded {
				t.Fatal(story(t, p, h))
			}
			for id := range crashTemplates(1)["Crash"]["Resources"].(object) {
				if n := f.called("create " + id); n != 3 {
					t.Errorf("%s was tried %d times, want 3", id, n)
				}
				if n := countEvents(t, p, h, id, runlog.OpRetry); n != 2 {
					t.Errorf("%d events tell that %s is tried again, want 2", n, id)
				}
			}
			sound(t, p, asm, "deploy")
			f.set(nil)
			destroyAll(t, p, asm)
		})
	}
}

func TestLastingFaultsFail(t *testing.T) {
	for kind, tries := range map[provider.Kind]int{
		provider.KindAccessDenied: 1, provider.KindInvalid: 1, provider.KindAlreadyExists: 1, provider.KindFailed: 1, provider.KindThrottled: 12,
	} {
		t.Run(string(kind), func(t *testing.T) {
			f := &faults{}
			f.on("create Queue", kind)
			p := openPlane(t, Options{Dir: t.TempDir(), WrapProvider: f.decorator()})
			h := deployWith(t, p, crashApp(t, 1), run.Options{})
			if h.Result != runlog.ResultFailed || h.Failure == nil || h.Failure.LogicalID != "Queue" || !strings.Contains(h.Failure.Detail, string(kind)) {
				t.Fatalf("the deploy is %s with %+v", h.Result, h.Failure)
			}
			if n := f.called("create Queue"); n != tries {
				t.Errorf("it was tried %d times, want %d", n, tries)
			}
			if n := countEvents(t, p, h, "Queue", runlog.OpFail); n != 1 {
				t.Errorf("%d events tell of the failure, want 1", n)
			}
			if left := liveKeys(t, p); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
			settled(t, p, "after the failure")
		})
	}
}

func TestADeletionThatFailsLeavesTheRestToTheNextDestroy(t *testing.T) {
	for _, kind := range []provider.Kind{provider.KindAccessDenied, provider.KindDependencyViolation} {
		t.Run(string(kind), func(t *testing.T) {
			f := &faults{}
			p := openPlane(t, Options{Dir: t.TempDir(), WrapProvider: f.decorator()})
			asm := crashApp(t, 1)
			if h := deployWith(t, p, asm, run.Options{}); h.Result != runlog.ResultSucceeded {
				t.Fatal(story(t, p, h))
			}
			f.on("delete Role", kind)
			h := submit(t, p, asm, run.Submission{Command: runlog.CommandDestroy})
			if h.Result != runlog.ResultPartial || h.Failure == nil || h.Failure.LogicalID != "Role" {
				t.Fatalf("the destroy is %s with %+v", h.Result, h.Failure)
			}
			rec, _, err := p.States().Load(context.Background(), "Crash", p.region)
			if err != nil {
				t.Fatal(err)
			}
			if got := slices.Sorted(maps.Keys(rec.Resources)); !slices.Equal(got, []string{"Role"}) {
				t.Errorf("the record holds %v, want the role alone", got)
			}
			settled(t, p, "after the destroy")
			f.set(nil)
			destroyAll(t, p, asm)
			if left := leftOver(t, p, "Crash"); len(left) > 0 {
				t.Errorf("files are left: %v", left)
			}
		})
	}
}

func TestACleanupThatFailsIsMadeUpForByTheNextDeploy(t *testing.T) {
	f := &faults{}
	p := openPlane(t, Options{Dir: t.TempDir(), WrapProvider: f.decorator()})
	v1, v2 := crashApp(t, 1), crashApp(t, 2)
	if h := deployWith(t, p, v1, run.Options{}); h.Result != runlog.ResultSucceeded {
		t.Fatal(story(t, p, h))
	}
	f.set(func(step string, _ int) *provider.Error {
		if strings.HasPrefix(step, "delete Queue") || step == "delete Gone" {
			return &provider.Error{Kind: provider.KindAccessDenied, Code: "AccessDenied", Message: "refused by the test"}
		}
		return nil
	})
	h := deployWith(t, p, v2, run.Options{})
	if h.Result != runlog.ResultPartial || h.Counts.Failed != 2 {
		t.Fatalf("the deploy is %s with %+v: %s", h.Result, h.Counts, story(t, p, h))
	}
	f.set(nil)
	if h := deployWith(t, p, v2, run.Options{}); h.Result != runlog.ResultSucceeded {
		t.Fatalf("the next deploy: %s", story(t, p, h))
	}
	sound(t, p, v2, "the next deploy")
	unchanged(t, p, v2, "third deploy")
	destroyAll(t, p, v2)
}

// TestARollbackThatFailsTooTellsWhatIsThere: the fault lasts, and hits the undoing as well.
func TestARollbackThatFailsTooTellsWhatIsThere(t *testing.T) {
	f := &faults{}
	p := openPlane(t, Options{Dir: t.TempDir(), WrapProvider: f.decorator()})
	v1, v2 := reversibleApp(t, 1), reversibleApp(t, 2)
	if h := deployWith(t, p, v1, run.Options{}); h.Result != runlog.ResultSucceeded {
		t.Fatal(story(t, p, h))
	}
	f.on("update Function", provider.KindAccessDenied)
	h := deployWith(t, p, v2, run.Options{})
	if h.Result != runlog.ResultFailed || h.Failure == nil || h.Failure.LogicalID != "Function" {
		t.Fatalf("the deploy is %s with %+v", h.Result, h.Failure)
	}
	if len(warningsAbout(t, p, h, "Function")) == 0 {
		t.Errorf("no warning says that the function could not be put back: %s", story(t, p, h))
	}
	if _, _, err := p.States().LoadJournal(context.Background(), "Crash", p.region); err != nil {
		t.Errorf("the rollback journal is gone although the rollback is not complete: %v", err)
	}
	f.set(nil)
	if h := deployWith(t, p, v2, run.Options{}); h.Result != runlog.ResultSucceeded {
		t.Fatalf("the next deploy: %s", story(t, p, h))
	}
	sound(t, p, v2, "the next deploy")
	unchanged(t, p, v2, "third deploy")
	destroyAll(t, p, v2)
}

// warningsAbout lists what the runs of a deployment say of a resource.
func warningsAbout(t *testing.T, p *Plane, h runlog.Header, logicalID string) []string {
	t.Helper()
	runs, err := p.Log().ListRuns(context.Background(), runlog.Filter{Root: h.RunID})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, r := range runs {
		for _, d := range r.Diagnostics {
			if d.LogicalID == logicalID {
				out = append(out, d.Error())
			}
		}
	}
	return out
}

// TestAReplacementThatHadToDeleteFirstIsMadeAgain: its rollback deletes the new half and makes the old one again.
func TestAReplacementThatHadToDeleteFirstIsMadeAgain(t *testing.T) {
	f := &faults{}
	p := openPlane(t, Options{Dir: t.TempDir(), WrapProvider: f.decorator()})
	v1 := crashApp(t, 1)
	templates := crashTemplates(2)
	with(templates["Crash"]["Resources"].(object)["New"].(object), "DependsOn", "Routes")
	v2 := writeApp(t, templates, nil)
	if h := deployWith(t, p, v1, run.Options{}); h.Result != runlog.ResultSucceeded {
		t.Fatal(story(t, p, h))
	}
	before := worldOf(t, p, "Crash")
	f.on("create New", provider.KindInvalid)
	h := deployWith(t, p, v2, run.Options{})
	if h.Result != runlog.ResultFailed {
		t.Fatalf("the deploy is %s", h.Result)
	}
	properties := func(w world) any { return w.Record["resources"].(object)["Routes"].(object)["properties"] }
	if d := cmp.Diff(properties(before), properties(worldOf(t, p, "Crash"))); d != "" {
		t.Errorf("Routes (-before +after):\n%s\n%s", d, story(t, p, h))
	}
	if said := warningsAbout(t, p, h, "Routes"); len(said) > 0 {
		t.Errorf("warnings %v", said)
	}
	settled(t, p, "after the rollback")
	f.set(nil)
	for _, asm := range []*assembly.Assembly{v1, v2} {
		if h := deployWith(t, p, asm, run.Options{}); h.Result != runlog.ResultSucceeded {
			t.Fatal(story(t, p, h))
		}
		sound(t, p, asm, "after the rollback")
	}
	destroyAll(t, p, v2)
}

// countEvents counts the events of one type about a resource in all runs of a deployment.
func countEvents(t *testing.T, p *Plane, h runlog.Header, logicalID string, typ runlog.EventType) int {
	t.Helper()
	ctx := context.Background()
	runs, err := p.Log().ListRuns(ctx, runlog.Filter{Root: h.RunID})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, r := range runs {
		events, err := p.Log().Events(ctx, r.RunID, "")
		if err != nil {
			t.Fatal(err)
		}
		for _, ev := range events {
			if ev.LogicalID == logicalID && ev.Type == typ {
				n++
			}
		}
	}
	return n
}
