package template

import (
	"encoding/json"
	"math/big"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/diag"
)

// LanguageExtensions is the transform that Slipway evaluates itself.
const LanguageExtensions = "AWS::LanguageExtensions"

// sections are the top-level members of a template
// (https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/template-anatomy.html).
var sections = []string{"AWSTemplateFormatVersion", "Description", "Metadata", "Parameters", "Mappings", "Conditions", "Rules", "Transform", "Resources", "Outputs", "Hooks"}

// attributes are the members of a resource
// (https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-product-attribute-reference.html).
// Version is written by the CDK on custom resources, Description by hand; CloudFormation accepts both.
var attributes = []string{"Type", "Properties", "DependsOn", "Condition", "DeletionPolicy", "UpdateReplacePolicy", "UpdatePolicy", "CreationPolicy", "Metadata", "Version", "Description"}

var logicalName = regexp.MustCompile(`^[A-Za-z0-9]+$`)

// Parse reads a template in JSON. The error is diag.Diagnostics: every bad shape with its path. Whether
// names refer to something is Validate's question.
//
// Under AWS::LanguageExtensions what is yet to be expanded (loops, computed conditions and dependencies) stays in
// Document only: intrinsic.Expand makes a plain template of it. A template that is misshapen and uses macros is
// refused for the macros, which may have shapes of their own.
func Parse(data []byte) (*Template, error) {
	doc, err := decode(data)
	if err != nil {
		return nil, err
	}
	return parse(doc, true)
}

// FromDocument builds the model of an already decoded template, such as the result of an expansion: nothing may
// be left to expand. Its objects have no order: Order is sorted, with the names of the first list in front, in
// their order.
func FromDocument(root map[string]any, order []string) (*Template, error) {
	return FromSections(root, map[string][]string{"Resources": order})
}

// FromSections is FromDocument with the order of the names in each of the sections Parameters, Conditions,
// Resources and Outputs.
func FromSections(root map[string]any, order map[string][]string) (*Template, error) {
	doc := &document{root: root, order: map[string][]string{}}
	for _, section := range orderedSections {
		m, _ := root[section].(map[string]any)
		var names []string
		seen := map[string]bool{}
		for _, name := range order[section] {
			if _, ok := m[name]; ok && !seen[name] {
				names = append(names, name)
				seen[name] = true
			}
		}
		for _, name := range sortedKeys(m) {
			if !seen[name] {
				names = append(names, name)
			}
		}
		doc.order[section] = names
	}
	return parse(doc, false)
}

// orderedSections are the sections whose order of names the model keeps.
var orderedSections = []string{"Parameters", "Conditions", "Resources", "Outputs"}

func parse(doc *document, source bool) (*Template, error) {
	p := &parser{doc: doc}
	p.raw = source && slices.Contains(p.transform(doc.root["Transform"]), LanguageExtensions)
	p.diags = nil
	t := p.template()
	if len(p.diags) > 0 {
		if uses := t.MacroUses(); len(uses) > 0 {
			return nil, macroDiagnostics(uses)
		}
		return nil, p.diags.Err()
	}
	if p.raw {
		t.Unexpanded, t.SectionOrder = true, doc.order
	}
	return t, nil
}

// LoopPrefix begins the key of a loop: "Fn::ForEach::Name".
const LoopPrefix = "Fn::ForEach::"

// Macros lists the transforms that only CloudFormation can run: all but AWS::LanguageExtensions.
func (t *Template) Macros() []string {
	var out []string
	for _, name := range t.Transform {
		if name != LanguageExtensions {
			out = append(out, name)
		}
	}
	return out
}

// HasLanguageExtensions reports whether the template declares AWS::LanguageExtensions.
func (t *Template) HasLanguageExtensions() bool {
	return slices.Contains(t.Transform, LanguageExtensions)
}

type parser struct {
	doc   *document
	diags diag.Diagnostics
	// raw: what AWS::LanguageExtensions expands is skipped, not refused.
	raw bool
}

// skips tells whether a key is a loop that is yet to be expanded, or a macro.
func (p *parser) skips(key string) bool {
	return key == "Fn::Transform" || (p.raw && strings.HasPrefix(key, LoopPrefix))
}

