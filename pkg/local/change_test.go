package local

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-cdk/slipway/examples/gen"
	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/sandbox"
)

// kinds says how many resources of an assembly a deploy creates, updates, replaces and deletes.
type kinds struct{ created, updated, replaced, deleted int }

// changes are the kinds of change from the first version of each generated assembly up to its last and back.
// The first entry is the creation.
var changes = map[string][]kinds{
	// Updated in place; replaced for its name; renamed in the template; and back.
	"one-queue": {{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}, {1, 0, 0, 1}, {1, 0, 0, 1}, {0, 0, 1, 0}, {0, 1, 0, 0}},
	// The middle is replaced, which the two links that hold its name see; then the head's value changes, which
	// the second link, holding the head's name, does not see.
	"chain-10":          {{10, 0, 0, 0}, {0, 2, 1, 0}, {0, 1, 0, 0}, {0, 1, 0, 0}, {0, 2, 1, 0}},
	"diamond":           {{4, 0, 0, 0}, {1, 1, 0, 0}, {0, 1, 0, 1}},
	"fan-out-80":        {{80, 0, 0, 0}, {5, 0, 0, 10}, {10, 0, 0, 5}},
	"substitute":        {{10, 0, 0, 0}, {0, 1, 0, 0}, {0, 1, 0, 0}},
	"conditions":        {{4, 0, 0, 0}, {1, 3, 0, 1}, {1, 3, 0, 1}},
	"mappings":          {{5, 0, 0, 0}, {0, 2, 0, 0}, {0, 2, 0, 0}},
	"parameters":        {{9, 0, 0, 0}, {0, 2, 0, 0}, {0, 2, 0, 0}},
	"deletion-policies": {{5, 0, 0, 0}, {0, 0, 0, 3}, {3, 0, 0, 0}},
	// The role has no tags of its own and gets the stack's.
	"tags":            {{6, 0, 0, 0}, {0, 6, 0, 0}, {0, 6, 0, 0}},
	"unicode":         {{4, 0, 0, 0}, {0, 2, 0, 0}, {0, 2, 0, 0}},
	"deep-properties": {{5, 0, 0, 0}, {0, 1, 0, 0}, {0, 1, 0, 0}},
	"outputs":         {{1, 0, 0, 0}, {}, {}},
	"fixed-names":     {{7, 0, 0, 0}, {0, 0, 7, 0}, {0, 0, 7, 0}},
	"custom-resource": {{7, 0, 0, 0}, {0, 1, 0, 0}, {0, 1, 0, 0}},
	// New code, a new path of the route, and a permission, which can only be replaced.
	"http-api":   {{8, 0, 0, 0}, {0, 2, 1, 0}, {0, 2, 1, 0}},
	"workflow":   {{10, 0, 0, 0}, {0, 1, 0, 0}, {0, 1, 0, 0}},
	"two-stacks": {{5, 0, 0, 0}, {0, 1, 0, 0}},
}

// noWayBack names the assemblies whose first version can't follow their last: it takes away an export that the
// other stack imports until it is deployed itself, which CloudFormation refuses as well.
var noWayBack = map[string]string{"two-stacks": "the export TwoData:ExportsOutputRefBucket can't go in one deploy with its last use"}

