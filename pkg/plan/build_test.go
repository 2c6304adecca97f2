package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/slipway-cdk/slipway/pkg/diff"
	"github.com/slipway-cdk/slipway/pkg/state"
	"github.com/slipway-cdk/slipway/pkg/template"
)

// list renders a plan, an operation a line: "replace B forward <A".
func list(p Plan) string {
	var lines []string
	for _, op := range p.Operations {
		line := fmt.Sprintf("%s %s %s", op.Action, op.ID, op.Phase)
		for flag, on := range map[string]bool{"retain": op.Retain, "first": op.DeleteFirst} {
			if on {
				line += " [" + flag + "]"
			}
		}
		if op.Speculative {
			line += " [maybe]"
		}
		if len(op.DependsOn) > 0 {
			after := slices.Sorted(slices.Values(op.DependsOn))
			line += " <" + strings.Join(after, ",")
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// deps reads "B:A C:A,B".
func deps(text string) map[string][]string {
	out := map[string][]string{}
	for _, word := range strings.Fields(text) {
		id, on, _ := strings.Cut(word, ":")
		out[id] = nil
		if on != "" {
			out[id] = strings.Split(on, ",")
		}
	}
	return out
}

func record(text string) *state.Record {
	rec := &state.Record{Resources: map[string]*state.Resource{}}
	for id, on := range deps(text) {
		rec.Resources[id] = &state.Resource{PhysicalID: "p-" + id, ResourceType: "AWS::SQS::Queue", Dependencies: on}
	}
	return rec
}

func edges(text string) []template.DeleteEdge {
	var out []template.DeleteEdge
	for _, word := range strings.Fields(text) {
		first, then, _ := strings.Cut(word, ">")
		out = append(out, template.DeleteEdge{First: first, Then: then})
	}
	return out
}

func TestBuild(t *testing.T) {
	create := func(id string) diff.Change { return diff.Change{LogicalID: id, Action: diff.ActionCreate} }
	update := func(id string) diff.Change { return diff.Change{LogicalID: id, Action: diff.ActionUpdate} }
	replace := func(id string) diff.Change { return diff.Change{LogicalID: id, Action: diff.ActionReplace} }
	remove := func(id string) diff.Change { return diff.Change{LogicalID: id, Action: diff.ActionDelete} }
	for _, tt := range []struct {
		name    string
		changes []diff.Change
		deps    string
		record  *state.Record
		edges   string
		want    string
	}{
		{"creates follow the graph", []diff.Change{create("B"), create("A")}, "A: B:A", nil, "",
			"create B forward <A\ncreate A forward"},
		{"what does not change is not waited for", []diff.Change{update("B")}, "A: B:A", record("A: B:A"), "",
			"update B forward"},
		{"but what it waits for is", []diff.Change{update("C"), update("A")}, "A: B:A C:B", record("A: B:A C:B"), "",
			"update C forward <A\nupdate A forward"},
		{"a record-only change", []diff.Change{{LogicalID: "A", Action: diff.ActionNone, RecordOnly: true}}, "A:", record("A:"), "",
			"record A forward"},
		{"no change at all", []diff.Change{{LogicalID: "A", Action: diff.ActionNone}}, "A:", record("A:"), "", ""},
		{"a speculative update", []diff.Change{{LogicalID: "A", Action: diff.ActionUpdate, Speculative: true}}, "A:", record("A:"), "",
			"update A forward [maybe]"},
		{"a replacement leaves its old half to the cleanup", []diff.Change{replace("A"), update("B")}, "A: B:A", record("A: B:A"), "",
			"replace A forward\nupdate B forward <A\ndelete A.old cleanup"},
		{"old halves go against the graph", []diff.Change{replace("A"), replace("B")}, "A: B:A", record("A: B:A"), "",
			"replace A forward\nreplace B forward <A\ndelete A.old cleanup <B.old\ndelete B.old cleanup"},
		{"a retained old half stays", []diff.Change{{LogicalID: "A", Action: diff.ActionReplace, Retain: true}}, "A:", record("A:"), "",
			"replace A forward [retain]"},
		{"halves that can't coexist", []diff.Change{{LogicalID: "A", Action: diff.ActionReplace, DeleteFirst: true}}, "A:", record("A:"), "",
			"replace A forward [first]"},
		{"deletions go against the recorded graph", []diff.Change{remove("A"), remove("B"), remove("C")}, "", record("A: B:A C:B"), "",
			"delete A cleanup <B\ndelete B cleanup <C\ndelete C cleanup"},
		{"and as the delete edges say", []diff.Change{remove("A"), remove("B")}, "", record("A: B:"), "A>B",
			"delete A cleanup\ndelete B cleanup <A"},
		{"a contradicting delete edge gives way", []diff.Change{remove("A"), remove("B")}, "", record("A: B:A"), "A>B",
			"delete A cleanup <B\ndelete B cleanup"},
		{"recorded dependencies that contradict each other are broken", []diff.Change{remove("A"), remove("B")}, "", record("A:B B:A"), "",
			"delete A cleanup\ndelete B cleanup <A"},
		{"a removed resource goes after the old half that used it", []diff.Change{replace("B"), remove("A")}, "B:", record("A: B:A"), "",
			"replace B forward\ndelete B.old cleanup\ndelete A cleanup <B.old"},
		{"a retained removal is forgotten", []diff.Change{{LogicalID: "A", Action: diff.ActionDelete, Retain: true}}, "", record("A:"), "",
			"forget A cleanup [retain]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := Build(Input{Changes: tt.changes, Dependencies: deps(tt.deps), Record: tt.record, DeleteEdges: edges(tt.edges)})
			if err := p.Validate(); err != nil {
				t.Fatal(err)
			}
			if got := list(p); got != tt.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, tt.want)
			}
		})
	}
}

