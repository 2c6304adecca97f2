package local

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/intrinsic"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/sandbox"
	"github.com/slipway-cdk/slipway/pkg/template"
)

// realTemplates is where templates stand that are not part of this repository.
const realTemplates = "../../../shared/corpus/templates"

// planCap is how long planning one template may take.
const planCap = 10 * time.Second

// refusedTemplates are the templates that must not be planned, and what the refusal has to say.
func refusedTemplates() map[string]string {
	const (
		null   = "Fn::GetAZs: null is not allowed here"                    // CloudFormation: null values are not allowed in templates
		module = "the resource's Type is not a type name: found an object" // a module of the tool Rain, not yet packaged
		embed  = "must be a string"                                        // a directive of the tool Rain, not yet packaged: {"Rain::Embed": file}
	)
	return map[string]string{
		"aws-cloudformation-templates--AutoScalingScheduledAction":         null,
		"aws-cloudformation-templates--ELBGuidedAutoScalingRollingUpgrade": null,
		"aws-cloudformation-templates--ELBStickinessSample":                null,
		"aws-cloudformation-templates--GitLabServer":                       module,
		"aws-cloudformation-templates--VSCodeServer":                       module,
		"aws-cloudformation-templates--apigateway_lambda_integration":      "LambdaFunction Properties.Code.ZipFile: " + embed,
		"aws-cloudformation-templates--log-setup-management":               "TargetAccountLogging Properties.TemplateBody: " + embed,
		"aws-cloudformation-templates--python":                             "TransformFunction Properties.Code.ZipFile: " + embed,
		"aws-cloudformation-templates--date_example":                       "needs the macro Date",
		"aws-cloudformation-templates--example":                            "needs the macro S3Objects",
		"aws-cloudformation-templates--macro":                              "needs the macro AWS::Serverless-2016-10-31",
		"aws-cloudformation-templates--test":                               "needs the macro Explode",
		// What the translator makes of input that refers to nothing, or has no type at all.
		"sam--connector_dependson_replace": "DependsOn: nothing in the template is called Foo",
		"sam--connector_hardcoded_props":   "nothing in the template is called Egg",
		"sam--layers_with_intrinsics":      "nothing in the template is called LayerRuntimeString",
		"sam--schema_validation_3":         "unknown resource type AWS::Foo::Bar",
		// CloudFormation refuses it as well: "does not support deletion policy Snapshot".
		"sam--api_with_usageplans_shared_attributes_three": "has no snapshots",
		"sam--state_machine_with_schedule":                 "nothing in the template is called KMSKeyArn",
		"sam--unsupported_resources":                       "the resource has no Type",
	}
}

// undeployable are the templates that plan and do not deploy in the sandbox, and what the failure has to say.
func undeployable() map[string]string {
	return map[string]string{
		// The child's template stands behind a URL.
		"aws-cloudformation-templates--VPCPeering-Requester.main.cfn": "nested stacks",
		"cfn-lint--vpc-management":                                    "nested stacks",
		// The template's own placeholder, subnet-abc123, is too short for AWS.
		"sam--function_with_file_system_config": "needs at least 15 characters, has 13",
		// Made-up values of a translator's test.
		"sam--graphqlapi_api_cache": "must be one of",
		// Two resolvers of one field.
		"sam--graphqlapi_resolver_function_with_lambda_datasource": "already exists",
	}
}

// templateTrip is one template on its way.
type templateTrip struct {
	t     *testing.T
	plane *Plane
	asm   *assembly.Assembly
	// given is what the template needs of others: SSM parameters and exports. nil for nothing.
	given *assembly.Assembly

	planned, deployed string // for the table
}

