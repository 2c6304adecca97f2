package gen

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/assembly"
)

// object and list are JSON values.
type (
	object = map[string]any
	list   = []any
)

// app is an assembly that is being put together.
type app struct {
	// version is the version that is built; see Variant.
	version int
	stacks  []*stack
	// stages are nested assemblies, by directory name.
	stages []*stage
}

type stage struct {
	id  string
	app *app
}

// since reports whether version v or a later one is built.
func (a *app) since(v int) bool { return a.version >= v }

// stack adds a stack. Its artifact id, path and physical name are the same unless the caller changes them.
func (a *app) stack(name string) *stack {
	s := &stack{app: a, id: name, path: name, name: name, template: object{}, inactive: map[string]bool{}}
	a.stacks = append(a.stacks, s)
	return s
}

// stage adds a nested assembly, as CDK's Stage does.
func (a *app) stage(name string) *app {
	st := &stage{id: "assembly-" + name, app: &app{version: a.version}}
	a.stages = append(a.stages, st)
	return st.app
}

// stack is one stack that is being put together.
type stack struct {
	app            *app
	id, path, name string
	account        string
	region         string
	template       object
	tags           map[string]string
	needs          []*stack
	assets         []fileAsset
	metadata       object
	inactive       map[string]bool // names of conditions that are false
	leaves         []string
}

type fileAsset struct {
	hash  string
	name  string
	zip   bool
	files map[string]string // path → content; a single entry with an empty path for a file
}

func (s *stack) section(name string) object {
	m, ok := s.template[name].(object)
	if !ok {
		m = object{}
		s.template[name] = m
	}
	return m
}

// option changes a resource beside its properties.
type option func(s *stack, id string, r object)

// add adds a resource and returns its logical id.
func (s *stack) add(id, typ string, properties object, opts ...option) string {
	resources := s.section("Resources")
	if resources[id] != nil {
		panic("gen: two resources are called " + id) // a mistake in this package
	}
	r := object{"Type": typ, "Metadata": object{"aws:cdk:path": s.path + "/" + id}}
	if len(properties) > 0 {
		r["Properties"] = properties
	}
	for _, o := range opts {
		o(s, id, r)
	}
	resources[id] = r
	return id
}

func dependsOn(ids ...string) option {
	return func(_ *stack, _ string, r object) {
		if len(ids) == 1 {
			r["DependsOn"] = ids[0]
		} else {
			r["DependsOn"] = texts(ids...)
		}
	}
}

func onlyIf(condition string) option {
	return func(_ *stack, _ string, r object) { r["Condition"] = condition }
}

// deletionPolicy sets the policies for deletion and replacement alike. All but Delete leave the resource
// behind when the stack is destroyed.
func deletionPolicy(policy string) option {
	return func(s *stack, id string, r object) {
		r["DeletionPolicy"] = policy
		r["UpdateReplacePolicy"] = policy
		if policy == "RetainExceptOnCreate" {
			r["UpdateReplacePolicy"] = "Delete" // the policy for replacement has no such value
		}
		if policy != "Delete" {
			s.leaves = append(s.leaves, s.name+"/"+id)
		}
	}
}

func (s *stack) parameter(name string, p object) { s.section("Parameters")[name] = p }

func (s *stack) mapping(name string, m object) { s.section("Mappings")[name] = m }

// condition adds a condition; holds is what it evaluates to in eu-west-1 with the defaults.
func (s *stack) condition(name string, expression any, holds bool) {
	s.section("Conditions")[name] = expression
	if !holds {
		s.inactive[name] = true
	}
}

func (s *stack) output(name string, value any) { s.section("Outputs")[name] = object{"Value": value} }

// export exports a value under "{stack}:{name}" and returns what another stack imports it with, as CDK does
// for a reference from stack to stack.
func (s *stack) export(name string, value any) func(by *stack) object {
	exported := s.name + ":" + name
	s.section("Outputs")[name] = object{"Value": value, "Export": object{"Name": exported}}
	return func(by *stack) object {
		if !slices.Contains(by.needs, s) {
			by.needs = append(by.needs, s)
		}
		return object{"Fn::ImportValue": exported}
	}
}

const assetBucket = "cdk-hnb659fds-assets-${AWS::AccountId}-${AWS::Region}"

// directory adds a directory asset, zipped when it is published. It returns bucket and key for the template.
func (s *stack) directory(name string, files map[string]string) (bucket any, key string) {
	return s.asset(fileAsset{name: name, zip: true, files: files}, ".zip")
}

// file adds a file asset.
func (s *stack) file(name, ext, content string) (bucket any, key string) {
	return s.asset(fileAsset{name: name, files: map[string]string{"": content}}, ext)
}

