package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/lookup"
	"github.com/slipway-cdk/slipway/pkg/schema"
	"github.com/slipway-cdk/slipway/pkg/synth"
	"github.com/slipway-cdk/slipway/pkg/template"
)

// TestMain lets the test's own binary be the app, so that it need not be linked a second time.
func TestMain(m *testing.M) {
	if os.Getenv("GUESTBOOK_TEST_APP") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// synthesize runs the app, from a directory that is not its own, with the given context.
func synthesize(t *testing.T, context ...string) (*assembly.Assembly, error) {
	t.Helper()
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("CDK apps need Node.js, which is not installed")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	values, err := synth.ParseContext(context)
	if err != nil {
		t.Fatal(err)
	}
	return synth.Run(t.Context(), synth.Options{
		App: `"` + self + `"`, WorkDir: t.TempDir(), Account: "111122223333", Region: "eu-west-1",
		Context: values, Env: append(os.Environ(), "GUESTBOOK_TEST_APP=1"), Lookup: lookup.Local(),
	})
}

func TestGuestbook(t *testing.T) {
	asm, err := synthesize(t)
	if err != nil {
		t.Fatal(err)
	}
	if len(asm.Stacks) != 2 || asm.Stacks[0].Name != "GuestbookData" || asm.Stacks[1].Name != "GuestbookWeb" {
		t.Fatalf("stacks %v", asm.Stacks)
	}
	web := asm.Stacks[1]
	if len(web.DependsOn) != 1 || !bytes.Contains(web.Template, []byte("Fn::ImportValue")) {
		t.Errorf("the web stack depends on %v", web.DependsOn)
	}
	if len(web.Assets) != 1 {
		t.Fatalf("assets %v", web.Assets)
	}
	if _, err := os.Stat(filepath.Join(web.Assets[0].Path, "index.js")); err != nil {
		t.Errorf("the code is not in the assembly: %v", err)
	}
	for _, s := range asm.Stacks {
		if len(s.Messages) > 0 {
			t.Errorf("%s: %v", s.Name, s.Messages)
		}
		check(t, s)
	}
	t.Run("settings change the web stack alone", func(t *testing.T) { testSettings(t, asm) })
}

// check parses a template and holds its literal properties against what AWS accepts.
func check(t *testing.T, s *assembly.Stack) {
	t.Helper()
	tmpl, err := template.Parse(s.Template)
	if err != nil {
		t.Fatal(err)
	}
	if ds := template.Validate(tmpl); len(ds) > 0 {
		t.Errorf("%s: %v", s.Name, ds)
	}
	options := schema.Options{Lenient: true, Opaque: func(v any) bool {
		m, ok := v.(map[string]any)
		if !ok {
			return false
		}
		_, _, ok = template.Intrinsic(m)
		return ok
	}}
	for id, r := range tmpl.Resources {
		typ, ok := schema.Lookup(r.Type)
		if !ok {
			t.Errorf("%s/%s: AWS has no %s", s.Name, id, r.Type)
			continue
		}
		for _, p := range schema.Validate(typ, r.Properties, options) {
			t.Errorf("%s/%s (%s): %s", s.Name, id, r.Type, p)
		}
	}
}

func testSettings(t *testing.T, before *assembly.Assembly) {
	after, err := synthesize(t, "message=Hello, world", "visibility=90", "route=/notes", "archive=true", "queue=inbox")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(before.Stacks[0].Template, after.Stacks[0].Template) {
		t.Error("the data stack changed")
	}
	for _, want := range []string{`"Hello, world"`, `"VisibilityTimeout": 90`, `GET /notes`, `"RedrivePolicy"`, `"QueueName": "inbox"`} {
		if !bytes.Contains(after.Stacks[1].Template, []byte(want)) || bytes.Contains(before.Stacks[1].Template, []byte(want)) {
			t.Errorf("the template does not change to hold %s", want)
		}
	}
}

func TestABadSettingIsExplained(t *testing.T) {
	_, err := synthesize(t, "visibility=soon")
	if err == nil || !strings.Contains(err.Error(), "visibility must be a number of seconds") {
		t.Errorf("error %v", err)
	}
}
