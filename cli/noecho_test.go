package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-cdk/slipway/cli/views"
	"github.com/slipway-cdk/slipway/pkg/clock"
)

// TestNoCommandPrintsANoEchoValue runs the commands on a real local plane.
func TestNoCommandPrintsANoEchoValue(t *testing.T) {
	dir := t.TempDir()
	app := filepath.Join(dir, "cdk.out")
	if err := os.MkdirAll(app, 0o755); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{
		filepath.Join(app, "manifest.json"): `{"version":"48.0.0","artifacts":{"App":{"type":"aws:cloudformation:stack","environment":"aws://unknown-account/unknown-region","properties":{"templateFile":"App.json"}}}}`,
		filepath.Join(app, "App.json"): `{"Parameters":{"Pw":{"Type":"String","NoEcho":true,"AllowedPattern":"[a-z-]+"},"Size":{"Type":"String"}},
			"Resources":{"P":{"Type":"AWS::SSM::Parameter","Properties":{"Type":"String","Value":{"Fn::Sub":"u:${Pw}"},"Description":{"Ref":"Size"}}}},
			"Outputs":{"Out":{"Value":{"Fn::GetAtt":["P","Value"]}},"Direct":{"Value":{"Ref":"Pw"}}}}`,
		filepath.Join(dir, "values.json"): `{"App":{"Pw":"marker-one","Size":"small"}}`,
	}
	for path, body := range files {
		if err := os.WriteFile(path, []byte(body), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	events := filepath.Join(dir, "events.json")
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"diff", "--app", app, "--parameters-file", filepath.Join(dir, "values.json")}, exitDone, "***"},
		{[]string{"deploy", "--yes", "--app", app, "--json-into", events, "--parameters-file", filepath.Join(dir, "values.json")}, exitDone, "SUCCEEDED"},
		{[]string{"deploy", "--yes", "--json", "--app", app, "--json-into", events, "--parameters", "Pw=marker-two"}, exitDone, `"updated": 1`},
		{[]string{"diff", "--json", "--app", app, "--parameters", "Pw=marker-three"}, exitDone, `"differences": true`},
		{[]string{"diff", "--json", "--app", app}, exitDone, `"differences": false`},
		{[]string{"deploy", "--yes", "--app", app, "--parameters", "Pw=marker-4"}, exitFailed, "AllowedPattern"},
		{[]string{"deploy", "--yes", "--app", app, "--parameters", "Size=large"}, exitFailed, "Pw is needed"},
		{[]string{"deploy", "--yes", "--app", app, "--parameters", "Size=large", "--parameters", "Pw=marker-two"}, exitDone, "SUCCEEDED"},
		{[]string{"events", "App", "--json"}, exitDone, "RUN_FINISHED"},
		{[]string{"state", "show", "App", "--json"}, exitDone, `"***"`},
		{[]string{"destroy", "--yes", "--app", app}, exitDone, "SUCCEEDED"},
	} {
		var out, errs bytes.Buffer
		env := &environment{
			streams: &views.Streams{Out: views.Stream{Writer: &out}, Err: views.Stream{Writer: &errs}, In: strings.NewReader("")},
			getenv:  func(string) string { return "" }, clock: clock.Real{}, open: openPlane,
		}
		code := execute(t.Context(), env, append(c.args, "--local", "--local-dir", filepath.Join(dir, "local")))
		text := out.String() + errs.String()
		if told, err := os.ReadFile(events); err == nil {
			text += string(told)
		}
		if code != c.code || !strings.Contains(text, c.says) {
			t.Fatalf("%v: exit code %d without %q:\n%s", c.args, code, c.says, text)
		}
		if strings.Contains(text, "marker") {
			t.Errorf("%v prints the value:\n%s", c.args, text)
		}
	}
}