func (p *parser) fail(path, summary, detail string) {
	p.diags = append(p.diags, diag.Diagnostic{Severity: diag.Error, Summary: summary, Detail: detail, Path: path})
}

func (p *parser) failResource(id, path, summary, detail string) {
	p.diags = append(p.diags, diag.Diagnostic{Severity: diag.Error, Summary: summary, Detail: detail, LogicalID: id, Path: path})
}

func (p *parser) template() *Template {
	root := p.doc.root
	t := &Template{Document: root}
	t.Transform = p.transform(root["Transform"])
	// A macro may define sections and attributes of its own; it consumes them before CloudFormation looks.
	if len(t.Macros()) == 0 {
		for _, name := range sortedKeys(root) {
			if !slices.Contains(sections, name) {
				p.fail(name, "unknown section in the template", didYouMean(name, sections))
			}
		}
	}
	if v, ok := root["AWSTemplateFormatVersion"]; ok {
		t.FormatVersion = p.str(v, "AWSTemplateFormatVersion")
		if t.FormatVersion != "2010-09-09" && t.FormatVersion != "" {
			p.fail("AWSTemplateFormatVersion", "unsupported format version", "the only one is 2010-09-09")
		}
	}
	if v, ok := root["Description"]; ok {
		t.Description = p.str(v, "Description")
	}
	if v, ok := root["Hooks"]; ok && v != nil {
		p.fail("Hooks", "the Hooks section is not supported", "only CloudFormation can run the CodeDeploy blue/green hook")
	}
	t.Metadata = p.section("Metadata")
	t.Mappings = p.section("Mappings")
	t.Conditions = p.section("Conditions")
	t.Rules = p.section("Rules")
	t.Parameters = map[string]*Parameter{}
	for name, v := range p.section("Parameters") {
		if p.misplacedLoop("Parameters", name) {
			continue
		}
		if param := p.parameter(name, v); param != nil {
			t.Parameters[name] = param
		}
	}
	p.mappings(t)
	p.rules(t)
	t.Resources = map[string]*Resource{}
	if _, ok := root["Resources"]; !ok {
		p.fail("Resources", "the template has no Resources", "at least one resource is required")
	}
	resources := p.section("Resources")
	for _, id := range p.doc.order["Resources"] {
		if p.skips(id) {
			continue // Validate refuses what is left of these.
		}
		if r := p.resource(id, resources[id]); r != nil {
			t.Resources[id] = r
			t.Order = append(t.Order, id)
		}
	}
	if len(resources) == 0 && len(p.diags) == 0 {
		p.fail("Resources", "the template has no Resources", "at least one resource is required")
	}
	t.Outputs = map[string]*Output{}
	outputs := p.section("Outputs")
	for _, name := range p.doc.order["Outputs"] {
		if p.skips(name) {
			continue
		}
		if o := p.output(name, outputs[name]); o != nil {
			t.Outputs[name] = o
			t.OutputOrder = append(t.OutputOrder, name)
		}
	}
	t.ParameterOrder = append(t.ParameterOrder, p.doc.order["Parameters"]...)
	return t
}

func (p *parser) section(name string) map[string]any {
	v, ok := p.doc.root[name]
	if !ok {
		return nil
	}
	m, ok := v.(map[string]any)
	if !ok {
		p.fail(name, name+" is not an object", "found "+kindOf(v))
	}
	return m
}

func (p *parser) transform(v any) []string {
	switch v := v.(type) {
	case nil:
		return nil
	case string:
		return []string{v}
	case []any:
		var out []string
		for i, e := range v {
			if m, ok := e.(map[string]any); ok {
				out = append(out, p.str(m["Name"], item("Transform", i)+".Name"))
				continue
			}
			out = append(out, p.str(e, item("Transform", i)))
		}
		return out
	case map[string]any:
		return []string{p.str(v["Name"], "Transform.Name")}
	}
	p.fail("Transform", "Transform is neither a name nor a list of names", "found "+kindOf(v))
	return nil
}

