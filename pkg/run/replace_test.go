package run_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/state"
)

// association is a resource whose two halves can't stand side by side: its replacement deletes first.
func association(subnet string) object {
	return object{"Type": "AWS::EC2::SubnetRouteTableAssociation", "Properties": object{"SubnetId": subnet, "RouteTableId": "rtb-1"}}
}

func stepsOf(w *world) []string {
	var out []string
	for _, c := range w.cloud.calls {
		out = append(out, c.step)
	}
	return out
}

func TestAReplacementCleansUpOnceEverythingHasMoved(t *testing.T) {
	w := newWorld(t)
	w.deploy(before())
	w.cloud.forget()
	w.cloud.script("update Reader", script{takes: 1})
	h := w.deploy(after())
	if h.Result != runlog.ResultSucceeded || h.Counts.Replaced != 1 {
		t.Fatalf("%s %+v", h.Result, h.Counts)
	}
	at := map[string]int{}
	for i, step := range stepsOf(w) {
		at[step] = i
	}
	for _, forward := range []string{"create Replaced", "update Reader", "update Changed", "create New"} {
		for _, cleanup := range []string{"delete Replaced", "delete Gone"} {
			if at[forward] > at[cleanup] {
				t.Errorf("%s comes before %s", cleanup, forward)
			}
		}
	}
	if at["create Replaced"] > at["update Reader"] {
		t.Error("Reader is updated before the new half of Replaced is there")
	}
	if got := w.record("App").Resources["Reader"].Properties["KmsMasterKeyId"]; got != w.record("App").Resources["Replaced"].PhysicalID {
		t.Errorf("Reader reads %v", got)
	}
}

func TestACleanupThatFailsIsMadeUpForByTheNextRun(t *testing.T) {
	w := newWorld(t)
	w.deploy(before())
	w.cloud.script("delete Replaced", script{fails: fails(provider.KindAccessDenied)})
	h := w.deploy(after())
	if h.Result != runlog.ResultPartial || len(w.pending("App")) != 1 {
		t.Fatalf("%s, %v", h.Result, w.pending("App"))
	}
	w.accounted("App")
	w.cloud.script("delete Replaced", script{})
	if h = w.deploy(after()); h.Result != runlog.ResultSucceeded || len(w.pending("App")) != 0 {
		t.Errorf("%s, %v", h.Result, w.pending("App"))
	}
	w.accounted("App")
}

func TestAnOldHalfIsRetainedWhereThePolicySaysSo(t *testing.T) {
	w := newWorld(t)
	retain := func(fifo bool) object {
		r := topic(object{"FifoTopic": fifo})
		r["UpdateReplacePolicy"] = "Retain"
		return one("A", r)
	}
	w.deploy(retain(false))
	h := w.deploy(retain(true))
	if h.Result != runlog.ResultSucceeded || len(w.cloud.exists()) != 2 || len(w.pending("App")) != 0 {
		t.Errorf("%s, %v, pending %v", h.Result, w.cloud.exists(), w.pending("App"))
	}
}

func TestDeleteFirst(t *testing.T) {
	w := newWorld(t)
	w.deploy(one("A", association("subnet-1")))
	w.cloud.forget()
	h := w.deploy(one("A", association("subnet-2")))
	if h.Result != runlog.ResultSucceeded || h.Counts.Replaced != 1 {
		t.Fatalf("%s %+v: %s", h.Result, h.Counts, w.story(h.RunID))
	}
	if d := cmp.Diff([]string{"delete A", "create A"}, stepsOf(w)); d != "" {
		t.Errorf("calls (-want +got):\n%s", d)
	}
	w.accounted("App")
	w.sound(h.RunID)
}

