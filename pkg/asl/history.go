package asl

import "time"

// EventType names what an event of a history records. The names are those of
// https://docs.aws.amazon.com/step-functions/latest/apireference/API_HistoryEvent.html.
type EventType string

// The types of event that the executor records.
const (
	ExecutionStarted   EventType = "ExecutionStarted"
	ExecutionSucceeded EventType = "ExecutionSucceeded"
	ExecutionFailed    EventType = "ExecutionFailed"
	ExecutionAborted   EventType = "ExecutionAborted"
	ExecutionTimedOut  EventType = "ExecutionTimedOut"

	TaskStateEntered EventType = "TaskStateEntered"
	TaskStateExited  EventType = "TaskStateExited"
	TaskStateAborted EventType = "TaskStateAborted"
	TaskScheduled    EventType = "TaskScheduled"
	TaskStarted      EventType = "TaskStarted"
	TaskSubmitted    EventType = "TaskSubmitted"
	TaskSucceeded    EventType = "TaskSucceeded"
	TaskFailed       EventType = "TaskFailed"
	TaskTimedOut     EventType = "TaskTimedOut"

	ChoiceStateEntered  EventType = "ChoiceStateEntered"
	ChoiceStateExited   EventType = "ChoiceStateExited"
	PassStateEntered    EventType = "PassStateEntered"
	PassStateExited     EventType = "PassStateExited"
	WaitStateEntered    EventType = "WaitStateEntered"
	WaitStateExited     EventType = "WaitStateExited"
	WaitStateAborted    EventType = "WaitStateAborted"
	SucceedStateEntered EventType = "SucceedStateEntered"
	SucceedStateExited  EventType = "SucceedStateExited"
	FailStateEntered    EventType = "FailStateEntered"

	MapStateEntered       EventType = "MapStateEntered"
	MapStateStarted       EventType = "MapStateStarted"
	MapStateSucceeded     EventType = "MapStateSucceeded"
	MapStateFailed        EventType = "MapStateFailed"
	MapStateAborted       EventType = "MapStateAborted"
	MapStateExited        EventType = "MapStateExited"
	MapIterationStarted   EventType = "MapIterationStarted"
	MapIterationSucceeded EventType = "MapIterationSucceeded"
	MapIterationFailed    EventType = "MapIterationFailed"
	MapIterationAborted   EventType = "MapIterationAborted"
)

// Event is one event of an execution's history, shaped in JSON as in the answer of GetExecutionHistory except
// that the timestamp is RFC 3339. Which details are set follows from the type.
type Event struct {
	// ID counts from 1 without gaps in the order of the history.
	ID int64 `json:"id"`
	// PreviousEventID is the event that led to this one: 0 for the first.
	PreviousEventID int64     `json:"previousEventId"`
	Timestamp       time.Time `json:"timestamp"`
	Type            EventType `json:"type"`

	ExecutionStarted   *ExecutionStartedDetails   `json:"executionStartedEventDetails,omitempty"`
	ExecutionSucceeded *ExecutionSucceededDetails `json:"executionSucceededEventDetails,omitempty"`
	ExecutionFailed    *ErrorDetails              `json:"executionFailedEventDetails,omitempty"`
	ExecutionAborted   *ErrorDetails              `json:"executionAbortedEventDetails,omitempty"`
	ExecutionTimedOut  *ErrorDetails              `json:"executionTimedOutEventDetails,omitempty"`

	StateEntered *StateEnteredDetails `json:"stateEnteredEventDetails,omitempty"`
	StateExited  *StateExitedDetails  `json:"stateExitedEventDetails,omitempty"`

	TaskScheduled *TaskScheduledDetails `json:"taskScheduledEventDetails,omitempty"`
	TaskStarted   *TaskDetails          `json:"taskStartedEventDetails,omitempty"`
	TaskSubmitted *TaskOutputDetails    `json:"taskSubmittedEventDetails,omitempty"`
	TaskSucceeded *TaskOutputDetails    `json:"taskSucceededEventDetails,omitempty"`
	TaskFailed    *TaskErrorDetails     `json:"taskFailedEventDetails,omitempty"`
	TaskTimedOut  *TaskErrorDetails     `json:"taskTimedOutEventDetails,omitempty"`

	MapStateStarted       *MapStateStartedDetails `json:"mapStateStartedEventDetails,omitempty"`
	MapIterationStarted   *MapIterationDetails    `json:"mapIterationStartedEventDetails,omitempty"`
	MapIterationSucceeded *MapIterationDetails    `json:"mapIterationSucceededEventDetails,omitempty"`
	MapIterationFailed    *MapIterationDetails    `json:"mapIterationFailedEventDetails,omitempty"`
	MapIterationAborted   *MapIterationDetails    `json:"mapIterationAbortedEventDetails,omitempty"`
}

// DataDetails says whether an input or output in an event was cut. The executor never cuts one.
type DataDetails struct {
	Truncated bool `json:"truncated"`
}

// ExecutionStartedDetails belong to ExecutionStarted. Input is JSON text.
type ExecutionStartedDetails struct {
	Input        string      `json:"input"`
	InputDetails DataDetails `json:"inputDetails"`
	RoleArn      string      `json:"roleArn,omitempty"`
}

// ExecutionSucceededDetails belong to ExecutionSucceeded. Output is JSON text.
type ExecutionSucceededDetails struct {
	Output        string      `json:"output"`
	OutputDetails DataDetails `json:"outputDetails"`
}

// ErrorDetails say why an execution ended without success.
type ErrorDetails struct {
	Error string `json:"error,omitempty"`
	Cause string `json:"cause,omitempty"`
}

// StateEnteredDetails belong to the …StateEntered events. Input is JSON text, before InputPath.
type StateEnteredDetails struct {
	Name         string      `json:"name"`
	Input        string      `json:"input"`
	InputDetails DataDetails `json:"inputDetails"`
}

// StateExitedDetails belong to the …StateExited events. Output is JSON text, after OutputPath.
type StateExitedDetails struct {
	Name          string      `json:"name"`
	Output        string      `json:"output"`
	OutputDetails DataDetails `json:"outputDetails"`
}

// TaskDetails name the task: ResourceType "lambda" or "states", Resource "invoke", "startExecution" or
// "startExecution.sync:2".
type TaskDetails struct {
	ResourceType string `json:"resourceType"`
	Resource     string `json:"resource"`
}

// TaskScheduledDetails belong to TaskScheduled. Parameters is JSON text; TimeoutInSeconds is 0 where the state
// has no timeout.
type TaskScheduledDetails struct {
	TaskDetails
	Region           string `json:"region"`
	Parameters       string `json:"parameters"`
	TimeoutInSeconds int64  `json:"timeoutInSeconds,omitempty"`
}

// TaskOutputDetails belong to TaskSubmitted and TaskSucceeded. Output is JSON text.
type TaskOutputDetails struct {
	TaskDetails
	Output        string      `json:"output"`
	OutputDetails DataDetails `json:"outputDetails"`
}

// TaskErrorDetails belong to TaskFailed and TaskTimedOut.
type TaskErrorDetails struct {
	TaskDetails
	Error string `json:"error,omitempty"`
	Cause string `json:"cause,omitempty"`
}

// MapStateStartedDetails belong to MapStateStarted.
type MapStateStartedDetails struct {
	Length int `json:"length"`
}

// MapIterationDetails name an iteration of a Map state, counted from 0.
type MapIterationDetails struct {
	Name  string `json:"name"`
	Index int    `json:"index"`
}