func TestRealTemplatesPlanOrAreRefusedAndDeploy(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(realTemplates, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Skip("the corpus of real templates is not here: " + realTemplates)
	}
	var table strings.Builder
	var planned, refused, deployed int
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		t.Run(name, func(t *testing.T) {
			trip := templateTrip{t: t, plane: openPlane(t, Options{Dir: t.TempDir()})}
			if trip.run(file, refusedTemplates()[name], undeployable()[name]) {
				planned++
			} else {
				refused++
			}
			if trip.deployed == deployedWhole {
				deployed++
			}
			fmt.Fprintf(&table, "%-96s %-22s %s\n", name, trip.planned, trip.deployed)
		})
	}
	t.Logf("%d templates: %d planned, %d refused; %d of the planned were deployed and destroyed\n%s", len(files), planned, refused, deployed, table.String())
}

const deployedWhole = "deployed, destroyed"

// run plans a template and carries the plan out. mustRefuse and mustFail are parts of the expected problems, "" for
// none.
func (trip *templateTrip) run(file, mustRefuse, mustFail string) (planned bool) {
	t := trip.t
	body, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	trip.prepare(body)
	h := trip.plan()
	if missing := missingExports(h); len(missing) > 0 {
		trip.export(missing)
		h = trip.plan()
	}
	if h.Result != runlog.ResultSucceeded {
		why := story(t, trip.plane, h)
		trip.planned = "refused: " + strings.TrimSpace(strings.SplitN(why, "\n", 3)[1])
		if mustRefuse == "" || !strings.Contains(why, mustRefuse) {
			t.Errorf("it is refused, but not for the reason expected (%q):\n%s", mustRefuse, why)
		}
		return false
	}
	if mustRefuse != "" {
		t.Errorf("it is planned, but should be refused: %s", mustRefuse)
	}
	trip.planned = fmt.Sprintf("planned %d resources", trip.changes(h))
	trip.deployed = trip.deployAndDestroy(trip.changes(h))
	if (mustFail == "") != (trip.deployed == deployedWhole) || !strings.Contains(trip.deployed, mustFail) {
		t.Errorf("the expected failure is %q, got: %s", mustFail, trip.deployed)
	}
	return true
}

func (trip *templateTrip) plan() runlog.Header {
	began := time.Now()
	h := submit(trip.t, trip.plane, trip.asm, run.Submission{Command: runlog.CommandPlan, Of: runlog.CommandDeploy})
	if took := time.Since(began); took > planCap {
		trip.t.Errorf("planning took %s", took)
	}
	return h
}

// changes counts the changes of a plan run.
func (trip *templateTrip) changes(h runlog.Header) int {
	views, err := trip.plane.engine.PlanViews(context.Background(), h.RunID)
	if err != nil {
		trip.t.Fatal(err)
	}
	return len(views[0].Changes)
}

