package run

import (
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/plan"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/state"
)

var failedAt = time.Date(2026, 11, 29, 21, 0, 0, 0, time.UTC)

// failedOp is an operation whose nth failure of a kind this is.
func failedOp(action plan.Action, kind provider.Kind, n int) runlog.Op {
	return runlog.Op{
		OpID: "A", Status: runlog.OpFailed, Action: string(action), Attempt: n, FinishedAt: failedAt, Token: token("run", "A", string(action), n),
		Failures: map[provider.Kind]int{kind: n - 1}, Error: &runlog.OpError{Kind: kind},
	}
}

func TestInterfacesOfFunctionsAreWaitedFor(t *testing.T) {
	for _, typeName := range []string{"AWS::EC2::Subnet", "AWS::EC2::SecurityGroup", "AWS::EC2::VPC"} {
		var waited time.Duration
		for n := 1; n < maxAttempts; n++ {
			op := failedOp(plan.ActionDelete, provider.KindDependencyViolation, n)
			if op.Type = typeName; !retryDue(op) {
				break
			}
			l, _ := ladderOf(op)
			waited += l.pause(op, n)
		}
		if long := waited > 25*time.Minute && waited < 35*time.Minute; long != (typeName != "AWS::EC2::VPC") {
			t.Errorf("%s: its deletion is tried again for %s", typeName, waited)
		}
	}
}

func TestPausesBetweenAttempts(t *testing.T) {
	e := &Engine{Clock: clock.Real{}}
	for _, c := range []struct {
		op   runlog.Op
		due  bool
		want time.Duration
	}{
		{failedOp(plan.ActionCreate, provider.KindUnavailable, 1), true, time.Second},
		{failedOp(plan.ActionCreate, provider.KindUnavailable, 4), true, 8 * time.Second},
		{failedOp(plan.ActionCreate, provider.KindUnavailable, 5), false, 8 * time.Second},
		{failedOp(plan.ActionUpdate, provider.KindConflict, 2), true, 2 * time.Second},
		{failedOp(plan.ActionUpdate, provider.KindConflict, 5), false, 8 * time.Second},
		{failedOp(plan.ActionCreate, provider.KindPropagation, 1), true, 2 * time.Second},
		{failedOp(plan.ActionCreate, provider.KindPropagation, 15), true, 2 * time.Second},
		{failedOp(plan.ActionCreate, provider.KindPropagation, 16), true, 3 * time.Second},
		{failedOp(plan.ActionCreate, provider.KindPropagation, 64), true, 3 * time.Second},
		{failedOp(plan.ActionCreate, provider.KindPropagation, 65), false, 3 * time.Second},
		{failedOp(plan.ActionCreate, provider.KindRecentlyDeleted, 3), true, 20 * time.Second},
		{failedOp(plan.ActionCreate, provider.KindRecentlyDeleted, 12), false, 30 * time.Second},
		{failedOp(plan.ActionCreate, provider.KindThrottled, 11), true, -1},
		{failedOp(plan.ActionCreate, provider.KindThrottled, 12), false, -1},
		{failedOp(plan.ActionCreate, provider.KindDependencyViolation, 1), false, 0},
		{failedOp(plan.ActionDelete, provider.KindDependencyViolation, 1), true, 5 * time.Second},
		{failedOp(plan.ActionDelete, provider.KindDependencyViolation, 8), true, 30 * time.Second},
		{failedOp(plan.ActionDelete, provider.KindDependencyViolation, 9), false, 30 * time.Second},
		{failedOp(plan.ActionDelete, provider.KindAccessDenied, 1), false, 0},
		{failedOp(plan.ActionCreate, provider.KindAlreadyExists, 1), false, 0},
	} {
		name := c.op.Action + " " + string(c.op.Error.Kind)
		if got := retryDue(c.op); got != c.due {
			t.Errorf("%s, failure %d: another attempt is due: %v", name, c.op.Attempt, got)
		}
		if got := e.retryAt(c.op).Sub(failedAt); c.want >= 0 && got != c.want {
			t.Errorf("%s, failure %d: a pause of %s, want %s", name, c.op.Attempt, got, c.want)
		}
	}
}

func TestANameThatThisOperationHasFreedIsWaitedFor(t *testing.T) {
	op := failedOp(plan.ActionReplace, provider.KindAlreadyExists, 1)
	if retryDue(op) {
		t.Error("a name that somebody else has is waited for")
	}
	op.Stage = stageDeleted
	if !retryDue(op) {
		t.Error("the name of the old half that was deleted a moment ago is not waited for")
	}
}

func TestFailuresAreCountedByKind(t *testing.T) {
	op := failedOp(plan.ActionCreate, provider.KindPropagation, 40)
	op.Error = &runlog.OpError{Kind: provider.KindUnavailable}
	if !retryDue(op) {
		t.Error("one failure of a service ends the wait for a role")
	}
	next := intent("run", operationInput{Attempt: op.Attempt + 1}, op, failedAt)
	if next.Failures[provider.KindPropagation] != 39 || next.Failures[provider.KindUnavailable] != 1 {
		t.Errorf("the next attempt knows of %v", next.Failures)
	}
	again := intent("run", operationInput{Attempt: op.Attempt + 1, Uncounted: true}, op, failedAt)
	if again.Failures[provider.KindUnavailable] != 0 {
		t.Errorf("a failure that does not count is counted: %v", again.Failures)
	}
	if op.Failures[provider.KindUnavailable] != 0 {
		t.Error("counting has changed the record of the attempt before")
	}
	op.Attempt = maxAttempts
	if retryDue(op) {
		t.Error("an operation is tried without end")
	}
}

