package run_test

import (
	"strings"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/state"
)

// database is a resource that can be snapshotted, and has to be replaced for another user.
func database(user string, policies object) object {
	return with(object{"Type": "AWS::RDS::DBInstance", "Properties": object{"MasterUsername": user}}, policies)
}

func skipSnapshot(o *run.Options) { o.SkipFinalSnapshot = true }

// snapshots lists the snapshots that deletions were asked for, "" for none.
func (w *world) snapshots() []string {
	var out []string
	for _, c := range w.cloud.steps("delete") {
		out = append(out, c.snapshot)
	}
	return out
}

func TestAFinalSnapshotIsTakenWhereAPolicyAsksForOne(t *testing.T) {
	deletion, replacement := object{"DeletionPolicy": "Snapshot"}, object{"UpdateReplacePolicy": "Snapshot"}
	other := one("Other", topic(object{}))
	keep := func(o *run.Options) { o.ForceStatefulRecreation = true }
	courses := map[string]func(w *world, policies object, option func(*run.Options)) runlog.Header{
		"removal": func(w *world, policies object, option func(*run.Options)) runlog.Header {
			w.deploy(one("V", database("a", policies)))
			return w.deploy(other, option)
		},
		"replacement": func(w *world, policies object, option func(*run.Options)) runlog.Header {
			w.deploy(one("V", database("a", policies)))
			return w.deploy(one("V", database("b", policies)), option)
		},
		"rollback of a creation": func(w *world, policies object, option func(*run.Options)) runlog.Header {
			w.cloud.script("create Bad", script{fails: fails(provider.KindInvalid)})
			return w.deploy(resources(object{"V": database("a", policies), "Bad": with(topic(object{}), object{"DependsOn": "V"})}), option)
		},
		"replay of a creation": func(w *world, policies object, option func(*run.Options)) runlog.Header {
			w.cloud.script("create Bad", script{fails: fails(provider.KindInvalid)})
			w.deploy(resources(object{"V": database("a", policies), "Bad": with(topic(object{}), object{"DependsOn": "V"})}), noRollback)
			return w.rollback(option)
		},
		"destroy": func(w *world, policies object, option func(*run.Options)) runlog.Header {
			w.deploy(one("V", database("a", policies)))
			o := order{stack: "App", command: runlog.CommandDestroy}
			option(&o.options)
			return w.finish(w.submit(o))
		},
	}
	for name, course := range courses {
		t.Run(name, func(t *testing.T) {
			policies, against := deletion, replacement
			if name == "replacement" {
				policies, against = replacement, deletion
			}
			w := newWorld(t)
			h := course(w, policies, keep)
			got := w.snapshots()
			day := strings.SplitN(h.RunID, "T", 2)[0]
			if len(got) != 1 || !strings.HasPrefix(got[0], "V-") || !strings.Contains(got[0], "-final-"+day) {
				t.Errorf("snapshots %q: %s", got, w.story(h.RunID))
			}
			for _, without := range []func(w *world) runlog.Header{
				func(w *world) runlog.Header { return course(w, policies, skipSnapshot) },
				func(w *world) runlog.Header { return course(w, against, keep) },
			} {
				w := newWorld(t)
				h := without(w)
				if got := w.snapshots(); len(got) != 1 || got[0] != "" {
					t.Errorf("snapshots %q: %s", got, w.story(h.RunID))
				}
			}
		})
	}
}

func TestWhatCanNotBeSnapshottedStays(t *testing.T) {
	w := newWorld(t)
	w.deploy(one("V", database("a", object{"DeletionPolicy": "Snapshot"})))
	w.cloud.script("delete V", script{fails: fails(provider.KindUnsupported)})
	h := w.destroy()
	if h.Result != runlog.ResultPartial || w.record("App").Resources["V"] == nil {
		t.Errorf("%s: %s", h.Result, w.story(h.RunID))
	}
	w.accounted("App")
}

func TestASnapshotOfATypeThatHasNoneIsRefused(t *testing.T) {
	w := newWorld(t)
	h := w.deploy(one("T", with(topic(object{}), object{"DeletionPolicy": "Snapshot"})))
	if h.Result != runlog.ResultFailed || len(w.cloud.calls) != 0 || !warned(h, "T") {
		t.Errorf("%s: %s", h.Result, w.story(h.RunID))
	}
	// Another tool may have recorded one.
	w.deploy(one("T", topic(object{})))
	w.edit(func(rec *state.Record) { rec.Resources["T"].DeletionPolicy = "Snapshot" })
	if h = w.destroy(); h.Result != runlog.ResultPartial || len(w.cloud.steps("delete")) != 0 {
		t.Errorf("%s: %s", h.Result, w.story(h.RunID))
	}
	w.accounted("App")
}