// TestDeleteFirstDiesBetweenItsHalves: at every store call of the deploy.
func TestDeleteFirstDiesBetweenItsHalves(t *testing.T) {
	start := func() (*world, *machine) {
		w := newWorld(t)
		w.deploy(one("A", association("subnet-1")))
		w.cloud.forget()
		*w.faults = faults{}
		return w, w.submitDeploy(one("A", association("subnet-2")))
	}
	w, m := start()
	w.finish(m)
	for k, name := range w.faults.names {
		if testing.Short() && k%sampled != 0 {
			continue
		}
		for _, after := range []bool{false, true} {
			w, m := start()
			w.faults.breaks, w.faults.after, w.faults.dies = k+1, after, true
			w.finish(m)
			w.accounted("App")
			w.sound(m.runID)
			if d := cmp.Diff(map[string]int{"delete A": 1, "create A": 1}, w.cloud.effects()); d != "" || w.header(m.runID).Result != runlog.ResultSucceeded {
				t.Fatalf("call %d, %s, after %v: %s\n%s", k+1, name, after, d, w.story(m.runID))
			}
			w, m = start()
			w.faults.breaks, w.faults.after, w.faults.dies = k+1, after, true
			w.die(m)
			w.deadHolders["process-1"] = true
			w.settle(w.process("janitor"), m.runID)
			w.accounted("App")
			w.sound(m.runID)
			if h := w.deploy(one("A", association("subnet-2"))); h.Result != runlog.ResultSucceeded || len(w.cloud.exists()) != 1 {
				t.Fatalf("after call %d, %s, after %v: %s %v", k+1, name, after, h.Result, w.cloud.exists())
			}
			w.accounted("App")
		}
	}
}

// TestDeleteFirstCreatesNothingBeforeTheDeletionIsRecorded: the journal is away when the old half is gone.
func TestDeleteFirstCreatesNothingBeforeTheDeletionIsRecorded(t *testing.T) {
	w := newWorld(t)
	w.deploy(one("A", association("one")))
	w.cloud.forget()
	once := false
	w.cloud.script("delete A", script{before: func() {
		if !once {
			once, w.faults.on, w.faults.dies = true, "put op A", false
		}
	}})
	h := w.deploy(one("A", association("two")))
	if d := cmp.Diff([]string{"delete A", "delete A", "create A"}, stepsOf(w)); d != "" || h.Result != runlog.ResultSucceeded {
		t.Errorf("%s, calls (-want +got):\n%s", h.Result, d)
	}
	w.accounted("App")
}

func TestDeleteFirstGoesOnWhereItWasAfterAFailure(t *testing.T) {
	w := newWorld(t)
	w.deploy(one("A", association("subnet-1")))
	w.cloud.forget()
	w.cloud.script("create A", script{fails: failsUntil(3, provider.KindThrottled)})
	h := w.deploy(one("A", association("subnet-2")))
	if h.Result != runlog.ResultSucceeded || len(w.header(h.RunID).Diagnostics) > 0 {
		t.Fatalf("%s: %s", h.Result, w.story(h.RunID))
	}
	if d := cmp.Diff(map[string]int{"delete A": 1, "create A": 3}, w.cloud.effects()); d != "" {
		t.Errorf("calls by token (-want +got):\n%s", d)
	}
	w.accounted("App")
}

// TestTheJournalKnowsWhatWasDeletedFirst, also where it took two attempts to create the new half.
func TestTheJournalKnowsWhatWasDeletedFirst(t *testing.T) {
	w := newWorld(t)
	w.deploy(one("A", association("subnet-1")))
	w.cloud.script("create A", script{fails: failsUntil(2, provider.KindThrottled)})
	w.cloud.script("create Bad", script{fails: fails(provider.KindInvalid)})
	w.deploy(resources(object{"A": association("subnet-2"), "Bad": with(topic(object{}), object{"DependsOn": "A"})}), noRollback)
	j := w.journal("App")
	if j == nil || len(j.Segments) != 1 || len(j.Segments[0].Operations) != 1 {
		t.Fatalf("journal %+v", j)
	}
	if was := j.Segments[0].Operations[0].PreviousState; was == nil || was.Properties["SubnetId"] != "subnet-1" {
		t.Errorf("what was before: %+v", was)
	}
}

// TestALeftoverThatTheRecordHoldsIsNotDeleted: a crash between sidecar and record leaves the two at odds.
func TestALeftoverThatTheRecordHoldsIsNotDeleted(t *testing.T) {
	w := newWorld(t)
	w.deploy(before())
	c, etag, err := w.states.LoadSidecar(t.Context(), "App", region)
	if err != nil {
		t.Fatal(err)
	}
	c.Cleanup = []state.OldHalf{{LogicalID: "Replaced", Resource: w.record("App").Resources["Replaced"]}}
	if _, err := w.states.SaveSidecar(t.Context(), c, etag); err != nil {
		t.Fatal(err)
	}
	live := w.cloud.exists()
	if h := w.deploy(before()); h.Result != runlog.ResultSucceeded || h.Counts.Unchanged != 5 {
		t.Errorf("%s %+v", h.Result, h.Counts)
	}
	if d := cmp.Diff(live, w.cloud.exists()); d != "" {
		t.Errorf("what exists (-before +after):\n%s", d)
	}
}

