// Package runlog is the contract of the run log: what every run is doing and has done. It holds a header per
// run, the operation journal (intent, handle and result of every operation), the events that people follow,
// and for every stack the run that is on it now. The implementations are DynamoDB (control plane), objects
// in the state bucket (--direct) and one SQLite file (--local); runlogtest is the suite that all of them pass.
//
// There is no resource property in a header or an event. An operation's record holds the resolved record of
// its resource, as state does, with secrets already replaced.
package runlog

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/provider"
)

// Errors that callers decide on. Every other error is a failure of the store and may be retried.
var (
	ErrNotFound = errors.New("run log entry not found")
	// ErrExists: CreateRun found a header under that id.
	ErrExists = errors.New("run already exists")
	// ErrConflict: the entry's version is another one than the caller has read.
	ErrConflict = errors.New("run log entry changed meanwhile")
	// ErrFenced: the run is no longer OPEN, or its epoch is past the caller's: the caller is a late
	// process of a run that somebody else is settling, and must stop without touching anything.
	ErrFenced = errors.New("run is fenced: another process is settling it")
)

// Status is where a run stands.
type Status string

// A run is NEW when it is requested, OPEN while it holds its lock and works, SETTLING when a janitor has
// fenced it, and CLOSED once its result stands. It only ever moves forward.
const (
	StatusNew      Status = "NEW"
	StatusOpen     Status = "OPEN"
	StatusSettling Status = "SETTLING"
	StatusClosed   Status = "CLOSED"
)

// Result is how a run ended.
type Result string

// The results. PARTIAL: finished, but something was skipped or left behind.
const (
	ResultSucceeded Result = "SUCCEEDED"
	ResultFailed    Result = "FAILED"
	ResultPartial   Result = "PARTIAL"
)

// Command is what a run was asked to do.
type Command string

// The commands a run can carry out.
const (
	CommandDeploy  Command = "deploy"
	CommandDestroy Command = "destroy"
	// CommandRollback undoes what failed deploys have done, as the stack's rollback journal tells.
	CommandRollback Command = "rollback"
	CommandPlan     Command = "plan" // compute and store the plan view, touch nothing
	// CommandCancel cancels another run, for a caller that can't do it itself; it has nothing to do with stacks.
	CommandCancel Command = "cancel"
)

// Kind tells a run over one stack's resources from a run over a deployment's assets and stacks.
type Kind string

// The kinds of run.
const (
	KindStack      Kind = "stack"
	KindDeployment Kind = "deployment"
)

// StackRef names one stack in one account and region.
type StackRef struct {
	Account string `json:"account"`
	Region  string `json:"region"`
	Name    string `json:"name"`
}

// Counts says how many resources a run has handled, by outcome.
type Counts struct {
	Created   int `json:"created"`
	Updated   int `json:"updated"`
	Replaced  int `json:"replaced"`
	Deleted   int `json:"deleted"`
	Unchanged int `json:"unchanged"`
	Failed    int `json:"failed"`
	Skipped   int `json:"skipped"`
}

// Failure is why a run ended as FAILED or PARTIAL: its first cause.
type Failure struct {
	Summary   string `json:"summary"`
	Detail    string `json:"detail,omitempty"`
	LogicalID string `json:"logicalId,omitempty"`
}

// Header is the state of one run. Version belongs to the store: a write with another version than the
// stored one is refused with ErrConflict.
type Header struct {
	RunID   string   `json:"runId"`
	Kind    Kind     `json:"kind"`
	Command Command  `json:"command"`
	Stack   StackRef `json:"stack"` // zero for a deployment's run
	Root    string   `json:"root"`  // the deployment run this one belongs to, or RunID itself
	Parent  string   `json:"parent,omitempty"`
	Owner   string   `json:"owner"` // the lock owner string of this run

	Status Status `json:"status"`
	Result Result `json:"result,omitempty"`
	// Epoch grows by one at every fence. An intent or result written under an older epoch is refused.
	Epoch int `json:"epoch"`
	// Decision is the number of the last decision of Next; Waves how many of them were waves.
	Decision int `json:"decision"`
	Waves    int `json:"waves"`
	// Execution is the name of the state machine execution that carries the run now.
	Execution string `json:"execution,omitempty"`
	// StateETag and SidecarETag are those of the last save by this run.
	StateETag   string `json:"stateEtag,omitempty"`
	SidecarETag string `json:"sidecarEtag,omitempty"`
	// Phase is where the engine stands: forward, cleanup, rollback.
	Phase string `json:"phase,omitempty"`

	CreatedAt   time.Time        `json:"createdAt"`
	StartedAt   time.Time        `json:"startedAt,omitzero"`
	FinishedAt  time.Time        `json:"finishedAt,omitzero"`
	Counts      Counts           `json:"counts"`
	Failure     *Failure         `json:"failure,omitempty"`
	Diagnostics diag.Diagnostics `json:"diagnostics,omitempty"`

	Version int64 `json:"-"`
}

// OpStatus is where an operation stands.
type OpStatus string

// The life of an operation: INTENT (recorded before the call), RUNNING (the provider gave a handle), then
// one of the three ends.
const (
	OpIntent    OpStatus = "INTENT"
	OpRunning   OpStatus = "RUNNING"
	OpSucceeded OpStatus = "SUCCEEDED"
	OpFailed    OpStatus = "FAILED"
	OpSkipped   OpStatus = "SKIPPED"
)

