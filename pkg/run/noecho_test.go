package run_test

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/secret"
	"github.com/slipway-cdk/slipway/pkg/state"
)

// The values of the NoEcho parameter in these tests.
const (
	firstPassword  = "marker-alpha-1111"
	secondPassword = "marker-beta-2222"
)

// secretWorld is a world with a run vault.
func secretWorld(t *testing.T) *world {
	w := newWorld(t)
	w.engine.Vault = &secret.Vault{Objects: w.objects, Sealer: &secret.KeyFile{Path: filepath.Join(t.TempDir(), "keys")}}
	return w
}

// hidden is a template whose topic A has the value of the NoEcho parameter in a text, and whose B is another topic.
func hidden(a, b object) object {
	return object{
		"Parameters": object{
			"Password": object{"Type": "String", "NoEcho": true, "MinLength": 4},
			"Size":     object{"Type": "String", "Default": "small"},
		},
		"Resources": object{"A": topic(a), "B": topic(b)},
	}
}

// withPassword is a text that holds the NoEcho value.
func withPassword() object { return object{"Fn::Sub": "is ${Password}"} }

// deployWith deploys with values for the parameters, as a plane does: what is NoEcho goes into the vault.
func (w *world) deployWith(template object, values map[string]string, change ...func(*run.Request)) runlog.Header {
	w.Helper()
	body, err := json.Marshal(template)
	if err != nil {
		w.Fatal(err)
	}
	return w.finish(w.submit(order{
		stack: "App", command: runlog.CommandDeploy, template: template, options: run.Options{ForceStatefulRecreation: true},
		change: func(r *run.Request) {
			if r.Stacks[0].Parameters, r.Stacks[0].NoEcho, err = w.engine.SealParameters(w.Context(), r.RunID, body, values); err != nil {
				w.Fatal(err)
			}
			for _, fn := range change {
				fn(r)
			}
		},
	}))
}

func password(value string) map[string]string { return map[string]string{"Password": value} }

// concealed checks that no store has a value of the NoEcho parameter, and that the vault is empty.
func (w *world) concealed() {
	w.Helper()
	check := func(what string, body []byte) {
		for _, value := range []string{firstPassword, secondPassword} {
			if strings.Contains(string(body), value) {
				w.Errorf("%s holds %s", what, value)
			}
		}
	}
	for key, o := range w.objects.objs {
		check(key, o.Body)
		if strings.Contains(key, "/vault/") {
			w.Errorf("%s is left in the vault", key)
		}
	}
	for id, h := range w.log.headers {
		check("the header of "+id, h.body)
	}
	for id, ops := range w.log.ops {
		for op, v := range ops {
			check("operation "+op+" of "+id, v.body)
		}
	}
	for id, events := range w.log.events {
		for ev, body := range events {
			check("event "+ev+" of "+id, body)
		}
	}
}

// has checks what a live resource has at a property, and that the record does not tell it.
func (w *world) has(id, property, want string) {
	w.Helper()
	r := w.record("App").Resources[id]
	if got := w.cloud.live[r.PhysicalID].Properties[property]; got != want {
		w.Errorf("%s has the %s %q, want %q", id, property, got, want)
	}
	if recorded := r.Properties[property]; recorded != secret.Mask {
		w.Errorf("the record of %s says %q", id, recorded)
	}
}

func TestANoEchoValueIsSentAndNotKept(t *testing.T) {
	w := secretWorld(t)
	template := hidden(object{"DisplayName": withPassword()}, object{"DisplayName": "b"})
	h := w.deployWith(template, password(firstPassword))
	if h.Result != runlog.ResultSucceeded || h.Counts.Created != 2 {
		t.Fatal(w.story(h.RunID))
	}
	w.has("A", "DisplayName", "is "+firstPassword)
	w.concealed()
	sidecar, _, err := w.states.LoadSidecar(t.Context(), "App", region)
	if err != nil || len(sidecar.Next.Masked) != 1 || sidecar.Next.Masked["A.DisplayName"] == "" || sidecar.Next.NoEcho["Password"] == "" {
		t.Errorf("the sidecar has %+v, %v", sidecar.Next, err)
	}
	for _, c := range []struct {
		name               string
		values             map[string]string
		updated, unchanged int
		password           string
	}{
		{"the same value is no change", password(firstPassword), 0, 2, firstPassword},
		{"another value is one", password(secondPassword), 1, 1, secondPassword},
		{"no value keeps the one that is there", nil, 0, 2, secondPassword},
	} {
		h := w.deployWith(template, c.values)
		if h.Result != runlog.ResultSucceeded || h.Counts.Updated != c.updated || h.Counts.Unchanged != c.unchanged {
			t.Errorf("%s: %+v: %s", c.name, h.Counts, w.story(h.RunID))
		}
		w.has("A", "DisplayName", "is "+c.password)
		w.concealed()
		w.accounted("App")
	}
}

