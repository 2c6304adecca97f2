package assembly

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/diag"
)

// SchemaVersion is the newest major version of the cloud assembly schema that this package understands. It
// is what @aws-cdk/cloud-assembly-schema 55, the one inside aws-cdk-lib 2.277, writes: the major is the
// schema's revision and every older revision can be read
// (https://github.com/aws/aws-cdk-cli/tree/main/packages/%40aws-cdk/cloud-assembly-schema).
const SchemaVersion = 55

// ManifestFile is the name of the manifest inside a cloud assembly.
const ManifestFile = "manifest.json"

// The artifact types that matter here. Others (cdk:tree, cdk:feature-flag-report) describe the app, not the
// deployment, and are skipped.
const (
	typeStack    = "aws:cloudformation:stack"
	typeAssets   = "cdk:asset-manifest"
	typeAssembly = "cdk:cloud-assembly"
)

// manifest is manifest.json. The order of artifacts is kept: it is the order in which the app defined them.
type manifest struct {
	Version           string             `json:"version"`
	MinimumCLIVersion string             `json:"minimumCliVersion"`
	Artifacts         ordered[*artifact] `json:"artifacts"`
	Missing           []MissingContext   `json:"missing"`
}

type artifact struct {
	Type               string                   `json:"type"`
	Environment        string                   `json:"environment"`
	DisplayName        string                   `json:"displayName"`
	Dependencies       []string                 `json:"dependencies"`
	Properties         artifactProperties       `json:"properties"`
	Metadata           ordered[[]metadataEntry] `json:"metadata"`
	AdditionalMetadata string                   `json:"additionalMetadataFile"`
}

// artifactProperties unites the properties of the artifact types that are read.
type artifactProperties struct {
	// Stack.
	TemplateFile          string            `json:"templateFile"`
	StackName             string            `json:"stackName"`
	Parameters            map[string]string `json:"parameters"`
	Tags                  map[string]string `json:"tags"`
	TerminationProtection bool              `json:"terminationProtection"`
	// Asset manifest.
	File string `json:"file"`
	// Nested assembly.
	DirectoryName string `json:"directoryName"`
}

type metadataEntry struct {
	Type string          `json:"type"`
	Data json.RawMessage `json:"data"`
}

// ordered is a JSON object whose member order is kept.
type ordered[T any] []member[T]

type member[T any] struct {
	Key   string
	Value T
}

// UnmarshalJSON implements json.Unmarshaler.
func (o *ordered[T]) UnmarshalJSON(b []byte) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	tok, err := d.Token()
	if err != nil {
		return err
	}
	if tok == nil {
		*o = nil
		return nil
	}
	if tok != json.Delim('{') {
		return fmt.Errorf("expected an object, found %v", tok)
	}
	var out ordered[T]
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		m := member[T]{Key: key.(string)}
		if err := d.Decode(&m.Value); err != nil {
			return fmt.Errorf("%s: %w", m.Key, err)
		}
		out = append(out, m)
	}
	*o = out
	return nil
}

// readManifest reads and checks the manifest of one assembly directory.
func (r *reader) readManifest(dir string) (*manifest, error) {
	path := filepath.Join(dir, ManifestFile)
	var m manifest
	if err := r.readJSON(path, &m); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, r.notAnAssembly(dir)
		}
		return nil, err
	}
	if err := checkVersion(path, m.Version, m.MinimumCLIVersion); err != nil {
		return nil, err
	}
	return &m, nil
}

func (r *reader) notAnAssembly(dir string) error {
	d := diag.Diagnostic{
		Severity: diag.Error,
		Summary:  "no cloud assembly in " + dir,
		Detail:   "the directory has no " + ManifestFile,
		Next:     "Give --app a directory that an app has synthesized (cdk.out), or the command that runs the app.",
	}
	if err := r.files.there(dir); errors.Is(err, fs.ErrNotExist) {
		d.Detail = "the directory does not exist"
	}
	return diag.Diagnostics{d}
}

// checkVersion refuses a manifest that a newer schema wrote: its meaning is not known here.
func checkVersion(path, version, minimumCLI string) error {
	major, _, _ := strings.Cut(version, ".")
	n, err := strconv.Atoi(major)
	if err != nil || n < 0 {
		return unreadable(path, fmt.Sprintf("its version %q is not a version number", version))
	}
	if n <= SchemaVersion {
		return nil
	}
	detail := fmt.Sprintf("it has schema version %s, and this Slipway reads versions up to %d", version, SchemaVersion)
	if minimumCLI != "" {
		detail += fmt.Sprintf(" (the CDK CLI needs %s for it)", minimumCLI)
	}
	return diag.Diagnostics{{
		Severity: diag.Error,
		Summary:  "the cloud assembly is newer than this Slipway: " + path,
		Detail:   detail,
		Next:     "Upgrade slipway, or pin the app to an older aws-cdk-lib.",
	}}
}

// readJSON decodes a file. A missing file is reported as fs.ErrNotExist; anything else that goes wrong as
// diagnostics that name the file and, for bad JSON, the line.
func (r *reader) readJSON(path string, into any) error {
	b, err := r.files.read(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return unreadable(path, err.Error())
	}
	r.document(path)
	return decodeJSON(path, b, into)
}

// document remembers a file that the assembly needs, once: an asset manifest may belong to several stacks.
func (r *reader) document(path string) {
	if r.asm != nil && !slices.Contains(r.asm.documents, path) {
		r.asm.documents = append(r.asm.documents, path)
	}
}

func decodeJSON(path string, b []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		return unreadable(path, describe(b, err))
	}
	return nil
}

// describe says where in b the JSON goes wrong, without quoting it.
func describe(b []byte, err error) string {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	offset := int64(-1)
	switch {
	case len(bytes.TrimSpace(b)) == 0:
		return "it is empty"
	case errors.As(err, &syntax):
		offset = syntax.Offset
	case errors.As(err, &kind):
		return fmt.Sprintf("member %q is a JSON %s, which is not expected there", kind.Field, kind.Value)
	}
	if offset < 0 || offset > int64(len(b)) {
		return err.Error()
	}
	return fmt.Sprintf("line %d: %v", 1+bytes.Count(b[:offset], []byte("\n")), err)
}

func unreadable(path, why string) error {
	return diag.Diagnostics{{
		Severity: diag.Error,
		Summary:  "cannot read " + path,
		Detail:   why,
		Next:     "Synthesize the app again.",
	}}
}

// resolve joins a path that a manifest gave to the directory of that manifest. The result must stay inside
// root: a manifest is input, and must not make Slipway read or upload a file from elsewhere. (A nested
// assembly refers to assets in its parent's directory, hence root and not dir.)
func resolve(root, dir, path, what string) (string, error) {
	refuse := func(why string) error {
		return diag.Diagnostics{{
			Severity: diag.Error,
			Summary:  fmt.Sprintf("%s lies outside of the cloud assembly", what),
			Detail:   fmt.Sprintf("%q %s", path, why),
			Next:     "Synthesize the app into one directory, with asset staging on.",
		}}
	}
	switch {
	case path == "":
		return "", diag.Diagnostics{{Severity: diag.Error, Summary: what + " has no path", Next: "Synthesize the app again."}}
	case filepath.IsAbs(path), strings.HasPrefix(path, "/"), strings.HasPrefix(path, `\`):
		return "", refuse("is an absolute path")
	}
	full := filepath.Join(dir, filepath.FromSlash(path))
	rel, err := filepath.Rel(root, full)
	if err != nil || !filepath.IsLocal(rel) {
		return "", refuse("leads out of " + root)
	}
	return full, nil
}