func TestDeleteFirstThatFailsInTheMiddle(t *testing.T) {
	w := newWorld(t)
	w.deploy(one("A", association("subnet-1")))
	w.cloud.script("create A", script{fails: fails(provider.KindAccessDenied)})
	h := w.deploy(one("A", association("subnet-2")))
	if h.Result != runlog.ResultFailed || len(w.cloud.exists()) != 0 || len(sortedKeys(w.record("App"))) != 0 {
		t.Errorf("%s, %v, %v", h.Result, w.cloud.exists(), sortedKeys(w.record("App")))
	}
	w.sound(h.RunID)
	w.cloud.script("create A", script{})
	if h = w.deploy(one("A", association("subnet-2"))); h.Result != runlog.ResultSucceeded {
		t.Errorf("the next deploy: %s", w.story(h.RunID))
	}
	w.accounted("App")
}

func TestAServiceThatAnswersWithTheOldResource(t *testing.T) {
	w := newWorld(t)
	w.deploy(one("A", topic(object{})))
	id := w.record("App").Resources["A"].PhysicalID
	w.cloud.script("create A", script{id: id})
	h := w.deploy(one("A", topic(object{"FifoTopic": true})))
	if h.Result != runlog.ResultFailed || h.Failure == nil || !strings.Contains(h.Failure.Detail, "SameResource") {
		t.Errorf("%s %+v", h.Result, h.Failure)
	}
	if d := cmp.Diff([]string{id}, w.cloud.exists()); d != "" {
		t.Errorf("what exists (-want +got):\n%s", d)
	}
	w.accounted("App")
}

func TestAFailedCreationIsRemoved(t *testing.T) {
	w := newWorld(t)
	w.cloud.script("create A", script{fails: fails(provider.KindFailed), remnant: true})
	h := w.deploy(one("A", topic(object{})))
	if h.Result != runlog.ResultFailed || len(w.cloud.exists()) != 0 {
		t.Errorf("%s, %v is left", h.Result, w.cloud.exists())
	}
	w.accounted("App")
}

// TestARemnantIsRemovedSlowlyToo, as long as the step may stay.
func TestARemnantIsRemovedSlowlyToo(t *testing.T) {
	for takes, left := range map[time.Duration]int{10 * time.Second: 0, time.Hour: 1} {
		w := newWorld(t)
		w.cloud.script("create A", script{fails: fails(provider.KindInvalid), remnant: true})
		w.cloud.script("delete A", script{takes: takes})
		w.deploy(one("A", topic(object{})), noRollback)
		if got := w.pending("App"); len(got) != left {
			t.Errorf("a deletion that takes %s leaves %v", takes, got)
		}
		if polls := w.cloud.steps("poll A"); len(polls) == 0 {
			t.Errorf("a deletion that takes %s is not followed", takes)
		}
	}
}

func TestWhatAFailedCreationLeavesIsRemembered(t *testing.T) {
	for _, stubborn := range []script{
		{fails: fails(provider.KindAccessDenied)}, {skip: "it can't be addressed"}, {takes: 1e15},
	} {
		w := newWorld(t)
		w.cloud.script("create A", script{fails: fails(provider.KindFailed), remnant: true})
		w.cloud.script("delete A", stubborn)
		h := w.deploy(resources(object{"A": topic(object{"DisplayName": "x"}), "B": topic(object{})}), noRollback)
		if h.Result != runlog.ResultFailed || len(w.pending("App")) != 1 {
			t.Fatalf("%s, pending %v: %s", h.Result, w.pending("App"), w.story(h.RunID))
		}
		w.accounted("App")
		told := false
		for _, d := range h.Diagnostics {
			told = told || d.LogicalID == "A" && strings.Contains(d.Summary, "still exists")
		}
		if !told {
			t.Errorf("nobody tells what is left: %s", w.story(h.RunID))
		}
		// The next run has what it needs to remove it: route, properties, and not the id of the new one.
		w.cloud.script("create A", script{})
		w.cloud.script("delete A", script{})
		w.cloud.forget()
		if h = w.deploy(resources(object{"A": topic(object{"DisplayName": "x"}), "B": topic(object{})})); h.Result != runlog.ResultSucceeded {
			t.Fatal(w.story(h.RunID))
		}
		deletes := w.cloud.steps("delete A")
		if len(deletes) != 1 || deletes[0].previous["DisplayName"] != "x" || len(w.pending("App")) != 0 || len(w.cloud.exists()) != 2 {
			t.Errorf("deletes %+v, pending %v, live %v", deletes, w.pending("App"), w.cloud.exists())
		}
		w.accounted("App")
	}
}

