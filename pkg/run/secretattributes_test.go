package run_test

import (
	"context"
	"encoding/base64"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/state"
)

// answering is a cloud in which the handlers of custom resources answer with a secret of their own, which changes with
// their properties.
type answering struct{ *cloud }

func (a answering) For(_ string, recorded provider.Route, _ []string) (provider.Provider, provider.Route, error) {
	if recorded != "" {
		return a, recorded, nil
	}
	return a, provider.RouteSDK, nil
}

func (a answering) answer(req provider.Request, p provider.Progress, err error) (provider.Progress, error) {
	if err == nil && p.Done && provider.IsCustom(req.Type) {
		version, _ := req.Properties["Version"].(string)
		p.NoEcho, p.Attributes = true, map[string]any{"Token": "marker-" + version + "-token", "Arn": "marker-" + version + "-arn"}
	}
	return p, err
}

func (a answering) Create(ctx context.Context, req provider.Request) (provider.Progress, error) {
	p, err := a.cloud.Create(ctx, req)
	return a.answer(req, p, err)
}

func (a answering) Update(ctx context.Context, req provider.Request) (provider.Progress, error) {
	p, err := a.cloud.Update(ctx, req)
	return a.answer(req, p, err)
}

func TestTheSecretAnswerOfAHandlerReachesWhoReadsItInTheSameRun(t *testing.T) {
	w := secretWorld(t)
	w.engine.Providers = answering{w.cloud}
	template := func(version string, reader, other object) object {
		return resources(object{
			"Maker": object{"Type": "Custom::Maker", "Properties": object{"ServiceToken": "arn:aws:lambda:eu-west-1:1:function:f", "Version": version}},
			"A":     topic(reader), "B": topic(other),
		})
	}
	reads := func() object { return object{"DisplayName": object{"Fn::Sub": "has ${Maker.Token}"}} }
	h := w.deploy(template("one", reads(), object{}))
	if h.Result != runlog.ResultSucceeded {
		t.Fatal(w.story(h.RunID))
	}
	w.has("A", "DisplayName", "has marker-one-token")
	if d := cmp.Diff(map[string]any{"Token": "***", "Arn": "***"}, w.record("App").Resources["Maker"].Attributes); d != "" {
		t.Errorf("the recorded attributes (-want +got):\n%s", d)
	}
	for key, o := range w.objects.objs {
		if strings.Contains(string(o.Body), "marker-one") {
			t.Errorf("%s holds the answer", key)
		}
	}
	for _, c := range []struct {
		name     string
		template object
		changed  int
		needs    string
		has      string
	}{
		{"nothing has changed", template("one", reads(), object{}), 0, "", "has marker-one-token"},
		{"another resource changes", template("one", reads(), object{"DisplayName": "b"}), 1, "", "has marker-one-token"},
		{"another resource reads it", template("one", reads(), object{"DisplayName": att("Maker", "Token")}), 0, "attribute Maker.Token is needed", "has marker-one-token"},
		{"the text around it changes", template("one", object{"DisplayName": object{"Fn::Sub": "had ${Maker.Token}"}}, object{"DisplayName": "b"}), 0, "attribute Maker.Token is needed", "has marker-one-token"},
		{"the handler is asked again", template("two", reads(), object{"DisplayName": "b"}), 2, "", "has marker-two-token"},
		{"and another resource reads it", template("three", reads(), object{"DisplayName": att("Maker", "Token")}), 3, "", "has marker-three-token"},
	} {
		h := w.deploy(c.template)
		if c.needs != "" && (h.Result != runlog.ResultFailed || !says(h, c.needs)) || c.needs == "" && (h.Result != runlog.ResultSucceeded || h.Counts.Updated != c.changed) {
			t.Errorf("%s: %s %+v: %s", c.name, h.Result, h.Counts, w.story(h.RunID))
		}
		w.has("A", "DisplayName", c.has)
	}
	w.has("B", "DisplayName", "marker-three-token")
	w.accounted("App")
}

