package run_test

import (
	"strings"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

func recreate(via provider.Route, ids ...string) func(*run.Options) {
	return func(o *run.Options) {
		o.RecreateVia = map[string]provider.Route{}
		for _, id := range ids {
			o.RecreateVia[id] = via
		}
	}
}

func TestAResourceIsMadeAgainByAnotherLayer(t *testing.T) {
	w := newWorld(t)
	template := resources(object{"A": topic(object{}), "B": queue(object{"KmsMasterKeyId": ref("A")}), "C": topic(object{})})
	w.deploy(template)
	before := w.record("App")
	if got := before.Resources["A"].ProvisionedBy; got != string(provider.RouteSDK) {
		t.Fatalf("it starts as %s", got)
	}
	w.cloud.forget()
	h := w.deploy(template, recreate(provider.RouteCloudControl, "A"))
	if h.Result != runlog.ResultSucceeded || h.Counts.Replaced != 1 || h.Counts.Updated != 1 || h.Counts.Unchanged != 1 {
		t.Errorf("%s %+v: %s", h.Result, h.Counts, w.story(h.RunID))
	}
	after := w.record("App")
	if a := after.Resources["A"]; a.ProvisionedBy != string(provider.RouteCloudControl) || a.PhysicalID == before.Resources["A"].PhysicalID {
		t.Errorf("it is %s %s now", a.ProvisionedBy, a.PhysicalID)
	}
	if got := after.Resources["B"].Properties["KmsMasterKeyId"]; got != after.Resources["A"].PhysicalID {
		t.Errorf("its dependent has %v", got)
	}
	w.accounted("App")
	w.cloud.forget()
	if h := w.deploy(template); h.Counts.Unchanged != 3 || len(w.cloud.calls) > 0 {
		t.Errorf("it does not stay there: %+v", h.Counts)
	}
}

func TestWhatCanNotBeMadeAgainIsRefused(t *testing.T) {
	template := resources(object{
		"A": topic(object{}), "New": topic(object{}), "C": object{"Type": "Custom::Thing", "Properties": object{"ServiceToken": "arn:aws:lambda:eu-west-1:1:function:f"}},
	})
	for says, options := range map[string]func(*run.Options){
		"already":     recreate(provider.RouteSDK, "A"),
		"its handler": recreate(provider.RouteCloudControl, "C"),
	} {
		w := newWorld(t)
		w.deploy(template)
		w.cloud.forget()
		h := w.deploy(template, options)
		if h.Result != runlog.ResultFailed || h.Failure == nil || !strings.Contains(h.Failure.Summary+h.Failure.Detail, says) || len(w.cloud.calls) > 0 {
			t.Errorf("%s: %s %+v, %v", says, h.Result, h.Failure, w.cloud.calls)
		}
	}
}

func TestWhatNoStackHasIsNotMadeAgain(t *testing.T) {
	w := newWorld(t)
	a := chain()
	if h := w.finish(w.submitApp(a)); h.Result != runlog.ResultSucceeded {
		t.Fatal(w.story(h.RunID))
	}
	w.cloud.forget()
	a.options = run.Options{RecreateVia: map[string]provider.Route{"A": provider.RouteCloudControl, "Nobody": provider.RouteCloudControl}}
	h := w.finish(w.submitApp(a))
	if h.Result != runlog.ResultFailed || h.Failure == nil || h.Failure.LogicalID != "Nobody" || len(w.cloud.calls) > 0 {
		t.Errorf("%s %+v, %v", h.Result, h.Failure, w.cloud.calls)
	}
}
