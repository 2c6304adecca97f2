package assembly

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/diag"
)

// Read reads the cloud assembly in dir, with the assemblies nested in it (those of CDK stages). Nothing of
// it is executed and template bytes are kept as they are.
//
// Errors are diag.Diagnostics: a directory that is no assembly, a manifest that is unreadable or newer than
// SchemaVersion, a template or manifest that is missing, a path that leads out of dir, stacks that depend
// on each other in a circle, two stacks with one name in one environment.
func Read(dir string) (*Assembly, error) {
	root, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("finding the cloud assembly %s: %w", dir, err)
	}
	return read(root, files{})
}

func read(root string, from files) (*Assembly, error) {
	r := reader{root: root, files: from, asm: &Assembly{Dir: root, files: from}, visited: map[string]bool{}}
	if _, err := r.directory(root, ""); err != nil {
		return nil, err
	}
	r.link()
	if err := r.unique(); err != nil {
		return nil, err
	}
	stacks, err := order(r.asm.Stacks)
	if err != nil {
		return nil, err
	}
	r.asm.Stacks = stacks
	return r.asm, nil
}

type reader struct {
	root  string
	files files
	asm   *Assembly
	// visited holds the directories that were read: none may be nested twice, least of all in itself.
	visited map[string]bool
	// edges are the dependencies still to be turned into Stack.deps: stack → stacks.
	edges []edge
}

type edge struct {
	from []*Stack
	to   []*Stack
}

// directory reads one manifest and what is nested in it, and returns the stacks below it.
func (r *reader) directory(dir, idPrefix string) ([]*Stack, error) {
	if r.visited[dir] {
		return nil, unreadable(filepath.Join(dir, ManifestFile), "the assembly is nested more than once")
	}
	r.visited[dir] = true
	m, err := r.readManifest(dir)
	if err != nil {
		return nil, err
	}
	if dir == r.root {
		r.asm.Version = m.Version
	}
	r.asm.Missing = append(r.asm.Missing, m.Missing...)

	byID := map[string]*artifact{}
	for _, a := range m.Artifacts {
		if a.Value == nil {
			return nil, unreadable(filepath.Join(dir, ManifestFile), fmt.Sprintf("artifact %q is null", a.Key))
		}
		byID[a.Key] = a.Value
	}
	// What an artifact stands for: itself for a stack, all of its stacks for a nested assembly.
	stacks := map[string][]*Stack{}
	var all []*Stack
	for _, a := range m.Artifacts {
		switch a.Value.Type {
		case typeStack:
			s, err := r.stack(dir, a.Key, a.Value, byID)
			if err != nil {
				return nil, diag.From(err).InStack(stackName(a.Key, a.Value))
			}
			s.ID = idPrefix + s.ID
			stacks[a.Key] = []*Stack{s}
			r.asm.Stacks = append(r.asm.Stacks, s)
			all = append(all, s)
		case typeAssembly:
			sub, err := resolve(r.root, dir, a.Value.Properties.DirectoryName, "the nested assembly "+a.Key)
			if err != nil {
				return nil, err
			}
			nested, err := r.directory(sub, idPrefix+a.Key+"/")
			if err != nil {
				return nil, err
			}
			stacks[a.Key] = nested
			all = append(all, nested...)
		}
	}
	for _, a := range m.Artifacts {
		for _, dep := range a.Value.Dependencies {
			target, ok := byID[dep]
			if !ok {
				return nil, unreadable(filepath.Join(dir, ManifestFile),
					fmt.Sprintf("artifact %q depends on %q, which it does not have", a.Key, dep))
			}
			if target.Type == typeStack || target.Type == typeAssembly {
				r.edges = append(r.edges, edge{from: stacks[a.Key], to: stacks[dep]})
			}
		}
	}
	return all, nil
}

func stackName(id string, a *artifact) string {
	if a.Properties.StackName != "" {
		return a.Properties.StackName
	}
	return id
}

// stack reads one stack artifact: template, assets, annotations.
func (r *reader) stack(dir, id string, a *artifact, byID map[string]*artifact) (*Stack, error) {
	s := &Stack{
		ID:                    id,
		DisplayName:           a.DisplayName,
		Name:                  stackName(id, a),
		Parameters:            a.Properties.Parameters,
		Tags:                  a.Properties.Tags,
		TerminationProtection: a.Properties.TerminationProtection,
	}
	if s.DisplayName == "" {
		s.DisplayName = id
	}
	var err error
	if s.Account, s.Region, err = parseEnvironment(a.Environment); err != nil {
		return nil, err
	}
	if s.TemplatePath, err = resolve(r.root, dir, a.Properties.TemplateFile, "the template"); err != nil {
		return nil, err
	}
	if s.Template, err = r.readTemplate(s.TemplatePath); err != nil {
		return nil, err
	}
	if s.NestedTemplates, err = r.nestedTemplates(dir, s); err != nil {
		return nil, err
	}
	for _, dep := range a.Dependencies {
		if m := byID[dep]; m != nil && m.Type == typeAssets {
			assets, err := r.assets(dir, m.Properties.File)
			if err != nil {
				return nil, err
			}
			s.Assets = append(s.Assets, assets...)
		}
	}
	if err := r.annotations(dir, s, a); err != nil {
		return nil, err
	}
	return s, nil
}