func TestAFailedUpdateOrDeletionRemovesNothing(t *testing.T) {
	for _, step := range []string{"update A", "delete A"} {
		w := newWorld(t)
		w.deploy(one("A", topic(object{"DisplayName": "one"})))
		id := w.record("App").Resources["A"].PhysicalID
		w.cloud.script(step, script{fails: func(int) *provider.Error {
			return &provider.Error{Kind: provider.KindFailed, PhysicalID: id} // as a cancelled request names what it was about
		}})
		if step == "update A" {
			w.deploy(one("A", topic(object{"DisplayName": "two"})))
		} else {
			w.destroy()
		}
		if d := cmp.Diff([]string{id}, w.cloud.exists()); d != "" {
			t.Errorf("%s: what exists (-want +got):\n%s", step, d)
		}
		w.accounted("App")
	}
}

func TestAnUpdateThatLeadsToAnotherResource(t *testing.T) {
	w := newWorld(t)
	custom := func(v string) object {
		return one("C", object{"Type": "Custom::Thing", "Properties": object{"ServiceToken": "arn:aws:lambda:eu-west-1:1:function:f", "V": v}})
	}
	w.deploy(custom("1"))
	if h := w.deploy(custom("same id")); h.Result != runlog.ResultSucceeded || len(w.cloud.steps("delete C")) != 0 {
		t.Fatal(w.story(h.RunID))
	}
	w.cloud.script("update C", script{id: "C-replaced"})
	h := w.deploy(custom("2"))
	if h.Result != runlog.ResultSucceeded {
		t.Fatal(w.story(h.RunID))
	}
	w.accounted("App")
	if d := cmp.Diff([]string{"C-replaced"}, w.cloud.exists()); d != "" {
		t.Errorf("what exists (-want +got):\n%s", d)
	}
}

func TestAnUpdateThatLeadsToAnotherResourceBesideALeftover(t *testing.T) {
	w := newWorld(t)
	custom := func(v string) object {
		return one("C", object{"Type": "Custom::Thing", "Properties": object{"ServiceToken": "arn:aws:lambda:eu-west-1:1:function:f", "V": v}})
	}
	w.deploy(custom("1"))
	w.cloud.script("update C", script{id: "C-second"})
	w.cloud.script("delete C", script{fails: fails(provider.KindFailed)})
	w.deploy(custom("2"))
	w.cloud.script("update C", script{id: "C-third"})
	w.cloud.script("delete C", script{})
	w.deploy(custom("3"))
	w.accounted("App")
	if d := cmp.Diff([]string{"C-third"}, w.cloud.exists()); d != "" {
		t.Errorf("both old halves are removed by the deploy that leaves the second (-want +got):\n%s", d)
	}
}

func TestASkippedDeletionKeepsTheRecord(t *testing.T) {
	w := newWorld(t)
	w.deploy(resources(object{"A": topic(object{}), "B": topic(object{})}))
	w.cloud.script("delete B", script{skip: "it can't be addressed"})
	h := w.destroy()
	if h.Result != runlog.ResultPartial || h.Counts.Deleted != 1 || h.Counts.Skipped != 1 {
		t.Errorf("%s %+v", h.Result, h.Counts)
	}
	if d := cmp.Diff([]string{"B"}, sortedKeys(w.record("App"))); d != "" {
		t.Errorf("the record (-want +got):\n%s", d)
	}
	w.accounted("App")
}
