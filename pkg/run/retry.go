package run

import (
	"encoding/binary"
	"encoding/hex"
	"maps"
	"strconv"
	"time"

	"github.com/slipway-cdk/slipway/pkg/plan"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

const (
	// maxAttempts bounds the attempts at an operation whatever its failures were.
	maxAttempts = 120
	// maxFreed is the number of attempts from which on a deletion no longer goes ahead of its turn.
	maxFreed = 60
	// maxHint is the longest wait that a service may ask for. It is well within the time of the run's lock
	// (state.LockTTL), which every decision renews.
	maxHint = 5 * time.Minute
)

// ladder is how failures of one kind are tried again.
type ladder struct {
	// tries is how many failures of the kind an operation may have: the last one stands.
	tries int
	// pause is how long to wait after the nth of them.
	pause func(op runlog.Op, n int) time.Duration
}

// ladders are those of the kinds that pass. Each counts its own failures: a service that breaks down once does not end
// the wait for a role.
var ladders = map[provider.Kind]ladder{
	// Decorrelated jitter keeps those that were refused together from coming back together.
	provider.KindThrottled: {tries: 12, pause: jittered(time.Second, 30*time.Second)},
	// The same call may succeed at once: 1, 2, 4, 8 seconds.
	provider.KindUnavailable: {tries: 5, pause: doubling(time.Second, 8*time.Second)},
	provider.KindConflict:    {tries: 5, pause: doubling(time.Second, 8*time.Second)},
	// What IAM is told takes seconds to reach every service, now and then a minute or two, and it may come any moment:
	// every two seconds for the first half minute, then every three, for about three minutes in all
	// (https://docs.aws.amazon.com/IAM/latest/UserGuide/troubleshoot.html#troubleshoot_general_eventual-consistency).
	provider.KindPropagation: {tries: 65, pause: dense},
	// A queue's name is free after a minute, a bucket's mostly within a few.
	provider.KindRecentlyDeleted: {tries: 12, pause: doubling(5*time.Second, 30*time.Second)},
}

// inUseLadder is that of a deletion that something still stands in the way of. What uses a resource often goes a while
// after the call that removed it, as network interfaces do: 5, 10, 20, then 30 seconds.
var inUseLadder = ladder{tries: 9, pause: doubling(5*time.Second, 30*time.Second)}

// interfacesLadder is that of what network interfaces are in. Those of a function in a VPC go up to twenty minutes after it,
// now and then later; the same pauses, for about half an hour.
// https://docs.aws.amazon.com/lambda/latest/dg/configuration-vpc.html
var interfacesLadder = ladder{tries: 60, pause: inUseLadder.pause}

// holdsInterfaces are the types that a network interface is in.
func holdsInterfaces(typeName string) bool {
	return typeName == "AWS::EC2::Subnet" || typeName == "AWS::EC2::SecurityGroup"
}

// nameTakenLadder is that of a resource whose old half this operation has deleted: its name is still seen for a while.
var nameTakenLadder = ladder{tries: 9, pause: doubling(2*time.Second, 15*time.Second)}

// ladderOf chooses the ladder of a failed operation. ok is false where the failure stands.
func ladderOf(op runlog.Op) (l ladder, ok bool) {
	switch {
	case op.Status != runlog.OpFailed || op.Error == nil:
		return ladder{}, false
	case inUse(op) && holdsInterfaces(op.Type):
		return interfacesLadder, true
	case inUse(op):
		return inUseLadder, true
	case op.Error.Kind == provider.KindAlreadyExists && op.Stage == stageDeleted:
		return nameTakenLadder, true
	}
	l, ok = ladders[op.Error.Kind]
	return l, ok
}

// retryDue reports whether a failed operation is to be tried again.
func retryDue(op runlog.Op) bool {
	l, ok := ladderOf(op)
	return ok && failuresOf(op)[op.Error.Kind] < l.tries && op.Attempt < maxAttempts
}

// failuresOf counts the failures of an operation by kind, that of its last attempt among them.
func failuresOf(op runlog.Op) map[provider.Kind]int {
	if op.Status != runlog.OpFailed || op.Error == nil {
		return op.Failures
	}
	out := maps.Clone(op.Failures)
	if out == nil {
		out = map[provider.Kind]int{}
	}
	out[op.Error.Kind]++
	return out
}

// inUse: a deletion was refused because something still uses the resource.
func inUse(op runlog.Op) bool {
	return op.Action == string(plan.ActionDelete) && op.Error != nil && op.Error.Kind == provider.KindDependencyViolation
}

// freed: a deletion was refused because something still used the resource, and another deletion of this run has ended
// since, or in the same wave: it may be what stood in the way, so the next attempt need not wait.
func (t *turn) freed(op runlog.Op) bool {
	if op.Status != runlog.OpFailed || !inUse(op) || op.Attempt >= maxFreed {
		return false
	}
	for id, other := range t.ops {
		if id != op.OpID && other.Action == string(plan.ActionDelete) && other.Status == runlog.OpSucceeded && other.Wave >= op.Wave {
			return true
		}
	}
	return false
}

// retryAt is the earliest moment for the next attempt: what the service has asked for, and at least the pause of the
// ladder.
func (e *Engine) retryAt(op runlog.Op) time.Time {
	var pause time.Duration
	if l, ok := ladderOf(op); ok {
		pause = l.pause(op, failuresOf(op)[op.Error.Kind])
	}
	at := op.FinishedAt.Add(e.wall(pause))
	if asked := earlier(op.NotBefore, op.FinishedAt.Add(maxHint)); asked.After(at) {
		return asked
	}
	return at
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// doubling pauses for base, twice as long after every further failure, and never for longer than limit.
func doubling(base, limit time.Duration) func(runlog.Op, int) time.Duration {
	return func(_ runlog.Op, n int) time.Duration { return min(base<<min(max(n-1, 0), 16), limit) }
}

// dense pauses for two seconds, from the 16th failure on for three.
func dense(_ runlog.Op, n int) time.Duration {
	if n <= 15 {
		return 2 * time.Second
	}
	return 3 * time.Second
}

// jittered is decorrelated jitter: each pause is somewhere between base and three times the one before, and never
// longer than limit (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/). The chance in it is
// drawn from the token of the attempt, so that a repeated decision is the same one.
func jittered(base, limit time.Duration) func(runlog.Op, int) time.Duration {
	return func(op runlog.Op, n int) time.Duration {
		pause := base
		for i := range n {
			pause = min(base+time.Duration(chance(op.Token, i)*float64(min(3*pause, limit)-base)), limit)
		}
		return pause
	}
}

// chance is a number in [0, 1), the same one for the same seed.
func chance(seed string, i int) float64 {
	sum, err := hex.DecodeString(digest(seed, strconv.Itoa(i)))
	if err != nil {
		return 0 // a digest is hexadecimal
	}
	return float64(binary.BigEndian.Uint64(sum)>>11) / (1 << 53)
}

// wall is how long a pause takes on the clock by which due times are told. A scaled clock waits shorter than it is
// asked to, but tells real time.
func (e *Engine) wall(pause time.Duration) time.Duration {
	if c, scaled := e.Clock.(interface {
		Wall(time.Duration) time.Duration
	}); scaled {
		return c.Wall(pause)
	}
	return pause
}
