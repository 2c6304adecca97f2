package views

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/slipway-cdk/slipway/pkg/runlog"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func at(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }

// resource makes an event on a resource of run s1.
func resource(t runlog.EventType, second float64, id, typeName, action string) runlog.Event {
	return runlog.Event{
		Version: 1, ID: runlog.EventID(1, id, t, 1), Type: t, Time: at(second), RunID: "s1", Root: "d1", Stack: "shop",
		Region: "eu-west-1", LogicalID: id, ResourceType: typeName, Action: action, Wave: 1, Attempt: 1,
	}
}

func runEvent(t runlog.EventType, second float64, runID string) runlog.Event {
	e := runlog.Event{Version: 1, ID: runlog.EventID(0, "run", t, 0), Type: t, Time: at(second), RunID: runID, Root: "d1", Command: runlog.CommandDeploy}
	if runID != "d1" {
		e.Stack, e.Region = "shop", "eu-west-1"
	}
	return e
}

// story is a deploy with everything that a renderer has to show.
func story() []runlog.Event {
	planned := runEvent(runlog.Planned, 0, "s1")
	planned.Total = 5
	done := resource(runlog.OpDone, 2, "Queue", "AWS::SQS::Queue", "create")
	done.DurationMs = 1900
	retry := resource(runlog.OpRetry, 3, "Role", "AWS::IAM::Role", "update")
	retry.Message = "throttled"
	progress := resource(runlog.OpProgress, 4, "Nat", "AWS::EC2::NatGateway", "create")
	progress.Message = "waiting for its address"
	failed := resource(runlog.OpFail, 5, "Bucket", "AWS::S3::Bucket", "replace")
	failed.Error = &runlog.OpError{Code: "AlreadyExists", Message: "the name\nis \x1b[31mtaken"}
	skip := resource(runlog.OpSkip, 6, "Policy", "AWS::S3::BucketPolicy", "create")
	skip.Message = "Bucket failed"
	rollback := runEvent(runlog.RollbackStarted, 7, "s1")
	rollback.Message = "Bucket failed"
	finished := runEvent(runlog.RunFinished, 9, "s1")
	finished.Result = runlog.ResultFailed
	finished.DurationMs = 9000
	finished.Counts = &runlog.Counts{Created: 1, Failed: 1, Skipped: 1}
	asset := runlog.Event{ID: runlog.EventID(1, "asset.1", runlog.AssetStarted, 1), Type: runlog.AssetStarted, Time: at(0), RunID: "d1", Root: "d1", LogicalID: "handler 代码", ResourceType: "asset", Action: "publish"}
	published := asset
	published.Type, published.Time, published.ID = runlog.AssetPublished, at(1), runlog.EventID(1, "asset.1", runlog.AssetPublished, 1)
	return []runlog.Event{
		runEvent(runlog.RunStarted, 0, "d1"),
		planned,
		asset,
		resource(runlog.OpStarted, 0, "Queue", "AWS::SQS::Queue", "create"),
		resource(runlog.OpStarted, 0, "Nat", "AWS::EC2::NatGateway", "create"),
		published,
		done,
		resource(runlog.OpStarted, 2, "Role", "AWS::IAM::Role", "update"),
		retry,
		resource(runlog.OpStarted, 3, "Bucket", "AWS::S3::Bucket", "replace"),
		progress,
		failed,
		skip,
		rollback,
		resource(runlog.OpDone, 8, "Nat", "AWS::EC2::NatGateway", "create"),
		finished,
	}
}

// checkScreen asserts what holds of every frame: nothing wrapped, no line wider than the terminal, the block
// bounded.
func checkScreen(t *testing.T, v *terminal, l *Live) {
	t.Helper()
	if v.wrapped > 0 {
		t.Fatalf("%d×%d: a line was wider than the terminal:\n%s", v.width, v.height, v.text())
	}
	for _, line := range v.screen() {
		if w := runewidth.StringWidth(line); w > v.width {
			t.Fatalf("%d×%d: a line is %d columns wide: %q", v.width, v.height, w, line)
		}
	}
	if len(l.drawn) > max(1, v.height-1) {
		t.Fatalf("%d×%d: the block has %d rows", v.width, v.height, len(l.drawn))
	}
	if v.noWrap {
		t.Fatal("a frame left wrapping switched off")
	}
}

