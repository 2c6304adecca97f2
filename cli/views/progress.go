package views

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// progress is what a person wants to know while a deployment runs. Live and Plain keep one each, so both tell
// the same story.
type progress struct {
	started  time.Time
	command  runlog.Command
	runs     map[string]*runProgress
	inFlight map[opKey]*flight
	done     map[opKey]int // attempts that have ended, so that a late start is not shown
	failures []runlog.Event
	stacks   map[string]int // expected operations by stack, from the plan that was shown
}

type runProgress struct {
	stack        string
	total, ended int
	deployment   bool
	rollingBack  bool
}

type opKey struct{ run, logicalID, action string }

// flight is one operation that is going on.
type flight struct {
	key     opKey
	name    string
	kind    string
	verb    string
	message string
	since   time.Time
}

// Expectation is what the shown plan lets a renderer expect: operations by stack name.
type Expectation map[string]int

func newProgress(expect Expectation) *progress {
	p := &progress{
		runs:     map[string]*runProgress{},
		inFlight: map[opKey]*flight{},
		done:     map[opKey]int{},
		stacks:   map[string]int{},
	}
	for stack, n := range expect {
		p.stacks[stack] = n
	}
	return p
}

func (p *progress) run(e runlog.Event) *runProgress {
	r := p.runs[e.RunID]
	if r == nil {
		r = &runProgress{stack: e.Stack}
		p.runs[e.RunID] = r
	}
	switch e.Type {
	case runlog.AssetStarted, runlog.AssetPublished, runlog.AssetSkipped, runlog.AssetFailed, runlog.StackStarted, runlog.StackFinished:
		r.deployment = true
	default:
		r.deployment = r.deployment || e.Stack == ""
	}
	return r
}

func keyOf(e runlog.Event) opKey { return opKey{e.RunID, e.LogicalID, e.Action} }

// apply takes one event and returns the line that it adds to the story; ok is false for an event that only
// moves the state of what is in flight.
func (p *progress) apply(e runlog.Event) (l line, ok bool) {
	if p.started.IsZero() {
		p.started = e.Time
	}
	r := p.run(e)
	switch e.Type {
	case runlog.RunStarted:
		if p.command == "" {
			p.command = e.Command
		}
	case runlog.Planned:
		r.total = e.Total
		delete(p.stacks, r.stack)
	case runlog.OpStarted, runlog.AssetStarted:
		p.start(e)
	case runlog.OpProgress:
		p.start(e)
		if f := p.inFlight[keyOf(e)]; f != nil {
			f.message = Clean(e.Message)
		}
	case runlog.OpRetry:
		p.start(e)
		if f := p.inFlight[keyOf(e)]; f != nil {
			f.message = "retrying"
		}
		return p.opLine(e, toneWarn, "retrying "+e.Action), true
	case runlog.OpDone, runlog.AssetPublished:
		p.end(e)
		return p.opLine(e, toneGood, past(e.Action)), true
	case runlog.OpFail, runlog.AssetFailed:
		p.end(e)
		p.failures = append(p.failures, e)
		return p.opLine(e, toneBad, "FAILED "+cmp.Or(e.Action, "publish")), true
	case runlog.OpSkip, runlog.AssetSkipped:
		p.end(e)
		return p.opLine(e, toneQuiet, "skipped"), true
	case runlog.OpRetain:
		p.end(e)
		return p.opLine(e, toneQuiet, "retained"), true
	case runlog.RollbackStarted:
		r.rollingBack = true
		return line{at: e.Time, tone: toneWarn, verb: "rolling back", name: stackName(e), detail: Clean(e.Message)}, true
	case runlog.WaitingForLock, runlog.RunningMacros:
		return line{at: e.Time, tone: toneWarn, verb: "waiting", name: "stack " + stackName(e), detail: Clean(e.Message)}, true
	case runlog.Warned:
		return line{at: e.Time, tone: toneWarn, verb: "warning", name: p.name(e), detail: Clean(e.Message)}, true
	case runlog.StackFinished:
		if p.runs[e.ChildRun] != nil {
			return line{}, false // the child's own RUN_FINISHED has said it
		}
		return p.finished(e), true
	case runlog.RunFinished:
		p.drop(e.RunID)
		if !r.deployment {
			return p.finished(e), true
		}
	case runlog.WaveStarted, runlog.StackStarted:
	}
	return line{}, false
}

// start puts an operation in flight unless it has already ended: events of one moment may come in any order.
func (p *progress) start(e runlog.Event) {
	k := keyOf(e)
	if p.inFlight[k] != nil || p.done[k] > 0 && e.Attempt <= p.done[k]-1 {
		return
	}
	p.inFlight[k] = &flight{key: k, name: p.name(e), kind: Clean(e.ResourceType), verb: present(e.Action), since: e.Time}
}

