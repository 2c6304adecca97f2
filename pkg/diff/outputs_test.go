package diff

import (
	"fmt"
	"strings"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/intrinsic"
	"github.com/slipway-cdk/slipway/pkg/state"
)

func outputBrief(changes []OutputChange) string {
	var lines []string
	for _, c := range changes {
		line := c.Kind + " " + c.Name
		if c.Export {
			line += " [export]"
		}
		switch {
		case c.Unknown:
			line += " ?"
		case c.Withheld:
			line += fmt.Sprintf(" withheld→%v", c.New)
		default:
			line += fmt.Sprintf(" %v→%v", c.Old, c.New)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func TestOutputChanges(t *testing.T) {
	const head = `{"Parameters":{"Secret":{"Type":"String","NoEcho":true,"Default":"hush-hush"}},
		"Conditions":{"No":{"Fn::Equals":["a","b"]}},
		"Resources":{"Q":{"Type":"AWS::SQS::Queue"}},"Outputs":`
	for _, tt := range []struct {
		name, outputs string
		old           map[string]any
		want          string
	}{
		{"a new one", `{"A":{"Value":"x"}}`, nil, "add A <nil>→x"},
		{"the same one", `{"A":{"Value":"x"}}`, map[string]any{"A": "x"}, ""},
		{"the same number", `{"A":{"Value":5}}`, map[string]any{"A": "5"}, ""},
		{"another value", `{"A":{"Value":"x"}}`, map[string]any{"A": "w"}, "modify A w→x"},
		{"a removed one", `{}`, map[string]any{"A": "w"}, "remove A w→<nil>"},
		{"an export is stored twice", `{"A":{"Value":"x","Export":{"Name":"S:A"}}}`, nil, "add A <nil>→x\nadd S:A [export] <nil>→x"},
		{"a removed export", `{"A":{"Value":"x"}}`, map[string]any{"A": "x", "S:A": "x"}, "remove S:A [export] x→<nil>"},
		{"a false condition", `{"A":{"Value":"x","Condition":"No"}}`, nil, ""},
		{"a NoEcho value", `{"A":{"Value":{"Fn::Sub":"u:${Secret}"}}}`, map[string]any{"A": "u:old"}, "modify A withheld→***"},
		{"a recorded mask is no change", `{"A":{"Value":{"Ref":"Secret"}}}`, map[string]any{"A": "***"}, ""},
		{"a value that becomes a secret", `{"A":{"Value":"{{resolve:secretsmanager:x}}"}}`, map[string]any{"A": "plain"}, "modify A withheld→{{resolve:secretsmanager:x}}"},
		{"a public parameter", `{"A":{"Value":"{{resolve:ssm:/x}}"}}`, map[string]any{"A": "plain"}, "modify A plain→{{resolve:ssm:/x}}"},
		{"one secret in clear makes the record suspect", `{"A":{"Value":"{{resolve:secretsmanager:x}}"},"B":{"Value":"b"}}`,
			map[string]any{"A": "plain", "B": "a", "C": "c"},
			"modify A withheld→{{resolve:secretsmanager:x}}\nmodify B withheld→b\nremove C withheld→<nil>"},
		{"a secret whose condition is false now", `{"A":{"Value":"{{resolve:ssm-secure:/x}}","Condition":"No","Export":{"Name":"S:A"}}}`,
			map[string]any{"A": "plain", "S:A": "plain"}, "remove A withheld→<nil>\nremove S:A [export] withheld→<nil>"},
		{"a removed output beside a secret", `{"A":{"Value":{"Fn::Sub":"{{resolve:secretsmanager:x}}-${Q}"}},"B":{"Value":"b"}}`, map[string]any{"B": "a", "C": "c"},
			"add A <nil>→{{resolve:secretsmanager:x}}-https://q\nmodify B a→b\nremove C withheld→<nil>"},
		{"a record that keeps expressions is shown", `{"A":{"Value":"{{resolve:secretsmanager:x}}"}}`,
			map[string]any{"A": "{{resolve:secretsmanager:y}}", "C": "c"},
			"modify A {{resolve:secretsmanager:y}}→{{resolve:secretsmanager:x}}\nremove C c→<nil>"},
		{"an output that was called a secret", `{}`, map[string]any{"DbPassword": "plain"}, "remove DbPassword withheld→<nil>"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := parse(t, head+tt.outputs+`}`)
			in.Record = &state.Record{Outputs: tt.old, Resources: map[string]*state.Resource{
				"Q": {PhysicalID: "https://q", ResourceType: "AWS::SQS::Queue", Attributes: map[string]any{}},
			}}
			changes, _, _ := Outputs(in)
			if got := outputBrief(changes); got != tt.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, tt.want)
			}
			if strings.Contains(fmt.Sprint(changes), "hush") {
				t.Errorf("the NoEcho value is shown: %v", changes)
			}
		})
	}
}

