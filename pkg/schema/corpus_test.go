package schema

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const corpusDir = "../../../shared/corpus"

type corpusTemplate struct {
	raw       any
	Resources map[string]struct {
		Type       any
		Properties map[string]any
	}
}

// corpusTemplates reads every template of the corpus, by path relative to it.
func corpusTemplates(t *testing.T) map[string]corpusTemplate {
	t.Helper()
	if _, err := os.Stat(corpusDir); err != nil {
		t.Skipf("the corpus of real templates is not here: %v", err)
	}
	templates := map[string]corpusTemplate{}
	err := filepath.WalkDir(corpusDir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".json" {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var template corpusTemplate
		decoder := json.NewDecoder(bytes.NewReader(raw))
		decoder.UseNumber()
		if err := decoder.Decode(&template); err != nil || template.Resources == nil {
			return nil // a manifest, or a template that is broken on purpose
		}
		template.raw = decodeAny(t, raw)
		name, err := filepath.Rel(corpusDir, path)
		templates[name] = template
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return templates
}

func decodeAny(t *testing.T, raw []byte) (value any) {
	t.Helper()
	if err := json.Unmarshal(raw, &value); err != nil {
		t.Fatal(err)
	}
	return value
}

// attributesRead calls visit for every Fn::GetAtt in a template.
func attributesRead(value any, visit func(id, attribute string)) {
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			attributesRead(item, visit)
		}
	case map[string]any:
		for key, member := range value {
			attributesRead(member, visit)
			if key != "Fn::GetAtt" {
				continue
			}
			switch argument := member.(type) {
			case string:
				id, attribute, _ := strings.Cut(argument, ".")
				visit(id, attribute)
			case []any:
				var parts []string
				for _, part := range argument {
					text, isText := part.(string)
					if !isText {
						return
					}
					parts = append(parts, text)
				}
				if len(parts) > 1 {
					visit(parts[0], strings.Join(parts[1:], "."))
				}
			}
		}
	}
}

// intrinsic tells that a value is a function of the template language.
func intrinsic(value any) bool {
	object, ok := value.(map[string]any)
	if !ok || len(object) != 1 {
		return false
	}
	for key := range object {
		return key == "Ref" || key == "Condition" || strings.HasPrefix(key, "Fn::")
	}
	return false
}

// wrong lists the problems of templates that are wrong: each would fail in CloudFormation, too.
var wrong = map[string]string{
	// Rain's own directives, which its packager replaces before a deploy.
	"aws-cloudformation-templates--apigateway_lambda_integration.json LambdaFunction Code/ZipFile type":   "Rain::Embed",
	"aws-cloudformation-templates--log-setup-management.json TargetAccountLogging TemplateBody type":      "Rain::Embed",
	"aws-cloudformation-templates--python.json TransformFunction Code/ZipFile type":                       "Rain::Embed",
	"aws-cloudformation-templates--test.json Bucket LifecycleConfiguration/Rules/0/ExpirationInDays type": "text of a macro (!Explode)",
	// The translator's unit tests, which never deploy.
	"sam--connector_dependson_replace.json SomeFunction Code required":                                            "only a name is given",
	"sam--connector_dependson_replace.json SomeTable KeySchema required":                                          "only a name is given",
	"sam--connector_hardcoded_props.json MyFunction Code required":                                                "only a name is given",
	"sam--connector_hardcoded_props.json MyFunction Role required":                                                "only a name is given",
	"sam--connector_hardcoded_props.json MySfn RoleArn required":                                                  "only a name is given",
	"sam--function_with_file_system_config.json MountTarget SubnetId range":                                       "an invented id of the wrong length",
	"sam--layers_with_intrinsics.json LayerWithMixedListRefRuntimesIntrinsic71fd80f592 CompatibleRuntimes/1 enum": "a made-up runtime",
	"sam--graphqlapi_api_cache.json SuperCoolAPIApiCache ApiCachingBehavior enum":                                 "a made-up behavior",
	"sam--graphqlapi_api_cache.json SuperCoolAPIApiCache Type enum":                                               "a made-up instance type",
}

// unheard are the types of templates that mean them to be unknown, or that are a module or macro of the author's.
var unheard = []string{"AWS::Foo::Bar", "AWS::Other::ABCD", "AWS::S3::Object", "Foo::Bar::Egg", "Foo::Serverless::Egg"}

func TestNothingInRealTemplatesIsRefusedWithoutReason(t *testing.T) {
	resources := 0
	seen := map[string]bool{}
	for name, template := range corpusTemplates(t) {
		for id, resource := range template.Resources {
			kind, isText := resource.Type.(string)
			if !isText {
				continue // a module: its type is an object that a packager replaces
			}
			resources++
			resourceType, found := Lookup(kind)
			if !found {
				if !slices.Contains(unheard, kind) {
					t.Errorf("%s %s: type %s is not known", name, id, kind)
				}
				continue
			}
			for _, problem := range Validate(resourceType, resource.Properties, Options{Lenient: true, Opaque: intrinsic}) {
				key := strings.Join([]string{filepath.Base(name), id, strings.Join(problem.Path, "/"), string(problem.Kind)}, " ")
				seen[key] = true
				if reason, expected := wrong[key]; expected {
					t.Logf("%s: %s (%s)", key, problem, reason)
				} else {
					t.Errorf("%s (%s): %s", key, kind, problem)
				}
			}
		}
	}
	for key := range wrong {
		if !seen[key] {
			t.Errorf("no longer refused: %s", key)
		}
	}
	if resources < 2500 {
		t.Errorf("only %d resources were checked", resources)
	}
}

func TestEveryAttributeThatRealTemplatesReadIsKnown(t *testing.T) {
	read := 0
	for name, template := range corpusTemplates(t) {
		attributesRead(template.raw, func(id, attribute string) {
			kind, isText := template.Resources[id].Type.(string)
			resourceType, found := Lookup(kind)
			if !isText || !found {
				return
			}
			read++
			if !resourceType.IsAttribute(attribute) {
				t.Errorf("%s: %s (%s) has no attribute %s; meant %q?", name, id, kind, attribute, resourceType.SuggestAttribute(attribute))
			}
		})
	}
	if read < 1000 {
		t.Errorf("only %d reads were checked", read)
	}
}
