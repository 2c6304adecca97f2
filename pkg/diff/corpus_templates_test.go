package diff

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipway-cdk/slipway/pkg/template"
)

// generated gives every parameter without a default a value of its type, the first allowed one if there are.
func generated(source []byte) map[string]string {
	t, err := template.Parse(source)
	if err != nil {
		return nil
	}
	values := map[string]string{}
	for name, p := range t.Parameters {
		if p.Default != nil {
			continue
		}
		value := "value"
		if p.MinLength != nil {
			value = strings.Repeat("v", max(5, *p.MinLength))
		}
		switch {
		case len(p.AllowedValues) > 0:
			value, _ = text(p.AllowedValues[0])
		case strings.Contains(p.Type, "Number"):
			value = "1"
		case strings.Contains(p.Type, "AWS::EC2::"):
			value = "id-0123456789abcdef0"
		case strings.Contains(name, "Cidr") || strings.Contains(name, "CIDR"):
			value = "10.0.0.0/16"
		case strings.Contains(name, "Arn") || strings.Contains(name, "ARN"):
			value = "arn:aws:demo:eu-west-1:123456789012:x"
		}
		values[name] = value
	}
	return values
}

// TestCorpusTemplates: every template is compared or refused with a reason, soon and without a panic; what is
// compared and deployed differs in nothing.
func TestCorpusTemplates(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(corpus, "templates", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Skip("the corpus is not beside the repository")
	}
	compared := 0
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		in, err := inputOf(source, generated(source))
		if err != nil {
			t.Logf("%s: refused: %v", name, err)
			continue
		}
		checked := Check(in)
		_, diags := Compute(in)
		if diags = append(checked, diags...); diags.HasErrors() {
			t.Logf("%s: refused: %s", name, strings.ReplaceAll(diags.Error(), "\n", " | "))
			continue
		}
		rec, diags := deploy(in)
		if rec == nil {
			t.Errorf("%s: %v", name, diags)
			continue
		}
		in.Record = rec
		result, diags := Compute(in)
		if diags.HasErrors() || len(result.Changes) > 0 {
			t.Errorf("%s: %v\n%s", name, diags, brief(result.Changes))
		}
		if took := time.Since(begin); took > 10*time.Second {
			t.Errorf("%s took %v", name, took)
		}
		compared++
	}
	t.Logf("%d of %d templates compared", compared, len(files))
	if compared < 40 {
		t.Errorf("only %d templates can be compared", compared)
	}
}
