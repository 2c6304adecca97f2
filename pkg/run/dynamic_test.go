package run_test

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/macro"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/secret"
)

// secrets are what dynamic references name: the secrets by id, and how often they were asked for.
type secrets struct {
	values map[string]string
	fails  error
	asked  int
}

func (s *secrets) Parameter(context.Context, secret.Where, string, string) (secret.Parameter, error) {
	return secret.Parameter{}, secret.ErrNotFound
}

func (s *secrets) SecretString(_ context.Context, _ secret.Where, id, _, _ string) (string, error) {
	if s.asked++; s.fails != nil {
		return "", s.fails
	}
	if v, ok := s.values[id]; ok {
		return v, nil
	}
	return "", secret.ErrNotFound
}

const dbReference = "{{resolve:secretsmanager:db:SecretString}}"

func referring(version string) object {
	return one("A", topic(object{"DisplayName": dbReference, "SignatureVersion": version}))
}

func TestADynamicReferenceIsResolvedForTheProviderAlone(t *testing.T) {
	w := newWorld(t)
	source := &secrets{values: map[string]string{"db": firstPassword}}
	w.engine.Secrets = source
	if h := w.deploy(referring("1")); h.Result != runlog.ResultSucceeded {
		t.Fatal(w.story(h.RunID))
	}
	check := func() {
		t.Helper()
		r := w.record("App").Resources["A"]
		if got := w.cloud.live[r.PhysicalID].Properties["DisplayName"]; got != firstPassword || r.Properties["DisplayName"] != dbReference {
			t.Errorf("it has %v, and the record says %v", got, r.Properties["DisplayName"])
		}
		w.concealed()
	}
	check()
	if h := w.deploy(referring("1")); h.Counts.Unchanged != 1 {
		t.Errorf("%+v", h.Counts)
	}
	// In an update it is no change to the provider.
	w.cloud.forget()
	w.deploy(referring("2"))
	check()
	if calls := w.cloud.steps("update A"); len(calls) != 1 || calls[0].previous["DisplayName"] != firstPassword || calls[0].properties["DisplayName"] != firstPassword {
		t.Errorf("%+v", calls)
	}
	// What a service quotes of it is masked.
	w.cloud.script("update A", script{fails: func(int) *provider.Error {
		return &provider.Error{Kind: provider.KindInvalid, Err: errors.New("bad value: " + firstPassword)}
	}})
	h := w.deploy(referring("1"))
	if h.Result != runlog.ResultFailed || h.Failure == nil || strings.Contains(h.Failure.Detail, firstPassword) || !strings.Contains(h.Failure.Detail, "bad value: ") {
		t.Errorf("%s %+v", h.Result, h.Failure)
	}
	check()
	// A deletion needs none of it.
	asked := source.asked
	if h = w.destroy(); h.Result != runlog.ResultSucceeded || source.asked != asked {
		t.Errorf("%s, asked %d times more", h.Result, source.asked-asked)
	}
}

func TestADynamicReferenceThatCannotBeResolvedFailsItsResource(t *testing.T) {
	for cause, attempts := range map[error]int{secret.ErrDenied: 1, secret.ErrNotFound: 1, secret.ErrUnavailable: 5} {
		w := newWorld(t)
		w.engine.Secrets = &secrets{fails: cause}
		h := w.deploy(referring("1"), noRollback)
		if h.Result != runlog.ResultFailed || h.Failure == nil || !strings.Contains(h.Failure.Detail, "DynamicReference") || len(w.cloud.calls) != 0 {
			t.Errorf("%v: %s %+v", cause, h.Result, h.Failure)
		}
		if op, err := w.log.Op(t.Context(), h.RunID, "A"); err != nil || op.Attempt != attempts {
			t.Errorf("%v: %d attempts, want %d, %v", cause, op.Attempt, attempts, err)
		}
	}
}

// cleaning is a cloud that keeps something for every token, until it is told to remove it.
type cleaning struct {
	*cloud
	cleaned map[string]string // logical id by token
}

func (c cleaning) For(_ string, recorded provider.Route, _ []string) (provider.Provider, provider.Route, error) {
	return c, recorded, nil
}

