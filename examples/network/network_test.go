package main

import (
	"os"
	"os/exec"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/lookup"
	"github.com/slipway-cdk/slipway/pkg/schema"
	"github.com/slipway-cdk/slipway/pkg/synth"
	"github.com/slipway-cdk/slipway/pkg/template"
)

// TestMain lets the test's own binary be the app, so that it need not be linked a second time.
func TestMain(m *testing.M) {
	if os.Getenv("NETWORK_TEST_APP") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// synthesize runs the app, from a directory that is not its own.
func synthesize(t *testing.T) (*assembly.Assembly, error) {
	t.Helper()
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("CDK apps need Node.js, which is not installed")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return synth.Run(t.Context(), synth.Options{
		App: `"` + self + `"`, WorkDir: t.TempDir(), Account: "111122223333", Region: "eu-west-1",
		Env: append(os.Environ(), "NETWORK_TEST_APP=1"), Lookup: lookup.Local(),
	})
}

func TestNetwork(t *testing.T) {
	asm, err := synthesize(t)
	if err != nil {
		t.Fatal(err)
	}
	if len(asm.Stacks) != 1 || len(asm.Stacks[0].Messages) > 0 {
		t.Fatalf("stacks %v", asm.Stacks)
	}
	count := map[string]int{}
	for _, r := range check(t, asm.Stacks[0]).Resources {
		count[r.Type]++
	}
	for typ, want := range map[string]int{
		"AWS::EC2::VPC": 1, "AWS::EC2::Subnet": 4, "AWS::EC2::NatGateway": 1, "AWS::EC2::VPCEndpoint": 2, "AWS::EC2::SecurityGroup": 1,
	} {
		if count[typ] != want {
			t.Errorf("%d of %s, want %d", count[typ], typ, want)
		}
	}
}

// check parses a template and holds its literal properties against what AWS accepts.
func check(t *testing.T, s *assembly.Stack) *template.Template {
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
	return tmpl
}