func TestAKeptValueIsNotNeededWhereNothingIsWritten(t *testing.T) {
	for _, c := range []struct {
		name     string
		template object
		route    provider.Route
		needs    string // what the refusal says, "" where there is none
	}{
		{"another resource changes", hidden(object{"DisplayName": withPassword()}, object{"DisplayName": "c"}), provider.RouteSDK, ""},
		{"a policy changes", func() object {
			t := hidden(object{"DisplayName": withPassword()}, object{"DisplayName": "b"})
			t["Resources"].(object)["A"].(object)["DeletionPolicy"] = "Retain"
			return t
		}(), provider.RouteSDK, ""},
		{"another property changes, and all are sent", hidden(object{"DisplayName": withPassword(), "SignatureVersion": "2"}, object{"DisplayName": "b"}), provider.RouteSDK, "sends all properties"},
		{"another property changes, and it alone is sent", hidden(object{"DisplayName": withPassword(), "SignatureVersion": "2"}, object{"DisplayName": "b"}), provider.RouteCloudControl, ""},
		{"the text around it changes", hidden(object{"DisplayName": object{"Fn::Sub": "was ${Password}"}}, object{"DisplayName": "b"}), provider.RouteCloudControl, "what is made from it has changed"},
		{"the resource is replaced", hidden(object{"DisplayName": withPassword(), "FifoTopic": true}, object{"DisplayName": "b"}), provider.RouteCloudControl, "is replaced"},
		{"another resource gets it", hidden(object{"DisplayName": withPassword()}, object{"DisplayName": withPassword()}), provider.RouteSDK, "B"},
		{"a new resource gets it", func() object {
			t := hidden(object{"DisplayName": withPassword()}, object{"DisplayName": "b"})
			t["Resources"].(object)["C"] = topic(object{"DisplayName": ref("Password")})
			return t
		}(), provider.RouteSDK, "is created"},
		{"the resource goes", func() object {
			t := hidden(object{}, object{"DisplayName": "b"})
			delete(t["Resources"].(object), "A")
			return t
		}(), provider.RouteSDK, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := secretWorld(t)
			w.deployWith(hidden(object{"DisplayName": withPassword()}, object{"DisplayName": "b"}), password(firstPassword))
			w.editUnderSidecar(func(rec *state.Record) { rec.Resources["A"].ProvisionedBy = string(c.route) })
			w.cloud.forget()
			h := w.deployWith(c.template, nil)
			if c.needs == "" {
				if h.Result != runlog.ResultSucceeded {
					t.Fatal(w.story(h.RunID))
				}
				for _, call := range w.cloud.calls {
					if text, _ := json.Marshal(call.properties); strings.Contains(string(text), firstPassword) {
						t.Errorf("%s is sent %s", call.step, text)
					}
				}
			} else if h.Result != runlog.ResultFailed || !strings.Contains(w.story(h.RunID), "Password") || !strings.Contains(w.story(h.RunID), c.needs) || len(w.cloud.calls) != 0 {
				t.Errorf("%s, calls %v: %s", h.Result, stepsOf(w), w.story(h.RunID))
			}
			w.concealed()
			// With the value it is done.
			if h = w.deployWith(c.template, password(firstPassword)); h.Result != runlog.ResultSucceeded {
				t.Errorf("with the value: %s", w.story(h.RunID))
			}
			w.concealed()
		})
	}
}

