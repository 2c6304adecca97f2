package template_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/template"
)

func encoded(t *testing.T, tmpl *template.Template) *template.Template {
	t.Helper()
	data, err := tmpl.Encode()
	if err != nil {
		t.Fatal(err)
	}
	again, err := template.Parse(data)
	if err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	return again
}

func TestAnEncodedTemplateIsReadAsTheSame(t *testing.T) {
	tmpl, err := template.Parse([]byte(`{"AWSTemplateFormatVersion": "2010-09-09", "Description": "é <&> \u2028",
	 "Parameters": {"Z": {"Type": "Number", "Default": 1.50}, "A": {"Type": "String", "Default": ""}},
	 "Conditions": {"C": {"Fn::Equals": [{"Ref": "A"}, ""]}}, "Mappings": {"M": {"k": {"v": [1e3, true, "007"]}}},
	 "Resources": {"Zebra": {"Type": "T", "Condition": "C", "Properties": {"N": 12345678901234567890, "E": {}, "L": [], "S": "<script>"}}, "Alpha": {"Type": "T"}, "Mike": {"Type": "T", "DependsOn": ["Alpha"]}},
	 "Outputs": {"Z": {"Value": 1}, "A": {"Value": 2}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(tmpl, encoded(t, tmpl)); diff != "" {
		t.Fatalf("(-before +after):\n%s", diff)
	}
}

func TestRealTemplatesAreEncodedWithoutLoss(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "shared", "corpus", "templates", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Skip("the corpus of real templates is not here")
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		tmpl, err := template.Parse(data)
		if err != nil {
			continue
		}
		if diff := cmp.Diff(tmpl, encoded(t, tmpl)); diff != "" {
			t.Errorf("%s (-before +after):\n%s", filepath.Base(file), diff)
		}
	}
}
