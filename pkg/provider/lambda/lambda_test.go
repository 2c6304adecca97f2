package lambda

import (
	"archive/zip"
	"bytes"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

func TestInlineCodeBecomesAnArchive(t *testing.T) {
	const node, python = "exports.handler = async () => 1\n", "def handler(event, context):\n    return 1\n"
	for _, c := range []struct {
		name, runtime, code string
		files               []string
	}{
		{"Node.js", "nodejs22.x", node, []string{"index.js"}},
		{"Node.js that answers for a custom resource", "nodejs22.x", "const r = require('cfn-response');\n" + node, []string{"cfn-response.js", "index.js"}},
		{"Python", "python3.13", python, []string{"index.py"}},
		{"Python that answers for a custom resource", "python3.13", "import json, cfnresponse\n" + python, []string{"cfnresponse.py", "index.py"}},
		{"Python that only speaks of it", "python3.13", "# see cfnresponse\n" + python, []string{"index.py"}},
	} {
		archive, err := pack(c.code, c.runtime)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		files := unpack(t, archive)
		if got := slices.Sorted(maps.Keys(files)); !slices.Equal(got, c.files) {
			t.Errorf("%s: %v", c.name, got)
		}
		if files[inlineFile(c.runtime)] != c.code {
			t.Errorf("%s: the code is not what it was", c.name)
		}
		if again, _ := pack(c.code, c.runtime); !bytes.Equal(again, archive) {
			t.Errorf("%s: the same code makes another archive", c.name)
		}
	}
	if _, err := pack(node, "java21"); provider.KindOf(err) != provider.KindInvalid {
		t.Errorf("Java: %v", err)
	}
}

func unpack(t *testing.T, archive []byte) map[string]string {
	r, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, f := range r.File {
		if f.Mode() != 0o644 {
			t.Errorf("%s can't be read by everybody: %v", f.Name, f.Mode())
		}
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		files[f.Name] = string(text)
	}
	return files
}

func TestAFunctionIsNamedInManyWays(t *testing.T) {
	for ref, want := range map[string][2]string{
		"hello":                       {"hello", ""},
		"hello:live":                  {"hello", "live"},
		"123456789012:function:hello": {"hello", ""},
		"function:hello:7":            {"hello", "7"},
		"arn:aws:lambda:eu-west-1:123456789012:function:hello":         {"hello", ""},
		"arn:aws:lambda:eu-west-1:123456789012:function:hello:$LATEST": {"hello", "$LATEST"},
	} {
		if name, qualifier := functionOf(ref); name != want[0] || qualifier != want[1] {
			t.Errorf("%s: %q %q", ref, name, qualifier)
		}
	}
}

func TestAStatementsIDTellsItsOperation(t *testing.T) {
	c := func(stack, operation string) *call {
		return &call{Request: provider.Request{Stack: stack, LogicalID: "Allow", Operation: operation}}
	}
	long := strings.Repeat("Stack", 40)
	ids := map[string]bool{}
	for _, stack := range []string{"Web", "Web/Dev", long} {
		for _, operation := range []string{"a", "b"} {
			id := statementID(c(stack, operation))
			if ids[id] = true; len(id) > maxStatementID || strings.ContainsAny(id, "/.") || id != statementID(c(stack, operation)) {
				t.Errorf("%s", id)
			}
		}
	}
	if len(ids) != 6 {
		t.Errorf("%d ids for 6 operations", len(ids))
	}
}

func TestOnlyAVersionIsDeletedAsOne(t *testing.T) {
	for _, k := range Service().(direct.Service[*client]).Kinds {
		if k.Type != "AWS::Lambda::Version" {
			continue
		}
		for _, id := range []string{"hello", "arn:aws:lambda:eu-west-1:123456789012:function:hello", "arn:aws:lambda:eu-west-1:123456789012:function:hello:"} {
			// Without a client: a call would panic.
			if err := k.Delete(t.Context(), &call{Request: provider.Request{PhysicalID: id}}); provider.KindOf(err) != provider.KindInvalid {
				t.Errorf("%s: %v", id, err)
			}
		}
	}
}
