package synth

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/diag"
)

// dontSave marks a context value that must not be written to cdk.context.json.
const dontSave = "$dontSaveContext"

// contextFile is where looked-up values are remembered; it belongs into version control.
const contextFile = "cdk.context.json"

// contextFiles is the app's context by source. Later sources win (reference § 4): defaults, the user's
// .cdk.json, cdk.json, cdk.context.json, the command line.
type contextFiles struct {
	// app is the "app" of cdk.json.
	app     string
	home    map[string]any
	project map[string]any
	// saved is cdk.context.json, session what was looked up and is not saved there.
	saved       map[string]any
	session     map[string]any
	commandLine map[string]any
	path        string
}

type cdkJSON struct {
	App     any            `json:"app"`
	Context map[string]any `json:"context"`
}

func readContext(workDir, homeDir string, commandLine map[string]any) (*contextFiles, error) {
	c := &contextFiles{
		path:        filepath.Join(workDir, contextFile),
		session:     map[string]any{},
		commandLine: commandLine,
	}
	var project, home cdkJSON
	if err := readOptional(filepath.Join(workDir, "cdk.json"), &project); err != nil {
		return nil, err
	}
	if homeDir != "" {
		if err := readOptional(filepath.Join(homeDir, ".cdk.json"), &home); err != nil {
			return nil, err
		}
	}
	if err := readOptional(c.path, &c.saved); err != nil {
		return nil, err
	}
	switch app := project.App.(type) {
	case nil:
	case string:
		c.app = app
	default:
		return nil, badFile(filepath.Join(workDir, "cdk.json"), `its "app" is not a string`)
	}
	c.project, c.home = project.Context, home.Context
	return c, nil
}

// ProjectContext returns the context that cdk.json, cdk.context.json and the user's .cdk.json give to an app in workDir
// ("" is the current directory), for what a command must know of it before the app runs.
func ProjectContext(workDir, homeDir string) (map[string]any, error) {
	c, err := readContext(workDir, homeDir, nil)
	if err != nil {
		return nil, err
	}
	return c.merged(), nil
}

// merged is the context that the app gets.
func (c *contextFiles) merged() map[string]any {
	out := map[string]any{
		"aws:cdk:enable-path-metadata":  true,
		"aws:cdk:enable-asset-metadata": true,
		"aws:cdk:version-reporting":     true,
		"aws:cdk:bundling-stacks":       []any{"**"},
	}
	for _, source := range []map[string]any{c.home, c.project, c.saved, c.session, c.commandLine} {
		maps.Copy(out, source)
	}
	return out
}

// add takes looked-up values into the context and saves those that may be saved.
func (c *contextFiles) add(found map[string]any) error {
	changed := false
	for k, v := range found {
		if m, ok := v.(map[string]any); ok && m[dontSave] == true {
			c.session[k] = v
			continue
		}
		if c.saved == nil {
			c.saved = map[string]any{}
		}
		c.saved[k] = v
		changed = true
	}
	if !changed {
		return nil
	}
	return c.save()
}

// save writes cdk.context.json in the form that the CDK CLI gives it, over a temporary file so that a crash
// leaves the old one or the new one.
func (c *contextFiles) save() error {
	b, err := encode(c.saved, "  ")
	if err != nil {
		return fmt.Errorf("encoding %s: %w", contextFile, err)
	}
	tmp, err := os.CreateTemp(filepath.Dir(c.path), "."+contextFile+".*")
	if err != nil {
		return fmt.Errorf("saving %s: %w", contextFile, err)
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(b)
	if closeErr := tmp.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Chmod(tmp.Name(), 0o644)
	}
	if err == nil {
		err = os.Rename(tmp.Name(), c.path)
	}
	if err != nil {
		return fmt.Errorf("saving %s: %w", contextFile, err)
	}
	return nil
}

// ParseContext turns "key=value" of the command line into context. Values are strings, as the CDK CLI has it;
// a later entry for a key wins.
func ParseContext(pairs []string) (map[string]any, error) {
	out := map[string]any{}
	for _, p := range pairs {
		k, v, ok := strings.Cut(p, "=")
		if !ok || k == "" {
			return nil, diag.Diagnostics{{
				Severity: diag.Error,
				Summary:  fmt.Sprintf("the context %q is not of the form key=value", p),
				Next:     "Write -c key=value.",
			}}
		}
		if strings.HasPrefix(k, "aws:") {
			return nil, diag.Diagnostics{{
				Severity: diag.Error,
				Summary:  fmt.Sprintf("the context key %q is reserved", k),
				Detail:   "keys that start with aws: belong to the CDK",
			}}
		}
		out[k] = v
	}
	return out, nil
}

// readOptional decodes a JSON file that need not exist.
func readOptional(path string, into any) error {
	b, err := os.ReadFile(path)
	if isMissing(err) {
		return nil
	}
	if err != nil {
		return badFile(path, err.Error())
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		return badFile(path, err.Error())
	}
	return nil
}

func badFile(path, why string) error {
	return diag.Diagnostics{{
		Severity: diag.Error,
		Summary:  "cannot read " + path,
		Detail:   why,
		Next:     "Correct the file.",
	}}
}

func encode(v any, indent string) ([]byte, error) {
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}
