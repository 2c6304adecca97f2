package asl

import (
	"context"
	crand "crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/slipway-cdk/slipway/pkg/clock"
)

// Functions invokes what lambda:invoke tasks name.
type Functions interface {
	// Invoke runs a function and returns its response, JSON. A failure of the function is a *FunctionError,
	// or ErrFunctionNotFound; the type of any other error becomes its error name, as in the Lambda runtime
	// for Go, and a panic is a failure too.
	//
	// The deadline of ctx is that of the task, on the executor's clock. ctx ends there, and when the executor
	// is closed, but not when the execution is stopped: StopExecution leaves a running Lambda alone, and so
	// the function goes on and its response is dropped.
	Invoke(ctx context.Context, function string, payload []byte) ([]byte, error)
}

// Executor runs executions of state machines. Set its members before the first call and do not change or copy
// it after. It is safe for concurrent use.
type Executor struct {
	// Machines are the state machines by ARN. Required.
	Machines map[string]*Machine
	// Functions are what the machines' tasks invoke. Required.
	Functions Functions
	// Store keeps executions and histories. Required.
	Store Store
	// Clock stamps events and times Wait states and retries. Required.
	Clock clock.Clock
	// Timeouts times TimeoutSeconds. Nil is Clock; but where that is clock.Scaled, which waits shorter than asked,
	// it is clock.Real, because functions take real time.
	Timeouts clock.Clock
	// Rand is the source of jitter and of generated execution names. Nil is a random one.
	Rand rand.Source
	// Holder is recorded as Execution.Holder.
	Holder string
	// Ended, where set, is told of every execution that this executor has seen end, once it is recorded and before
	// Wait returns: what Step Functions tells EventBridge. It must not block for long; it may call Start.
	Ended func(Execution)

	init    sync.Once
	base    context.Context // ends when the executor is closed
	closing context.CancelFunc
	timers  clock.Clock
	random  *rand.Rand
	work    sync.WaitGroup // executions and invocations

	starting sync.Mutex // held while an execution is created and entered into runs
	mu       sync.Mutex
	closed   bool
	runs     map[string]*run // by execution ARN: those that have not ended, or whose end is not recorded
}

func (e *Executor) setup() {
	e.init.Do(func() {
		e.base, e.closing = context.WithCancel(context.Background())
		e.runs = map[string]*run{}
		e.timers = e.Timeouts
		if e.timers == nil {
			e.timers = e.Clock
			if _, scaled := e.Clock.(clock.Scaled); scaled {
				e.timers = clock.Real{}
			}
		}
		source := e.Rand
		if source == nil {
			var seed [32]byte
			crand.Read(seed[:]) // never fails
			source = rand.NewChaCha8(seed)
		}
		e.random = rand.New(source)
	})
}

// Start starts an execution, as StartExecution does, and returns as soon as it is durable; the execution goes
// on in this process, whatever becomes of ctx. An empty name is replaced by a generated one; an empty input is {}.
//
// Where the machine already has a running execution of that name with an equal input, that one is returned, no
// matter who holds it. Where it has ended, or has another input, the error is an *APIError with
// CodeExecutionAlreadyExists. Other refusals are *APIError too.
func (e *Executor) Start(ctx context.Context, machineARN, name string, input []byte) (Execution, error) {
	e.setup()
	a, err := parseMachineARN(machineARN)
	if err != nil {
		return Execution{}, err
	}
	machine := e.Machines[machineARN]
	if machine == nil {
		return Execution{}, &APIError{CodeStateMachineDoesNotExist, fmt.Sprintf("State Machine Does Not Exist: '%s'", machineARN)}
	}
	if name == "" {
		name = e.uuid()
	}
	if err := checkName(name); err != nil {
		return Execution{}, err
	}
	in, err := executionInput(input)
	if err != nil {
		return Execution{}, err
	}
	started := e.Clock.Now()
	record := Execution{
		ARN: a.execution(name), Machine: machineARN, Name: name, Status: StatusRunning,
		Input: json.RawMessage(in.text), StartedAt: started, Holder: e.Holder,
	}
	first := Event{ID: 1, Timestamp: started, Type: ExecutionStarted, ExecutionStarted: &ExecutionStartedDetails{Input: in.text}}

	// One start at a time: who is told of an existing execution must find its run.
	e.starting.Lock()
	defer e.starting.Unlock()
	if !e.begin() {
		return Execution{}, ErrClosed
	}
	existing, created, err := e.Store.Create(ctx, record, []Event{first})
	if err != nil || !created {
		e.work.Done()
		if err != nil {
			return Execution{}, fmt.Errorf("recording the start of execution %s: %w", record.ARN, err)
		}
		return existing, alreadyExists(existing, in)
	}
	r := newRun(e, machine, a, record, in)
	e.mu.Lock()
	e.runs[record.ARN] = r
	e.mu.Unlock()
	go func() {
		defer e.work.Done()
		r.drive()
	}()
	return record, nil
}

// begin counts an execution as work that Close waits for, unless the executor is closed.
func (e *Executor) begin() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return false
	}
	e.work.Add(1)
	return true
}