func TestAConditionGoesByAKeptValueAsLongAsItsBasisStays(t *testing.T) {
	conditional := func(compared string) object {
		t := hidden(object{"DisplayName": "a"}, object{"DisplayName": "b"})
		t["Conditions"] = object{
			"Strong": object{"Fn::Not": []any{object{"Fn::Equals": []any{ref("Password"), "weak"}}}},
			"Wide":   object{"Fn::And": []any{object{"Condition": "Strong"}, object{"Fn::Equals": []any{ref("Size"), compared}}}},
			"Plain":  object{"Fn::Equals": []any{ref("Size"), "small"}},
		}
		t["Rules"] = object{"Long": object{"Assertions": []any{object{"Assert": object{"Fn::Not": []any{object{"Fn::Equals": []any{ref("Password"), "short"}}}}}}}}
		r := t["Resources"].(object)
		r["A"].(object)["Condition"], r["B"].(object)["Condition"] = "Wide", "Plain"
		return t
	}
	w := secretWorld(t)
	h := w.deployWith(conditional("small"), password(firstPassword))
	if d := cmp.Diff([]string{"A", "B"}, sortedKeys(w.record("App"))); d != "" || h.Result != runlog.ResultSucceeded {
		t.Fatalf("resources (-want +got):\n%s\n%s", d, w.story(h.RunID))
	}
	if h = w.deployWith(conditional("small"), nil); h.Result != runlog.ResultSucceeded || h.Counts.Unchanged != 2 {
		t.Errorf("without the value: %+v: %s", h.Counts, w.story(h.RunID))
	}
	// What else the condition depends on has changed: the expression, or another parameter.
	h = w.deployWith(conditional("large"), nil)
	if h.Result != runlog.ResultFailed || !says(h, "the condition Wide can't be evaluated without it") || says(h, "the condition Strong") {
		t.Errorf("%s %v", h.Result, h.Diagnostics)
	}
	h = w.deployWith(conditional("small"), map[string]string{"Size": "large"})
	if h.Result != runlog.ResultFailed || !says(h, "the condition Wide can't be evaluated without it") {
		t.Errorf("%s %v", h.Result, h.Diagnostics)
	}
	// A value that makes it false takes the resource away, and stays without the value.
	if h = w.deployWith(conditional("small"), password("weak")); h.Result != runlog.ResultSucceeded || h.Counts.Deleted != 1 {
		t.Errorf("%+v: %s", h.Counts, w.story(h.RunID))
	}
	if h = w.deployWith(conditional("small"), nil); h.Result != runlog.ResultSucceeded || h.Counts.Unchanged != 1 {
		t.Errorf("%+v: %s", h.Counts, w.story(h.RunID))
	}
	// The rule is checked whenever there is a value.
	if h = w.deployWith(conditional("small"), password("short")); h.Result != runlog.ResultFailed {
		t.Errorf("a value that the rule forbids: %s", h.Result)
	}
	w.concealed()
}

func TestARollbackRestoresWhatHoldsANoEchoValue(t *testing.T) {
	w := secretWorld(t)
	bad := func(a object) object {
		t := hidden(a, object{"DisplayName": "b"})
		t["Resources"].(object)["Bad"] = with(topic(object{}), object{"DependsOn": []any{"A", "B"}})
		return t
	}
	w.deployWith(hidden(object{"DisplayName": withPassword(), "SignatureVersion": "1"}, object{"DisplayName": "b"}), password(firstPassword))
	w.cloud.script("create Bad", script{fails: fails(provider.KindInvalid)})
	was := maps.Clone(w.record("App").Resources["A"].Properties)
	h := w.deployWith(bad(object{"DisplayName": withPassword(), "SignatureVersion": "2"}), password(firstPassword))
	if d := cmp.Diff(was, w.record("App").Resources["A"].Properties); d != "" || h.Result != runlog.ResultFailed {
		t.Errorf("%s, the record (-before +after):\n%s\n%s", h.Result, d, w.story(h.RunID))
	}
	w.has("A", "DisplayName", "is "+firstPassword)
	if got := w.cloud.live[w.record("App").Resources["A"].PhysicalID].Properties["SignatureVersion"]; got != "1" {
		t.Errorf("A has the version %v", got)
	}
	w.concealed()
	// A value that the run has changed is not known any more: the new one stays, and is known to be another one.
	w.deployWith(bad(object{"DisplayName": withPassword(), "SignatureVersion": "2"}), password(secondPassword))
	w.has("A", "DisplayName", "is "+secondPassword)
	if calls := w.cloud.steps("update A"); calls[len(calls)-1].previous["DisplayName"] != "is "+secondPassword {
		t.Errorf("what it has is said to be %v", calls[len(calls)-1].previous)
	}
	w.concealed()
	template := hidden(object{"DisplayName": withPassword(), "SignatureVersion": "1"}, object{"DisplayName": "b"})
	if h = w.deployWith(template, password(firstPassword)); h.Result != runlog.ResultSucceeded || h.Counts.Updated != 1 {
		t.Errorf("%+v: %s", h.Counts, w.story(h.RunID))
	}
	w.has("A", "DisplayName", "is "+firstPassword)
}

func TestANoEchoParameterNeedsAVault(t *testing.T) {
	w := newWorld(t)
	template := hidden(object{"DisplayName": withPassword()}, object{})
	body, err := json.Marshal(template)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.engine.SealParameters(t.Context(), "run", body, password(firstPassword)); err == nil {
		t.Error("a value is sealed without a vault")
	}
	template["Parameters"].(object)["Password"].(object)["Default"] = "default"
	h := w.deploy(template)
	if h.Result != runlog.ResultFailed || !says(h, "no run vault") || len(w.cloud.calls) != 0 {
		t.Errorf("%s %v", h.Result, h.Diagnostics)
	}
	h = w.finish(w.submit(order{stack: "App", command: runlog.CommandDeploy, template: template, change: func(r *run.Request) {
		r.Stacks[0].NoEcho = map[string]string{"Password": "handle"}
	}}))
	if h.Result != runlog.ResultFailed || !says(h, "no run vault") {
		t.Errorf("%s %v", h.Result, h.Diagnostics)
	}
}

