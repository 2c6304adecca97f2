package run

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/diff"
	"github.com/slipway-cdk/slipway/pkg/intrinsic"
	"github.com/slipway-cdk/slipway/pkg/objectstore"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/secret"
	"github.com/slipway-cdk/slipway/pkg/state"
)

type object = map[string]any

const reference = "{{resolve:secretsmanager:db}}"

func TestOnlyTheTextOfADynamicReferenceIsReplaced(t *testing.T) {
	for _, c := range []struct {
		name                             string
		expression, resolved, there, out any
	}{
		{"a text without one", "a", "a", "opened", "opened"},
		{"a text with one", reference, "value", reference, "value"},
		{"in objects and lists", object{"A": []any{"a", reference}, "B": "b"}, object{"A": []any{"a", "value"}, "B": "b"},
			object{"A": []any{"opened", reference}, "B": "b"}, object{"A": []any{"opened", "value"}, "B": "b"}},
		{"where an object has become something else", object{"A": reference}, "value", object{"A": reference}, object{"A": reference}},
		{"where there is no object", object{"A": reference}, object{"A": "value"}, "text", "text"},
		{"where a list has become something else", []any{reference}, "value", []any{reference}, []any{reference}},
		{"where there is no list", []any{reference}, []any{"value"}, "text", "text"},
		{"where the resolved list is longer", []any{reference}, []any{"value", "more"}, []any{reference}, []any{reference}},
		{"where the list is longer", []any{reference}, []any{"value"}, []any{reference, "more"}, []any{reference, "more"}},
	} {
		if d := cmp.Diff(c.out, inReferences(c.expression, c.resolved, c.there)); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
	}
}

func TestADynamicReferenceThatStaysIsNoChange(t *testing.T) {
	other := "{{resolve:secretsmanager:other}}"
	for _, c := range []struct {
		name                                string
		recorded, expression, resolved, out any
	}{
		{"the same reference", reference, reference, "value", "value"},
		{"another one", other, reference, "value", other},
		{"a text that stays", "a", "a", "a", "a"},
		{"a text where there was a reference", reference, "a", "a", reference},
		{"a number", 1, reference, "value", 1},
		{"in objects and lists", object{"A": []any{reference, other}, "B": reference}, object{"A": []any{reference, reference}}, object{"A": []any{"value", "value"}},
			object{"A": []any{"value", other}, "B": reference}},
		{"an object in place of something else", object{"A": reference}, reference, "value", object{"A": reference}},
		{"an object that is resolved to something else", object{"A": reference}, object{"A": reference}, "value", object{"A": reference}},
		{"a list in place of something else", []any{reference}, reference, "value", []any{reference}},
		{"a list that is resolved to something else", []any{reference}, []any{reference}, "value", []any{reference}},
		{"a list that grows", []any{reference}, []any{reference, "b"}, []any{"value", "b"}, []any{reference}},
		{"a list that is resolved to a longer one", []any{reference}, []any{reference}, []any{"value", "b"}, []any{reference}},
	} {
		if d := cmp.Diff(c.out, sameReferences(c.recorded, c.expression, c.resolved)); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
	}
}

func TestWhatAProviderGivesBackIsMaskedByItsPosition(t *testing.T) {
	handle := secret.Handle("0123456789abcdef0123456789abcdef", 0)
	named := map[string]string{"marker-value": reference}
	m := masking{
		redactor: secret.NewRedactor([]any{"marker-sealed"}, named), named: named, hide: map[string]bool{"Whole": true, "Absent": true},
		expressions: object{
			"Sealed": handle, "Kept": secret.Mask, "Referred": "x " + reference, "Plain": "plain",
			"In": []any{object{"Sealed": handle, "Other": "o"}}, "Shape": object{"Sealed": handle}, "List": []any{handle},
		},
	}
	in := object{
		"Sealed": "ab", "Kept": "cd", "Referred": "x y", "Plain": "has marker-sealed and marker-value",
		"In": []any{object{"Sealed": 1, "Other": "o"}}, "Shape": "s", "List": []any{"ab", "cd"}, "Whole": []any{"w"}, "More": "m",
	}
	want := object{
		"Sealed": "***", "Kept": "***", "Referred": "x " + reference, "Plain": "has *** and " + reference,
		"In": []any{object{"Sealed": "***", "Other": "o"}}, "Shape": "s", "List": []any{"ab", "cd"}, "Whole": []any{"***"}, "More": "m",
	}
	if d := cmp.Diff(want, m.read(in)); d != "" {
		t.Errorf("what is read back (-want +got):\n%s", d)
	}
	if m.read(nil) != nil || m.object(nil) != nil {
		t.Error("nothing becomes something")
	}
	if d := cmp.Diff(object{"In": "text"}, m.object(object{"In": "text"})); d != "" {
		t.Errorf("no list where one was sent (-want +got):\n%s", d)
	}
}

