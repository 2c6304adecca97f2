package template

import (
	"slices"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/diag"
)

// MacroUse is one place where a template asks for a macro
// (https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/template-macros.html).
type MacroUse struct {
	// Name is the macro's name, "AWS::Serverless-2016-10-31"; "" when the template does not say it.
	Name string
	// Path is where it is asked for: "Transform", "Resources.Bucket.Properties.Fn::Transform".
	Path string
}

// macroSections are where a macro inside a template is run; one in Metadata is not (reference §8.11).
var macroSections = []string{"Conditions", "Mappings", "Outputs", "Parameters", "Resources", "Rules"}

// MacroUses lists every use of a macro that only CloudFormation can run: the names in Transform but
// AWS::LanguageExtensions, then every Fn::Transform, by section and path.
func (t *Template) MacroUses() []MacroUse {
	return macroUses(t.Document)
}

// FindMacros is MacroUses of a template that may not have the shape of one yet: macros consume sections and
// attributes of their own. The error tells why it can't be read as JSON.
func FindMacros(data []byte) ([]MacroUse, error) {
	doc, err := decode(data)
	if err != nil {
		return nil, err
	}
	return macroUses(doc.root), nil
}

func macroUses(root map[string]any) []MacroUse {
	var uses []MacroUse
	p := &parser{}
	for _, name := range p.transform(root["Transform"]) {
		if name != LanguageExtensions {
			uses = append(uses, MacroUse{Name: name, Path: "Transform"})
		}
	}
	for _, section := range macroSections {
		walkMacros(root[section], section, func(u MacroUse) { uses = append(uses, u) })
	}
	return uses
}

func walkMacros(v any, path string, found func(MacroUse)) {
	switch v := v.(type) {
	case map[string]any:
		for _, k := range sortedKeys(v) {
			here := child(path, k)
			if k == "Metadata" && strings.HasPrefix(path, "Resources.") && strings.Count(path, ".") == 1 {
				continue
			}
			if k != "Fn::Transform" {
				walkMacros(v[k], here, found)
				continue
			}
			for _, one := range transformCalls(v[k]) {
				found(MacroUse{Name: one, Path: here})
			}
		}
	case []any:
		for i, e := range v {
			walkMacros(e, item(path, i), found)
		}
	}
}

// transformCalls names the macros that the argument of Fn::Transform calls: one, or a list of them
// (https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/intrinsic-function-reference-transform.html).
func transformCalls(arg any) []string {
	list, ok := arg.([]any)
	if !ok {
		list = []any{arg}
	}
	var names []string
	for _, call := range list {
		name, isName := call.(string)
		if m, ok := call.(map[string]any); ok && !isName {
			name, _ = m["Name"].(string)
		}
		names = append(names, name)
	}
	return names
}

// macroDiagnostics refuses the uses of macros, each macro once, at its first place.
func macroDiagnostics(uses []MacroUse) diag.Diagnostics {
	var ds diag.Diagnostics
	var seen []string
	for _, u := range uses {
		if slices.Contains(seen, u.Name) {
			continue
		}
		seen = append(seen, u.Name)
		summary := "the template needs the macro " + u.Name
		if u.Name == "" {
			summary = "the template needs a macro that it does not name"
		}
		ds = append(ds, diag.Diagnostic{Severity: diag.Error, Path: u.Path, Summary: summary, Detail: "only CloudFormation can run it",
			Next: "Expand the template before deploying it, or write out what the macro would produce."})
	}
	return ds
}
