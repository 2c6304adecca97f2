package secret

import (
	"encoding/json"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

func TestTheRedactorMasksByValue(t *testing.T) {
	r := NewRedactor([]any{"hunter22", "abc", []any{"hunter22-longer", json.Number("4711")}, `quo"te`}, map[string]string{"from-the-store": "{{resolve:x}}"})
	for in, want := range map[string]string{
		"":                           "",
		"nothing":                    "nothing",
		"is hunter22.":               "is ***.",
		"is hunter22-longer":         "is ***",
		"abc":                        "***", // a short one as a whole
		"abcdef":                     "abcdef",
		"port 4711!":                 "port ***!",
		`{"v":"quo\"te"}`:            `{"v":"***"}`,
		"pw=from-the-store&hunter22": "pw={{resolve:x}}&***",
	} {
		if got := r.Text(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
	got := r.Object(map[string]any{"hunter22": "hunter22", "list": []any{json.Number("4711"), json.Number("47111"), true, nil, "abc"}})
	want := map[string]any{"hunter22": "***", "list": []any{"***", json.Number("47111"), true, nil, "abc"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v", got)
	}
	var none *Redactor
	if !none.Empty() || none.Text("x") != "x" || none.Object(nil) != nil || !NewRedactor([]any{"", nil, true}, nil).Empty() {
		t.Error("nothing to mask masks something")
	}
}

func TestNothingThatIsLongEnoughIsLeft(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.StringMatching(`[a-z"\\/]{4,12}`).Draw(t, "secret")
		other := rapid.StringMatching(`[a-z"\\/]{4,12}`).Draw(t, "other")
		before, after := rapid.String().Draw(t, "before"), rapid.String().Draw(t, "after")
		r := NewRedactor([]any{secret, other}, nil)
		masked := r.Text(before + secret + after)
		if again := r.Text(masked); again != masked && masked != Mask {
			t.Fatalf("%q is not settled: %q", masked, again)
		}
		if r.Text(secret) != Mask {
			t.Fatal("the whole is left")
		}
	})
}

func TestPathsAreReadAsTheyAreWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Path(rapid.SliceOfN(rapid.StringMatching(`[a-z.~0-1]{1,4}`), 1, 5).Draw(t, "path"))
		if got := ParsePath(p.Key()); !reflect.DeepEqual(got, p) {
			t.Fatalf("%q is read as %q", p, got)
		}
	})
}

func TestReplaceCopiesTheWay(t *testing.T) {
	in := map[string]any{"a": []any{map[string]any{"b": "x"}, "y"}, "c": "z"}
	out := ReplaceIn(in, Path{"a", "0", "b"}, "new")
	want := map[string]any{"a": []any{map[string]any{"b": "new"}, "y"}, "c": "z"}
	if !reflect.DeepEqual(out, want) || in["a"].([]any)[0].(map[string]any)["b"] != "x" {
		t.Errorf("%v of %v", out, in)
	}
	for _, p := range []Path{{"a", "2"}, {"a", "-1"}, {"a", "x"}, {"d"}, {"c", "d"}} {
		if out := ReplaceIn(in, p, "new"); !reflect.DeepEqual(out, in) {
			t.Errorf("%v was put there: %v", p, out)
		}
	}
}

func TestHandlesStandForWholeLeaves(t *testing.T) {
	handle := "0123456789abcdef0123456789abcdef"
	expression := Handle(handle, 7)
	if got, n, ok := ParseHandle(expression); !ok || got != handle || n != 7 {
		t.Errorf("%s %d %v", got, n, ok)
	}
	for _, other := range []any{nil, 1, "", "x" + expression, expression + "x", "{{slipway:vault:short:1}}", "{{slipway:vault:" + handle + "}}", "{{slipway:vault:" + handle + ":-1}}", "{{resolve:ssm:x}}"} {
		if _, _, ok := ParseHandle(other); ok {
			t.Errorf("%v is taken for a handle", other)
		}
	}
	got := Concealed(map[string]any{"a": []any{expression, "x"}, "b": nil})
	if want := map[string]any{"a": []any{Mask, "x"}, "b": nil}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v", got)
	}
}
