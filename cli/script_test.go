package main

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/slipway-cdk/slipway/cli/views"
	"github.com/slipway-cdk/slipway/pkg/clock"
)

var update = flag.Bool("update", false, "rewrite golden files")

// TestMain gives the scripts a slipway that runs on a fake plane, scripted by fake.json in its directory.
func TestMain(m *testing.M) {
	if os.Getenv(processTest) != "" {
		main() // a test runs this binary as the command itself
	}
	testscript.Main(m, map[string]func(){
		"slipway": func() {
			env := &environment{
				streams: views.NewStreams(os.Stdin, os.Stdout, os.Stderr, os.Getenv),
				getenv:  os.Getenv,
				clock:   clock.Real{},
				open: func(_ context.Context, g globalFlags) (Plane, error) {
					if !g.Local {
						return nil, noControlPlane("there is none in this test")
					}
					f, err := readFake("fake.json")
					if err == nil {
						f.record = "submitted.json"
					}
					return f, err
				},
				simulation: fakeSimulationOf,
			}
			ctx, interrupts, stop := interruptible(context.Background())
			env.interrupts = interrupts
			code := execute(ctx, env, os.Args[1:])
			stop()
			os.Exit(code)
		},
	})
}

func TestScripts(t *testing.T) {
	assembly, err := filepath.Abs("testdata/assembly")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		UpdateScripts: *update,
		Setup: func(e *testscript.Env) error {
			e.Setenv("AWS_REGION", "")
			e.Setenv("HOME", e.WorkDir)
			return os.CopyFS(filepath.Join(e.WorkDir, "cdk.out"), os.DirFS(assembly))
		},
	})
}