func (c cleaning) Clean(_ context.Context, req provider.Request) error {
	c.cleaned[req.Token] = req.LogicalID
	return errors.New("what can't be removed is of no use to anybody")
}

func TestWhatAProviderKeepsForARepetitionIsRemovedAfterTheResult(t *testing.T) {
	w := newWorld(t)
	c := cleaning{w.cloud, map[string]string{}}
	w.engine.Providers = c
	var logged strings.Builder
	w.engine.Logger = slog.New(slog.NewTextHandler(&logged, nil))
	kept := func(h runlog.Header, want ...string) {
		t.Helper()
		op, err := w.log.Op(t.Context(), h.RunID, "A")
		if err != nil {
			t.Fatal(err)
		}
		expected := map[string]string{}
		for _, suffix := range want {
			expected[op.Token+suffix] = "A"
		}
		if d := cmp.Diff(expected, c.cleaned); d != "" {
			t.Errorf("removed (-want +got):\n%s", d)
		}
		clear(c.cleaned)
	}
	w.cloud.script("create A", script{fails: fails(provider.KindInvalid), remnant: true})
	kept(w.deploy(one("A", association("one")), noRollback), "", "-remnant")
	w.cloud.script("create A", script{takes: 1})
	kept(w.deploy(one("A", association("one"))), "")
	kept(w.deploy(one("A", association("two"))), "", "-old")
	w.cloud.script("delete A", script{fails: fails(provider.KindInvalid)})
	kept(w.destroy(), "")
	if n := strings.Count(logged.String(), "could not be removed"); n != 6 {
		t.Errorf("%d lines of the log tell of it, want 6:\n%s", n, logged.String())
	}
}

// expander runs macros: it gives every template another topic.
type expander struct{ w *world }

func (e expander) Start(_ context.Context, req macro.Request, _ macro.Handle) (macro.Progress, error) {
	if req.Parameters["Fail"] != "" {
		return macro.Progress{}, errors.New("the service did not answer")
	}
	return macro.Progress{Wait: time.Second}, nil
}

func (e expander) Poll(_ context.Context, req macro.Request, _ macro.Handle) (macro.Progress, error) {
	return macro.Progress{Status: macro.Done, Body: encoded(one("Added", topic(object{"DisplayName": req.Stack})))}, nil
}

func (e expander) Discard(context.Context, macro.Handle) error { return nil }

func TestATemplateWithMacrosIsDeployedAsTheyHaveMadeIt(t *testing.T) {
	w := newWorld(t)
	template := one("Given", topic(object{}))
	template["Transform"] = []any{"MyMacro"}
	if h := w.deploy(template); h.Result != runlog.ResultFailed || !says(h, "MyMacro") {
		t.Errorf("with nobody to run them: %s %v", h.Result, h.Diagnostics)
	}
	w.engine.Macros = expander{w}
	h := w.deploy(template)
	if d := cmp.Diff([]string{"Added"}, sortedKeys(w.record("App"))); d != "" || h.Result != runlog.ResultSucceeded {
		t.Errorf("%s, resources (-want +got):\n%s", w.story(h.RunID), d)
	}
	if h = w.deploy(template); h.Counts.Unchanged != 1 {
		t.Errorf("%+v", h.Counts)
	}
	// A failure of the service is no fault of the template: the step is repeated.
	m := w.submit(order{stack: "App", command: runlog.CommandDeploy, template: template, change: func(r *run.Request) {
		r.Stacks[0].Parameters = map[string]string{"Fail": "yes"}
	}})
	m.step()
	if m.tries != 1 || m.ended {
		t.Errorf("%d tries, ended: %v", m.tries, m.ended)
	}
	delete(w.machines, m.name)
}

