package local

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipway-cdk/slipway/examples/gen"
	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/sandbox"
)

// corpus is where real assemblies stand that are not part of this repository.
const corpus = "../../../shared/corpus/assemblies"

// notDeployable names the corpus assemblies that do not deploy, each with the reason.
var notDeployable = map[string]string{}

func TestRealAssembliesDeployRedeployAndDestroy(t *testing.T) {
	dirs, err := filepath.Glob(filepath.Join(corpus, "*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(dirs) == 0 {
		t.Skip("the corpus of real assemblies is not here: " + corpus)
	}
	t.Logf("%-72s %5s %7s %8s  %s", "assembly", "made", "checked", "time", "outcome")
	deployed := 0
	for _, dir := range dirs {
		name := filepath.Base(dir)
		t.Run(name, func(t *testing.T) {
			why, listed := notDeployable[name]
			r := roundTrip(t, dir)
			switch {
			case r.problem == "" && listed:
				t.Errorf("it deploys, but is listed as not deployable: %s", why)
			case r.problem != "" && !listed:
				t.Error(r.problem)
			case r.problem == "":
				deployed++
			}
			outcome := "deployed"
			if listed {
				outcome = why
			}
			t.Logf("%-72s %5d %7d %8s  %s", name, r.created, r.checked, r.took.Round(time.Millisecond), outcome)
		})
	}
	t.Logf("%d of %d deployed", deployed, len(dirs))
}

func TestGeneratedAssembliesDeployRedeployAndDestroy(t *testing.T) {
	specs, err := gen.Assemblies(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if len(specs) < 30 {
		t.Fatalf("%d assemblies were generated, at least 30 are wanted", len(specs))
	}
	for _, spec := range specs {
		t.Run(spec.Name, func(t *testing.T) {
			r := roundTrip(t, spec.Dir)
			if r.problem != "" {
				t.Error(r.problem)
			}
			t.Logf("%-40s %5d made %6d checked %8s", spec.Name, r.created, r.checked, r.took.Round(time.Millisecond))
		})
	}
}

type tripResult struct {
	created, checked int
	took             time.Duration
	problem          string
}

// roundTrip deploys an assembly, checks what lives, deploys it again and destroys it.
func roundTrip(t *testing.T, dir string) tripResult {
	t.Helper()
	began := time.Now()
	asm, err := assembly.Read(dir)
	if err != nil {
		return tripResult{problem: "reading it: " + err.Error()}
	}
	p := openPlane(t, Options{Dir: t.TempDir()})
	r := tripResult{}
	h := submit(t, p, asm, run.Submission{Command: runlog.CommandDeploy})
	if h.Result != runlog.ResultSucceeded {
		return tripResult{problem: "first deploy: " + story(t, p, h)}
	}
	r.created = h.Counts.Created
	for _, s := range asm.Stacks {
		c := checkStack(t, p, s)
		r.checked += c.checked
		if len(c.problems) > 0 {
			r.problem = strings.Join(c.problems, "\n")
			return r
		}
	}
	h = submit(t, p, asm, run.Submission{Command: runlog.CommandDeploy})
	if c := h.Counts; h.Result != runlog.ResultSucceeded || c.Created+c.Updated+c.Replaced+c.Deleted+c.Failed+c.Skipped != 0 {
		r.problem = "second deploy is not without changes: " + story(t, p, h)
		return r
	}
	h = submit(t, p, asm, run.Submission{Command: runlog.CommandDestroy, Options: run.Options{DeleteRetained: true}})
	if h.Result != runlog.ResultSucceeded {
		r.problem = "destroy: " + story(t, p, h)
		return r
	}
	left, err := p.Sandbox().List(context.Background(), sandbox.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	if len(left) != 0 {
		r.problem = "destroy has left:"
		for _, l := range left {
			r.problem += " " + l.Type + " " + l.Identifier
		}
	}
	r.took = time.Since(began)
	return r
}

func openPlane(t *testing.T, opts Options) *Plane {
	t.Helper()
	p, err := Open(context.Background(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// submit runs one command over every stack of an assembly and waits for its end.
func submit(t *testing.T, p *Plane, asm *assembly.Assembly, sub run.Submission) runlog.Header {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	sub.Caller = "test@host"
	id, err := p.Submit(ctx, asm, asm.Stacks, sub)
	if err != nil {
		t.Fatal(err)
	}
	h, err := p.Wait(ctx, id)
	if err != nil {
		t.Fatalf("waiting for run %s: %v", id, err)
	}
	return h
}

// story tells why a run ended as it did.
func story(t *testing.T, p *Plane, h runlog.Header) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(string(h.Result))
	for _, d := range h.Diagnostics {
		b.WriteString("\n  " + d.Error())
	}
	runs, err := p.Log().ListRuns(context.Background(), runlog.Filter{Root: h.RunID})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range runs {
		for _, d := range r.Diagnostics {
			b.WriteString("\n  " + d.Error())
		}
		events, err := p.Log().Events(context.Background(), r.RunID, "")
		if err != nil {
			t.Fatal(err)
		}
		for _, ev := range events {
			if ev.Error != nil {
				b.WriteString("\n  " + ev.Stack + "/" + ev.LogicalID + " " + ev.ResourceType + " " + ev.Action + ": " + ev.Error.Code + ": " + ev.Error.Message)
			}
		}
	}
	return b.String()
}

func TestMain(m *testing.M) {
	if fn := os.Getenv("SLIPWAY_TEST_CHILD"); fn != "" {
		os.Exit(child(fn))
	}
	os.Exit(m.Run())
}
