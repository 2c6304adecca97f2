package run

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/intrinsic"
	"github.com/slipway-cdk/slipway/pkg/plan"
	"github.com/slipway-cdk/slipway/pkg/secret"
	"github.com/slipway-cdk/slipway/pkg/template"
)

func TestAParameterWithoutAValueIsUnknownToExpressions(t *testing.T) {
	for _, c := range []struct {
		name  string
		facts facts
		want  []string
	}{
		{"all are given", facts{Parameters: object{"A": "a"}}, nil},
		{"one is secret", facts{Parameters: object{"A": "a"}, clear: object{"S": "s"}}, nil},
		{"one is kept", facts{NoEcho: noEcho{Kept: []string{"K"}}}, []string{"parameter:K"}},
		{"one is not passed yet", facts{Parameters: object{"A": "a"}, unknown: []string{"U"}}, []string{"parameter:U"}},
		{"one of each", facts{Parameters: object{"A": "a"}, clear: object{"S": "s"}, NoEcho: noEcho{Kept: []string{"K"}}, unknown: []string{"U"}}, []string{"parameter:K", "parameter:U"}},
		{"one is secret and one is kept", facts{clear: object{"S": "s"}, NoEcho: noEcho{Kept: []string{"K"}}}, []string{"parameter:K"}},
		{"one is kept and one is not passed yet", facts{NoEcho: noEcho{Kept: []string{"K"}}, unknown: []string{"U"}}, []string{"parameter:K", "parameter:U"}},
	} {
		given := maps.Clone(c.facts.Parameters)
		values := c.facts.values()
		if d := cmp.Diff(c.want, intrinsic.HasUnknown(values)); d != "" {
			t.Errorf("%s: unknown (-want +got):\n%s", c.name, d)
		}
		if n := len(c.facts.Parameters) + len(c.facts.clear) + len(c.want); len(values) != n || c.facts.clear["S"] != values["S"] || values["A"] != c.facts.Parameters["A"] {
			t.Errorf("%s: %v", c.name, values)
		}
		if !maps.Equal(given, c.facts.Parameters) {
			t.Errorf("%s: the facts have become %v", c.name, c.facts.Parameters)
		}
	}
}

func TestWhatHasNoValueIsNotBound(t *testing.T) {
	full := &template.Template{Parameters: map[string]*template.Parameter{"A": {}, "K": {}, "U": {}}}
	for _, c := range []struct {
		kept, unknown []string
		want          []string
	}{
		{nil, nil, []string{"A", "K", "U"}}, {[]string{"K"}, nil, []string{"A", "U"}}, {nil, []string{"U"}, []string{"A", "K"}}, {[]string{"K"}, []string{"U"}, []string{"A"}},
	} {
		p := &parameters{t: full, kept: c.kept, unknown: c.unknown}
		if d := cmp.Diff(c.want, sortedIDs(p.bindable().Parameters)); d != "" || len(full.Parameters) != 3 {
			t.Errorf("kept %v, unknown %v (-want +got):\n%s", c.kept, c.unknown, d)
		}
	}
}

func TestThePlanThatWasShownIsBoundToItsParameters(t *testing.T) {
	seen := map[string]string{}
	for name, f := range map[string]facts{
		"none": {}, "a value": {given: map[string]string{"P": "a"}}, "another value": {given: map[string]string{"P": "b"}},
		"a secret": {NoEcho: noEcho{Digests: map[string]string{"P": "a"}}}, "another secret": {NoEcho: noEcho{Digests: map[string]string{"P": "b"}}},
	} {
		digest, err := f.parameterDigest()
		if other, taken := seen[digest]; err != nil || taken {
			t.Errorf("%s and %s have one digest, %v", name, other, err)
		}
		seen[digest] = name
	}
}