func (s *stack) asset(a fileAsset, ext string) (bucket any, key string) {
	h := sha256.New()
	for _, path := range sortedKeys(a.files) {
		fmt.Fprintf(h, "%s\x00%d\x00%s", path, len(a.files[path]), a.files[path])
	}
	a.hash = hex.EncodeToString(h.Sum(nil))
	key = a.hash + ext
	if !slices.ContainsFunc(s.assets, func(b fileAsset) bool { return b.hash == a.hash }) {
		s.assets = append(s.assets, a)
	}
	return sub(assetBucket), key
}

// source is where an asset lies in the assembly; files keep their extension.
func (a fileAsset) source() string {
	if a.zip {
		return "asset." + a.hash
	}
	return "asset." + a.hash + filepath.Ext(a.name)
}

// write lays the assembly out below dir. assets is where asset sources go, which stages share with their app.
func (a *app) write(dir, assets string) error {
	artifacts := object{}
	for _, s := range a.stacks {
		if err := s.write(dir, assets, artifacts); err != nil {
			return err
		}
	}
	for _, st := range a.stages {
		artifacts[st.id] = object{
			"type":       "cdk:cloud-assembly",
			"properties": object{"directoryName": st.id, "displayName": strings.TrimPrefix(st.id, "assembly-")},
		}
		if err := st.app.write(filepath.Join(dir, st.id), assets); err != nil {
			return err
		}
	}
	version := fmt.Sprintf("%d.0.0", assembly.SchemaVersion)
	return writeJSON(filepath.Join(dir, assembly.ManifestFile), object{"version": version, "artifacts": artifacts})
}

func (s *stack) write(dir, assets string, artifacts object) error {
	templateFile := s.id + ".template.json"
	template, err := encode(s.template)
	if err != nil {
		return err
	}
	if err := writeFile(filepath.Join(dir, templateFile), template); err != nil {
		return err
	}
	hash := sha256.Sum256(template)
	key := hex.EncodeToString(hash[:])
	files := object{key: s.manifestEntry(templateFile, "file", s.name+" Template", key+".json")}
	for _, a := range s.assets {
		if err := a.write(assets); err != nil {
			return err
		}
		source, err := filepath.Rel(dir, filepath.Join(assets, a.source()))
		if err != nil {
			return err
		}
		packaging, ext := "file", filepath.Ext(a.name)
		if a.zip {
			packaging, ext = "zip", ".zip"
		}
		files[a.hash] = s.manifestEntry(filepath.ToSlash(source), packaging, a.name, a.hash+ext)
	}
	assetFile := s.id + ".assets.json"
	version := fmt.Sprintf("%d.0.0", assembly.SchemaVersion)
	if err := writeJSON(filepath.Join(dir, assetFile), object{"version": version, "files": files, "dockerImages": object{}}); err != nil {
		return err
	}
	artifacts[s.id+".assets"] = object{"type": "cdk:asset-manifest", "properties": object{"file": assetFile}}
	dependencies := texts(s.id + ".assets")
	for _, n := range s.needs {
		dependencies = append(dependencies, n.id)
	}
	properties := object{"templateFile": templateFile, "validateOnSynth": false, "terminationProtection": false}
	if s.name != s.id {
		properties["stackName"] = s.name
	}
	if len(s.tags) > 0 {
		properties["tags"] = s.tags
	}
	artifact := object{
		"type": "aws:cloudformation:stack", "environment": s.environment(), "displayName": s.path,
		"dependencies": dependencies, "properties": properties,
	}
	if len(s.metadata) > 0 {
		artifact["metadata"] = s.metadata
	}
	artifacts[s.id] = artifact
	return nil
}

func (s *stack) environment() string {
	stack := assembly.Stack{Account: s.account, Region: s.region}
	return stack.Env()
}

func (s *stack) manifestEntry(source, packaging, name, key string) object {
	id := "current_account-current_region"
	destination := object{"bucketName": assetBucket, "objectKey": key}
	if s.region != "" {
		id = "current_account-" + s.region
		destination["region"] = s.region
	}
	return object{
		"displayName":  name,
		"source":       object{"path": source, "packaging": packaging},
		"destinations": object{id: destination},
	}
}

func (a fileAsset) write(dir string) error {
	for path, content := range a.files {
		if err := writeFile(filepath.Join(dir, a.source(), filepath.FromSlash(path)), []byte(content)); err != nil {
			return err
		}
	}
	return nil
}

func writeJSON(path string, v any) error {
	b, err := encode(v)
	if err != nil {
		return err
	}
	return writeFile(path, b)
}

// encode gives sorted keys, so that equal values give equal bytes.
func encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("encoding JSON: %w", err)
	}
	return buf.Bytes(), nil
}

func writeFile(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("writing the assembly: %w", err)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		return fmt.Errorf("writing the assembly: %w", err)
	}
	return nil
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
