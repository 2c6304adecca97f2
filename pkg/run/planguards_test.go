package run_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/plan"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

func bucket(properties object) object {
	return object{"Type": "AWS::S3::Bucket", "Properties": properties}
}

func unforced(o *run.Options) { o.ForceStatefulRecreation = false }

func TestDataIsNotLostByAReplacementUnlessThatIsMeant(t *testing.T) {
	for _, c := range []struct {
		name string
		next object
		path string // "" where nothing is lost
	}{
		{"its name changes", bucket(object{"BucketName": "two"}), "BucketName"},
		{"its type changes", topic(object{}), "Type"},
		{"something else changes", bucket(object{"BucketName": "one", "Tags": []any{object{"Key": "k", "Value": "v"}}}), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.deploy(one("B", bucket(object{"BucketName": "one"})))
			w.cloud.forget()
			h := w.deploy(one("B", c.next), unforced)
			if lost := h.Result == runlog.ResultFailed && len(w.cloud.calls) == 0; lost != (c.path != "") {
				t.Errorf("%s: %s", h.Result, w.story(h.RunID))
			}
			if c.path != "" && !says(h, "can't be changed in place has changed: "+c.path) {
				t.Errorf("%v", h.Diagnostics)
			}
			if h = w.deploy(one("B", c.next)); h.Result != runlog.ResultSucceeded {
				t.Errorf("where it is meant: %s", w.story(h.RunID))
			}
		})
	}
	// Where a plan is only looked at it is a warning.
	w := newWorld(t)
	w.deploy(one("B", bucket(object{"BucketName": "one"})))
	h := w.finish(w.submitApp(app{
		command: runlog.CommandPlan, of: runlog.CommandDeploy, options: run.Options{Lenient: true},
		stacks: []appStack{{name: "App", template: one("B", bucket(object{"BucketName": "two"}))}},
	}))
	if h.Result != runlog.ResultSucceeded || len(h.Diagnostics) != 1 || h.Diagnostics[0].Severity != diag.Warning || !says(h, "BucketName") {
		t.Errorf("%s %v", h.Result, h.Diagnostics)
	}
}

func TestAPlanThatIsOnlyLookedAtIsMadeFromADamagedRecordTooIfItCanBeReadAtAll(t *testing.T) {
	for body, planned := range map[string]bool{
		`{"version":8,"stackName":"App","region":"` + region + `","resources":"none"}`: true,
		`no JSON`: false,
	} {
		for _, lenient := range []bool{true, false} {
			w := newWorld(t)
			w.putRaw(w.states.StateKey("App", region), body)
			h := w.finish(w.submitApp(app{
				command: runlog.CommandPlan, of: runlog.CommandDeploy, options: run.Options{Lenient: lenient}, stacks: []appStack{{name: "App", template: before()}},
			}))
			if ok := h.Result == runlog.ResultSucceeded; ok != (planned && lenient) || len(h.Diagnostics) == 0 {
				t.Errorf("%s, lenient %v: %s %v", body, lenient, h.Result, h.Diagnostics)
			}
		}
	}
}

// TestAStackDoesNotFailForWhatOneBeforeItWouldHaveExported: the first can't be planned, which says nothing of the second.
func TestAStackDoesNotFailForWhatOneBeforeItWouldHaveExported(t *testing.T) {
	first := one("A", topic(object{"DisplayName": ref("Nothing")}))
	first["Outputs"] = object{
		"Plain": object{"Value": "v"}, "Fixed": object{"Value": "v", "Export": object{"Name": "fixed"}},
		"Made": object{"Value": "v", "Export": object{"Name": object{"Fn::Sub": "${AWS::StackName}-made"}}},
	}
	second := resources(object{
		"B": queue(object{"KmsMasterKeyId": importOf("fixed")}), "C": queue(object{"KmsMasterKeyId": importOf("One-made")}),
		"D": queue(object{"KmsMasterKeyId": object{"Fn::GetStackOutput": object{"StackName": "One", "Region": region, "OutputName": "Plain"}}}),
	})
	w := newWorld(t)
	h := w.finish(w.submitApp(app{command: runlog.CommandDeploy, stacks: []appStack{
		{name: "One", template: first}, {name: "Two", template: second, dependsOn: []string{"One"}},
	}}))
	if h.Result != runlog.ResultFailed || !says(h, "Nothing") {
		t.Errorf("%s %v", h.Result, h.Diagnostics)
	}
	for _, d := range h.Diagnostics {
		if d.Stack == "Two" {
			t.Errorf("the second stack is refused: %v", d)
		}
	}
}

func TestWhichSubmissionsDeploy(t *testing.T) {
	for sub, deploys := range map[[2]runlog.Command]bool{
		{runlog.CommandDeploy, ""}: true, {runlog.CommandPlan, runlog.CommandDeploy}: true, {runlog.CommandPlan, runlog.CommandDestroy}: false,
		{runlog.CommandDestroy, ""}: false, {runlog.CommandRollback, ""}: false, {runlog.CommandDestroy, runlog.CommandDeploy}: false,
	} {
		if got := (run.Submission{Command: sub[0], Of: sub[1]}).Deploys(); got != deploys {
			t.Errorf("%s of %q: %v", sub[0], sub[1], got)
		}
	}
}