func TestWhatTheSidecarSaysOfParameters(t *testing.T) {
	given, recorded := map[string]string{"P": "p"}, map[string]string{"S": "digest"}
	gen := facts{NoEcho: noEcho{Recorded: recorded}}.generation(given)
	if gen.Extra != nil || !maps.Equal(gen.Parameters, given) || !maps.Equal(gen.NoEcho, recorded) {
		t.Errorf("%+v", gen)
	}
	gen = facts{NoEcho: noEcho{Conditions: map[string]recordedCondition{"C": {Value: true, Basis: "b"}}}}.generation(given)
	if got := string(gen.Extra[conditionsMember]); got != `{"C":{"value":true,"basis":"b"}}` {
		t.Errorf("conditions %s", got)
	}
}

func TestSealedParametersAreNotOpenedWithoutAVault(t *testing.T) {
	e := &Engine{}
	if err := e.openFacts(t.Context(), "run", &facts{}); err != nil {
		t.Errorf("where there are none: %v", err)
	}
	if err := e.openFacts(t.Context(), "run", &facts{NoEcho: noEcho{Handle: "handle"}}); err == nil {
		t.Error("where there are some: no error")
	}
	if err := e.sealFacts(t.Context(), "run", &facts{}); err != nil {
		t.Errorf("nothing is sealed: %v", err)
	}
}

func TestAnUndoIsSentTheSecretsThatTheUndoneWasSent(t *testing.T) {
	forward := func(secrets *inputSecrets, properties object) operationInput {
		return operationInput{Secrets: secrets, Properties: properties}
	}
	sent := &inputSecrets{Handle: "h", Masked: map[string]string{"P": "digest"}}
	for _, c := range []struct {
		name      string
		forward   operationInput
		old       map[string]string
		succeeded bool
		property  any
		same      bool
		refused   bool
	}{
		{"the value has not changed", forward(sent, object{"P": "sealed"}), map[string]string{"A.P": "digest"}, false, "sealed", true, false},
		{"it has, and was set", forward(sent, object{"P": "sealed"}), map[string]string{"A.P": "other"}, true, "sealed", true, false},
		{"it has, and may have been set", forward(sent, object{"P": "sealed"}), map[string]string{"A.P": "other"}, false, "sealed", false, false},
		{"it was sent no secrets", forward(nil, object{"P": "plain"}), map[string]string{"A.P": "digest"}, true, nil, false, true},
		{"it was not sent the property", forward(sent, object{}), map[string]string{"A.P": "digest"}, true, nil, false, true},
		{"the secret is another resource's", forward(nil, nil), map[string]string{"AB.P": "digest", "B.P": "digest"}, true, "***", false, false},
		{"the secret is in a property that it did not have", forward(nil, nil), map[string]string{"A.Q": "digest"}, true, "***", false, false},
	} {
		in := operationInput{Operation: plan.Operation{LogicalID: "A"}, Properties: object{"P": "***"}}
		err := unveil(&in, c.forward, c.old, c.succeeded)
		if (err != nil) != c.refused {
			t.Errorf("%s: %v", c.name, err)
		}
		if err != nil {
			continue
		}
		same := in.Secrets != nil && len(in.Secrets.Same) == 1
		if in.Properties["P"] != c.property || same != c.same || c.property == "sealed" && (in.Secrets.Handle != "h" || in.Secrets.Masked["P"] != "digest") {
			t.Errorf("%s: %v, %+v", c.name, in.Properties, in.Secrets)
		}
	}
}

func TestWhatIsPublishedAsAMaskIsNotRead(t *testing.T) {
	f := facts{Imports: map[string]any{"a": "x", "b": secret.Mask}, StackOutputs: map[string]any{"c": secret.Mask, "d": "has *** in it"}}
	var got []string
	for _, d := range readsSecret(StackRequest{}, f) {
		got = append(got, d.Summary)
	}
	want := []string{
		"the export b is made from a NoEcho parameter, so its value was not kept", "the output c is made from a NoEcho parameter, so its value was not kept",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("refused (-want +got):\n%s", d)
	}
}