func TestAnOutputOfASecretIsMasked(t *testing.T) {
	w := secretWorld(t)
	template := hidden(object{"DisplayName": withPassword()}, object{})
	template["Conditions"] = object{"Never": object{"Fn::Equals": []any{"a", "b"}}}
	template["Outputs"] = object{
		"Whole":  object{"Value": ref("Password")},
		"Plain":  object{"Value": ref("Size"), "Export": object{"Name": object{"Fn::Join": []any{"", []any{"x", ref("Password")}}}}},
		"Hidden": object{"Value": ref("Password"), "Export": object{"Name": "hidden"}},
		"Never":  object{"Value": ref("Password"), "Condition": "Never", "Export": object{"Name": ref("Password")}},
	}
	h := w.deployWith(template, password("name-of-export"))
	want := map[string]any{"Whole": "***", "Hidden": "***", "hidden": "***", "Plain": "small"}
	if d := cmp.Diff(want, w.record("App").Outputs); d != "" || h.Result != runlog.ResultSucceeded || !says(h, "its name holds the value of a NoEcho parameter") {
		t.Errorf("outputs (-want +got):\n%s\n%s", d, w.story(h.RunID))
	}
	// Without the value the name of the export is not known.
	h = w.deployWith(template, nil)
	if h.Result != runlog.ResultSucceeded || !says(h, "the export of Plain is left out: its name is made from the NoEcho parameter Password") || says(h, "the export of Never") || says(h, "the export of Hidden") {
		t.Errorf("%s %v", h.Result, h.Diagnostics)
	}
	// What is published as a mask can't be read.
	for refusal, value := range map[string]any{
		"the export hidden is made from": importOf("hidden"),
		"the output ":                    object{"Fn::GetStackOutput": object{"StackName": "App", "Region": region, "OutputName": "Whole"}},
	} {
		h = w.deployStack("Reader", one("R", topic(object{"DisplayName": value})))
		if h.Result != runlog.ResultFailed || !says(h, refusal) || !says(h, "NoEcho") {
			t.Errorf("%s %v", h.Result, h.Diagnostics)
		}
	}
}

// echoing is a cloud that gives back what a resource has, and quotes it in its failures.
type echoing struct {
	*cloud
	echo map[string]any
	fail string
}

func (e *echoing) For(_ string, recorded provider.Route, _ []string) (provider.Provider, provider.Route, error) {
	if recorded != "" {
		return e, recorded, nil
	}
	return e, provider.RouteSDK, nil
}

func (e *echoing) Update(ctx context.Context, req provider.Request) (provider.Progress, error) {
	if e.fail != "" {
		return provider.Progress{}, &provider.Error{Kind: provider.KindInvalid, Message: e.fail}
	}
	p, err := e.cloud.Update(ctx, req)
	p.Observed, p.Attributes = maps.Clone(e.echo), maps.Clone(e.echo)
	return p, err
}

func TestWhatAServiceEchoesOfASecretIsNotRecorded(t *testing.T) {
	encoded := base64.StdEncoding.EncodeToString([]byte(firstPassword))
	at := func(version string) object {
		return hidden(object{"DisplayName": object{"Fn::Base64": ref("Password")}, "SignatureVersion": version}, object{})
	}
	w := secretWorld(t)
	w.deployWith(at("1"), password(firstPassword))
	service := &echoing{cloud: w.cloud, echo: map[string]any{"Echo": "has " + encoded, "Plain": "p"}}
	w.engine.Providers = service
	w.deployWith(at("2"), password(firstPassword))
	r := w.record("App").Resources["A"]
	want := map[string]any{"Echo": "has ***", "Plain": "p"}
	if cmp.Diff(want, r.Attributes) != "" || cmp.Diff(want, r.ObservedProperties) != "" {
		t.Errorf("recorded are %v and %v", r.Attributes, r.ObservedProperties)
	}
	// The value itself, of which the property holds only what is made from it.
	service.fail = "no " + firstPassword + ", nor " + encoded
	h := w.deployWith(at("3"), password(firstPassword))
	if h.Failure == nil || strings.Contains(h.Failure.Detail, encoded) || !strings.Contains(h.Failure.Detail, "no ***, nor ***") {
		t.Errorf("%+v", h.Failure)
	}
	w.concealed()
	// A value that this run does not have is not found by its text: the whole property is masked.
	service.fail, service.echo = "", map[string]any{"DisplayName": encoded, "Plain": "p"}
	w.editUnderSidecar(func(rec *state.Record) { rec.Resources["A"].ProvisionedBy = string(provider.RouteCloudControl) })
	if h = w.deployWith(at("4"), nil); h.Result != runlog.ResultSucceeded {
		t.Fatal(w.story(h.RunID))
	}
	if got := w.record("App").Resources["A"].ObservedProperties; cmp.Diff(map[string]any{"DisplayName": "***", "Plain": "p"}, got) != "" {
		t.Errorf("recorded is %v", got)
	}
}