func (p *progress) end(e runlog.Event) {
	k := keyOf(e)
	delete(p.inFlight, k)
	if p.done[k] == 0 {
		p.run(e).ended++
	}
	p.done[k] = max(p.done[k], e.Attempt+1)
}

// drop forgets what a finished run has left in flight.
func (p *progress) drop(runID string) {
	for k := range p.inFlight {
		if k.run == runID {
			delete(p.inFlight, k)
		}
	}
}

// counts returns the operations on resources and assets that have ended, and how many there are as far as
// it is known: by the engine's own plan where a stack has started, by the shown plan before.
func (p *progress) counts() (ended, total int) {
	for _, r := range p.runs {
		if r.deployment {
			// Of a deployment's operations the stacks are counted by their own runs.
			ended += r.ended
			total += r.ended
			continue
		}
		ended += r.ended
		total += max(r.total, r.ended)
	}
	for _, n := range p.stacks {
		total += n
	}
	for k := range p.inFlight {
		if r := p.runs[k.run]; r != nil && r.deployment {
			total++
		}
	}
	return ended, total
}

// flights lists what is going on, the oldest first.
func (p *progress) flights() []*flight {
	list := make([]*flight, 0, len(p.inFlight))
	for _, f := range p.inFlight {
		list = append(list, f)
	}
	slices.SortFunc(list, func(a, b *flight) int {
		return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.name, b.name), cmp.Compare(a.verb, b.verb))
	})
	return list
}

func (p *progress) rollingBack() bool {
	for _, r := range p.runs {
		if r.rollingBack {
			return true
		}
	}
	return false
}

// name is how an operation is called: "stack/LogicalID", or the asset's name.
func (p *progress) name(e runlog.Event) string {
	stack := cmp.Or(e.Stack, p.run(e).stack)
	switch {
	case e.LogicalID == "":
		return Clean(stack)
	case stack == "" || p.run(e).deployment:
		return Clean(e.LogicalID)
	default:
		return Clean(stack + "/" + e.LogicalID)
	}
}

func (p *progress) opLine(e runlog.Event, t tone, verb string) line {
	l := line{at: e.Time, tone: t, verb: Clean(verb), name: p.name(e), kind: Clean(e.ResourceType), detail: Clean(e.Message)}
	if e.DurationMs > 0 {
		l.took = Elapsed(time.Duration(e.DurationMs) * time.Millisecond)
	}
	if e.Error != nil {
		l.detail = ErrorText(e.Error)
	}
	return l
}

func (p *progress) finished(e runlog.Event) line {
	l := line{at: e.Time, tone: toneGood, verb: string(e.Result), name: "stack " + stackName(e)}
	switch e.Result {
	case runlog.ResultFailed:
		l.tone = toneBad
	case runlog.ResultPartial:
		l.tone = toneWarn
	case runlog.ResultSucceeded:
	}
	if e.DurationMs > 0 {
		l.took = Elapsed(time.Duration(e.DurationMs) * time.Millisecond)
	}
	if e.Counts != nil {
		l.detail = CountsLine(*e.Counts)
	}
	if e.Failure != nil && e.Failure.Summary != "" {
		l.detail = Clean(e.Failure.Summary)
	}
	return l
}

func stackName(e runlog.Event) string { return Clean(cmp.Or(e.Stack, e.LogicalID)) }

// ErrorText writes a failed operation's error on one line: "AccessDenied: message".
func ErrorText(err *runlog.OpError) string {
	code := cmp.Or(err.Code, string(err.Kind))
	if code == "" {
		return Clean(err.Message)
	}
	return Clean(fmt.Sprintf("%s: %s", code, err.Message))
}

// tone is the colour and the mark of a line. What it means is always also in the line's verb.
type tone int

const (
	toneGood tone = iota
	toneBad
	toneWarn
	toneQuiet
)

// line is one finished line of the story.
type line struct {
	at     time.Time
	tone   tone
	verb   string
	name   string
	kind   string
	took   string
	detail string
}

// present and past are the words for an action that goes on and one that is done.
func present(action string) string { return conjugate(action, "ing") }
func past(action string) string    { return conjugate(action, "ed") }

func conjugate(action, ending string) string {
	switch action {
	case "create", "update", "replace", "delete":
		return action[:len(action)-1] + ending
	case "publish", "deploy", "destroy", "record":
		return action + ending
	case "forget":
		if ending == "ed" {
			return "forgotten"
		}
		return "forgetting"
	case "":
		if ending == "ed" {
			return "done"
		}
		return "working on"
	default:
		return Clean(action) + " " + map[string]string{"ing": "going on", "ed": "done"}[ending]
	}
}
