package run_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/provider"
)

// lastSegment reads the newest segment of a rollback journal and reduces it to its shape: which members there are, and
// of which kind, with one operation in each list.
func lastSegment(t *testing.T, body []byte) map[string]any {
	t.Helper()
	var j struct{ Segments []map[string]any }
	if err := json.Unmarshal(body, &j); err != nil || len(j.Segments) == 0 {
		t.Fatalf("no segments in %s: %v", body, err)
	}
	seg := j.Segments[len(j.Segments)-1]
	delete(seg, "cdkdVersion")
	for _, name := range []string{"operations", "failedOperations"} {
		if ops, ok := seg[name].([]any); ok && len(ops) > 1 {
			seg[name] = ops[:1]
		}
	}
	out := shape(seg).(map[string]any)
	out["reason"], out["initialDeploy"] = seg["reason"], seg["initialDeploy"]
	return out
}

// TestEverySegmentHasTheMembersOfCdkds compares with what cdkd has written after the same course of events.
func TestEverySegmentHasTheMembersOfCdkds(t *testing.T) {
	bad := func(r object) object {
		return resources(object{"A": topic(object{}), "Bad": with(r, object{"DependsOn": "A"})})
	}
	for _, c := range []struct {
		sample, stack string
		course        func(w *world)
	}{
		{"09-lock-interrupt/06-sigint-first-deploy", "Intrp", func(w *world) {
			m := w.submitDeploy(resources(object{"A": topic(object{}), "B": queue(object{"KmsMasterKeyId": ref("A")})}))
			m.until(m.atItem("B"))
			m.stop()
			w.deadHolders["process-1"] = true
			w.settle(w.process("janitor"), m.runID)
		}},
		{"06-failures/10-first-deploy-no-rollback", "First", func(w *world) {
			w.cloud.script("create Bad", script{fails: fails(provider.KindInvalid)})
			w.deploy(bad(topic(object{"DisplayName": "x"})), noRollback)
		}},
		{"06-failures/12-first-auto-rollback-partially-fails", "First", func(w *world) {
			w.cloud.script("create Bad", script{fails: fails(provider.KindInvalid)})
			w.cloud.script("delete A", script{fails: fails(provider.KindAccessDenied)})
			w.deploy(bad(topic(object{"DisplayName": "x"})))
		}},
		{"06-failures/02-update-fails-auto-rollback", "Fail", func(w *world) {
			w.deploy(one("A", topic(object{})))
			w.cloud.script("create Bad", script{fails: fails(provider.KindInvalid)})
			w.deploy(bad(topic(object{"DisplayName": "x"})))
		}},
		// What it attempted could not be resolved. Something is retained, so that the files stay.
		{"06-failures/00-initial-deploy-fails-auto-rollback-intr", "Intr", func(w *world) {
			w.deploy(resources(object{
				"A":   with(queue(object{}), object{"DeletionPolicy": "Retain"}),
				"Bad": topic(object{"DisplayName": object{"Fn::Select": []any{9, object{"Fn::Split": []any{":", att("A", "Arn")}}}}}),
			}))
		}},
		{"01-basic/05-replace-refused", "Basic", func(w *world) {
			w.deploy(resources(object{"A": topic(object{}), "P": queue(object{"KmsMasterKeyId": ref("A"), "DelaySeconds": 1})}))
			w.cloud.script("update P", script{fails: failsFirst()})
			w.deploy(resources(object{"A": topic(object{}), "P": queue(object{"KmsMasterKeyId": ref("A"), "DelaySeconds": 2})}))
		}},
	} {
		t.Run(c.sample, func(t *testing.T) {
			file := filepath.Join(filepath.FromSlash("../../../shared/reference/cdkd-samples"), filepath.FromSlash(c.sample), "s3", "cdkd", c.stack, "us-east-1", "rollback-journal.json")
			theirs, err := os.ReadFile(file)
			if err != nil {
				t.Skip("the files that cdkd has written are not here: " + file)
			}
			w := newWorld(t)
			c.course(w)
			o, err := w.objects.Get(t.Context(), w.states.JournalKey("App", region))
			if err != nil {
				t.Fatalf("%v: %s", err, w.story(sortedNames(w.machines)[0][len("App-deploy-"):]))
			}
			if d := cmp.Diff(lastSegment(t, theirs), lastSegment(t, o.Body)); d != "" {
				t.Errorf("the segment (-cdkd's +ours):\n%s", d)
			}
		})
	}
}