func TestGeneratedAssembliesChangeAsTheirVersionsSay(t *testing.T) {
	specs, err := gen.Assemblies(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range specs {
		if spec.Versions < 2 {
			continue
		}
		t.Run(spec.Name, func(t *testing.T) {
			versions, want := upAndDown(spec.Versions), changes[spec.Name]
			refusal, oneWay := noWayBack[spec.Name]
			if oneWay {
				versions = versions[:spec.Versions]
			}
			if len(want) != len(versions) {
				t.Fatalf("the kinds of %d deploys are stated, %d are made", len(want), len(versions))
			}
			p := openPlane(t, Options{Dir: t.TempDir()})
			var asm *assembly.Assembly
			for i, v := range versions {
				asm = variant(t, spec.Name, v)
				before := liveKeys(t, p)
				h := submit(t, p, asm, run.Submission{
					Command: runlog.CommandDeploy, Options: run.Options{ForceStatefulRecreation: true},
				})
				where := fmt.Sprintf("deploy %d, of version %d", i+1, v)
				if h.Result != runlog.ResultSucceeded {
					t.Fatalf("%s: %s", where, story(t, p, h))
				}
				if got := kindsOf(h); got != want[i] || h.Counts.Failed+h.Counts.Skipped != 0 {
					t.Errorf("%s: counts %+v, want %+v", where, h.Counts, want[i])
				}
				after := liveKeys(t, p)
				gone, come := without(before, after), without(after, before)
				if g, c := want[i].deleted+want[i].replaced, want[i].created+want[i].replaced; len(gone) != g || len(come) != c {
					t.Errorf("%s: %d resources have gone and %d have come, want %d and %d:\n%s\n%s",
						where, len(gone), len(come), g, c, strings.Join(gone, "\n"), strings.Join(come, "\n"))
				}
				sound(t, p, asm, where)
				unchanged(t, p, asm, where)
			}
			if oneWay {
				h := submit(t, p, variant(t, spec.Name, 1), run.Submission{Command: runlog.CommandDeploy})
				if got := story(t, p, h); h.Result != runlog.ResultFailed || !strings.Contains(got, refusal) {
					t.Errorf("going back: %s", got)
				}
			}
			destroyAll(t, p, asm)
		})
	}
}

func kindsOf(h runlog.Header) kinds {
	return kinds{h.Counts.Created, h.Counts.Updated, h.Counts.Replaced, h.Counts.Deleted}
}

// upAndDown counts from 1 to n and back.
func upAndDown(n int) []int {
	var out []int
	for v := 1; v <= n; v++ {
		out = append(out, v)
	}
	for v := n - 1; v >= 1; v-- {
		out = append(out, v)
	}
	return out
}

// variant reads one version of a generated assembly.
func variant(t *testing.T, name string, v int) *assembly.Assembly {
	t.Helper()
	spec, err := gen.Variant(filepath.Join(t.TempDir(), fmt.Sprintf("%s-%d", name, v)), name, v)
	if err != nil {
		t.Fatal(err)
	}
	return readAssembly(t, spec.Dir)
}

func readAssembly(t *testing.T, dir string) *assembly.Assembly {
	t.Helper()
	asm, err := assembly.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	return asm
}

// sound checks what a finished deploy has left: every reference holds, what lives is what is recorded, every
// run is closed and told of once, and no lock stands.
func sound(t *testing.T, p *Plane, asm *assembly.Assembly, where string) {
	t.Helper()
	for _, s := range asm.Stacks {
		if c := checkStack(t, p, s); len(c.problems) > 0 {
			t.Errorf("%s: %s", where, strings.Join(c.problems, "\n"))
		}
	}
	settled(t, p, where)
}

// settled checks that nothing is half done, whatever has happened before.
func settled(t *testing.T, p *Plane, where string) {
	t.Helper()
	if d := liveDiffers(t, p); d != "" {
		t.Errorf("%s: %s", where, d)
	}
	ctx := context.Background()
	runs, err := p.Log().ListRuns(ctx, runlog.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range runs {
		if h.Status != runlog.StatusClosed {
			t.Errorf("%s: run %s (%s of %s%s) is %s", where, h.RunID, h.Command, h.Kind, h.Stack.Name, h.Status)
			continue
		}
		events, err := p.Log().Events(ctx, h.RunID, "")
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, ev := range events {
			if ev.Type == runlog.RunFinished {
				n++
				if ev.Result != h.Result {
					t.Errorf("%s: run %s is %s, its last event says %s", where, h.RunID, h.Result, ev.Result)
				}
			}
		}
		if n != 1 {
			t.Errorf("%s: run %s (%s of %s%s) has %d events that it has finished", where, h.RunID, h.Command, h.Kind, h.Stack.Name, n)
		}
		if h.Kind == runlog.KindStack {
			if locked, err := p.States().LockedRegions(ctx, h.Stack.Name); err != nil || len(locked) > 0 {
				t.Errorf("%s: a lock of %s stands in %v (%v)", where, h.Stack.Name, locked, err)
			}
		}
	}
}

// unchanged deploys once more and finds nothing to do.
func unchanged(t *testing.T, p *Plane, asm *assembly.Assembly, where string) {
	t.Helper()
	h := submit(t, p, asm, run.Submission{Command: runlog.CommandDeploy})
	if c := h.Counts; h.Result != runlog.ResultSucceeded || c.Created+c.Updated+c.Replaced+c.Deleted+c.Failed+c.Skipped != 0 {
		t.Errorf("%s: a redeploy is not without changes: %+v: %s", where, c, story(t, p, h))
	}
}

// destroyAll destroys the stacks of an assembly and checks that nothing is left: no resource, no record.
func destroyAll(t *testing.T, p *Plane, asm *assembly.Assembly) {
	t.Helper()
	h := submit(t, p, asm, run.Submission{Command: runlog.CommandDestroy, Options: run.Options{DeleteRetained: true}})
	if h.Result != runlog.ResultSucceeded {
		t.Errorf("destroy: %s", story(t, p, h))
	}
	if left := liveKeys(t, p); len(left) != 0 {
		t.Errorf("destroy has left %s", strings.Join(left, ", "))
	}
	refs, err := p.States().List(context.Background())
	if err != nil || len(refs) != 0 {
		t.Errorf("destroy has left the records of %v (%v)", refs, err)
	}
	settled(t, p, "destroy")
}

// liveKeys lists what lives in the sandbox, sorted.
func liveKeys(t *testing.T, p *Plane) []string {
	t.Helper()
	live, err := p.Sandbox().List(context.Background(), sandbox.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, r := range live {
		keys = append(keys, r.Region+" "+r.Type+" "+r.Identifier)
	}
	slices.Sort(keys)
	return keys
}

// without returns what of a is not in b.
func without(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return slices.Contains(b, s) })
}

// liveDiffers compares what lives in the sandbox with what all records hold. It returns "" when they are
// the same.
func liveDiffers(t *testing.T, p *Plane) string {
	t.Helper()
	ctx := context.Background()
	live, err := p.Sandbox().List(ctx, sandbox.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	recorded := map[string]int{}
	refs, err := p.States().List(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, ref := range refs {
		rec, _, err := p.States().Load(ctx, ref.Stack, ref.Region)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rec.Resources {
			recorded[ref.Region+" "+r.ResourceType+" "+r.PhysicalID]++
		}
	}
	var out []string
	for _, r := range live {
		region := r.Region
		if region == sandbox.GlobalRegion {
			for _, ref := range refs { // recorded under the region of its stack
				if recorded[ref.Region+" "+r.Type+" "+r.Identifier] > 0 {
					region = ref.Region
				}
			}
		}
		key := region + " " + r.Type + " " + r.Identifier
		if recorded[key] == 0 {
			out = append(out, "lives and is in no record: "+key)
		}
		recorded[key]--
	}
	for key, n := range recorded {
		if n > 0 {
			out = append(out, "is in a record and does not live: "+key)
		}
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}