func TestBuildCarriesPoliciesTypesAndIds(t *testing.T) {
	p := Build(Input{
		Record: record("A: B:"),
		Changes: []diff.Change{
			{LogicalID: "A", Type: "AWS::SNS::Topic", OldType: "AWS::SQS::Queue", Action: diff.ActionReplace, DeletionPolicy: "Retain", UpdateReplacePolicy: "Snapshot"},
			{LogicalID: "B", Type: "AWS::SQS::Queue", Action: diff.ActionDelete, DeletionPolicy: "Snapshot"},
		},
		Leftovers: []Leftover{{LogicalID: "A", Type: "AWS::SQS::Queue", PhysicalID: "older", Dependencies: []string{"B"}}},
		Unchanged: 7,
	})
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{
		"A AWS::SNS::Topic Retain ", "A.old AWS::SQS::Queue Snapshot p-A", "B AWS::SQS::Queue Snapshot p-B", "A.1.old AWS::SQS::Queue  older",
	} {
		op := p.Operations[i]
		if got := fmt.Sprintf("%s %s %s %s", op.ID, op.Type, op.Policy, op.PhysicalID); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := p.Operations[2].DependsOn; !slices.Equal(got, []string{"A.1.old"}) {
		t.Errorf("B is removed after %v", got)
	}
	if p.Unchanged != 7 || p.Version != Version {
		t.Errorf("plan %+v", p)
	}
}

func TestBuildDestroy(t *testing.T) {
	rec := record("A: B:A C:A,B M:")
	rec.Resources["B"].DeletionPolicy = "Retain"
	rec.Resources["M"].ResourceType = "AWS::CDK::Metadata"
	p := BuildDestroy(rec, edges("M>A"), Leftover{LogicalID: "A", PhysicalID: "older"})
	want := "delete A cleanup <B,C,M\nforget B cleanup [retain] <C\ndelete C cleanup\nforget M cleanup [retain]\ndelete A.old cleanup"
	if got := list(p); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	if p := BuildDestroy(nil, nil); len(p.Operations) != 0 {
		t.Errorf("destroying nothing: %v", p)
	}
}

func TestBuildDeployment(t *testing.T) {
	in := DeploymentInput{
		Assets: []DeploymentAsset{{ID: "h1", Name: "code"}, {ID: "h2"}, {ID: "h1", Name: "code again"}},
		Stacks: []DeploymentStack{
			{Name: "Web", ChildRun: "r1", DependsOn: []string{"Data", "Elsewhere"}, Assets: []string{"h1", "h2", "none"}},
			{Name: "Data", ChildRun: "r2", Assets: []string{"h1"}},
		},
	}
	want := "publish asset.h1 forward\npublish asset.h2 forward\ndeploy stack.Web forward <asset.h1,asset.h2,stack.Data\ndeploy stack.Data forward <asset.h1"
	p := BuildDeployment(in)
	if got := list(p); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	if op := p.Operations[0]; op.Kind != KindAsset || op.LogicalID != "code" {
		t.Errorf("asset %+v", op)
	}
	if op := p.Operations[2]; op.Kind != KindStack || op.LogicalID != "Web" || op.ChildRun != "r1" {
		t.Errorf("stack %+v", op)
	}
	in.Destroy = true
	want = "destroy stack.Web cleanup\ndestroy stack.Data cleanup <stack.Web"
	if got := list(BuildDeployment(in)); got != want {
		t.Errorf("destroy:\n%s\nwant:\n%s", got, want)
	}
	for _, p := range []Plan{BuildDeployment(in), p} {
		if err := p.Validate(); err != nil {
			t.Error(err)
		}
	}
}

func TestStacksOfOneNameInTwoEnvironments(t *testing.T) {
	p := BuildDeployment(DeploymentInput{Stacks: []DeploymentStack{
		{Name: "App", ChildRun: "eu"}, {Name: "App", ChildRun: "us"}, {Name: "Top", DependsOn: []string{"App"}},
		{ID: "x/App", Name: "App", ChildRun: "x"}, {Name: "Only", DependsOn: []string{"x/App"}},
	}})
	want := "deploy stack.App forward\ndeploy stack.App~2 forward\ndeploy stack.Top forward <stack.App,stack.App~2,stack.x/App\n" +
		"deploy stack.x/App forward\ndeploy stack.Only forward <stack.x/App"
	if got := list(p); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	if err := p.Validate(); err != nil {
		t.Error(err)
	}
}

func TestBuildRollback(t *testing.T) {
	p := ops("A B<A C<B D<A E x! y! B.old!")
	set := func(id string, action Action, policy string) {
		i := slices.IndexFunc(p.Operations, func(op Operation) bool { return op.ID == id })
		p.Operations[i].Action, p.Operations[i].Policy = action, policy
	}
	set("B", ActionReplace, "Retain")
	set("C", ActionUpdate, "")
	set("D", ActionCreate, "Retain")
	set("E", ActionRecord, "")
	set("y", ActionForget, "")
	p.Operations[len(p.Operations)-1].LogicalID = "B"
	done := map[string]Outcome{}
	for _, id := range []string{"A", "B", "C", "D", "E"} {
		done[id] = Outcome{Succeeded: true}
	}
	undo := BuildRollback(p, done)
	want := "record E.undo rollback\nforget D.undo rollback [retain]\nupdate C.undo rollback\ndelete B.undo rollback <C.undo\ndelete A.undo rollback <B.undo,D.undo"
	if got := list(undo); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	if err := undo.Validate(); err != nil {
		t.Error(err)
	}
	for _, op := range undo.Operations {
		if op.Undoes+UndoSuffix != op.ID {
			t.Errorf("%s undoes %s", op.ID, op.Undoes)
		}
	}
	if len(undo.Irreversible) != 0 {
		t.Errorf("irreversible: %v", undo.Irreversible)
	}

	// What changed nothing is left alone, and the order reaches across it.
	done["B"] = Outcome{}
	undo = BuildRollback(p, done)
	if got := undo.Operations[len(undo.Operations)-1]; got.ID != "A.undo" || !slices.Contains(got.DependsOn, "C.undo") {
		t.Errorf("A is undone after %v", got.DependsOn)
	}

	// A failed update may have changed something; a failed creation has left nothing that an undo could name.
	undo = BuildRollback(p, map[string]Outcome{"C": {Touched: true}, "A": {Touched: true}})
	if got := list(undo); got != "update C.undo rollback" {
		t.Errorf("failures are undone by:\n%s", got)
	}

	done = map[string]Outcome{"B": {Succeeded: true}, "B.old": {Succeeded: true}, "x": {Succeeded: true}, "y": {Succeeded: true}}
	undo = BuildRollback(p, done)
	var lost []string
	for _, i := range undo.Irreversible {
		lost = append(lost, i.ID)
	}
	if got := strings.Join(lost, " "); got != "x y" {
		t.Errorf("irreversible: %s", got)
	}
	// The old half of B is gone: it is made again before the new one goes.
	if got := list(undo); got != "replace B.undo rollback\ndelete B.undo.old rollback <B.undo" {
		t.Errorf("B is undone by:\n%s", got)
	}
}

func TestValidateRefusesWhatCanNotRun(t *testing.T) {
	for plan, want := range map[string]string{
		"a a":       "two operations have the id a",
		"a<b":       "operation a depends on b, which is not in the plan",
		"a<b b<a":   "cycle",
		"a<x x!":    "operation a depends on x, which runs after it",
		"a b<a x!":  "",
		"a<a":       "cycle",
		"x!<a a":    "",
		"<":         "has no id",
		"a b c<a,b": "",
	} {
		err := ops(plan).Validate()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", plan, err, want)
		}
	}
}

