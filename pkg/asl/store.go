package asl

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

// Status is the state of an execution, in Step Functions' words
// (https://docs.aws.amazon.com/step-functions/latest/apireference/API_DescribeExecution.html).
type Status string

// The statuses of an execution. All but StatusRunning are final.
const (
	StatusRunning   Status = "RUNNING"
	StatusSucceeded Status = "SUCCEEDED"
	StatusFailed    Status = "FAILED"
	StatusTimedOut  Status = "TIMED_OUT"
	StatusAborted   Status = "ABORTED"
)

// Execution is the record of one execution.
type Execution struct {
	// ARN is arn:PARTITION:states:REGION:ACCOUNT:execution:MACHINE:NAME. It is unique in a store.
	ARN string `json:"executionArn"`
	// Machine is the ARN of the state machine; Name is unique within it, for ever.
	Machine string `json:"stateMachineArn"`
	Name    string `json:"name"`

	Status Status          `json:"status"`
	Input  json.RawMessage `json:"input"`
	// Output is set when Status is StatusSucceeded.
	Output json.RawMessage `json:"output,omitempty"`
	// Error and Cause are set when Status is StatusFailed, StatusTimedOut or StatusAborted. Both may be empty.
	Error string `json:"error,omitempty"`
	Cause string `json:"cause,omitempty"`

	StartedAt time.Time `json:"startDate"`
	// StoppedAt is zero while the execution runs.
	StoppedAt time.Time `json:"stopDate,omitzero"`

	// Holder names the process that runs the execution. An execution that is StatusRunning and whose holder
	// is gone is dead: nobody will finish it. What a holder's name looks like, and how to tell that it is
	// gone, is the business of whoever makes the Executor.
	Holder string `json:"holder,omitempty"`
}

// Outcome is how an execution ended: a final status, and the output or the error and cause.
type Outcome struct {
	Status       Status
	Output       json.RawMessage
	Error, Cause string
	StoppedAt    time.Time
}

// Query selects executions. An empty member selects all.
type Query struct {
	Machine string
	Status  Status
	Holder  string
}

// Errors of a Store.
var (
	// ErrNotFound says that there is no such execution.
	ErrNotFound = errors.New("execution does not exist")
	// ErrNotRunning says that the execution has already ended, perhaps by the hand of another process.
	ErrNotRunning = errors.New("execution is not running")
	// ErrHistoryGap says that events do not follow the last one that is recorded.
	ErrHistoryGap = errors.New("events do not continue the history")
)

// Store keeps executions and their histories. Every method is atomic and durable when it returns nil, and may
// be called by several goroutines and, where the store outlives the process, by several processes. A call
// whose error is none of ErrNotFound, ErrNotRunning and ErrHistoryGap may be repeated. Inputs and outputs are kept
// byte for byte, times to the microsecond at least.
//
// The conformance suite is asltest.RunStore.
type Store interface {
	// Create records a new execution, which is StatusRunning, together with the first events of its history.
	// Where the machine has an execution of that name already, running or not, nothing is written and the
	// existing one is returned with created = false.
	Create(ctx context.Context, e Execution, first []Event) (existing Execution, created bool, err error)

	// Finish ends an execution, once: it sets the outcome and appends the last events in the same step, and
	// returns the record as it now is. An event whose ID is 0 gets the next id, and the id before it as its
	// PreviousEventID: the caller may be another process than the one that keeps the history. Other ids must
	// continue the history, as in AppendHistory. An execution that has ended is left as it is and
	// returned with ErrNotRunning.
	Finish(ctx context.Context, arn string, o Outcome, last []Event) (Execution, error)

	// Get returns an execution, or ErrNotFound.
	Get(ctx context.Context, arn string) (Execution, error)

	// AppendHistory adds events, in order. The first must have the id that follows the last recorded one,
	// and the others must follow it without a gap: ErrHistoryGap. Events are refused with ErrNotRunning once
	// the execution has ended, so that a stopped execution's history ends with its end.
	AppendHistory(ctx context.Context, arn string, events []Event) error

	// History returns the events of an execution with ids greater than after, in the order of their ids.
	History(ctx context.Context, arn string, after int64) ([]Event, error)

	// List returns the executions that match, the ones that were started last first; where two were started at
	// the same time, in the order of their ARNs.
	List(ctx context.Context, q Query) ([]Execution, error)
}