func TestAFailureIsMaskedAndWrapsNothing(t *testing.T) {
	m := masking{redactor: secret.NewRedactor([]any{"marker-sealed"}, nil)}
	cause := errors.New("marker-sealed is bad")
	for _, c := range []struct {
		err  error
		want provider.Error
	}{
		{cause, provider.Error{Kind: provider.KindFailed, Message: "*** is bad"}},
		{&provider.Error{Kind: provider.KindInvalid, Err: cause}, provider.Error{Kind: provider.KindInvalid, Message: "*** is bad"}},
		{&provider.Error{Kind: provider.KindInvalid, Message: "no marker-sealed", Err: cause}, provider.Error{Kind: provider.KindInvalid, Message: "no ***"}},
		{&provider.Error{Kind: provider.KindInvalid}, provider.Error{Kind: provider.KindInvalid}},
	} {
		var got *provider.Error
		if !errors.As(m.failure(c.err), &got) || *got != c.want {
			t.Errorf("%v becomes %+v, want %+v", c.err, got, c.want)
		}
	}
	if m.failure(nil) != nil {
		t.Error("success becomes a failure")
	}
}

func TestWhatCannotBeFoundByItsTextIsHiddenAltogether(t *testing.T) {
	handle := secret.Handle("0123456789abcdef0123456789abcdef", 0)
	before, err := marshal(&state.Resource{
		PhysicalID: "a", ResourceType: "AWS::SNS::Topic", Properties: object{},
		Attributes: object{"Echoed": "is ***", "Plain": "p"}, ObservedProperties: object{"Seen": []any{"***"}, "Unseen": "u"},
	})
	if err != nil {
		t.Fatal(err)
	}
	in := operationInput{
		Properties: object{"Long": handle, "Short": handle, "Kept": "***", "Null": nil, "Other": "o"}, Before: before,
		Secrets: &inputSecrets{Masked: map[string]string{"Long": "d", "Short": "d", "Kept": "d", "Null": "d"}},
	}
	clear := object{"Long": "marker-sealed", "Short": "abc", "Kept": "***", "Null": nil, "Other": "o"}
	hide := func() []string { return sortedIDs(echoes(in, clear)) }
	if d := cmp.Diff([]string{"Echoed", "Kept", "Seen", "Short"}, hide()); d != "" {
		t.Errorf("hidden (-want +got):\n%s", d)
	}
	in.Before = nil
	if d := cmp.Diff([]string{"Kept", "Short"}, hide()); d != "" {
		t.Errorf("hidden of a new resource (-want +got):\n%s", d)
	}
	in.Before = []byte(`"no record"`)
	if d := cmp.Diff([]string{"Kept", "Short"}, hide()); d != "" {
		t.Errorf("hidden beside a damaged record (-want +got):\n%s", d)
	}
	if in.Before, in.Secrets = before, nil; len(hide()) != 0 {
		t.Errorf("hidden without secrets: %v", hide())
	}
}

func TestAHandleIsOpenedOrRefused(t *testing.T) {
	objects := mapObjects{bodies: map[string][]byte{}}
	v := &secret.Vault{Objects: objects, Sealer: &secret.KeyFile{Path: filepath.Join(t.TempDir(), "keys")}}
	handle, err := v.Put(t.Context(), "root", sealed{Leaves: []any{"one", "two"}})
	if err != nil {
		t.Fatal(err)
	}
	open := func(e *Engine, n int) (map[string]any, error) {
		o := opener{e: e, root: "root", contents: map[string]sealed{}}
		return o.object(t.Context(), object{"A": []any{secret.Handle(handle, n)}, "B": "b"})
	}
	for n, want := range []string{"one", "two"} {
		got, err := open(&Engine{Vault: v}, n)
		if d := cmp.Diff(object{"A": []any{want}, "B": "b"}, got); d != "" || err != nil {
			t.Errorf("leaf %d, %v (-want +got):\n%s", n, err, d)
		}
	}
	if _, err := open(&Engine{Vault: v}, 2); !errors.Is(err, secret.ErrNotInVault) {
		t.Errorf("a leaf that there is not: %v", err)
	}
	if _, err := open(&Engine{}, 0); err == nil {
		t.Error("a handle is opened without a vault")
	}
	clear(objects.bodies)
	if _, err := open(&Engine{Vault: v}, 0); !errors.Is(err, secret.ErrNotInVault) {
		t.Errorf("from an empty vault: %v", err)
	}
	o := opener{e: &Engine{}, contents: map[string]sealed{"b": {Leaves: []any{"3"}}, "a": {Leaves: []any{"1", "2"}}}}
	if d := cmp.Diff([]any{"1", "2", "3"}, o.values()); d != "" {
		t.Errorf("all that was opened (-want +got):\n%s", d)
	}
	if got, err := o.parameters(t.Context(), ""); got != nil || err != nil {
		t.Errorf("the values of no parameters: %v, %v", got, err)
	}
	if _, err := o.parameters(t.Context(), handle); err == nil {
		t.Error("parameters are read without a vault")
	}
}

