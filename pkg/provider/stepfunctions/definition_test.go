package stepfunctions

import (
	"testing"

	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

func TestSubstitutionsAreMadeOnce(t *testing.T) {
	got := substituted(`{"a": "${one}", "b": "${two}", "c": "${three}", "d": "$.one"}`, map[string]any{"one": "${two}", "two": "2"})
	if want := `{"a": "${two}", "b": "2", "c": "${three}", "d": "$.one"}`; got != want {
		t.Errorf("it is %s, want %s", got, want)
	}
}

func TestALiveDefinitionIsWrittenAsTheTemplateHasIt(t *testing.T) {
	live := `{"StartAt":"Go","States":{}}`
	for _, c := range []struct {
		name     string
		recorded map[string]any
		property string
		same     bool
	}{
		{"as text, spaced otherwise", map[string]any{"DefinitionString": "{\"StartAt\": \"${s}\", \"States\": {}}", "DefinitionSubstitutions": map[string]any{"s": "Go"}}, "DefinitionString", true},
		{"as an object", map[string]any{"Definition": map[string]any{"StartAt": "Go", "States": map[string]any{}}}, "Definition", true},
		{"in S3", map[string]any{"DefinitionS3Location": map[string]any{"Bucket": "b", "Key": "k"}}, "DefinitionS3Location", true},
		{"changed text", map[string]any{"DefinitionString": `{"StartAt":"Wait"}`}, "DefinitionString", false},
		{"a changed object", map[string]any{"Definition": map[string]any{"StartAt": "Wait"}}, "Definition", false},
	} {
		r := &call{}
		r.Previous = c.recorded
		properties := map[string]any{}
		readDefinition(r, live, properties)
		if properties[c.property] == nil || direct.Same("", "", properties[c.property], c.recorded[c.property]) != c.same {
			t.Errorf("%s: it is read as %v", c.name, properties)
		}
	}
}
