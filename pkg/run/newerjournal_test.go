package run_test

import (
	"strings"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/runlog"
)

func TestADeployIsRefusedByAJournalThatItCannotAddTo(t *testing.T) {
	for says, body := range map[string]string{
		"version 2":        `{"journalVersion":2,"stackName":"App","region":"eu-west-1","segments":[]}`,
		"rollback journal": `{"journalVersion":1,"stackName":"App","region":"eu-west-1"}`,
	} {
		w := newWorld(t)
		w.deploy(one("A", topic(object{})))
		w.putRaw(w.states.JournalKey("App", region), body)
		w.cloud.forget()
		h := w.deploy(resources(object{"A": topic(object{}), "B": topic(object{})}))
		if h.Result != runlog.ResultFailed || h.Failure == nil || !strings.Contains(h.Failure.Summary+h.Failure.Detail, says) {
			t.Errorf("%s: %s %+v", says, h.Result, h.Failure)
		}
		if len(w.cloud.calls) > 0 {
			t.Errorf("%s: %v was called", says, w.cloud.calls)
		}
		w.sound(h.RunID)
	}
}