// Ended reports whether the operation has its result.
func (s OpStatus) Ended() bool { return s == OpSucceeded || s == OpFailed || s == OpSkipped }

// Lease is how long the holder may still be working on an operation. Once it has ended, or the holder is
// known to be dead, nobody else can be.
type Lease struct {
	Holder string    `json:"holder"`
	Until  time.Time `json:"until"`
}

// OpError is a failed operation, masked.
type OpError struct {
	Kind      provider.Kind `json:"kind"`
	Code      string        `json:"code,omitempty"`
	Message   string        `json:"message"`
	RequestID string        `json:"requestId,omitempty"`
}

// Op is the journal record of one operation of one run.
type Op struct {
	OpID      string   `json:"opId"`
	Kind      string   `json:"kind"`   // plan.OperationKind
	Action    string   `json:"action"` // plan.Action
	LogicalID string   `json:"logicalId"`
	Type      string   `json:"type,omitempty"`
	Attempt   int      `json:"attempt"`
	Token     string   `json:"token"`
	Epoch     int      `json:"epoch"`
	Wave      int      `json:"wave"`
	Status    OpStatus `json:"status"`
	Lease     Lease    `json:"lease,omitzero"`
	// Before is the resource's state record when the intent was written; absent when there was none.
	Before json.RawMessage `json:"before,omitempty"`
	// After is the state record that the result leads to; absent when the resource is gone.
	After json.RawMessage `json:"after,omitempty"`
	// Masked are keyed digests of the secrets that After holds as "***", by path: what the sidecar will hold.
	Masked map[string]string `json:"masked,omitempty"`
	// Attributes is where the run's vault has the attributes that After holds as "***", "" when none are secret.
	Attributes string `json:"attributes,omitempty"`
	// PhysicalID is what the operation has made or is working on, as soon as it is known.
	PhysicalID string `json:"physicalId,omitempty"`
	// Doubts counts the calls in a row after which it was not known what the step had come to.
	Doubts int `json:"doubts,omitempty"`
	// Doubt is the kind of the last of them.
	Doubt provider.Kind `json:"doubt,omitempty"`
	// Stage is how far an operation of several calls has come; "" before the first has ended.
	Stage  string           `json:"stage,omitempty"`
	Handle *provider.Handle `json:"handle,omitempty"`
	// NotBefore is the earliest useful moment for the next poll or attempt.
	NotBefore time.Time `json:"notBefore,omitzero"`
	Error     *OpError  `json:"error,omitempty"`
	// Failures counts the failed attempts before this one, by kind.
	Failures map[provider.Kind]int `json:"failures,omitempty"`
	Reason   string                `json:"reason,omitempty"` // why it was skipped
	// ChildRun is the run that a stack operation has started.
	ChildRun   string    `json:"childRun,omitempty"`
	StartedAt  time.Time `json:"startedAt,omitzero"`
	FinishedAt time.Time `json:"finishedAt,omitzero"`
	Folded     bool      `json:"folded,omitempty"`

	Version int64 `json:"-"`
}

// Filter narrows ListRuns. Zero members do not narrow.
type Filter struct {
	Stack StackRef // matched by the members that are set
	Root  string
	// Open leaves out the runs that are CLOSED. Finding the others takes no longer for all the closed ones there are.
	Open  bool
	Limit int
}

// Store keeps the run log. Reads of one run are strongly consistent; ListRuns may lag.
// Implementations are safe for concurrent use by several processes.
type Store interface {
	// CreateRun stores a new header, or returns ErrExists and changes nothing.
	CreateRun(ctx context.Context, h Header) (Header, error)
	// Header returns the header of a run, or ErrNotFound.
	Header(ctx context.Context, runID string) (Header, error)
	// UpdateHeader stores h if its Version is still the stored one, else ErrConflict. It returns h with its
	// new Version.
	UpdateHeader(ctx context.Context, h Header) (Header, error)
	// ListRuns returns headers, newest first.
	ListRuns(ctx context.Context, f Filter) ([]Header, error)

	// SetHead records which run is on a stack now; Head returns it, or "" when there was none.
	SetHead(ctx context.Context, stack StackRef, runID string) error
	Head(ctx context.Context, stack StackRef) (string, error)

	// PutOp stores an operation record under two conditions, in one step: the run's header has status
	// `in` and epoch op.Epoch (else ErrFenced), and the stored record's version is op.Version, 0 meaning
	// that there is none (else ErrConflict). It returns op with its new Version.
	PutOp(ctx context.Context, runID string, in Status, op Op) (Op, error)
	// Op returns one operation record, or ErrNotFound.
	Op(ctx context.Context, runID, opID string) (Op, error)
	// Ops returns every operation record of a run, ordered by id.
	Ops(ctx context.Context, runID string) ([]Op, error)

	// Append stores events. An event whose ID the run already has is dropped: ids are deterministic, so a
	// repeated step does not tell its story twice.
	Append(ctx context.Context, events ...Event) error
	// Events returns the events of a run whose ID is greater than after, ordered by id.
	Events(ctx context.Context, runID, after string) ([]Event, error)
}