func (p *parser) mappings(t *Template) {
	for _, name := range sortedKeys(t.Mappings) {
		if name == "Fn::Transform" || p.misplacedLoop("Mappings", name) {
			continue
		}
		top, ok := t.Mappings[name].(map[string]any)
		if !ok {
			p.fail("Mappings."+name, "the mapping is not an object", "found "+kindOf(t.Mappings[name]))
			continue
		}
		for _, key := range sortedKeys(top) {
			if _, ok := top[key].(map[string]any); !ok && key != "Fn::Transform" {
				p.fail("Mappings."+name+"."+key, "a mapping's top-level key does not hold an object", "found "+kindOf(top[key]))
			}
			second, _ := top[key].(map[string]any)
			for _, last := range sortedKeys(second) {
				if second[last] == nil {
					p.fail("Mappings."+name+"."+key+"."+last, "null is not allowed here", "a mapping holds strings, numbers and lists")
				}
			}
		}
	}
}

func (p *parser) rules(t *Template) {
	for _, name := range sortedKeys(t.Rules) {
		path := "Rules." + name
		if name == "Fn::Transform" || p.misplacedLoop("Rules", name) {
			continue
		}
		rule, ok := t.Rules[name].(map[string]any)
		if !ok {
			p.fail(path, "the rule is not an object", "found "+kindOf(t.Rules[name]))
			continue
		}
		list, ok := rule["Assertions"].([]any)
		if !ok {
			p.fail(path+".Assertions", "a rule needs a list of Assertions", "found "+kindOf(rule["Assertions"]))
		}
		for i, a := range list {
			if m, ok := a.(map[string]any); !ok || m["Assert"] == nil {
				p.fail(item(path+".Assertions", i), "an assertion is an object with an Assert", "found "+kindOf(a))
			}
		}
	}
}

func (p *parser) resource(id string, v any) *Resource {
	if strings.HasPrefix(id, LoopPrefix) {
		p.fail("Resources."+id, "Fn::ForEach needs the transform "+LanguageExtensions, "")
		return nil
	}
	m, ok := v.(map[string]any)
	if !ok {
		p.failResource(id, "", "the resource is not an object", "found "+kindOf(v))
		return nil
	}
	if !logicalName.MatchString(id) {
		p.failResource(id, "", "the logical ID is not alphanumeric", "letters A-Z, a-z and digits are allowed")
		return nil
	}
	r := &Resource{LogicalID: id}
	typ, ok := m["Type"].(string)
	if !ok || typ == "" {
		if _, there := m["Type"]; there {
			p.failResource(id, "Type", "the resource's Type is not a type name", "found "+kindOf(m["Type"]))
		} else {
			p.failResource(id, "Type", "the resource has no Type", "")
		}
	}
	r.Type = typ
	for _, name := range sortedKeys(m) {
		v := m[name]
		switch name {
		case "Type", "Version", "Description":
		case "Properties":
			r.Properties = p.object(id, name, v)
		case "Metadata":
			r.Metadata = p.object(id, name, v)
		case "DependsOn":
			r.DependsOn = p.dependsOn(id, v)
		case "Condition":
			if r.Condition, ok = v.(string); !ok && !p.computed(v) {
				p.failResource(id, name, "a resource's Condition is the name of a condition", "found "+kindOf(v))
			}
		case "DeletionPolicy":
			r.DeletionPolicy = p.policy(id, name, v)
		case "UpdateReplacePolicy":
			r.UpdateReplacePolicy = p.policy(id, name, v)
		case "UpdatePolicy":
			r.UpdatePolicy = p.objectValue(id, name, v)
		case "CreationPolicy":
			r.CreationPolicy = p.objectValue(id, name, v)
		default:
			if r.Extra == nil {
				r.Extra = map[string]any{}
			}
			r.Extra[name] = v
		}
	}
	return r
}

func (p *parser) object(id, path string, v any) map[string]any {
	m, ok := v.(map[string]any)
	if !ok && v != nil {
		p.failResource(id, path, path+" is not an object", "found "+kindOf(v))
	}
	return m
}

func (p *parser) objectValue(id, path string, v any) any {
	if m := p.object(id, path, v); m != nil {
		return m
	}
	return nil
}

func (p *parser) dependsOn(id string, v any) []string {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		out := make([]string, 0, len(v))
		for i, e := range v {
			s, ok := e.(string)
			if !ok && p.computed(e) {
				continue
			}
			if !ok {
				p.failResource(id, item("DependsOn", i), "DependsOn lists logical IDs", "found "+kindOf(e))
				continue
			}
			if !slices.Contains(out, s) {
				out = append(out, s)
			}
		}
		return out
	}
	if !p.computed(v) {
		p.failResource(id, "DependsOn", "DependsOn is a logical ID or a list of them", "found "+kindOf(v))
	}
	return nil
}