// deployAndDestroy carries a planned template to its end and says how far it got.
func (trip *templateTrip) deployAndDestroy(want int) string {
	t, p := trip.t, trip.plane
	h := submit(t, p, trip.asm, run.Submission{Command: runlog.CommandDeploy})
	if h.Result != runlog.ResultSucceeded {
		return "failed: " + oneLine(story(t, p, h))
	}
	if h.Counts.Created != want {
		t.Errorf("the plan said %d resources, the deploy made %d", want, h.Counts.Created)
	}
	if again := trip.plan(); again.Result != runlog.ResultSucceeded {
		t.Errorf("the same template again is refused: %s", story(t, p, again))
	} else if n := trip.changes(again); n != 0 {
		t.Errorf("the same template again would change %d resources", n)
	}
	for _, asm := range []*assembly.Assembly{trip.asm, trip.given} {
		if asm == nil {
			continue
		}
		h = submit(t, p, asm, run.Submission{Command: runlog.CommandDestroy, Options: run.Options{DeleteRetained: true, RemoveProtection: true}})
		if h.Result != runlog.ResultSucceeded {
			return "deployed, not destroyed: " + oneLine(story(t, p, h))
		}
	}
	left, err := p.Sandbox().List(context.Background(), sandbox.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range left {
		t.Errorf("destroy has left %s %s", r.Type, r.Identifier)
	}
	return deployedWhole
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// prepare wraps a template into an assembly, with a value for every parameter that needs one, and puts the SSM
// parameters into the account that it names.
func (trip *templateTrip) prepare(body []byte) {
	parameters := map[string]string{}
	resources := map[string]any{}
	if tmpl, err := template.Parse(body); err == nil {
		for name, param := range tmpl.Parameters {
			if param.Default == nil {
				parameters[name] = valueFor(trip.t, name, param)
			}
		}
		maps.Copy(resources, secretsOf(tmpl))
		for i, name := range template.SSMParameters(tmpl, parameters) {
			resources[fmt.Sprintf("Parameter%d", i)] = map[string]any{"Type": "AWS::SSM::Parameter", "Properties": map[string]any{"Name": name, "Type": "String", "Value": "ami-0123456789abcdef0"}}
		}
	}
	trip.asm = assemblyOf(trip.t, "Template", body, parameters)
	if len(resources) > 0 {
		trip.give(map[string]any{"Resources": resources})
	}
}

// secretsOf makes the secrets that the dynamic references of a template name.
func secretsOf(tmpl *template.Template) map[string]any {
	out := map[string]any{}
	for _, id := range tmpl.Order {
		refs, _ := intrinsic.DynamicReferences(tmpl.Resources[id].Properties, "Properties")
		for _, ref := range refs {
			if ref.Service != "secretsmanager" || strings.Contains(ref.Name, "${") {
				continue
			}
			id := "Secret" + fmt.Sprintf("%x", ref.Name)
			text := fmt.Sprintf(`{%q: "Passw0rd-for-this"}`, ref.JSONKey)
			out[id] = map[string]any{"Type": "AWS::SecretsManager::Secret", "Properties": map[string]any{"Name": ref.Name, "SecretString": text}}
		}
	}
	return out
}

var missingExport = regexp.MustCompile(`^no stack exports (.+)$`)

// missingExports names the exports that a plan run has not found.
func missingExports(h runlog.Header) []string {
	var names []string
	for _, d := range h.Diagnostics {
		if m := missingExport.FindStringSubmatch(d.Summary); m != nil {
			names = append(names, m[1])
		}
	}
	return names
}

// export deploys a stack that exports the names.
func (trip *templateTrip) export(names []string) {
	outputs := map[string]any{}
	for i, name := range names {
		outputs[fmt.Sprintf("Export%d", i)] = map[string]any{"Value": byType(name, "String")[0], "Export": map[string]any{"Name": name}}
	}
	trip.give(map[string]any{"Resources": map[string]any{"Handle": map[string]any{"Type": "AWS::CloudFormation::WaitConditionHandle"}}, "Outputs": outputs})
}

func (trip *templateTrip) give(tmpl map[string]any) {
	body, err := json.Marshal(tmpl)
	if err != nil {
		trip.t.Fatal(err)
	}
	trip.given = assemblyOf(trip.t, "Given", body, nil)
	if h := submit(trip.t, trip.plane, trip.given, run.Submission{Command: runlog.CommandDeploy}); h.Result != runlog.ResultSucceeded {
		trip.t.Fatalf("what the template needs does not deploy: %s", story(trip.t, trip.plane, h))
	}
}

// assemblyOf is an assembly of one stack.
func assemblyOf(t *testing.T, stack string, body []byte, parameters map[string]string) *assembly.Assembly {
	t.Helper()
	manifest, err := json.Marshal(map[string]any{
		"version": "48.0.0",
		"artifacts": map[string]any{stack: map[string]any{
			"type": "aws:cloudformation:stack", "environment": "aws://unknown-account/unknown-region",
			"properties": map[string]any{"templateFile": "template.json", "parameters": parameters},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, content := range map[string][]byte{"manifest.json": manifest, "template.json": body} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	asm, err := assembly.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	return asm
}

// valueFor finds a value that the parameter's type and constraints accept.
func valueFor(t *testing.T, name string, p *template.Parameter) string {
	t.Helper()
	var candidates []string
	for _, a := range p.AllowedValues {
		candidates = append(candidates, fmt.Sprint(a))
	}
	candidates = append(candidates, byType(name, p.Type)...)
	if _, err := regexp.Compile(p.AllowedPattern); err == nil && p.AllowedPattern != "" {
		for seed := range 50 {
			candidates = append(candidates, rapid.StringMatching(p.AllowedPattern).Example(seed))
		}
	}
	for _, length := range []*int{p.MinLength, p.MaxLength} {
		if length != nil {
			candidates = append(candidates, "Ab1-"+strings.Repeat("x", max(0, *length-4)))
		}
	}
	alone := &template.Template{Parameters: map[string]*template.Parameter{name: p}}
	for _, c := range candidates {
		if _, ds := alone.BindParameters(map[string]string{name: c}, nil); !ds.HasErrors() {
			return c
		}
	}
	t.Fatalf("no value satisfies parameter %s", name)
	return ""
}

// byType lists values that fit the type of a parameter, and what its name suggests.
func byType(name, typ string) []string {
	inner, isList := strings.CutPrefix(typ, "List<")
	inner = strings.TrimSuffix(inner, ">")
	ids := map[string]string{
		"AWS::EC2::VPC::Id": "vpc-0123456789abcdef%d", "AWS::EC2::Subnet::Id": "subnet-0123456789abcdef%d", "AWS::EC2::SecurityGroup::Id": "sg-0123456789abcdef%d",
		"AWS::EC2::Image::Id": "ami-0123456789abcdef%d", "AWS::EC2::Instance::Id": "i-0123456789abcdef%d", "AWS::EC2::Volume::Id": "vol-0123456789abcdef%d",
		"AWS::EC2::KeyPair::KeyName": "key-%d", "AWS::Route53::HostedZone::Id": "Z0123456789ABCDEF%d", "AWS::EC2::SecurityGroup::GroupName": "group-%d", "Number": "%d",
	}
	if inner == "AWS::EC2::AvailabilityZone::Name" {
		zones := []string{sandbox.DefaultRegion + "a", sandbox.DefaultRegion + "b", sandbox.DefaultRegion + "c"}
		if isList {
			return []string{strings.Join(zones, ","), strings.Join(zones[:2], ",")}
		}
		return zones[:1]
	}
	if pattern, ok := ids[inner]; ok {
		if !isList {
			return []string{fmt.Sprintf(pattern, 1)}
		}
		return []string{fmt.Sprintf(strings.Join([]string{pattern, pattern, pattern}, ","), 1, 2, 3)}
	}
	if typ == "CommaDelimitedList" {
		switch lower := strings.ToLower(name); {
		case strings.Contains(lower, "cidr"):
			return []string{"10.0.0.0/24,10.0.1.0/24,10.0.2.0/24,10.0.3.0/24"}
		case strings.Contains(lower, "subnet"):
			return []string{"subnet-0123456789abcdef0,subnet-0123456789abcdef1,subnet-0123456789abcdef2,subnet-0123456789abcdef3"}
		}
		return []string{"item-1,item-2,item-3,item-4"}
	}
	lower := strings.ToLower(name)
	for _, hint := range [][2]string{
		{"policy", "arn:aws:iam::aws:policy/ReadOnlyAccess"}, {"arn", "arn:aws:iam::123456789012:role/given"}, {"email", "user@example.com"}, {"cidr", "10.0.0.0/16"}, {"ip", "10.0.0.5"}, {"vpc", "vpc-0123456789abcdef0"}, {"bucket", "a-bucket-of-ours"},
		{"subnets", "subnet-0123456789abcdef0"}, {"subnet", "subnet-0123456789abcdef0"}, {"password", "Passw0rd-for-this"}, {"domain", "example.com"}, {"account", "123456789012"}, {"url", "https://example.com/"}, {"key", "key-1"}, {"orgid", "o-abcdefghij"},
	} {
		if strings.Contains(lower, hint[0]) {
			return []string{hint[1], "value", "10.0.0.0/16", "7", "admin"}
		}
	}
	return []string{"value", "7", "10.0.0.0/16", "Abcdefg1"}
}
