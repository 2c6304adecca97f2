package intrinsic_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/slipway-cdk/slipway/pkg/intrinsic"
	"github.com/slipway-cdk/slipway/pkg/template"
)

// expression generates well-formed values with functions, over the names of languageTemplate.
func expression(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		if depth == 0 {
			return rapid.SampledFrom([]any{"text", "Grüße", "", true, json.Number("3"), json.Number("1.50"), "{{resolve:ssm:x}}"}).Draw(t, "leaf")
		}
		inner := expression(depth - 1)
		str := textual(depth - 1)
		switch rapid.IntRange(0, 8).Draw(t, "kind") {
		case 0:
			return rapid.MapOfN(rapid.StringMatching(`[A-Z][a-z]{0,4}`), inner, 0, 3).Draw(t, "object")
		case 1:
			return rapid.SliceOfN(inner, 0, 3).Draw(t, "list")
		case 2:
			return map[string]any{"Fn::If": []any{rapid.SampledFrom([]string{"Yes", "No"}).Draw(t, "condition"), inner.Draw(t, "then"), inner.Draw(t, "else")}}
		case 3:
			list := rapid.SliceOfN(inner, 1, 3).Draw(t, "items")
			return map[string]any{"Fn::Select": []any{json.Number(fmt.Sprint(rapid.IntRange(0, len(list)-1).Draw(t, "index"))), list}}
		case 4:
			return map[string]any{"Ref": "AWS::NoValue"}
		default:
			return str.Draw(t, "text")
		}
	})
}

// textual generates values that resolve to text, or to an Unknown.
func textual(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		if depth <= 0 {
			return rapid.SampledFrom([]any{"a", "b-c", "", map[string]any{"Ref": "Env"}, map[string]any{"Ref": "Bucket"}, map[string]any{"Ref": "Later"},
				map[string]any{"Fn::GetAtt": []any{"Role", "Arn"}}, map[string]any{"Fn::GetAtt": "Replaced.Arn"}, map[string]any{"Fn::ImportValue": "Soon"}}).Draw(t, "leaf")
		}
		inner := textual(depth - 1)
		switch rapid.IntRange(0, 4).Draw(t, "kind") {
		case 0:
			return map[string]any{"Fn::Join": []any{"-", rapid.SliceOfN(inner, 0, 3).Draw(t, "items")}}
		case 1:
			return map[string]any{"Fn::Sub": []any{"${A}/${!B}/${AWS::Region}", map[string]any{"A": inner.Draw(t, "a")}}}
		case 2:
			return map[string]any{"Fn::Base64": inner.Draw(t, "plain")}
		case 3:
			return map[string]any{"Fn::Select": []any{"0", map[string]any{"Fn::Split": []any{"-", inner.Draw(t, "source")}}}}
		default:
			return inner.Draw(t, "same")
		}
	})
}

func TestResolvingIsDeterministicIdempotentAndLeavesNoFunction(t *testing.T) {
	scope := languageScope(t)
	resolver := intrinsic.NewResolver(scope)
	rapid.Check(t, func(t *rapid.T) {
		value := expression(4).Draw(t, "value")
		before := encodePlain(t, value)
		once, err := resolver.Resolve(value, "P")
		if err != nil {
			// Select of an item that NoValue has shifted away is the only way that these go wrong.
			if !strings.Contains(err.Error(), "the index is out of range") {
				t.Fatalf("%v", err)
			}
			return
		}
		again, err := resolver.Resolve(value, "P")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(once, again); diff != "" {
			t.Fatalf("not deterministic:\n%s", diff)
		}
		twice, err := resolver.Resolve(once, "P")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(once, twice); diff != "" {
			t.Fatalf("not idempotent:\n%s", diff)
		}
		if leak := functionIn(once); leak != "" {
			t.Fatalf("a function is left: %s", leak)
		}
		if after := encodePlain(t, value); after != before {
			t.Fatalf("the input was changed from %s to %s", before, after)
		}
	})
}

func TestAValueWithoutUnknownsDoesNotDependOnWhatIsPending(t *testing.T) {
	now, later := languageScope(t), languageScope(t)
	later.Resources["Later"] = intrinsic.Resource{Type: "AWS::SNS::Topic", PhysicalID: "arn:later"}
	later.Resources["Replaced"] = intrinsic.Resource{Type: "AWS::SQS::Queue", PhysicalID: "https://sqs.eu-west-1.amazonaws.com/123456789012/new"}
	later.Imports["Soon"] = "here"
	later.PendingImports = nil
	rapid.Check(t, func(t *rapid.T) {
		value := expression(4).Draw(t, "value")
		before, err := intrinsic.NewResolver(now).Resolve(value, "P")
		if err != nil || intrinsic.HasUnknown(before) != nil {
			return
		}
		after, err := intrinsic.NewResolver(later).Resolve(value, "P")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, after); diff != "" {
			t.Fatalf("a known value has changed:\n%s", diff)
		}
	})
}

func encodePlain(t *rapid.T, v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// functionIn names a function inside a resolved value, or "".
func functionIn(v any) string {
	if name, _, ok := template.Intrinsic(v); ok {
		return name
	}
	switch v := v.(type) {
	case map[string]any:
		for _, x := range v {
			if name := functionIn(x); name != "" {
				return name
			}
		}
	case []any:
		for _, x := range v {
			if name := functionIn(x); name != "" {
				return name
			}
		}
	}
	return ""
}

func FuzzResolve(f *testing.F) {
	for _, c := range languageCases() {
		f.Add(c.value)
	}
	scope := languageScope(f)
	f.Fuzz(func(t *testing.T, text string) {
		tmpl, err := template.Parse([]byte(`{"Resources": {"X": {"Type": "A::B::C", "Properties": {"P": ` + text + `}}}}`))
		if err != nil {
			return
		}
		out, err := intrinsic.NewResolver(scope).Resolve(tmpl.Resources["X"].Properties["P"], "P")
		if err == nil {
			if leak := functionIn(out); leak != "" {
				t.Fatalf("a function is left: %s", leak)
			}
		}
	})
}

func FuzzDynamicReferences(f *testing.F) {
	f.Add("{{resolve:ssm:a:1}}x{{resolve:secretsmanager:arn:aws:secretsmanager:r:1:secret:n:SecretString:k::}}")
	f.Fuzz(func(t *testing.T, text string) {
		refs, _ := intrinsic.DynamicReferences(text, "P")
		for _, ref := range refs {
			if !strings.Contains(text, ref.Text) || ref.Name == "" {
				t.Fatalf("%+v is not in the text", ref)
			}
		}
	})
}
