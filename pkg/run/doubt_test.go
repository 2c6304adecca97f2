package run_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

func TestAStepWhoseAnswerIsLostIsRepeatedUnderItsToken(t *testing.T) {
	for _, takes := range []time.Duration{0, time.Minute} {
		for _, step := range []string{"create A", "update A", "delete A"} {
			t.Run(fmt.Sprint(step, " in ", takes), func(t *testing.T) {
				w := newWorld(t)
				if !strings.HasPrefix(step, "create") {
					w.deploy(one("A", topic(object{"DisplayName": "before"})))
				}
				w.cloud.forget()
				w.cloud.script(step, script{takes: takes, silent: func(n int) bool { return n <= 3 || n == 5 || n == 6 }})
				var h runlog.Header
				if strings.HasPrefix(step, "delete") {
					h = w.destroy()
				} else {
					h = w.deploy(one("A", topic(object{"DisplayName": "after"})))
				}
				if h.Result != runlog.ResultSucceeded {
					t.Fatal(w.story(h.RunID))
				}
				calls := w.cloud.steps(step)
				if len(calls) != 4 || w.cloud.effects()[step] != 1 {
					t.Errorf("%d calls under %d tokens, want 4 under one", len(calls), w.cloud.effects()[step])
				}
				for _, c := range calls {
					if c.attempt != 1 {
						t.Errorf("a repetition counts as attempt %d", c.attempt)
					}
				}
				w.sound(h.RunID)
				w.accounted("App")
			})
		}
	}
}

func TestAStepThatIsNeverAnsweredIsNotBegunAgain(t *testing.T) {
	w := newWorld(t)
	w.cloud.script("create A", script{silent: func(int) bool { return true }})
	m := w.submitDeploy(one("A", topic(object{})), noRollback)
	h := w.finish(m)
	if h.Result != runlog.ResultFailed || h.Failure == nil || !strings.Contains(h.Failure.Detail, "may have had its effect") {
		t.Errorf("%s: %+v", h.Result, h.Failure)
	}
	if n := len(w.cloud.steps("create A")); n != 21 || w.cloud.effects()["create A"] != 1 {
		t.Errorf("%d calls under %d tokens, want 21 under one", n, w.cloud.effects()["create A"])
	}
	if op, err := w.log.Op(t.Context(), m.runID, "A"); err != nil || op.Error == nil || op.Error.Kind != provider.KindTimeout {
		t.Errorf("%+v, %v", op.Error, err)
	}
	w.sound(m.runID)
}