// misplacedLoop refuses a loop in a section that can't have one
// (https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/intrinsic-function-reference-foreach.html).
func (p *parser) misplacedLoop(section, key string) bool {
	if !strings.HasPrefix(key, LoopPrefix) {
		return false
	}
	p.fail(section+"."+key, "Fn::ForEach can't be used here", "loops stand in Resources, Outputs, Conditions and in properties")
	return true
}

// computed tells whether a value is a function that is yet to be expanded.
func (p *parser) computed(v any) bool {
	_, _, function := Intrinsic(v)
	return p.raw && function
}

// policies are the values of DeletionPolicy and UpdateReplacePolicy
// (https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-attribute-deletionpolicy.html).
var policies = []string{"Delete", "Retain", "Snapshot", "RetainExceptOnCreate"}

func (p *parser) policy(id, name string, v any) any {
	switch v := v.(type) {
	case string:
		if !slices.Contains(policies, v) || (v == "RetainExceptOnCreate" && name == "UpdateReplacePolicy") {
			p.failResource(id, name, "unknown "+name, didYouMean(v, policies))
		}
		return v
	case map[string]any:
		return v // an intrinsic function, under AWS::LanguageExtensions
	}
	p.failResource(id, name, name+" is not a policy name", "found "+kindOf(v))
	return nil
}

func (p *parser) output(name string, v any) *Output {
	path := "Outputs." + name
	m, ok := v.(map[string]any)
	if !ok {
		p.fail(path, "the output is not an object", "found "+kindOf(v))
		return nil
	}
	if !logicalName.MatchString(name) {
		p.fail(path, "the output's name is not alphanumeric", "letters A-Z, a-z and digits are allowed")
	}
	o := &Output{Name: name}
	value, ok := m["Value"]
	if !ok || value == nil {
		p.fail(path+".Value", "the output has no Value", "")
	}
	o.Value = value
	for _, key := range sortedKeys(m) {
		switch key {
		case "Value":
		case "Description":
			o.Description, _ = m[key].(string)
		case "Condition":
			if o.Condition, ok = m[key].(string); !ok && !p.computed(m[key]) {
				p.fail(path+".Condition", "an output's Condition is the name of a condition", "found "+kindOf(m[key]))
			}
		case "Export":
			export, ok := m[key].(map[string]any)
			if !ok || export["Name"] == nil {
				p.fail(path+".Export", "Export is an object with a Name", "found "+kindOf(m[key]))
				continue
			}
			o.ExportName = export["Name"]
		default:
			p.fail(path+"."+key, "unknown member of an output", didYouMean(key, []string{"Value", "Description", "Condition", "Export"}))
		}
	}
	return o
}

func (p *parser) str(v any, path string) string {
	s, ok := v.(string)
	if !ok {
		p.fail(path, "the value is not a string", "found "+kindOf(v))
	}
	return s
}

// wholeNumber reads an integer that may be written as a string, as the CDK and people do.
func (p *parser) wholeNumber(v any, path string) *int {
	text, ok := scalarText(v)
	if n, err := strconv.Atoi(text); ok && err == nil {
		return &n
	}
	p.fail(path, "the value is not a whole number", "found "+kindOf(v))
	return nil
}

func (p *parser) number(v any, path string) *float64 {
	text, ok := scalarText(v)
	if f, err := strconv.ParseFloat(text, 64); ok && err == nil {
		return &f
	}
	p.fail(path, "the value is not a number", "found "+kindOf(v))
	return nil
}

// scalarText is the text that CloudFormation works with in place of a scalar: true, 8080, or the string.
func scalarText(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case bool:
		return strconv.FormatBool(v), true
	case json.Number:
		return v.String(), true
	}
	return "", false
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

// isNumber reports whether the text is a decimal number, whole or not, and whether it is one in JSON's notation.
func isNumber(text string) (number, inJSON bool) {
	if _, _, err := big.ParseFloat(text, 10, 64, big.ToNearestEven); err != nil || strings.ContainsAny(text, "xXpP_iI") {
		return false, false
	}
	return true, json.Valid([]byte(text))
}
