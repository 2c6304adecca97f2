package asl

import "time"

// Machine is a loaded state machine. It is immutable and may run any number of executions at a time.
type Machine struct {
	// Comment is the definition's own.
	Comment string
	states  scope
	timeout time.Duration // 0: none
}

// scope is a set of states that refer to one another: the machine's, or those of a Map's item processor.
type scope struct {
	startAt string
	states  map[string]*state
}

// kind is a state's type.
type kind string

const (
	kindTask    kind = "Task"
	kindMap     kind = "Map"
	kindChoice  kind = "Choice"
	kindWait    kind = "Wait"
	kindPass    kind = "Pass"
	kindSucceed kind = "Succeed"
	kindFail    kind = "Fail"
)

// state is one state. Which members mean something follows from its kind.
type state struct {
	name string
	kind kind
	next string // "" for an end

	inputPath, outputPath *path // nil: null, the empty object
	resultPath            *path // nil: null, the result is dropped
	parameters            *template
	resultSelector        *template
	retriers              []retrier
	catchers              []catcher

	// Task
	resource resource
	timeout  time.Duration // 0: none

	// Map
	itemsPath    path
	itemSelector *template
	concurrency  int
	processor    *scope

	// Choice
	choices []choice
	// fallback is the Default; "" for none.
	fallback string

	// Wait
	seconds     time.Duration
	secondsPath *path

	// Pass: result is used where hasResult is set.
	result    any
	hasResult bool

	// Fail
	failError, failCause string
}

// resource is what a task calls.
type resource struct {
	// service and action are the resourceType and resource of the task's events.
	service, action string
	// fields are the members that its Parameters may have, and whether each is required.
	fields map[string]bool
}

// retrier is one entry of Retry (https://states-language.net/spec.html#errors).
type retrier struct {
	errors      []string
	interval    time.Duration
	maxAttempts int
	backoff     float64
	maxDelay    time.Duration // 0: none
	fullJitter  bool
}

// catcher is one entry of Catch.
type catcher struct {
	errors     []string
	resultPath *path // nil: null, the error is dropped
	next       string
}

// inlineConcurrency is how many iterations a Map in INLINE mode runs at a time at most
// (https://docs.aws.amazon.com/step-functions/latest/dg/state-map-inline.html).
const inlineConcurrency = 40
