package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slipway-cdk/slipway/examples/gen"
	"github.com/slipway-cdk/slipway/pkg/diff"
	"github.com/slipway-cdk/slipway/pkg/schema"
	"github.com/slipway-cdk/slipway/pkg/state"
	"github.com/slipway-cdk/slipway/pkg/template"
)

// writePairs writes the changes of every resource of the corpus (if there is one) and of the generated
// assemblies, and then of one resource of every type there is, with all its properties set.
func writePairs(w io.Writer, corpus string) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	emit := func(s subject) error {
		t, known := schema.Lookup(s.Type)
		if !known || t.Transform != "" || strings.HasPrefix(s.Type, "Custom::") || s.Type == "AWS::CDK::Metadata" {
			return nil
		}
		if s.Pairs = mutations(t, s.Properties); len(s.Pairs) == 0 {
			return nil
		}
		kept := s.Pairs[:0]
		for _, p := range s.Pairs {
			verdict, err := verdictOf(s.Type, s.Properties, p.after(s.Properties))
			if err != nil {
				return fmt.Errorf("%s %s: %w", s.Where, p.Path, err)
			}
			p.Ours = verdict
			kept = append(kept, p)
		}
		s.Pairs = kept
		return encoder.Encode(s)
	}
	if corpus != "" {
		if err := fromTemplates("corpus", corpus, emit); err != nil {
			return err
		}
	}
	dir, err := os.MkdirTemp("", "oracle")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if _, err := gen.Assemblies(dir); err != nil {
		return err
	}
	if err := fromTemplates("generated", dir, emit); err != nil {
		return err
	}
	for _, name := range schema.Names() {
		t, _ := schema.Lookup(name)
		properties := map[string]any{}
		for property, p := range t.Properties {
			properties[property] = synthesize(t, p, 0, true)
		}
		if err := emit(subject{Source: "schema", Where: name, Type: name, Properties: properties}); err != nil {
			return err
		}
	}
	return nil
}

// fromTemplates visits every resource of every template below a directory, its properties resolved as far as
// a first deploy would.
func fromTemplates(source, dir string, emit func(subject) error) error {
	var files []string
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && strings.HasSuffix(path, ".json") {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		return err
	}
	slices.Sort(files)
	resolvable, resources, left := 0, 0, map[string][]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		where, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		t, resolved, err := resolve(text)
		if err != nil {
			if bytes.Contains(text, []byte(`"Resources"`)) {
				left[filepath.ToSlash(where)] = []string{err.Error()}
			}
			continue
		}
		resolvable++
		for _, id := range t.Order {
			properties, known := resolved[id]
			if !known {
				left[filepath.ToSlash(where)] = append(left[filepath.ToSlash(where)], id)
				continue
			}
			resources++
			s := subject{Source: source, Where: filepath.ToSlash(where) + "#" + id, Type: t.Resources[id].Type, Properties: properties}
			if err := emit(s); err != nil {
				return err
			}
		}
	}
	fmt.Fprintf(os.Stderr, "%s: %d resources of %d templates; left out, as they can't be resolved or are not live:\n", source, resources, resolvable)
	for _, file := range slices.Sorted(maps.Keys(left)) {
		first, _, _ := strings.Cut(strings.Join(left[file], ", "), "\n")
		fmt.Fprintf(os.Stderr, "  %s: %.200s\n", file, first)
	}
	return nil
}

// verdictOf asks pkg/diff, as a deploy does: a record with the old properties, a template with the new ones.
func verdictOf(typ string, before, after map[string]any) (string, error) {
	source, err := json.Marshal(map[string]any{"Resources": map[string]any{"R": map[string]any{"Type": typ, "Properties": after}}})
	if err != nil {
		return "", err
	}
	t, err := template.Parse(source)
	if err != nil {
		return "", err
	}
	record := &state.Record{Resources: map[string]*state.Resource{"R": {ResourceType: typ, PhysicalID: "r", Properties: before}}}
	// What can't be replaced under its fixed name is an error beside the verdict, and no concern of ours.
	result, _ := diff.Compute(diff.Input{Record: record, Template: t})
	if result.Desired["R"] == nil {
		return "", fmt.Errorf("%s can't be resolved", typ)
	}
	if len(result.Changes) == 0 {
		return "none", nil
	}
	switch change := result.Changes[0]; change.Action {
	case diff.ActionReplace:
		return "replace", nil
	case diff.ActionUpdate:
		for _, p := range change.Changes {
			if p.Replacement == schema.ReplaceMaybe {
				return "maybe", nil
			}
		}
		return "update", nil
	default:
		return string(change.Action), nil
	}
}
