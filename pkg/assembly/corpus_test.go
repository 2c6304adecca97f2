package assembly

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/jedib0t/go-pretty/v6/table"
)

// TestCorpus reads real assemblies of several versions of CDK and shows what is in them.
func TestCorpus(t *testing.T) {
	root := filepath.Join("..", "..", "..", "shared", "corpus", "assemblies")
	dirs, err := os.ReadDir(root)
	if err != nil {
		t.Skipf("the corpus of real assemblies is not here: %v", err)
	}
	w := table.NewWriter()
	w.AppendHeader(table.Row{"assembly", "schema", "stacks in order", "files", "images", "nested", "messages"})
	for _, d := range dirs {
		asm, err := Read(filepath.Join(root, d.Name()))
		if err != nil {
			t.Errorf("%s: %v", d.Name(), err)
			continue
		}
		if len(asm.Stacks) == 0 {
			t.Errorf("%s: no stacks", d.Name())
		}
		var files, images, nested, messages int
		seen := map[string]bool{}
		for _, s := range asm.Stacks {
			onDisk, err := os.ReadFile(s.TemplatePath)
			if err != nil || !bytes.Equal(onDisk, s.Template) {
				t.Errorf("%s/%s: the template differs from its file: %v", d.Name(), s.Name, err)
			}
			for _, dep := range s.DependsOn {
				if !seen[dep] {
					t.Errorf("%s/%s comes before %s, on which it depends", d.Name(), s.Name, dep)
				}
			}
			seen[s.Name] = true
			nested += len(s.NestedTemplates)
			messages += len(s.Messages)
			for _, a := range s.Assets {
				if isTemplate(a.Path) || len(a.Destinations) == 0 || !filepath.IsAbs(a.Path) {
					t.Errorf("%s/%s: asset %+v", d.Name(), s.Name, a)
				}
				if a.Kind == AssetImage {
					images++
				} else {
					files++
				}
			}
		}
		w.AppendRow(table.Row{d.Name(), asm.Version, names(asm.Stacks), files, images, nested, messages})
	}
	if len(dirs) < 60 {
		t.Errorf("the corpus has %d assemblies, want 60", len(dirs))
	}
	t.Log("\n" + w.Render())
}
