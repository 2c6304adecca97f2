package intrinsic_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/intrinsic"
	"github.com/slipway-cdk/slipway/pkg/template"
)

type sampleState struct {
	StackName string
	Region    string
	Resources map[string]struct {
		PhysicalID   string
		ResourceType string
		Properties   map[string]any
		Attributes   map[string]any
	}
	Outputs map[string]any
}

// A state file that cdkd has written holds what cdkd has resolved. Resolving the same template against that
// state has to give the same properties and outputs.
func TestTemplatesOfCdkdsSamplesResolveToWhatCdkdRecorded(t *testing.T) {
	root := filepath.Join("..", "..", "..", "shared", "reference", "cdkd-samples")
	if _, err := os.Stat(root); err != nil {
		t.Skip("cdkd's sample files are not here: ", err)
	}
	states, err := filepath.Glob(filepath.Join(root, "*", "*", "s3", "cdkd", "*", "*", "state.json"))
	if err != nil {
		t.Fatal(err)
	}
	steps, resources, outputs := 0, 0, 0
	for _, file := range states {
		step := filepath.Join(filepath.Dir(file), "..", "..", "..", "..")
		stack := filepath.Base(filepath.Dir(filepath.Dir(file)))
		rel, _ := filepath.Rel(root, filepath.Clean(step))
		if !comparable(rel) {
			continue
		}
		data, err := os.ReadFile(filepath.Join(step, "assembly", stack+".template.json"))
		if err != nil {
			continue // the step did not deploy, or not this stack
		}
		var state sampleState
		decodeNumbers(t, file, &state)
		tmpl, err := template.Parse(data)
		if err != nil {
			t.Errorf("%s: %v", rel, err)
			continue
		}
		steps++
		n, m := compareSample(t, rel+" "+stack, tmpl, state, states)
		resources, outputs = resources+n, outputs+m
	}
	if resources == 0 {
		t.Fatal("nothing was compared")
	}
	t.Logf("%d deploys compared: %d resources, %d outputs", steps, resources, outputs)
}

// withPlainParameters does what a later step does with dynamic references to SSM parameters that are no secrets,
// and which cdkd records by value.
func withPlainParameters(v any) any {
	switch v := v.(type) {
	case string:
		return strings.ReplaceAll(v, "{{resolve:ssm:/golden/sec/base}}", "base-value")
	case map[string]any:
		out := map[string]any{}
		for k, x := range v {
			out[k] = withPlainParameters(x)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = withPlainParameters(x)
		}
		return out
	}
	return v
}

// explained reports the one thing that cdkd resolves and CloudFormation does not: cdkd leaves the default of a
// CommaDelimitedList a string (reference §7.1), which Fn::Split then splits.
func explained(err error) bool {
	return strings.Contains(err.Error(), "Fn::Split splits a string: found a list")
}

// comparable leaves out the steps after which state and template differ by intention.
func comparable(step string) bool {
	name := filepath.Base(step)
	for _, word := range []string{"rollback", "refused", "fails", "reversed", "drift", "SIG", "kill", "interrupt", "blocked", "import", "orphan", "refresh", "synth", "prune", "diff"} {
		if strings.Contains(name, word) {
			return false
		}
	}
	return true
}

func decodeNumbers(t *testing.T, file string, into any) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := dec.Decode(into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

func compareSample(t *testing.T, label string, tmpl *template.Template, state sampleState, states []string) (resources, outputs int) {
	t.Helper()
	params, ds := tmpl.BindParameters(nil, map[string]any{template.SSMFact("/golden/pre/existing"): "preval"})
	if err := ds.Err(); err != nil {
		t.Errorf("%s: %v", label, err)
		return
	}
	var recorded []any
	for _, r := range state.Resources {
		recorded = append(recorded, r.Properties)
	}
	pseudo := intrinsic.PseudoFor("000000000000", state.Region, state.StackName).WithRecordedStackID(append(recorded, state.Outputs)...)
	conditions, ds := intrinsic.EvaluateConditions(tmpl, params, pseudo)
	if err := ds.Err(); err != nil {
		t.Errorf("%s: %v", label, err)
		return
	}
	scope := &intrinsic.Scope{Template: tmpl, Parameters: params, Conditions: conditions, Pseudo: pseudo,
		Resources: map[string]intrinsic.Resource{}, Imports: map[string]any{}, StackOutputs: map[string]any{}}
	publish(t, scope, states, label)
	for id, r := range state.Resources {
		scope.Resources[id] = intrinsic.Resource{Type: r.ResourceType, PhysicalID: r.PhysicalID, Properties: r.Properties, Attributes: r.Attributes}
	}
	scope.Zones = map[string][]string{state.Region: {state.Region + "a", state.Region + "b", state.Region + "c"}}
	r := intrinsic.NewResolver(scope)
	for id, rec := range state.Resources {
		declared := tmpl.Resources[id]
		if declared == nil || declared.Type != rec.ResourceType {
			continue
		}
		got, err := r.ResolveProperties(declared.Properties, "Properties")
		if err != nil {
			if !explained(err) {
				t.Errorf("%s %s: %v", label, id, err)
			}
			continue
		}
		resources++
		if got == nil {
			got = map[string]any{}
		}
		got, _ = withPlainParameters(got).(map[string]any)
		if diff := cmp.Diff(rec.Properties, got); diff != "" {
			t.Errorf("%s %s (-cdkd +ours):\n%s", label, id, diff)
		}
	}
	for name, o := range tmpl.Outputs {
		want, ok := state.Outputs[name]
		if !ok {
			continue
		}
		got, err := r.Resolve(o.Value, "Outputs."+name+".Value")
		if err != nil {
			t.Errorf("%s: %v", label, err)
			continue
		}
		outputs++
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s output %s (-cdkd +ours):\n%s", label, name, diff)
		}
	}
	return resources, outputs
}

// publish makes the outputs of the other stacks of the same step, which hold the export names too, readable.
func publish(t *testing.T, scope *intrinsic.Scope, states []string, label string) {
	t.Helper()
	step, _, _ := strings.Cut(label, " ")
	for _, file := range states {
		if strings.Contains(file, step+string(filepath.Separator)) {
			var s sampleState
			decodeNumbers(t, file, &s)
			for k, v := range s.Outputs {
				scope.Imports[k] = v
				scope.StackOutputs[intrinsic.StackOutput{Stack: s.StackName, Region: s.Region, Output: k}.Key()] = v
			}
		}
	}
}