// mapObjects is as much of an object store as a vault needs.
type mapObjects struct {
	objectstore.Store
	bodies map[string][]byte
}

func (m mapObjects) Get(_ context.Context, key string) (objectstore.Object, error) {
	body, ok := m.bodies[key]
	if !ok {
		return objectstore.Object{}, objectstore.ErrNotFound
	}
	return objectstore.Object{Body: body}, nil
}

func (m mapObjects) Put(_ context.Context, key string, body []byte, _ objectstore.Condition) (string, error) {
	m.bodies[key] = body
	return "etag", nil
}

func TestAnAnswerWithoutAttributesIsNotSealed(t *testing.T) {
	objects := mapObjects{bodies: map[string][]byte{}}
	e := &Engine{Vault: &secret.Vault{Objects: objects, Sealer: &secret.KeyFile{Path: filepath.Join(t.TempDir(), "keys")}}}
	handle, digests, err := e.concealAttributes(t.Context(), operationInput{}, &provider.Progress{Done: true, NoEcho: true})
	if handle != "" || len(digests) != 0 || err != nil || len(objects.bodies) != 0 {
		t.Errorf("%q, %v, %v", handle, digests, err)
	}
	p := provider.Progress{Attributes: object{"A": "a"}, Observed: object{"B": "b"}}
	if handle, digests, err = (&Engine{}).concealAttributes(t.Context(), operationInput{}, &p); handle != "" || len(digests) != 1 || err != nil || p.Attributes["A"] != "***" || p.Observed != nil {
		t.Errorf("without a vault: %q, %v, %v, %+v", handle, digests, err, p)
	}
}

func TestWhyAReferenceCannotBeResolvedDecidesWhetherItIsTriedAgain(t *testing.T) {
	for cause, want := range map[error]provider.Kind{
		secret.ErrUnavailable: provider.KindUnavailable, secret.ErrDenied: provider.KindAccessDenied, secret.ErrNotFound: provider.KindInvalid, secret.ErrNotInVault: provider.KindInvalid,
	} {
		if got := unresolvable(fmt.Errorf("the secret db: %w", cause)); got.Kind != want || got.Code != codeDynamicReference {
			t.Errorf("%v: %+v", cause, got)
		}
	}
}

func TestAProcessForgetsTheSecretsOfRunsThatItHasLeft(t *testing.T) {
	e := &Engine{}
	held := func() int {
		n := 0
		e.resolvers.Range(func(any, any) bool { n++; return true })
		return n
	}
	one := e.resolver("run-0", nil)
	if e.resolver("run-0", nil) != one {
		t.Error("a run has two resolvers")
	}
	if e.resolver("run-0", &Role{ARN: "a"}) == one || e.resolver("run-0", &Role{ARN: "a"}) == e.resolver("run-0", &Role{ARN: "b"}) {
		t.Error("two roles share what was read")
	}
	for range 20 { // which ones are forgotten is left to chance
		e = &Engine{}
		for i := range 8 {
			e.resolver(fmt.Sprint("run-", i+1), nil)
		}
		if n := held(); n != 8 {
			t.Fatalf("%d resolvers are held, want all of 8", n)
		}
	}
	for i := range 50 {
		id := fmt.Sprint("later-", i)
		if r := e.resolver(id, nil); e.resolver(id, nil) != r {
			t.Fatal("the run at work is forgotten")
		}
	}
	if n := held(); n > 9 {
		t.Errorf("%d resolvers are held", n)
	}
	e.forgetResolvers("later-49")
	e.resolvers.Range(func(key, _ any) bool {
		if key.(resolverKey).root == "later-49" {
			t.Error("a run that has ended is not forgotten")
		}
		return true
	})
	if n := held(); n < 7 {
		t.Errorf("%d resolvers are left of the other runs", n)
	}
}

