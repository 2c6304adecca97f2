package runlog

import (
	"fmt"
	"time"
)

// EventVersion is the version of the event format. It grows when a member changes its meaning; new members
// do not change it.
const EventVersion = 1

// EventType names what an event reports.
type EventType string

// The event types. A run's story is RUN_STARTED, PLANNED, then waves and operations, then exactly one
// RUN_FINISHED.
const (
	RunStarted     EventType = "RUN_STARTED"
	Planned        EventType = "PLANNED"
	WaveStarted    EventType = "WAVE_STARTED"
	OpStarted      EventType = "RESOURCE_STARTED"
	OpProgress     EventType = "RESOURCE_PROGRESS" // still in flight; Message says at what
	OpDone         EventType = "RESOURCE_SUCCEEDED"
	OpFail         EventType = "RESOURCE_FAILED"
	OpSkip         EventType = "RESOURCE_SKIPPED"
	OpRetain       EventType = "RESOURCE_RETAINED"
	OpRetry        EventType = "RESOURCE_RETRYING"
	AssetStarted   EventType = "ASSET_STARTED"
	AssetPublished EventType = "ASSET_PUBLISHED"
	AssetSkipped   EventType = "ASSET_SKIPPED" // not published, which is no failure; Message says why
	AssetFailed    EventType = "ASSET_FAILED"
	StackStarted   EventType = "STACK_STARTED" // ChildRun names the run to follow
	StackFinished  EventType = "STACK_FINISHED"
	// WaitingForLock: somebody else works on the stack; Message says who, and at which place this run waits.
	WaitingForLock EventType = "WAITING_FOR_LOCK"
	// RunningMacros: the stack is planned once the macros of its template have run.
	RunningMacros   EventType = "RUNNING_MACROS"
	RollbackStarted EventType = "ROLLBACK_STARTED"
	Warned          EventType = "WARNING"
	RunFinished     EventType = "RUN_FINISHED"
)

// Event is one line of a run's story. It carries metadata, never a property value.
type Event struct {
	Version int `json:"v"`
	// ID orders the events of one run and makes a repeated one recognisable: see EventID.
	ID        string    `json:"id"`
	Type      EventType `json:"type"`
	Time      time.Time `json:"time"`
	RunID     string    `json:"runId"`
	Root      string    `json:"root,omitempty"`
	Stack     string    `json:"stack,omitempty"`
	Region    string    `json:"region,omitempty"`
	Command   Command   `json:"command,omitempty"`
	LogicalID string    `json:"logicalId,omitempty"`
	// ResourceType is the CloudFormation type; for an asset "asset", for a stack "stack".
	ResourceType string `json:"resourceType,omitempty"`
	// Action is the plan's action: create, update, replace, delete, publish, deploy, destroy.
	Action     string `json:"action,omitempty"`
	Wave       int    `json:"wave,omitempty"`
	Attempt    int    `json:"attempt,omitempty"`
	PhysicalID string `json:"physicalId,omitempty"`
	DurationMs int64  `json:"durationMs,omitempty"`
	// Total is the number of operations of the run (on PLANNED).
	Total    int      `json:"total,omitempty"`
	ChildRun string   `json:"childRun,omitempty"`
	Message  string   `json:"message,omitempty"`
	Error    *OpError `json:"error,omitempty"`
	Result   Result   `json:"result,omitempty"`
	Counts   *Counts  `json:"counts,omitempty"`
	Failure  *Failure `json:"failure,omitempty"`
}

// EventID builds a deterministic id: events sort by the wave they belong to, and one operation's event of
// one type and attempt exists once. wave 0 is the opening; FinalWave comes after every wave.
func EventID(wave int, subject string, t EventType, attempt int) string {
	return fmt.Sprintf("%05d.%s.%s.%03d", wave, subject, t, attempt)
}

// FinalWave is the wave number of events that close a run.
const FinalWave = 99999