// TestPlansRespectTheGraph: whatever changes, a dependent's operation comes after its dependency's, also
// through what does not change, and goes before it in the cleanup.
func TestPlansRespectTheGraph(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 20).Draw(t, "resources")
		dependencies := map[string][]string{}
		rec := &state.Record{Resources: map[string]*state.Resource{}}
		var changes []diff.Change
		for i := range n {
			id := fmt.Sprintf("R%02d", i)
			var on []string
			for j := range i {
				if rapid.IntRange(0, 4).Draw(t, "edge") == 0 {
					on = append(on, fmt.Sprintf("R%02d", j))
				}
			}
			action := rapid.SampledFrom([]diff.Action{diff.ActionNone, diff.ActionCreate, diff.ActionUpdate, diff.ActionReplace, diff.ActionDelete}).Draw(t, id)
			if action != diff.ActionDelete {
				dependencies[id] = on
			}
			if action != diff.ActionCreate {
				rec.Resources[id] = &state.Resource{ResourceType: "T", PhysicalID: id, Dependencies: on}
			}
			if action != diff.ActionNone {
				changes = append(changes, diff.Change{LogicalID: id, Action: action})
			}
		}
		p := Build(Input{Changes: changes, Dependencies: dependencies, Record: rec})
		if err := p.Validate(); err != nil {
			t.Fatal(err)
		}
		g := p.graph()
		isAfter := func(later, earlier string) bool { return slices.Contains(g.Descendants(earlier), later) }
		forward := map[string]bool{}
		removes := map[string]string{} // resource → cleanup operation
		for _, op := range p.Operations {
			if op.Phase == PhaseForward {
				forward[op.ID] = true
			} else {
				removes[op.LogicalID] = op.ID
			}
		}
		for id, on := range dependencies {
			for _, d := range on {
				if forward[id] && forward[d] && !isAfter(id, d) {
					t.Fatalf("%s is not after %s:\n%s", id, d, list(p))
				}
			}
		}
		for id, r := range rec.Resources {
			for _, d := range r.Dependencies {
				if removes[id] != "" && removes[d] != "" && !isAfter(removes[d], removes[id]) {
					t.Fatalf("%s does not go before %s:\n%s", removes[id], removes[d], list(p))
				}
			}
		}
	})
}
