package template_test

import (
	"strings"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/template"
)

func TestHalvesOfSurrogatePairsAreRefusedAndWholeOnesKept(t *testing.T) {
	parse := func(text string) (*template.Template, error) {
		return template.Parse([]byte("{\"Description\": \"x\",\n\"Resources\": {\"R\": {\"Type\": \"T\", \"Properties\": {\"P\": \"" + text + "\"}}}}"))
	}
	for _, bad := range []string{`\ud83d`, `\ud83d x`, `\ude00`, `\ude00\ud83d`, `\ud83d\ud83d\ude00`, `\ud83d\\ude00`, `\uD83D\n`} {
		_, err := parse(bad)
		if err == nil || !strings.Contains(err.Error(), "the template is not Unicode: line 2, column ") {
			t.Errorf("%s: the problem is %v", bad, err)
		}
	}
	for text, want := range map[string]string{`\ud83d\ude00`: "😀", `\uD83D\uDE00x`: "😀x", `\\ud83d`: `\ud83d`, `\\\ud83d\ude00`: `\😀`, `\u00e9\\`: `é\`, `😀`: "😀", `\ufffd`: "\ufffd"} {
		tmpl, err := parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if got := tmpl.Resources["R"].Properties["P"]; got != want {
			t.Errorf("%s is read as %q", text, got)
		}
	}
}

func TestUsesOfMacrosAreFoundWhereverTheyAreRun(t *testing.T) {
	uses, err := template.FindMacros([]byte(`{
	 "Transform": ["Custom", {"Name": "WithParameters"}, "AWS::LanguageExtensions"], "Metadata": {"Fn::Transform": {"Name": "InMetadata"}}, "Unheard": {},
	 "Mappings": {"M": {"Fn::Transform": {"Name": "InMapping"}}}, "Parameters": {"Fn::Transform": {"Name": "InParameters"}}, "Conditions": {"Fn::Transform": {"Name": "InConditions"}},
	 "Rules": {"R": {"Fn::Transform": {"Name": "InRule"}}}, "Outputs": {"O": {"Value": {"Fn::Transform": {"Name": "InOutput"}}}},
	 "Resources": {"Fn::Transform": {"Name": "AWS::Include"}, "R": {"Type": "T", "Metadata": {"Fn::Transform": {"Name": "InItsMetadata"}}, "Properties": {"Metadata": {"Fn::Transform": [{"Name": "One"}, "Two"]}, "L": [{"Fn::Transform": {}}]}}}
	}`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, u := range uses {
		got = append(got, u.Path+"="+u.Name)
	}
	want := []string{
		"Transform=Custom", "Transform=WithParameters", "Conditions.Fn::Transform=InConditions", "Mappings.M.Fn::Transform=InMapping", "Outputs.O.Value.Fn::Transform=InOutput",
		"Parameters.Fn::Transform=InParameters", "Resources.Fn::Transform=AWS::Include", "Resources.R.Properties.L.0.Fn::Transform=", "Resources.R.Properties.Metadata.Fn::Transform=One",
		"Resources.R.Properties.Metadata.Fn::Transform=Two", "Rules.R.Fn::Transform=InRule",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Fatalf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestAMisshapenTemplateWithMacrosIsRefusedForThem(t *testing.T) {
	for _, body := range []string{
		`{"Transform": "Explode", "Resources": {"R": {"ExplodeMap": "M"}}}`,
		`{"Resources": {"Fn::Transform": {"Name": "Explode"}, "R": "text"}}`,
		`{"Transform": "Explode"}`,
	} {
		_, err := template.Parse([]byte(body))
		if err == nil || !strings.Contains(err.Error(), "the template needs the macro Explode: only CloudFormation can run it") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: the problem is %v", body, err)
		}
	}
}