func TestWhatCannotBeReadForATemplateIsRefused(t *testing.T) {
	ssm := one("A", topic(object{"DisplayName": ref("P")}))
	ssm["Parameters"] = object{"P": object{"Type": "AWS::SSM::Parameter::Value<String>", "Default": "/name"}}
	w := newWorld(t)
	h := w.deploy(ssm)
	if h.Result != runlog.ResultFailed || !says(h, "SSM parameter /name can't be read") || len(w.cloud.calls) != 0 {
		t.Errorf("%s %v", h.Result, h.Diagnostics)
	}
	maps.Copy(w.ssm, map[string]string{"/name": "from ssm"})
	if h = w.deploy(ssm); h.Result != runlog.ResultSucceeded || w.record("App").Resources["A"].Properties["DisplayName"] != "from ssm" {
		t.Errorf("%s", w.story(h.RunID))
	}
	// An output of a stack whose record is damaged, of one that there is not, and under a role.
	w.unreadable()
	for refusal, from := range map[string]object{
		"damaged": {"StackName": "Broken", "OutputName": "O"}, "stack Absent in": {"StackName": "Absent", "OutputName": "O"},
		"an AWS account": {"StackName": "App", "OutputName": "O", "RoleArn": "arn:aws:iam::1:role/r"},
	} {
		from["Region"] = region
		h = w.deployStack("Reader", one("R", topic(object{"DisplayName": object{"Fn::GetStackOutput": from}})))
		if h.Result != runlog.ResultFailed || !says(h, refusal) {
			t.Errorf("%s: %s %v", refusal, h.Result, h.Diagnostics)
		}
	}
}

// noZones is a service that does not tell the zones of a region.
type noZones struct{ *world }

func (noZones) Zones(context.Context, string, string) ([]string, error) {
	return nil, errors.New("access is denied")
}

func TestAStackIsRefusedWhoseZonesCannotBeRead(t *testing.T) {
	w := newWorld(t)
	w.engine.Facts = noZones{w}
	h := w.deploy(one("A", topic(object{"DisplayName": object{"Fn::Select": []any{0, object{"Fn::GetAZs": ""}}}})))
	if h.Result != runlog.ResultFailed || !says(h, "the availability zones of "+region+" can't be read") || len(w.cloud.calls) != 0 {
		t.Errorf("%s %v", h.Result, h.Diagnostics)
	}
}

func TestAStackReadsTheOutputsOfOnesThatAreDeployedWithIt(t *testing.T) {
	output := func(name string) object {
		return object{"Fn::GetStackOutput": object{"StackName": "One", "Region": region, "OutputName": name}}
	}
	first := one("A", topic(object{}))
	first["Outputs"] = object{"Known": object{"Value": "known"}, "Made": object{"Value": ref("A")}}
	a := app{command: runlog.CommandDeploy, stacks: []appStack{
		{name: "One", template: first},
		{name: "Two", template: one("B", topic(object{"DisplayName": output("Known"), "TopicName": output("Made")})), dependsOn: []string{"One"}},
	}}
	w := newWorld(t)
	for _, result := range []string{"made anew", "unchanged"} {
		h := w.finish(w.submitApp(a))
		made := w.record("One").Resources["A"].PhysicalID
		want := map[string]any{"DisplayName": "known", "TopicName": made}
		if d := cmp.Diff(want, w.record("Two").Resources["B"].Properties); d != "" || h.Result != runlog.ResultSucceeded {
			t.Errorf("%s (-want +got):\n%s\n%s", result, d, w.story(h.RunID))
		}
		if reads := w.record("Two").OutputReads; len(reads) != 2 {
			t.Errorf("%s: it reads %+v", result, reads)
		}
	}
}

// TestAHalfMadeUpdateIsTakenBackFromTheSecretsThatItWasSent: the provider is told in clear what the resource may have.
func TestAHalfMadeUpdateIsTakenBackFromTheSecretsThatItWasSent(t *testing.T) {
	for _, next := range []string{firstPassword, secondPassword} {
		w := secretWorld(t)
		at := func(version string) object {
			return hidden(object{"DisplayName": withPassword(), "SignatureVersion": version}, object{})
		}
		w.deployWith(at("1"), password(firstPassword))
		w.cloud.script("update A", script{fails: failsFirst()})
		w.cloud.forget()
		h := w.deployWith(at("2"), password(next))
		calls := w.cloud.steps("update A")
		if len(calls) != 2 || h.Result != runlog.ResultFailed {
			t.Fatalf("%d updates: %s", len(calls), w.story(h.RunID))
		}
		if undo := calls[1]; undo.previous["DisplayName"] != "is "+next || undo.properties["DisplayName"] != "is "+next {
			t.Errorf("it is taken back from %v to %v", undo.previous, undo.properties)
		}
		w.has("A", "DisplayName", "is "+next)
		w.concealed()
	}
}
