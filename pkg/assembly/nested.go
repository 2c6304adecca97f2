package assembly

import "path/filepath"

// Nested finds the templates of the stacks that a nested stack of s contains in turn, as Stack.NestedTemplates has
// those of s itself. path is the nested stack's template, body its content. It fails like Read when a template is
// missing or lies outside of the assembly.
func (a *Assembly) Nested(s *Stack, path string, body []byte) (map[string]string, error) {
	r := reader{root: a.Dir, files: a.files}
	// CDK names all of them relative to the directory of the stack's own template.
	return r.nestedTemplates(filepath.Dir(s.TemplatePath), &Stack{TemplatePath: path, Template: body})
}