func TestWhatTheServiceAsksForIsWaitedForWithinReason(t *testing.T) {
	e := &Engine{Clock: clock.Real{}}
	for asked, want := range map[time.Duration]time.Duration{time.Minute: time.Minute, 3 * time.Hour: maxHint} {
		op := failedOp(plan.ActionCreate, provider.KindUnavailable, 1)
		op.NotBefore = failedAt.Add(asked)
		if got := e.retryAt(op).Sub(failedAt); got != want {
			t.Errorf("the service asks for %s and gets %s", asked, got)
		}
	}
}

func TestPausesKeepTheirBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]provider.Kind{
			provider.KindThrottled, provider.KindUnavailable, provider.KindConflict, provider.KindPropagation,
			provider.KindRecentlyDeleted, provider.KindDependencyViolation,
		}).Draw(t, "kind")
		n := rapid.IntRange(1, maxAttempts).Draw(t, "n")
		op := failedOp(plan.ActionDelete, kind, n)
		op.Token = rapid.String().Draw(t, "token")
		op.NotBefore = failedAt.Add(time.Duration(rapid.Int64Range(0, int64(100*time.Hour)).Draw(t, "hint")))
		e := &Engine{Clock: clock.Real{}}
		pause := e.retryAt(op).Sub(failedAt)
		if pause < time.Second || pause > maxHint || pause >= state.LockTTL/2 {
			t.Fatalf("failure %d of kind %s: a pause of %s", n, kind, pause)
		}
		if e.retryAt(op).Sub(failedAt) != pause {
			t.Fatal("the same failure gets two pauses")
		}
		l, _ := ladderOf(op)
		if kind != provider.KindThrottled && l.pause(op, n+1) < l.pause(op, n) {
			t.Fatalf("the pause after failure %d is shorter than the one before", n+1)
		}
		// What is tried again at all comes to its end well before anybody thinks it forgotten.
		var all time.Duration
		for i := range l.tries {
			all += l.pause(op, i+1)
		}
		if l.tries >= maxAttempts || all > 10*time.Minute {
			t.Fatalf("%s: %d failures take %s", kind, l.tries, all)
		}
	})
}

func TestThoseRefusedTogetherDoNotComeBackTogether(t *testing.T) {
	e := &Engine{Clock: clock.Real{}}
	seconds := map[time.Duration]int{}
	for i := range 40 {
		op := failedOp(plan.ActionCreate, provider.KindThrottled, 4)
		op.Token = token("run", string(rune('A'+i)), "create", 4)
		seconds[e.retryAt(op).Sub(failedAt).Truncate(time.Second)]++
	}
	for at, n := range seconds {
		if n > 12 {
			t.Errorf("%d of 40 come back in one second, %s later", n, at)
		}
	}
	if len(seconds) < 6 {
		t.Errorf("40 come back within %d different seconds", len(seconds))
	}
}

func TestPausesBetweenTheCallsOfAStepThatIsInDoubt(t *testing.T) {
	e := &Engine{Clock: clock.NewFake(failedAt)}
	pause := func(doubts int, cause error) time.Duration {
		op := e.doubt(runlog.Op{Doubts: doubts, Token: "t"}, cause)
		if op.Doubts != doubts+1 {
			t.Errorf("doubt %d is counted as %d", doubts+1, op.Doubts)
		}
		return op.NotBefore.Sub(failedAt)
	}
	lost := &provider.Error{Kind: provider.KindUnavailable, Undecided: true}
	for n, want := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
		if got := pause(n, lost); got != want*time.Second {
			t.Errorf("doubt %d: a pause of %s, want %s", n+1, got, want*time.Second)
		}
	}
	busy := &provider.Error{Kind: provider.KindThrottled, Undecided: true}
	longest := time.Duration(0)
	for n := range maxDoubts {
		got := pause(n, busy)
		if got < time.Second || got > 30*time.Second {
			t.Errorf("throttled for the time %d: a pause of %s", n+1, got)
		}
		longest = max(longest, got)
	}
	if longest < 5*time.Second {
		t.Errorf("a service that is too busy is asked again every %s", longest)
	}
	for asked, want := range map[time.Duration]time.Duration{time.Minute: time.Minute, 3 * time.Hour: maxHint} {
		if got := pause(0, &provider.Error{Kind: provider.KindUnavailable, RetryAfter: asked}); got != want {
			t.Errorf("the service asks for %s and gets %s", asked, got)
		}
	}
	if got := pause(0, errors.New("the connection broke")); got != time.Second {
		t.Errorf("an error of no kind: a pause of %s", got)
	}
}

func TestWhatIsNeverDecidedQuotesTheLastAnswer(t *testing.T) {
	for _, c := range []struct {
		err  provider.Error
		want string
	}{
		{provider.Error{Message: "slow down", Err: errors.New("429")}, "answer: slow down"},
		{provider.Error{Err: errors.New("the connection broke")}, "answer: the connection broke"},
		{provider.Error{}, "answer: "},
	} {
		got := unresolvedDoubt(&c.err, maxDoubts)
		if got.Kind != provider.KindTimeout || !strings.Contains(got.Message, "not said 21 times") || !strings.HasSuffix(got.Message, c.want) {
			t.Errorf("%+v", got)
		}
	}
}

func TestADeletionGoesAheadOnlySoOften(t *testing.T) {
	for attempt, want := range map[int]bool{1: true, maxFreed - 1: true, maxFreed: false} {
		op := failedOp(plan.ActionDelete, provider.KindDependencyViolation, attempt)
		other := runlog.Op{OpID: "B", Action: string(plan.ActionDelete), Status: runlog.OpSucceeded}
		tr := &turn{ops: map[string]runlog.Op{"A": op, "B": other}}
		if got := tr.freed(op); got != want {
			t.Errorf("attempt %d goes ahead: %v", attempt, got)
		}
	}
}