func TestLiveFrames(t *testing.T) {
	for _, size := range [][2]int{{100, 24}, {60, 12}, {28, 6}, {12, 3}, {5, 2}, {1, 1}} {
		t.Run(fmt.Sprintf("%d×%d", size[0], size[1]), func(t *testing.T) {
			v := newTerminal(t, size[0], size[1])
			l := NewLive(v.stream(), "Deploying shop", Expectation{"shop": 5})
			var frames strings.Builder
			for i, e := range story() {
				l.Events([]runlog.Event{e})
				l.Tick(e.Time)
				checkScreen(t, v, l)
				if i == 4 || i == 10 || i == 13 {
					fmt.Fprintf(&frames, "--- after %s\n%s", e.ID, v.text())
				}
			}
			l.Finish()
			checkScreen(t, v, l)
			fmt.Fprintf(&frames, "--- at the end\n%s", v.text())
			if v.lines[len(v.lines)-1] != "" {
				t.Errorf("the block is still there: %q", v.lines[len(v.lines)-1])
			}
			if size[0] >= 28 {
				golden(t, fmt.Sprintf("live-%dx%d.golden", size[0], size[1]), frames.String())
			}
		})
	}
}

func TestLiveShowsEveryFinishedLineOnceWhateverHappensBelow(t *testing.T) {
	v := newTerminal(t, 80, 10)
	l := NewLive(v.stream(), "Deploying shop", nil)
	const n = 50
	now := 0.0
	for i := range n {
		l.Events([]runlog.Event{resource(runlog.OpStarted, now, fmt.Sprintf("R%02d", i), "AWS::SQS::Queue", "create")})
	}
	l.Tick(at(now))
	checkScreen(t, v, l)
	if !strings.Contains(v.text(), "more") {
		t.Errorf("50 operations in flight on 10 rows, and nothing says that there are more:\n%s", v.text())
	}
	for i := range n {
		now++
		l.Events([]runlog.Event{resource(runlog.OpDone, now, fmt.Sprintf("R%02d", i), "AWS::SQS::Queue", "create")})
		l.Tick(at(now))
		l.Tick(at(now + 0.5)) // a frame in which only the clock has moved
		checkScreen(t, v, l)
	}
	l.Finish()
	for i := range n {
		if got := strings.Count(v.text(), fmt.Sprintf("created     shop/R%02d ", i)); got != 1 {
			t.Errorf("R%02d is on the terminal %d times", i, got)
		}
	}
	if strings.Contains(v.text(), "in flight") {
		t.Errorf("a block was left behind:\n%s", v.text())
	}
}

func TestLiveFollowsAResize(t *testing.T) {
	v := newTerminal(t, 80, 20)
	l := NewLive(v.stream(), "Deploying shop", nil)
	for i := range 12 {
		l.Events([]runlog.Event{resource(runlog.OpStarted, 0, fmt.Sprintf("R%02d", i), "AWS::SQS::Queue", "create")})
	}
	l.Tick(at(1))
	checkScreen(t, v, l)
	for _, size := range [][2]int{{120, 20}, {120, 8}, {120, 30}} {
		v.width, v.height = size[0], size[1]
		l.Tick(at(2))
		checkScreen(t, v, l)
	}
	// A terminal that becomes narrower reflows the block; the emulator does not, so only the count is tested.
	before := len(l.drawn)
	if got := l.rows(120); got != before {
		t.Errorf("rows at the same width: %d, want %d", got, before)
	}
	if got := l.rows(20); got <= before {
		t.Errorf("rows after the terminal became narrower: %d, not more than %d", got, before)
	}
}

func TestLiveColoursAreNeverCutOpen(t *testing.T) {
	var out strings.Builder
	l := NewLive(Stream{Writer: &out, Terminal: true, Color: true, Size: func() (int, int) { return 24, 8 }}, "Deploying shop", nil)
	for _, e := range story() {
		l.Events([]runlog.Event{e})
		l.Tick(e.Time)
	}
	l.Finish()
	for _, line := range strings.Split(out.String(), "\r\n") {
		if i := strings.LastIndex(line, "\x1b[3"); i >= 0 && !strings.Contains(line[i:], "\x1b[0m") {
			t.Errorf("a colour is not reset at the end of its line: %q", line)
		}
	}
}

func TestLiveIgnoresAStartThatComesAfterTheEnd(t *testing.T) {
	v := newTerminal(t, 80, 10)
	l := NewLive(v.stream(), "Deploying shop", nil)
	l.Events([]runlog.Event{
		resource(runlog.OpDone, 1, "Queue", "AWS::SQS::Queue", "create"),
		resource(runlog.OpStarted, 0, "Queue", "AWS::SQS::Queue", "create"),
	})
	if n := len(l.p.flights()); n != 0 {
		t.Errorf("%d operations in flight, want none", n)
	}
}