// parseEnvironment takes "aws://account/region" apart. The words that CDK writes for an environment-agnostic
// stack, unknown-account and unknown-region, give empty strings. Regions are lower case (reference § 1.1).
func parseEnvironment(env string) (account, region string, err error) {
	if env == "" {
		return "", "", nil
	}
	rest, ok := strings.CutPrefix(env, "aws://")
	account, region, both := strings.Cut(rest, "/")
	if !ok || !both || account == "" || region == "" || strings.Contains(region, "/") {
		return "", "", diag.Diagnostics{{
			Severity: diag.Error,
			Summary:  "the environment of the stack is not of the form aws://account/region",
			Detail:   fmt.Sprintf("%q", env),
			Next:     "Synthesize the app again.",
		}}
	}
	if account == "unknown-account" {
		account = ""
	}
	if region == "unknown-region" {
		region = ""
	}
	return account, strings.ToLower(region), nil
}

func (r *reader) readTemplate(path string) ([]byte, error) {
	b, err := r.files.read(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, diag.Diagnostics{{
			Severity: diag.Error,
			Summary:  "the template is missing",
			Detail:   path + " does not exist",
			Next:     "Synthesize the app again, or copy the whole cloud assembly.",
		}}
	case err != nil:
		return nil, unreadable(path, err.Error())
	}
	r.document(path)
	return b, nil
}

// nestedTemplates finds the templates of nested stacks. CDK names each in the metadata of the nested stack's
// resource, relative to the assembly. A template that is not JSON has none: only CDK writes the metadata,
// and it writes JSON.
func (r *reader) nestedTemplates(dir string, s *Stack) (map[string]string, error) {
	if ext := filepath.Ext(s.TemplatePath); ext == ".yaml" || ext == ".yml" {
		return nil, nil
	}
	var t struct {
		Resources map[string]json.RawMessage
	}
	if err := decodeJSON(s.TemplatePath, s.Template, &t); err != nil {
		return nil, err
	}
	var out map[string]string
	for id, raw := range t.Resources {
		var res struct {
			Type     string
			Metadata struct {
				Path string `json:"aws:asset:path"`
			}
		}
		// A malformed resource is for the template package to report, with its place.
		if json.Unmarshal(raw, &res) != nil || res.Type != "AWS::CloudFormation::Stack" || res.Metadata.Path == "" {
			continue
		}
		path, err := resolve(r.root, dir, res.Metadata.Path, "the template of nested stack "+id)
		if err != nil {
			return nil, err
		}
		if err := r.files.there(path); err != nil {
			return nil, diag.Diagnostics{{
				Severity:  diag.Error,
				Summary:   "the template of a nested stack is missing",
				Detail:    path + " cannot be read",
				LogicalID: id,
				Next:      "Synthesize the app again, or copy the whole cloud assembly.",
			}}
		}
		if out == nil {
			out = map[string]string{}
		}
		out[id] = path
	}
	return out, nil
}

// link turns the edges into Stack.DependsOn and deps.
func (r *reader) link() {
	for _, e := range r.edges {
		for _, from := range e.from {
			for _, to := range e.to {
				from.addDependency(to)
			}
		}
	}
}

func (s *Stack) addDependency(to *Stack) {
	for _, d := range s.deps {
		if d == to {
			return
		}
	}
	s.deps = append(s.deps, to)
	for _, n := range s.DependsOn {
		if n == to.Name {
			return
		}
	}
	s.DependsOn = append(s.DependsOn, to.Name)
}

// unique refuses two stacks that would be one: the same name in the same environment.
func (r *reader) unique() error {
	type key struct{ name, env string }
	seen := map[key]*Stack{}
	for _, s := range r.asm.Stacks {
		k := key{s.Name, s.Env()}
		if other := seen[k]; other != nil {
			return diag.Diagnostics{{
				Severity: diag.Error,
				Stack:    s.Name,
				Summary:  "two stacks have one name in one environment",
				Detail:   fmt.Sprintf("%s and %s are both %q in %s", other.DisplayName, s.DisplayName, s.Name, k.env),
				Next:     "Give one of them another stackName, account or region.",
			}}
		}
		seen[k] = s
	}
	return nil
}
