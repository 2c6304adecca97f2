package execution

import (
	"testing"

	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// Runs outlive releases: one that has begun under a name is looked for under the same name by every later release.
func TestNamesStayWhatTheyWere(t *testing.T) {
	const id = "20260102T030405006Z-0123abcd"
	for subject, want := range map[string]string{
		"deployment": "deployment-deploy-" + id,
		"a stack":    "a-stack-ecf3f102-deploy-" + id,
	} {
		if got := Name(subject, runlog.CommandDeploy, id); got != want {
			t.Errorf("%q is named %s, want %s", subject, got, want)
		}
	}
}

func TestTheInputOfAnUploadPointsAndSaysNoMore(t *testing.T) {
	x := Upload{RunID: "r", Command: runlog.CommandDeploy, Upload: UploadRef{Key: "inbox/a&b.zip", Version: "v"}}
	got, err := x.Input()
	if want := `{"runId":"r","command":"` + string(runlog.CommandDeploy) + `","upload":{"key":"inbox/a&b.zip","version":"v"}}`; err != nil || string(got) != want {
		t.Errorf("the input is %s, %v, want %s", got, err, want)
	}
}
