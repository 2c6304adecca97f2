package main

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/jsii-runtime-go"
)

// synthesized is what all tests look at: the app is run once, with archives that hold no function.
var synthesized struct {
	dir  string
	err  error
	skip string
	// problems are what CDK and cdk-nag have found.
	problems []string
}

func TestMain(m *testing.M) {
	os.Exit(func() int {
		if _, err := exec.LookPath("node"); err != nil {
			synthesized.skip = "CDK apps need Node.js, which is not installed"
			return m.Run()
		}
		dir, err := os.MkdirTemp("", "slipway-infra-*")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		synthesized.dir, synthesized.err = synthesize(dir)
		jsii.Close()
		return m.Run()
	}())
}

func synthesize(dir string) (string, error) {
	dist, out := filepath.Join(dir, "dist"), filepath.Join(dir, "cdk.out")
	if err := writeArchives(dist, functionNames); err != nil {
		return "", err
	}
	found, err := findArchives(dist)
	if err != nil {
		return "", err
	}
	app := newApp(jsii.String(out))
	newControlPlane(app, found)
	check(app)
	app.Synth(nil)
	synthesized.problems, err = problems(out)
	return out, err
}

// writeArchives writes archives that differ from each other.
func writeArchives(dist string, names []string) error {
	if err := os.MkdirAll(dist, 0o755); err != nil {
		return err
	}
	for _, name := range names {
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		w, err := z.Create("bootstrap")
		if err == nil {
			_, err = w.Write([]byte(name))
		}
		if err == nil {
			err = z.Close()
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dist, name+".zip"), b.Bytes(), 0o600)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

type resource struct {
	Type           string
	Properties     map[string]any
	Metadata       map[string]any
	DeletionPolicy string
}

type templateFile struct {
	Parameters map[string]map[string]any
	Conditions map[string]any
	Resources  map[string]resource
	Outputs    map[string]map[string]any
	Rules      map[string]any
}

func assemblyDir(t *testing.T) string {
	t.Helper()
	if synthesized.skip != "" {
		t.Skip(synthesized.skip)
	}
	if synthesized.err != nil {
		t.Fatal(synthesized.err)
	}
	return synthesized.dir
}

func readTemplate(t *testing.T) templateFile {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(assemblyDir(t), stackName+".template.json"))
	if err != nil {
		t.Fatal(err)
	}
	var f templateFile
	if err := json.Unmarshal(b, &f); err != nil {
		t.Fatal(err)
	}
	return f
}

// of returns the resources of a type and fails when there are not as many.
func (f templateFile) of(t *testing.T, typeName string, want int) map[string]resource {
	t.Helper()
	found := map[string]resource{}
	for id, r := range f.Resources {
		if r.Type == typeName {
			found[id] = r
		}
	}
	if len(found) != want {
		t.Fatalf("there are %d resources of type %s, want %d", len(found), typeName, want)
	}
	return found
}

// at walks down maps and lists: "Policies.0.PolicyName".
func at(v any, path string) any {
	for _, step := range strings.Split(path, ".") {
		switch in := v.(type) {
		case map[string]any:
			v = in[step]
		case []any:
			var n int
			if _, err := fmt.Sscan(step, &n); err != nil || n >= len(in) {
				return nil
			}
			v = in[n]
		default:
			return nil
		}
	}
	return v
}

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// rendered is a value with every reference replaced by its name in brackets and every join made.
func rendered(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case map[string]any:
		if ref, ok := v["Ref"].(string); ok {
			return "[" + ref + "]"
		}
		if att, ok := v["Fn::GetAtt"].([]any); ok {
			return fmt.Sprintf("[%v.%v]", att[0], att[1])
		}
		if join, ok := v["Fn::Join"].([]any); ok {
			var parts []string
			for _, p := range join[1].([]any) {
				parts = append(parts, rendered(p))
			}
			return strings.Join(parts, join[0].(string))
		}
	}
	return text(v)
}

// statements are those of all policies of a role, also of those that only some installations have.
func (f templateFile) statements(role string) []any {
	var out []any
	for _, p := range f.Resources[role].Properties["Policies"].([]any) {
		if chosen, ok := at(p, "Fn::If").([]any); ok {
			p = chosen[1]
		}
		out = append(out, at(p, "PolicyDocument.Statement").([]any)...)
	}
	return out
}