func TestWhatTheRecordHoldsAsAMaskIsUnknown(t *testing.T) {
	resources := func() map[string]intrinsic.Resource {
		return map[string]intrinsic.Resource{
			"A": {Attributes: object{"Arn": "arn:a", "Whole": "***", "Part": object{"In": "x ***"}}, Properties: object{"P": "***", "Q": "q"}},
			"B": {Attributes: object{"Arn": "arn:b", "Part": "x ***"}, Properties: object{"P": "***"}},
			"C": {Attributes: object{"Arn": "arn:c", "Part": "x ***"}, Properties: object{"P": "***"}},
		}
	}
	unknown := func(name string) intrinsic.Unknown { return intrinsic.Unknown{Refs: []string{"secret:" + name}} }
	got := withoutMasked(resources(), map[string]string{"B.P": "digest", "Gone.P": "digest"})
	want := resources()
	want["A"] = intrinsic.Resource{
		Attributes: object{"Arn": "arn:a", "Whole": unknown("A.Whole"), "Part": unknown("A.Part")}, Properties: want["A"].Properties,
	}
	want["B"] = intrinsic.Resource{Attributes: object{"Arn": "arn:b", "Part": unknown("B.Part")}, Properties: object{"P": unknown("B.P")}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("resources (-want +got):\n%s", d)
	}
	for waits, refused := range map[string]bool{"secret:A.Whole": true, "parameter:Password": true, "Other.Arn": false} {
		if err := secretWaits([]string{"First.Arn", waits}); (err != nil) != refused {
			t.Errorf("waiting for %s: %v", waits, err)
		}
	}
	if err := secretWaits(nil); err != nil {
		t.Error(err)
	}
}

func TestAValueIsUnknownAsLongAsAnotherOneIs(t *testing.T) {
	if got := unlessUnknown("***", nil); got != "***" {
		t.Errorf("with no others: %v", got)
	}
	resolver := intrinsic.NewResolver(&intrinsic.Scope{Parameters: object{"P": "p", "U": intrinsic.Unknown{Refs: []string{"U"}}}})
	for name, known := range map[string]bool{"P": true, "U": false} {
		got, err := resolver.Resolve(unlessUnknown("***", []any{object{"Ref": name}}), "Properties")
		if err != nil || (got == "***") != known || known == (len(intrinsic.HasUnknown(got)) > 0) {
			t.Errorf("beside %s: %v, %v", name, got, err)
		}
	}
}

func TestWhatAChangeWrites(t *testing.T) {
	sdk := &state.Resource{ProvisionedBy: string(provider.RouteSDK)}
	cc := &state.Resource{ProvisionedBy: string(provider.RouteCloudControl)}
	changes := func(path string) []diff.PropertyChange { return []diff.PropertyChange{{Path: path}} }
	for _, c := range []struct {
		name   string
		change diff.Change
		before *state.Resource
		path   secret.Path
		writes bool
	}{
		{"a creation", diff.Change{Action: diff.ActionCreate}, nil, secret.Path{"Name"}, true},
		{"a replacement", diff.Change{Action: diff.ActionReplace}, cc, secret.Path{"Name"}, true},
		{"an update that sends all", diff.Change{Action: diff.ActionUpdate, Changes: changes("Other")}, sdk, secret.Path{"Name"}, true},
		{"an update that sends what has changed", diff.Change{Action: diff.ActionUpdate, Changes: changes("Other")}, cc, secret.Path{"Name"}, false},
		{"a change beside it in the same property", diff.Change{Action: diff.ActionUpdate, Changes: changes("Name.In")}, cc, secret.Path{"Name", "Of"}, true},
		{"what is never given back", diff.Change{Action: diff.ActionUpdate, Type: "AWS::SecretsManager::Secret", Changes: changes("Description")}, cc, secret.Path{"SecretString"}, true},
		{"what is given back", diff.Change{Action: diff.ActionUpdate, Type: "AWS::SecretsManager::Secret", Changes: changes("Description")}, cc, secret.Path{"KmsKeyId"}, false},
		{"no record", diff.Change{Action: diff.ActionUpdate, Changes: changes("Other")}, nil, secret.Path{"Name"}, false},
	} {
		if got := mustWrite(c.change, c.before, c.path); (got != "") != c.writes {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}

func TestTheConditionsThatAnExpressionNames(t *testing.T) {
	for _, c := range []struct {
		v    any
		want []string
	}{
		{object{"Condition": "A"}, []string{"A"}},
		{object{"Condition": "A", "Other": object{"Condition": "B"}}, []string{"B"}},
		{object{"Condition": 1}, nil},
		{object{"Fn::If": []any{"A", object{"Condition": "B"}, "x"}}, []string{"A", "B"}},
		{object{"Fn::If": []any{}}, nil},
		{object{"Fn::If": []any{1, "x", "y"}}, nil},
		{object{"Fn::Or": []any{object{"Condition": "A"}, object{"Fn::Not": []any{object{"Condition": "B"}}}}}, []string{"A", "B"}},
		{"A", nil},
	} {
		if got := conditionsIn(c.v); !slices.Equal(got, c.want) {
			t.Errorf("%v names %v, want %v", c.v, got, c.want)
		}
	}
}
