package plan

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/diff"
	"github.com/slipway-cdk/slipway/pkg/intrinsic"
	"github.com/slipway-cdk/slipway/pkg/state"
	"github.com/slipway-cdk/slipway/pkg/template"
)

// run carries a plan out without a failure and counts its waves.
func run(t *testing.T, p Plan) (waves int) {
	t.Helper()
	st := map[string]OpState{}
	for {
		w := Next(p, st, Options{Now: start})
		if w.Done {
			break
		}
		waves++
		for _, id := range w.Start {
			st[id] = OpState{Status: StatusSucceeded}
		}
		if len(w.Start) == 0 || len(w.Skip) > 0 {
			t.Fatalf("stuck with %d of %d done: %s", len(st), len(p.Operations), render(w))
		}
	}
	if len(st) != len(p.Operations) {
		t.Fatalf("%d of %d operations have run", len(st), len(p.Operations))
	}
	return waves
}

// TestCorpusPlans: the creation of every real stack, and its destruction, can be carried out to the end.
func TestCorpusPlans(t *testing.T) {
	files, err := filepath.Glob("../../../shared/corpus/assemblies/*/*.template.json")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Skip("the corpus is not beside the repository")
	}
	for _, file := range files {
		t.Run(filepath.Base(filepath.Dir(file)), func(t *testing.T) {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			tmpl, err := template.Parse(source)
			if err != nil {
				t.Fatal(err)
			}
			facts := map[string]any{}
			for _, name := range template.SSMParameters(tmpl, nil) {
				facts[template.SSMFact(name)] = "fact"
			}
			parameters, diags := tmpl.BindParameters(nil, facts)
			if diags.HasErrors() {
				t.Fatal(diags)
			}
			pseudo := intrinsic.PseudoFor("123456789012", "eu-west-1", "Demo")
			conditions, diags := intrinsic.EvaluateConditions(tmpl, parameters, pseudo)
			if diags.HasErrors() {
				t.Fatal(diags)
			}
			scope := &intrinsic.Scope{
				Template: tmpl, Parameters: parameters, Conditions: conditions, Pseudo: pseudo, PendingImports: map[string]bool{},
				Zones: map[string][]string{"eu-west-1": {"eu-west-1a", "eu-west-1b", "eu-west-1c"}},
			}
			needs, diags := intrinsic.Needed(scope)
			if diags.HasErrors() {
				t.Fatal(diags)
			}
			for _, name := range needs.Imports {
				scope.PendingImports[name] = true
			}
			result, diags := diff.Compute(diff.Input{
				Template: tmpl, Conditions: conditions, Dependencies: template.Dependencies(tmpl, conditions), Scope: scope,
			})
			if diags.HasErrors() {
				t.Fatal(diags)
			}
			p := Build(Input{Changes: result.Changes, Dependencies: result.Dependencies})
			if err := p.Validate(); err != nil {
				t.Fatal(err)
			}
			if len(p.Operations) != len(result.Changes) {
				t.Errorf("%d operations for %d changes", len(p.Operations), len(result.Changes))
			}
			forward := run(t, p)

			rec := &state.Record{Resources: map[string]*state.Resource{}}
			deployed := map[string]template.Deployed{}
			for _, c := range result.Changes {
				r := &state.Resource{
					PhysicalID: "physical-" + c.LogicalID, ResourceType: c.Type, Dependencies: result.Dependencies[c.LogicalID], DeletionPolicy: c.DeletionPolicy,
				}
				rec.Resources[c.LogicalID] = r
				deployed[c.LogicalID] = template.Deployed{Type: r.ResourceType, PhysicalID: r.PhysicalID, Dependencies: r.Dependencies}
			}
			down := BuildDestroy(rec, template.DeleteEdges(deployed))
			if err := down.Validate(); err != nil {
				t.Fatal(err)
			}
			if len(down.Operations) != len(rec.Resources) {
				t.Errorf("%d operations for %d resources", len(down.Operations), len(rec.Resources))
			}
			backward := run(t, down)
			done := map[string]Outcome{}
			for _, op := range p.Operations {
				done[op.ID] = Outcome{Succeeded: true}
			}
			undo := BuildRollback(p, done)
			if err := undo.Validate(); err != nil {
				t.Fatal(err)
			}
			if undone := run(t, undo); undone != forward {
				t.Errorf("%d waves forward, %d to undo them", forward, undone)
			}
			t.Logf("%d operations, %d waves, %d to destroy", len(p.Operations), forward, backward)
		})
	}
}

func BenchmarkBuild(b *testing.B) {
	const n = 10_000
	in := Input{Dependencies: map[string][]string{}, Record: &state.Record{Resources: map[string]*state.Resource{}}}
	for _, op := range layeredPlan(n).Operations {
		in.Dependencies[op.ID] = op.DependsOn
		in.Record.Resources[op.ID] = &state.Resource{Dependencies: op.DependsOn}
		if len(in.Dependencies)%2 == 0 {
			in.Changes = append(in.Changes, diff.Change{LogicalID: op.ID, Action: diff.ActionReplace})
		}
	}
	for b.Loop() {
		if len(Build(in).Operations) != n {
			b.Fatal("operations are missing")
		}
	}
}

func BenchmarkBuildDestroy(b *testing.B) {
	rec := &state.Record{Resources: map[string]*state.Resource{}}
	for _, op := range layeredPlan(10_000).Operations {
		rec.Resources[op.ID] = &state.Resource{Dependencies: op.DependsOn}
	}
	for b.Loop() {
		BuildDestroy(rec, nil)
	}
}
