package intrinsic_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/intrinsic"
	"github.com/slipway-cdk/slipway/pkg/template"
	"pgregory.net/rapid"
)

// corpusFiles lists real templates: the CloudFormation samples, and every stack of the assemblies.
func corpusFiles(t *testing.T) []string {
	t.Helper()
	root := filepath.Join("..", "..", "..", "shared", "corpus")
	if _, err := os.Stat(root); err != nil {
		t.Skip("the corpus of real templates is not here: ", err)
	}
	files, err := filepath.Glob(filepath.Join(root, "templates", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(filepath.Join(root, "assemblies"), func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(path, ".template.json") {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// refusals are the templates that must be refused, and a part of the true reason.
func refusals() map[string]string {
	const (
		null   = "Fn::GetAZs: null is not allowed here"                    // CloudFormation: "'null' values are not allowed in templates"
		module = "the resource's Type is not a type name: found an object" // a module of the tool Rain, not yet packaged
	)
	return map[string]string{
		"aws-cloudformation-templates--AutoScalingScheduledAction.json":         null,
		"aws-cloudformation-templates--ELBGuidedAutoScalingRollingUpgrade.json": null,
		"aws-cloudformation-templates--ELBStickinessSample.json":                null,
		"aws-cloudformation-templates--GitLabServer.json":                       module,
		"aws-cloudformation-templates--VSCodeServer.json":                       module,
		"aws-cloudformation-templates--date_example.json":                       "the template needs the macro Date",
		"aws-cloudformation-templates--example.json":                            "the template needs the macro S3Objects",
		"aws-cloudformation-templates--macro.json":                              "the template needs the macro AWS::Serverless-2016-10-31",
		"aws-cloudformation-templates--test.json":                               "the template needs the macro Explode",
		"sam--connector_dependson_replace.json":                                 "DependsOn: nothing in the template is called Foo",
		"sam--connector_hardcoded_props.json":                                   "nothing in the template is called Egg",
		"sam--layers_with_intrinsics.json":                                      "nothing in the template is called LayerRuntimeString",
		"sam--state_machine_with_schedule.json":                                 "nothing in the template is called KMSKeyArn",
		"sam--unsupported_resources.json":                                       "the resource has no Type",
	}
}

func TestEveryTemplateOfTheCorpusResolvesOrIsRefusedForATrueReason(t *testing.T) {
	files := corpusFiles(t)
	want := refusals()
	var resolved, refused, resources, values int
	var table []string
	for _, file := range files {
		name := filepath.Base(file)
		start := time.Now()
		n, m, err := resolveWhole(t, file)
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("%s took %s", name, took)
		}
		resources, values = resources+n, values+m
		reason, expected := want[name]
		switch {
		case err == nil && expected:
			t.Errorf("%s resolves, but should be refused: %s", name, reason)
		case err == nil:
			resolved++
		case !expected || !strings.Contains(err.Error(), reason):
			t.Errorf("%s is refused for an unexpected reason:\n%v", name, err)
		default:
			refused++
			table = append(table, fmt.Sprintf("%-60s %s", name, strings.Split(err.Error(), "\n")[0]))
		}
	}
	sort.Strings(table)
	t.Logf("%d templates: %d resolve (%d resources, %d values), %d are refused\n%s", len(files), resolved, resources, values, refused, strings.Join(table, "\n"))
}

// resolveWhole takes a template through all steps with made-up resources and facts, and checks that no
// function is left over.
func resolveWhole(t *testing.T, file string) (resources, values int, err error) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		return 0, 0, err
	}
	tmpl, err := template.Parse(data)
	if err != nil {
		return 0, 0, err
	}
	if err := template.Validate(tmpl).Err(); err != nil {
		return 0, 0, err
	}
	supplied := generatedParameters(tmpl)
	facts := map[string]any{}
	for _, name := range template.SSMParameters(tmpl, supplied) {
		facts[template.SSMFact(name)] = "ami-0123456789abcdef0"
	}
	params, ds := tmpl.BindParameters(supplied, facts)
	if err := ds.Err(); err != nil {
		return 0, 0, err
	}
	pseudo := intrinsic.PseudoFor("123456789012", "us-east-1", "Corpus")
	conditions, ds := intrinsic.EvaluateConditions(tmpl, params, pseudo)
	if err := ds.Err(); err != nil {
		return 0, 0, err
	}
	if err := intrinsic.CheckRules(tmpl, params, pseudo).Err(); err != nil {
		return 0, 0, err
	}
	scope := &intrinsic.Scope{Template: tmpl, Parameters: params, Conditions: conditions, Pseudo: pseudo, Resources: fakeResources(tmpl)}
	needs, ds := intrinsic.Needed(scope)
	if err := ds.Err(); err != nil {
		return 0, 0, err
	}
	scope.Imports = map[string]any{}
	for _, name := range needs.Imports {
		scope.Imports[name] = "imported"
	}
	scope.Zones = map[string][]string{}
	for _, region := range needs.Zones {
		scope.Zones[region] = []string{region + "a", region + "b", region + "c", region + "d", region + "e", region + "f"}
	}
	r := intrinsic.NewResolver(scope)
	var problems diag.Diagnostics
	edges := template.Dependencies(tmpl, conditions)
	for _, id := range tmpl.Order {
		if !tmpl.Live(id, conditions) {
			continue
		}
		resources++
		for path, v := range map[string]any{"Properties": tmpl.Resources[id].Properties, "Metadata": tmpl.Resources[id].Metadata} {
			out, err := r.Resolve(v, path)
			if err != nil {
				problems = append(problems, diag.From(intrinsic.InResource(err, id))...)
				continue
			}
			if leak := leftover(out, path); leak != "" {
				t.Errorf("%s: %s keeps a function at %s", file, id, leak)
			}
			values += leaves(out)
		}
		for _, e := range edges[id] {
			if tmpl.Resources[e.Target] == nil {
				t.Errorf("%s: %s waits for %s, which is no resource", file, id, e.Target)
			}
		}
	}
	for name, o := range tmpl.Outputs {
		if o.Condition != "" && !conditions[o.Condition] {
			continue
		}
		out, err := r.Resolve(o.Value, "Outputs."+name)
		if err != nil {
			problems = append(problems, diag.From(err)...)
		} else if leak := leftover(out, name); leak != "" {
			t.Errorf("%s: output keeps a function at %s", file, leak)
		}
	}
	return resources, values, problems.Err()
}

// fakeResources gives every resource a physical id, and every attribute that the template reads.
func fakeResources(tmpl *template.Template) map[string]intrinsic.Resource {
	out := map[string]intrinsic.Resource{}
	for id, r := range tmpl.Resources {
		out[id] = intrinsic.Resource{Type: r.Type, PhysicalID: strings.ToLower(id) + "-physical", Attributes: map[string]any{}}
	}
	note := func(ref template.Reference) {
		if r, ok := out[ref.Target]; ok && ref.Attribute != "" {
			r.Attributes[ref.Attribute] = fakeAttribute(r.Type, ref.Attribute)
		}
	}
	for id := range tmpl.Resources {
		for _, ref := range tmpl.References(id) {
			note(ref)
		}
	}
	for _, ref := range tmpl.OutputReferences() {
		note(ref)
	}
	return out
}

func fakeAttribute(typ, name string) any {
	switch {
	case name == "Ipv6CidrBlocks":
		return []any{"2001:db8:1234:1a00::/56"}
	case strings.HasSuffix(name, "Ips") || name == "NameServers" || name == "DnsIpAddresses" || name == "DnsEntries" || strings.HasSuffix(name, "Addresses") || name == "CidrBlockAssociations":
		return []any{"first:value", "second:value", "third:value"}
	}
	return "a:b:c:d:e/" + name
}

func generatedParameters(tmpl *template.Template) map[string]string {
	out := map[string]string{}
	for name, p := range tmpl.Parameters {
		if p.Default == nil {
			out[name] = generatedValue(name, p)
		}
	}
	return out
}

// generatedValue finds a value that the parameter's constraints accept.
func generatedValue(name string, p *template.Parameter) string {
	candidates := []string{"item-1,item-2,item-3,item-4,item-5,item-6", "value", "7", "1024", "10.0.0.0/16", "Passw0rd!x", "example.com", "admin", "user@example.com", "1.2.3.4", "Abcdefg1", "a1b2c3d4e5f6", "123456789012", "ou-abcd-12345678", "o-abcdefghij", "arn:aws:iam::123456789012:role/x", "subnet-0123456789abcdef0", "vpc-0123456789abcdef0"}
	for _, a := range p.AllowedValues {
		candidates = append([]string{fmt.Sprint(a)}, candidates...)
	}
	if p.MinLength != nil {
		candidates = append(candidates, "Ab1!"+strings.Repeat("x", max(0, *p.MinLength-4)))
	}
	if p.Type == "String" || !p.IsList() {
		candidates = candidates[1:]
	}
	if _, err := regexp.Compile(p.AllowedPattern); err == nil && p.AllowedPattern != "" {
		for seed := range 20 {
			candidates = append(candidates, rapid.StringMatching(p.AllowedPattern).Example(seed))
		}
	}
	single := &template.Template{Parameters: map[string]*template.Parameter{name: p}}
	for _, c := range candidates {
		if _, ds := single.BindParameters(map[string]string{name: c}, nil); !ds.HasErrors() {
			return c
		}
	}
	return ""
}

// leftover is the path of the first function or Unknown in a resolved value, or "".
func leftover(v any, path string) string {
	if intrinsic.IsIntrinsic(v) {
		return path
	}
	switch v := v.(type) {
	case intrinsic.Unknown, intrinsic.NoValue:
		return path
	case map[string]any:
		for k, x := range v {
			if p := leftover(x, path+"."+k); p != "" {
				return p
			}
		}
	case []any:
		for i, x := range v {
			if p := leftover(x, fmt.Sprintf("%s.%d", path, i)); p != "" {
				return p
			}
		}
	}
	return ""
}

func leaves(v any) int {
	switch v := v.(type) {
	case map[string]any:
		n := 0
		for _, x := range v {
			n += leaves(x)
		}
		return n
	case []any:
		n := 0
		for _, x := range v {
			n += leaves(x)
		}
		return n
	}
	return 1
}

// parseFile parses a template of the corpus; nil for one that is to be refused.
func parseFile(t *testing.T, file string) *template.Template {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	tmpl, err := template.Parse(data)
	if err != nil {
		return nil
	}
	return tmpl
}