func TestOutputsOfWhatIsYetToBeMadeAreUnknown(t *testing.T) {
	in := parse(t, `{"Resources":{"Q":{"Type":"AWS::SQS::Queue"}},
		"Outputs":{"A":{"Value":{"Fn::GetAtt":["Q","Arn"]},"Export":{"Name":"S:A"}},"B":{"Value":"b"}}}`)
	result, diags := Compute(in)
	if len(diags) > 0 {
		t.Fatal(diags)
	}
	in.Scope = result.Scope
	changes, values, unresolved := Outputs(in)
	if got, want := outputBrief(changes), "add A ?\nadd B <nil>→b\nadd S:A [export] ?"; got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	if fmt.Sprint(values) != "map[B:b]" || fmt.Sprint(unresolved) != "[A]" {
		t.Errorf("values %v, unresolved %v", values, unresolved)
	}
}

func TestExportNamesThatAreRefused(t *testing.T) {
	in := parse(t, `{"Parameters":{"Long":{"Type":"String","NoEcho":true,"Default":"marker"},"Short":{"Type":"String","NoEcho":true,"Default":"ab"}},
		"Resources":{"Q":{"Type":"AWS::SQS::Queue"}},"Outputs":{
		"A":{"Value":"1","Export":{"Name":{"Fn::Sub":"x-${Long}-y"}}},
		"B":{"Value":"2","Export":{"Name":{"Ref":"Short"}}},
		"C":{"Value":"3","Export":{"Name":"A"}},
		"D":{"Value":"4","Export":{"Name":"cab"}},
		"E":{"Value":"5","Export":{"Name":"cab"}}}}`)
	set := EvaluateOutputs(in)
	if got := fmt.Sprint(set.Values); got != "map[A:1 B:2 C:3 D:4 E:5 cab:4]" {
		t.Errorf("values %s", got)
	}
	if len(set.Diagnostics) != 4 || set.Diagnostics.HasErrors() || strings.Contains(fmt.Sprint(set.Diagnostics), "marker") {
		t.Errorf("diagnostics %v", set.Diagnostics)
	}
}

func TestCarry(t *testing.T) {
	const failing = `{"Fn::Select":["5",["a"]]}`
	for _, tt := range []struct {
		name, outputs string
		old           map[string]any
		want          string
	}{
		{"a failed output keeps its value, its siblings are saved", `{"A":{"Value":%s},"B":{"Value":"new"}}`,
			map[string]any{"A": "a", "B": "b"}, "map[A:a B:new]"},
		{"so does its export, if it was published", `{"A":{"Value":%s,"Export":{"Name":"S:A"}}}`,
			map[string]any{"A": "a", "S:A": "a"}, "map[A:a S:A:a]"},
		{"an export that was not published stays away", `{"A":{"Value":%s,"Export":{"Name":"S:A"}}}`,
			map[string]any{"A": "a"}, "map[A:a]"},
		{"an export name that is an expression keeps everything", `{"A":{"Value":%s,"Export":{"Name":{"Fn::Sub":"${AWS::StackName}:A"}}},"B":{"Value":"new"}}`,
			map[string]any{"A": "a", "B": "b", "Demo:A": "a"}, "map[A:a B:b Demo:A:a]"},
		{"a secret's expression beside a plain value keeps everything", `{"A":{"Value":%s},"B":{"Value":"{{resolve:ssm:x}}"}}`,
			map[string]any{"A": "a", "B": "b"}, "map[A:a B:b]"},
		{"a failed output that was never stored", `{"A":{"Value":%s},"B":{"Value":"new"}}`, map[string]any{"B": "b"}, "map[B:new]"},
		{"an export that gives a NoEcho value away is dropped", `{"A":{"Value":%s,"Export":{"Name":"x-marker"}}}`,
			map[string]any{"A": "a", "x-marker": "a"}, "map[A:a]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := parse(t, `{"Parameters":{"N":{"Type":"String","NoEcho":true,"Default":"marker"}},"Resources":{"Q":{"Type":"AWS::SQS::Queue"}},"Outputs":`+strings.Replace(tt.outputs, "%s", failing, 1)+`}`)
			in.Record = &state.Record{Outputs: tt.old}
			set := EvaluateOutputs(in)
			for _, c := range set.Changes {
				if c.Name == "A" || c.Name == "S:A" || c.Name == "Demo:A" {
					t.Errorf("the failed output is shown as %s", outputBrief(set.Changes))
				}
			}
			values, diags := Carry(in, set)
			if got := fmt.Sprint(values); got != tt.want {
				t.Errorf("stored %s, want %s", got, tt.want)
			}
			if len(diags) == 0 || diags.HasErrors() {
				t.Errorf("diagnostics %v", diags)
			}
		})
	}
}

func TestCarryOfWhatResolvesIsWhatResolves(t *testing.T) {
	in := parse(t, `{"Resources":{"Q":{"Type":"AWS::SQS::Queue"}},"Outputs":{"A":{"Value":{"Ref":"Q"}}}}`)
	in.Record = mustDeploy(t, in)
	in.Scope.Resources = map[string]intrinsic.Resource{"Q": readable(in.Record.Resources["Q"])}
	set := EvaluateOutputs(in)
	values, diags := Carry(in, set)
	if fmt.Sprint(values) != fmt.Sprint(set.Values) || len(diags) > 0 {
		t.Errorf("%v, %v", values, diags)
	}
}