func TestAnAssetOfAnUploadNeedsSomebodyWhoReadsUploads(t *testing.T) {
	w := newWorld(t)
	m := w.submitApp(chain())
	req := w.request(m.runID)
	req.Upload = &run.Upload{}
	w.put("slipway/runs/"+m.runID+"/request.json", req)
	h := w.finish(m)
	if h.Result != runlog.ResultFailed || h.Failure == nil || !strings.Contains(h.Failure.Detail, "nothing here can read uploads") || w.published["code"] != 0 {
		t.Errorf("%s %+v, published %v", h.Result, h.Failure, w.published)
	}
}

// blind is a cloud whose resources nobody can read.
type blind struct{ *cloud }

func (b blind) For(_ string, recorded provider.Route, _ []string) (provider.Provider, provider.Route, error) {
	return b, recorded, nil
}

func (blind) Read(context.Context, provider.Request) (provider.Snapshot, error) {
	return provider.Snapshot{}, &provider.Error{Kind: provider.KindUnsupported}
}

func TestAnOldHalfThatNobodyCanReadIsTakenToExistWhereNobodyCanHaveDeletedIt(t *testing.T) {
	for name, c := range map[string]struct {
		policy   object
		lose     bool // the list of what waits for its cleanup is lost
		replaces []string
	}{
		"it waits for its cleanup": {object{}, false, []string{"delete A"}},
		"it is retained":           {object{"UpdateReplacePolicy": "Retain"}, true, []string{"delete A"}},
		"neither":                  {object{}, true, []string{"create A", "delete A"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.deploy(one("A", with(topic(object{}), c.policy)))
			w.cloud.script("create Bad", script{fails: fails(provider.KindInvalid)})
			w.deploy(resources(object{"A": with(topic(object{"FifoTopic": true}), c.policy), "Bad": with(topic(object{}), object{"DependsOn": "A"})}), noRollback)
			if c.lose {
				sidecar, etag, err := w.states.LoadSidecar(t.Context(), "App", region)
				if err != nil {
					t.Fatal(err)
				}
				sidecar.Cleanup = nil
				if _, err := w.states.SaveSidecar(t.Context(), sidecar, etag); err != nil {
					t.Fatal(err)
				}
			}
			w.engine.Providers = blind{w.cloud}
			w.cloud.forget()
			h := w.rollback()
			if d := cmp.Diff(c.replaces, stepsOf(w)); d != "" || h.Result != runlog.ResultSucceeded {
				t.Errorf("steps (-want +got):\n%s\n%s", d, w.story(h.RunID))
			}
		})
	}
}

// planReports are the plans that callers of uploads have been told.
type planReports struct {
	reports
	views []plan.StackView
}

func (r *planReports) Planned(_ context.Context, _ run.Request, views []plan.StackView) error {
	if r.fails != nil {
		err := r.fails
		r.fails = nil
		return err
	}
	r.views = views
	return nil
}

func TestAPlanIsReportedToWhoHasUploadedIt(t *testing.T) {
	for _, from := range []string{"", "uploads/me/submissions/x.json"} {
		w := newWorld(t)
		told := &planReports{}
		told.fails = errors.New("the bucket does not answer") // once: the step is repeated
		w.engine.Reports = told
		m := w.submitApp(app{command: runlog.CommandPlan, of: runlog.CommandDeploy, stacks: []appStack{{name: "App", template: before()}}})
		req := w.request(m.runID)
		req.From = from
		w.put("slipway/runs/"+m.runID+"/request.json", req)
		h := w.finish(m)
		if uploaded := from != ""; h.Result != runlog.ResultSucceeded || (len(told.views) == 1) != uploaded || (told.fails == nil) != uploaded {
			t.Errorf("from %q: %s, told %d plans", from, h.Result, len(told.views))
		}
	}
}

func TestARunThatHasWaitedIsToldHowToGoOnWithoutThePlanThatWasShown(t *testing.T) {
	for _, wait := range []int{0, 60} {
		w := newWorld(t)
		planned := w.submitApp(app{command: runlog.CommandPlan, of: runlog.CommandDeploy, stacks: []appStack{{name: "App", template: before()}}})
		w.finish(planned)
		w.deploy(after())
		h := w.finish(w.submit(order{
			stack: "App", command: runlog.CommandDeploy, template: before(), options: run.Options{WaitForLock: wait, ForceStatefulRecreation: true},
			change: func(r *run.Request) { r.PlanRun = planned.runID },
		}))
		if h.Result != runlog.ResultFailed || !says(h, "has changed since its plan was shown") || strings.Contains(nextSteps(h), "--yes") != (wait > 0) {
			t.Errorf("waiting for %d seconds: %s %v", wait, h.Result, h.Diagnostics)
		}
	}
}
