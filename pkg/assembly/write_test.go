package assembly

import (
	"os"
	"path/filepath"
	"testing"
)

// write lays out files (slash-separated names) below a new directory.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const emptyTemplate = `{"Resources": {}}`

// oneStack is an assembly of one stack, named A, whose artifact has the given extra members.
func oneStack(extra, properties string) map[string]string {
	return map[string]string{
		"manifest.json": `{"version": "55.0.0", "artifacts": {"A": {"type": "aws:cloudformation:stack",
			"environment": "aws://unknown-account/unknown-region",
			"properties": {"templateFile": "A.template.json"` + properties + `}` + extra + `}}}`,
		"A.template.json": emptyTemplate,
	}
}