func TestValuesAreDividedIntoThoseThatMayBeStored(t *testing.T) {
	body, err := json.Marshal(hidden(object{}, object{}))
	if err != nil {
		t.Fatal(err)
	}
	plain, secrets, err := run.DivideParameters(body, map[string]string{"Size": "s", "Password": "p", "Unknown": "u"})
	if err != nil || !maps.Equal(plain, map[string]string{"Size": "s"}) || !maps.Equal(secrets, map[string]string{"Password": "p", "Unknown": "u"}) {
		t.Errorf("plain %v, secret %v, %v", plain, secrets, err)
	}
	if plain, secrets, err = run.DivideParameters([]byte("no template"), nil); plain != nil || secrets != nil || err != nil {
		t.Errorf("no values: %v, %v, %v", plain, secrets, err)
	}
	if _, _, err = run.DivideParameters([]byte("no template"), map[string]string{"Size": "s"}); err == nil {
		t.Error("values are divided by what is no template")
	}
}

func TestAKeptValueStandsBesideOneThatIsGiven(t *testing.T) {
	w := secretWorld(t)
	template := hidden(object{"DisplayName": withPassword()}, object{"DisplayName": ref("Other")})
	template["Parameters"].(object)["Other"] = object{"Type": "String", "NoEcho": true}
	template["Rules"] = object{
		"Long":  object{"Assertions": []any{object{"Assert": object{"Fn::Not": []any{object{"Fn::Equals": []any{ref("Password"), "short"}}}}}}},
		"Sized": object{"Assertions": []any{object{"Assert": object{"Fn::Not": []any{object{"Fn::Equals": []any{ref("Size"), "forbidden"}}}}}}},
	}
	w.deployWith(template, map[string]string{"Password": firstPassword, "Other": "marker-other-1"})
	h := w.deployWith(template, map[string]string{"Other": "marker-other-2"})
	if h.Result != runlog.ResultSucceeded || h.Counts.Updated != 1 || h.Counts.Unchanged != 1 {
		t.Errorf("%+v: %s", h.Counts, w.story(h.RunID))
	}
	w.has("A", "DisplayName", "is "+firstPassword)
	w.has("B", "DisplayName", "marker-other-2")
	if h = w.deployWith(template, nil); h.Result != runlog.ResultSucceeded || h.Counts.Unchanged != 2 {
		t.Errorf("with neither: %+v: %s", h.Counts, w.story(h.RunID))
	}
	// A rule that needs none of what is kept is checked all the same.
	if h = w.deployWith(template, map[string]string{"Size": "forbidden"}); h.Result != runlog.ResultFailed || !says(h, "Sized") {
		t.Errorf("%s %v", h.Result, h.Diagnostics)
	}
	w.concealed()
}

func TestAConditionIsNotGuessedWhereItsOutcomeIsNotReadable(t *testing.T) {
	w := secretWorld(t)
	template := hidden(object{"DisplayName": "a"}, object{"DisplayName": "b"})
	template["Conditions"] = object{"Strong": object{"Fn::Not": []any{object{"Fn::Equals": []any{ref("Password"), ref("AWS::Region")}}}}}
	template["Resources"].(object)["A"].(object)["Condition"] = "Strong"
	w.deployWith(template, password(firstPassword))
	sidecar, etag, err := w.states.LoadSidecar(t.Context(), "App", region)
	if err != nil || len(sidecar.Next.Extra) != 1 {
		t.Fatalf("%+v, %v", sidecar.Next, err)
	}
	for name := range sidecar.Next.Extra {
		sidecar.Next.Extra[name] = json.RawMessage(`"damaged"`)
	}
	if _, err := w.states.SaveSidecar(t.Context(), sidecar, etag); err != nil {
		t.Fatal(err)
	}
	if h := w.deployWith(template, nil); h.Result != runlog.ResultFailed || !says(h, "the condition Strong can't be evaluated") {
		t.Errorf("%s: %s", h.Result, w.story(h.RunID))
	}
}

func TestAValueThatWasGivenStaysAsLongAsItIsAllowed(t *testing.T) {
	w := newWorld(t)
	template := one("A", topic(object{"DisplayName": ref("Size")}))
	declared := object{"Type": "String", "Default": "small"}
	template["Parameters"] = object{"Size": declared}
	has := func(want string, values map[string]string) {
		t.Helper()
		h := w.deployWith(template, values)
		if got := w.record("App").Resources["A"].Properties["DisplayName"]; got != want || h.Result != runlog.ResultSucceeded {
			t.Errorf("it is %v, want %s: %s", got, want, w.story(h.RunID))
		}
	}
	has("large", map[string]string{"Size": "large"})
	has("large", nil)
	has("medium", map[string]string{"Size": "medium"})
	declared["AllowedValues"] = []any{"small", "large"}
	has("small", nil)
}
