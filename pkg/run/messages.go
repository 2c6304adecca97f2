package run

import "github.com/slipway-cdk/slipway/pkg/runlog"

// Actions of the planner and janitor functions.
const (
	ActionAdmit     = "admit"
	ActionOpen      = "open"
	ActionNext      = "next"
	ActionUnstarted = "unstarted"
	ActionClose     = "close"
	ActionSettle    = "settle"
	ActionSweep     = "sweep"
)

// PlannerInput is the payload of the planner function.
type PlannerInput struct {
	Action string `json:"action"`
	RunID  string `json:"runId"`
	// Command and Upload are what an upload is admitted as (admit).
	Command runlog.Command `json:"command,omitempty"`
	Upload  *UploadRef     `json:"upload,omitempty"`
	// Decision is the number of the decision that is wanted (next).
	Decision int `json:"decision,omitempty"`
	// Execution is the name of the execution that asks.
	Execution string `json:"execution,omitempty"`
	// Op, Epoch and Refusal are the stack's operation whose execution could not be started (unstarted).
	Op      string   `json:"op,omitempty"`
	Epoch   int      `json:"epoch,omitempty"`
	Refusal *Refusal `json:"refusal,omitempty"`
}

// Refusal is an error as Step Functions hands it to whoever has caught it
// (https://docs.aws.amazon.com/step-functions/latest/dg/concepts-error-handling.html#error-handling-error-representation).
type Refusal struct {
	Error string `json:"Error"`
	Cause string `json:"Cause,omitempty"`
}

// StepKind tells the state machine what to do next.
type StepKind string

// The kinds of step.
const (
	StepOpen     StepKind = "OPEN" // it is admitted: open it
	StepNext     StepKind = "NEXT" // ask for the next decision
	StepWave     StepKind = "WAVE"
	StepWait     StepKind = "WAIT"
	StepContinue StepKind = "CONTINUE" // go on in a successor execution: the history grows long
	StepDone     StepKind = "DONE"
	StepRefused  StepKind = "REFUSED" // the run is closed, nothing was touched
	StepEnded    StepKind = "ENDED"   // the run is closed, all that it was for is done
)

// Step is the planner's answer to open and next.
type Step struct {
	RunID string   `json:"runId"`
	Kind  StepKind `json:"kind"`
	// Decision is the number of the decision to ask for next.
	Decision int `json:"decision"`
	// Wave, Epoch, Slice and Items belong to a wave; Slice is how many seconds a provisioner may stay.
	Wave  int    `json:"wave,omitempty"`
	Epoch int    `json:"epoch,omitempty"`
	Slice int    `json:"slice,omitempty"`
	Items []Item `json:"items,omitempty"`
	// Seconds is how long to wait.
	Seconds int `json:"seconds,omitempty"`
	// Successor is the name of the execution to continue in.
	Successor string `json:"successor,omitempty"`
}

// Item is one operation of a wave as the state machine sees it: what the console shows of a Map item.
type Item struct {
	Kind      string `json:"kind"`
	Op        string `json:"op"`
	LogicalID string `json:"logicalId"`
	Type      string `json:"type"`
	Action    string `json:"action"`
	// Execution and ChildRun belong to a stack operation.
	Execution string `json:"execution,omitempty"`
	ChildRun  string `json:"childRun,omitempty"`
}

// Ended is the planner's answer to close.
type Ended struct {
	RunID  string `json:"runId"`
	Result string `json:"result"`
}

// ProvisionInput is the payload of the provisioner function.
type ProvisionInput struct {
	RunID string `json:"runId"`
	Wave  int    `json:"wave"`
	Epoch int    `json:"epoch"`
	Slice int    `json:"slice"`
	Op    string `json:"op"`
	// The rest is for people who read the execution; the operation is read from the wave's input object.
	LogicalID string `json:"logicalId,omitempty"`
	Type      string `json:"type,omitempty"`
	Action    string `json:"action,omitempty"`
}

// PublishInput is the payload of the publisher function.
type PublishInput struct {
	RunID string `json:"runId"`
	Wave  int    `json:"wave"`
	Epoch int    `json:"epoch"`
	Op    string `json:"op"`
}

// OperationStatus is the answer of the provisioner and the publisher.
type OperationStatus struct {
	Op     string `json:"op"`
	Status string `json:"status"`
}

// SettleInput is the payload of the janitor function. A sweep is about no run in particular.
type SettleInput struct {
	Action    string `json:"action"`
	RunID     string `json:"runId,omitempty"`
	Execution string `json:"execution,omitempty"`
	// Asked is what the settle machine was started with, at its first call.
	Asked *SettleOrder `json:"asked,omitempty"`
}

// SettleOrder is the input of the settle machine.
type SettleOrder struct {
	RunID string `json:"runId,omitempty"`
	// Dead is the name of the execution that has died, "" when it is not one execution that has told of itself.
	Dead string `json:"dead,omitempty"`
}

// Settled is the janitor's answer: settled, or how long to wait before asking again.
type Settled struct {
	RunID   string `json:"runId"`
	Settled bool   `json:"settled"`
	Seconds int    `json:"seconds,omitempty"`
}