// executionInput checks the input of an execution.
func executionInput(input []byte) (doc, error) {
	if len(input) == 0 {
		input = []byte("{}")
	}
	v, err := decode(input)
	if err != nil {
		return doc{}, &APIError{CodeInvalidExecutionInput, "Invalid State Machine Execution Input: not JSON"}
	}
	in, err := newDoc(v)
	if err != nil {
		return doc{}, err
	}
	if len(input) > dataLimit || len(in.text) > dataLimit {
		return doc{}, &APIError{CodeInvalidExecutionInput, fmt.Sprintf("Invalid State Machine Execution Input: larger than %d bytes", dataLimit)}
	}
	return in, nil
}

// alreadyExists is nil where a repeated start is the same start.
func alreadyExists(existing Execution, in doc) error {
	if existing.Status == StatusRunning {
		if v, err := decode(existing.Input); err == nil {
			if text, err := encode(v); err == nil && text == in.text {
				return nil
			}
		}
	}
	return &APIError{CodeExecutionAlreadyExists, fmt.Sprintf("Execution Already Exists: '%s'", existing.ARN)}
}

// uuid makes a version 4 UUID from the executor's source.
func (e *Executor) uuid() string {
	e.mu.Lock()
	high, low := e.random.Uint64(), e.random.Uint64()
	e.mu.Unlock()
	high = high&^0xf000 | 0x4000
	low = low&^(3<<62) | 2<<62
	return fmt.Sprintf("%08x-%04x-%04x-%04x-%012x", high>>32, high>>16&0xffff, high&0xffff, low>>48, low&0xffffffffffff)
}

// jitter is a random share of d.
func (e *Executor) jitter(d time.Duration) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	return time.Duration(e.random.Float64() * float64(d))
}

// pollInterval is how often Wait looks at an execution that another process runs.
const pollInterval = time.Second

// Wait returns the record of an execution once it has ended. It returns the error of ctx when that ends first,
// and ErrClosed when the executor is closed; the execution is then still running as far as its record goes.
func (e *Executor) Wait(ctx context.Context, arn string) (Execution, error) {
	e.setup()
	if r := e.local(arn); r != nil {
		select {
		case <-r.done:
			return r.final, r.err
		case <-ctx.Done():
			return Execution{}, ctx.Err()
		}
	}
	// Bound to the executor as well: a poll must not outlive it.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(e.base, cancel)()
	for {
		x, err := e.Store.Get(ctx, arn)
		if err != nil || x.Status != StatusRunning {
			return x, err
		}
		if err := e.timers.Sleep(ctx, pollInterval); err != nil {
			if e.base.Err() != nil {
				return Execution{}, ErrClosed
			}
			return Execution{}, err
		}
	}
}

func (e *Executor) local(arn string) *run {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.runs[arn]
}

// Describe returns the record of an execution, or ErrNotFound.
func (e *Executor) Describe(ctx context.Context, arn string) (Execution, error) {
	return e.Store.Get(ctx, arn)
}

// History returns the events of an execution after the one with the given id; 0 is all. The last events of a
// running execution may not be recorded yet.
func (e *Executor) History(ctx context.Context, arn string, after int64) ([]Event, error) {
	return e.Store.History(ctx, arn, after)
}

// Stop ends an execution as StatusAborted and returns once that is recorded, whoever holds the execution. Functions
// that it runs are left to finish and their responses are dropped. An execution that has ended is left as it is.
func (e *Executor) Stop(ctx context.Context, arn, errorName, cause string) (Execution, error) {
	e.setup()
	if r := e.local(arn); r != nil {
		r.stop(&stopped{StatusAborted, errorName, cause})
		select {
		case <-r.done:
		case <-ctx.Done():
			return Execution{}, ctx.Err()
		}
		if r.err == nil {
			return r.final, nil
		}
		// It has ended here, but its end could not be recorded: this is another try.
	}
	now := e.Clock.Now()
	o := Outcome{Status: StatusAborted, Error: errorName, Cause: cause, StoppedAt: now}
	x, err := e.Store.Finish(ctx, arn, o, []Event{{Timestamp: now, Type: ExecutionAborted, ExecutionAborted: &ErrorDetails{errorName, cause}}})
	if errors.Is(err, ErrNotRunning) {
		return x, nil
	}
	if err != nil {
		return Execution{}, fmt.Errorf("stopping execution %s: %w", arn, err)
	}
	e.tell(x)
	return x, nil
}

// StopDead stops the running executions whose holder is gone, as Stop does, and returns them: work that their
// caller has to settle. alive says whether a holder still lives; this executor's own holder is not asked about.
func (e *Executor) StopDead(ctx context.Context, alive func(holder string) bool, errorName, cause string) ([]Execution, error) {
	running, err := e.Store.List(ctx, Query{Status: StatusRunning})
	if err != nil {
		return nil, fmt.Errorf("listing running executions: %w", err)
	}
	dead := []Execution{}
	for _, x := range running {
		if x.Holder == e.Holder || alive(x.Holder) {
			continue
		}
		x, err := e.Stop(ctx, x.ARN, errorName, cause)
		if err != nil {
			return dead, err
		}
		if x.Status == StatusAborted {
			dead = append(dead, x)
		}
	}
	return dead, nil
}

func (e *Executor) tell(x Execution) {
	if e.Ended != nil {
		e.Ended(x)
	}
}

// Close ends this executor's part in its executions and waits until nothing of it runs any more. Executions
// that have not ended stay StatusRunning in the store, under this holder, as after a crash; functions that
// run have their contexts cancelled. Calls that wait return ErrClosed.
func (e *Executor) Close() error {
	e.setup()
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	e.closing()
	e.work.Wait()
	return nil
}
