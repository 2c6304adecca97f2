package diff

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/diag"
)

const corpus = "../../../shared/corpus"

func corpusTemplates(t testing.TB) []string {
	t.Helper()
	if _, err := os.Stat(corpus); err != nil {
		t.Skip("the corpus is not beside the repository")
	}
	var files []string
	err := filepath.WalkDir(filepath.Join(corpus, "assemblies"), func(path string, _ os.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".template.json") {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestCorpus: nothing deployed makes everything a creation, and what has been deployed as planned differs in
// nothing afterwards.
func TestCorpus(t *testing.T) {
	files := corpusTemplates(t)
	if len(files) < 60 {
		t.Fatalf("%d templates in the corpus", len(files))
	}
	resources := 0
	for _, file := range files {
		name := filepath.Base(filepath.Dir(file)) + "/" + filepath.Base(file)
		t.Run(name, func(t *testing.T) {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			in, err := inputOf(source, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range Check(in) {
				if d.Severity == diag.Error {
					t.Errorf("check: %s: %s", d.Error(), d.Detail)
				} else {
					t.Logf("check: %s", d.Error())
				}
			}
			first, diags := Compute(in)
			if len(diags) > 0 {
				t.Fatal(diags)
			}
			if len(first.Changes) != len(in.live()) {
				t.Errorf("%d changes for %d resources", len(first.Changes), len(in.live()))
			}
			for _, c := range first.Changes {
				if c.Action != ActionCreate {
					t.Errorf("%s of %s, with nothing deployed", c.Action, c.LogicalID)
				}
			}
			resources += len(first.Changes)

			in.Record = mustDeploy(t, in)
			again, diags := Compute(in)
			if len(diags) > 0 {
				t.Fatal(diags)
			}
			if len(again.Changes) > 0 {
				t.Errorf("after the deploy:\n%s", brief(again.Changes))
			}
			if again.Unchanged != len(first.Changes) {
				t.Errorf("%d unchanged of %d", again.Unchanged, len(first.Changes))
			}
			in.Scope = again.Scope
			if changes, _, unresolved := Outputs(in); len(changes) > 0 || len(unresolved) > 0 {
				t.Errorf("outputs: %v, unresolved %v", changes, unresolved)
			}
			in.Template.Resources = nil
			in.Template.Order = nil
			in.Dependencies = nil
			gone, _ := Compute(in)
			if len(gone.Changes) != len(first.Changes) {
				t.Errorf("%d deletions of %d", len(gone.Changes), len(first.Changes))
			}
		})
	}
	t.Logf("%d templates, %d resources", len(files), resources)
}
