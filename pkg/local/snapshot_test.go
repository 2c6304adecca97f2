package local

import (
	"context"
	"strings"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

func TestADestroyLeavesTheFinalSnapshotsThatPoliciesAskFor(t *testing.T) {
	for _, skip := range []bool{false, true} {
		p := openPlane(t, Options{Dir: t.TempDir()})
		asm := writeApp(t, map[string]object{"Data": {"Resources": object{"DB": object{
			"Type": "AWS::RDS::DBInstance", "DeletionPolicy": "Snapshot",
			"Properties": object{"DBInstanceClass": "db.t4g.micro", "Engine": "postgres", "AllocatedStorage": "20"},
		}}}}, nil)
		if h := deployWith(t, p, asm, run.Options{}); h.Result != runlog.ResultSucceeded {
			t.Fatal(story(t, p, h))
		}
		h := submit(t, p, asm, run.Submission{Command: runlog.CommandDestroy, Options: run.Options{SkipFinalSnapshot: skip}})
		if h.Result != runlog.ResultSucceeded {
			t.Fatal(story(t, p, h))
		}
		list, err := p.Sandbox().Snapshots(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case skip && len(list) > 0:
			t.Errorf("snapshots %+v", list)
		case skip:
		case len(list) != 1 || list[0].Type != "AWS::RDS::DBInstance" || !strings.Contains(list[0].Name, "-final-") || list[0].Properties["Engine"] != "postgres":
			t.Errorf("snapshots %+v", list)
		}
		if w := worldOf(t, p, "Data"); len(w.Live) > 0 || w.Record != nil {
			t.Errorf("left: %v", w.Live)
		}
	}
}
