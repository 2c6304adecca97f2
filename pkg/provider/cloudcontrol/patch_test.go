package cloudcontrol

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/slipway-cdk/slipway/pkg/schema"
)

func apply(t interface{ Fatalf(string, ...any) }, model map[string]any, ops []PatchOperation) map[string]any {
	document, err := encode(ops)
	if err != nil {
		t.Fatalf("encoding the patch: %v", err)
	}
	patch, err := jsonpatch.DecodePatch([]byte(document))
	if err != nil {
		t.Fatalf("decoding the patch: %v", err)
	}
	text, err := encode(model)
	if err != nil {
		t.Fatalf("encoding the model: %v", err)
	}
	out, err := patch.Apply([]byte(text))
	if err != nil {
		t.Fatalf("applying %s: %v", document, err)
	}
	result, err := decode(string(out))
	if err != nil {
		t.Fatalf("decoding the result: %v", err)
	}
	return result
}

func TestPatch(t *testing.T) {
	typ := &schema.Type{
		CreateOnly: []string{"Name", "Box/Born"},
		ReadOnly:   []string{"Arn", "Box/Id", "Deep/Inner/Id", "Items/*/Id"},
		WriteOnly:  []string{"Secret", "Login/Password", "Users/*/Password", "Box/Key", "Deep/Inner/Key"},
	}
	cases := []struct {
		name, previous, desired string
		live                    string // what was read last; "" when that is not known
		want                    string // the operations: "set A", "remove B"
		// on is the live model when the patch is applied, result what the service then has to make true. Both default
		// to previous and desired.
		on, result string
	}{
		{name: "nothing changed", previous: `{"A":1,"B":{"C":[1,2]}}`, desired: `{"A":1,"B":{"C":[1,2]}}`},
		{name: "a number written otherwise", previous: `{"A":1,"B":[10]}`, desired: `{"A":1.0,"B":[1e1]}`},
		{name: "a changed property", previous: `{"A":1,"B":2}`, desired: `{"A":3,"B":2}`, want: "set /A"},
		{name: "a property whose type changed", previous: `{"A":1}`, desired: `{"A":"1"}`, want: "set /A"},
		{name: "a list that became an object", previous: `{"A":[]}`, desired: `{"A":{}}`, want: "set /A"},
		{name: "a nested change sends the whole property", previous: `{"A":{"B":1,"C":2}}`, desired: `{"A":{"B":1,"C":3}}`, want: "set /A"},
		{name: "a new property", previous: `{}`, desired: `{"A":false}`, want: "set /A"},
		{name: "an empty value is a value", previous: `{"A":"x","B":"x","C":5}`, desired: `{"A":"","B":[],"C":0}`, want: "set /A, set /B, set /C"},
		{name: "a removed property", previous: `{"A":1,"B":2}`, desired: `{"B":2}`, want: "set /A, remove /A"},
		{name: "a removed property that somebody has removed before", previous: `{"A":1,"B":2}`, desired: `{"B":3}`, on: `{"B":2}`, want: "set /B, set /A, remove /A"},
		{name: "null is absent", previous: `{"A":1,"B":null}`, desired: `{"A":null,"B":null}`, want: "set /A, remove /A", on: `{"A":1}`, result: `{}`},
		{name: "names with slashes and tildes", previous: `{"a/b":1,"c~d":1,"~1":1}`, desired: `{"a/b":2,"c~d":2}`, want: "set /a~1b, set /c~0d, set /~01, remove /~01"},
		{name: "an empty name", previous: `{"":1}`, desired: `{"":2}`, want: "set /"},
		{name: "a create-only property", previous: `{"Name":"a"}`, desired: `{"Name":"b"}`},
		{name: "a create-only property removed", previous: `{"Name":"a","A":1}`, desired: `{"A":2}`, want: "set /A", result: `{"Name":"a","A":2}`},
		{name: "a read-only property", previous: `{"A":1}`, desired: `{"A":2,"Arn":"x"}`, want: "set /A", result: `{"A":2}`},
		{name: "a write-only property alone is not sent again", previous: `{"Secret":"s"}`, desired: `{"Secret":"s"}`},
		{name: "a write-only property is sent with another change", previous: `{"Secret":"s","A":1}`, desired: `{"Secret":"s","A":2}`, on: `{"A":1}`, want: "set /A, set /Secret"},
		{name: "a write-only property is sent with a removal", previous: `{"Secret":"s","A":1}`, desired: `{"Secret":"s"}`, on: `{"A":1}`, want: "set /Secret, set /A, remove /A"},
		{name: "a changed write-only property", previous: `{"Secret":"s"}`, desired: `{"Secret":"t"}`, on: `{}`, want: "set /Secret"},
		{name: "a removed write-only property says nothing", previous: `{"Secret":"s"}`, desired: `{}`, on: `{}`, result: `{}`},
		{name: "a removed write-only property goes with another change", previous: `{"Secret":"s","A":1}`, desired: `{"A":2}`, on: `{"A":1}`, want: "set /A"},
		{name: "a write-only part", previous: `{"Login":{"User":"u","Password":"p"},"A":1}`, desired: `{"Login":{"User":"u","Password":"p"},"A":2}`, on: `{"Login":{"User":"u"},"A":1}`, want: "set /A, set /Login"},
		{name: "a removed property with a write-only part", previous: `{"Login":{"User":"u","Password":"p"}}`, desired: `{}`, on: `{"Login":{"User":"u"}}`, want: "set /Login, remove /Login"},
		{name: "a removed property of write-only parts", previous: `{"Login":{"Password":"p"},"Users":[{"Password":"p"}]}`, desired: `{}`, on: `{}`},
		{name: "a write-only part of list items", previous: `{"Users":[{"Name":"u","Password":"p"}],"A":1}`, desired: `{"Users":[{"Name":"u","Password":"p"}],"A":2}`, on: `{"Users":[{"Name":"u"}],"A":1}`, want: "set /A, set /Users"},
		{
			name: "an object with a read-only value is changed by members", previous: `{"Box":{"Size":1,"Color":"red","Born":1}}`, desired: `{"Box":{"Size":2,"Born":2,"New":1}}`,
			live: `{"Box":{"Size":1,"Color":"red","Born":1,"Id":"x"}}`, want: "set /Box/New, set /Box/Size, set /Box/Color, remove /Box/Color",
			on: `{"Box":{"Size":1,"Color":"red","Born":1,"Id":"x"}}`, result: `{"Box":{"Size":2,"New":1,"Born":1,"Id":"x"}}`,
		},
		{
			name: "write-only members are sent again with the others", previous: `{"Box":{"Size":1,"Key":"k"}}`, desired: `{"Box":{"Size":2,"Key":"k"}}`,
			live: `{"Box":{"Size":1,"Id":"x"}}`, want: "set /Box/Key, set /Box/Size", on: `{"Box":{"Size":1,"Id":"x"}}`, result: `{"Box":{"Size":2,"Key":"k","Id":"x"}}`,
		},
		{
			name: "such an object is new in the template", previous: `{}`, desired: `{"Box":{"Size":2}}`,
			live: `{"Box":{"Size":1,"Id":"x"}}`, want: "set /Box/Size", on: `{"Box":{"Size":1,"Id":"x"}}`, result: `{"Box":{"Size":2,"Id":"x"}}`,
		},
		{
			name: "such an object is removed", previous: `{"Box":{"Size":2}}`, desired: `{}`,
			live: `{"Box":{"Size":2,"Id":"x"}}`, want: "set /Box/Size, remove /Box/Size", on: `{"Box":{"Size":2,"Id":"x"}}`, result: `{"Box":{"Id":"x"}}`,
		},
		{
			name: "without a read-only value it is sent as a whole", previous: `{"Box":{"Size":1}}`, desired: `{"Box":{"Size":2}}`,
			live: `{"Box":{"Size":1}}`, want: "set /Box",
		},
		{
			name: "a read-only value two levels down", previous: `{"Deep":{"Inner":{"A":1},"B":1}}`, desired: `{"Deep":{"Inner":{"A":2},"B":1}}`,
			live: `{"Deep":{"Inner":{"A":1,"Id":"x"},"B":1}}`, want: "set /Deep/Inner/A", on: `{"Deep":{"Inner":{"A":1,"Id":"x"},"B":1}}`, result: `{"Deep":{"Inner":{"A":2,"Id":"x"},"B":1}}`,
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			previous, desired := object(t, c.previous), object(t, c.desired)
			var live map[string]any
			if c.live != "" {
				live = object(t, c.live)
			}
			ops := Patch(typ, previous, desired, live)
			var names []string
			for _, op := range ops {
				names = append(names, strings.Replace(op.Op, "add", "set", 1)+" "+op.Path)
			}
			if got := strings.Join(names, ", "); got != c.want {
				t.Errorf("the patch is %q, want %q", got, c.want)
			}
			if len(ops) == 0 {
				return
			}
			on, result := c.on, c.result
			if on == "" {
				on = c.previous
			}
			if result == "" {
				result = c.desired
			}
			if diff := cmp.Diff(object(t, result), apply(t, object(t, on), ops)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPatchWithoutASchema(t *testing.T) {
	ops := Patch(nil, object(t, `{"A":1}`), object(t, `{"B":2}`), nil)
	if got := apply(t, object(t, `{"A":1}`), ops); !cmp.Equal(got, object(t, `{"B":2}`)) {
		t.Errorf("it leads to %v", got)
	}
}

// Values of operations survive the encoding, also those that are empty.
func TestPatchOperationsKeepEmptyValues(t *testing.T) {
	for _, v := range []any{false, "", json.Number("0"), []any{}, map[string]any{}} {
		got, err := encode(PatchOperation{Op: "add", Path: "/A", Value: v})
		if err != nil || !strings.Contains(got, `"value":`) {
			t.Errorf("%v: %s, %v", v, got, err)
		}
	}
}

// For types without special paths, applying the patch to the previous properties gives the desired ones, and to what
// somebody has removed a property from, too.
func TestApplyingThePatchGivesTheDesiredProperties(t *testing.T) {
	scalar := rapid.Custom(func(rt *rapid.T) any {
		switch rapid.IntRange(0, 3).Draw(rt, "kind") {
		case 0:
			return rapid.StringMatching(`[a-c/~<"é]{0,4}`).Draw(rt, "text")
		case 1:
			return json.Number(fmt.Sprint(rapid.IntRange(-5, 5).Draw(rt, "number")))
		case 2:
			return rapid.Bool().Draw(rt, "boolean")
		}
		return []any{}
	})
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		if depth == 0 {
			return scalar
		}
		return rapid.Custom(func(rt *rapid.T) any {
			switch rapid.IntRange(0, 2).Draw(rt, "shape") {
			case 0:
				return rapid.SliceOfN(value(depth-1), 0, 3).Draw(rt, "list")
			case 1:
				return rapid.MapOfN(rapid.StringMatching(`[A-C~/]{1,2}`), value(depth-1), 0, 3).Draw(rt, "object")
			}
			return scalar.Draw(rt, "scalar")
		})
	}
	properties := rapid.MapOfN(rapid.StringMatching(`[A-D~/]{0,2}`), value(2), 0, 5)
	rapid.Check(t, func(rt *rapid.T) {
		previous, desired := properties.Draw(rt, "previous"), properties.Draw(rt, "desired")
		ops := Patch(&schema.Type{}, previous, desired, nil)
		if len(ops) == 0 {
			if !equal(any(previous), any(desired)) {
				rt.Fatalf("there is no patch from %v to %v", previous, desired)
			}
			return
		}
		if got := apply(rt, previous, ops); !equal(any(got), any(desired)) {
			rt.Fatalf("the patch leads to %v", got)
		}
		for _, name := range sortedKeys(previous) {
			if _, kept := desired[name]; kept {
				continue
			}
			drifted := map[string]any{}
			for k, v := range previous {
				if k != name {
					drifted[k] = v
				}
			}
			if got := apply(rt, drifted, ops); !equal(any(got), any(desired)) {
				rt.Fatalf("on a resource without %q the patch leads to %v", name, got)
			}
		}
		if again := Patch(&schema.Type{}, desired, desired, nil); again != nil {
			rt.Fatalf("what is as desired gets the patch %v", again)
		}
	})
}

// No patch ever touches a create-only or read-only path of a real type.
func TestAPatchNeverNamesWhatCannotBeSet(t *testing.T) {
	names := []string{"AWS::SQS::Queue", "AWS::Lambda::Function", "AWS::RDS::DBInstance", "AWS::S3::Bucket", "AWS::DynamoDB::Table", "AWS::EC2::Instance"}
	rapid.Check(t, func(rt *rapid.T) {
		name := rapid.SampledFrom(names).Draw(rt, "type")
		typ, _ := schema.Lookup(name)
		previous := Coerce(name, drawObject(rt, typ, &typ.Definition, 2))
		desired := Coerce(name, drawObject(rt, typ, &typ.Definition, 2))
		for _, op := range Patch(typ, previous, desired, previous) {
			path := strings.TrimPrefix(op.Path, "/")
			for _, never := range append(append([]string{}, typ.CreateOnly...), typ.ReadOnly...) {
				if path == never {
					rt.Fatalf("%s %s", op.Op, op.Path)
				}
			}
		}
	})
}
