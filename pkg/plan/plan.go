// Package plan turns the verdicts of diff into operations and chooses waves of them. It is pure: the planner
// feeds it records and stores what it returns.
package plan

import (
	"github.com/slipway-cdk/slipway/pkg/diff"
)

// OperationKind tells what an operation works on.
type OperationKind string

// The kinds of operation.
const (
	KindResource OperationKind = "resource"
	KindAsset    OperationKind = "asset"
	KindStack    OperationKind = "stack"
)

// Action is what an operation does.
type Action string

// The actions of operations. Forget drops a record without a call (retained resources); Record updates a
// record without a call (policy-only changes).
const (
	ActionCreate  Action = "create"
	ActionUpdate  Action = "update"
	ActionReplace Action = "replace" // create the new half; the old one is deleted by a cleanup operation
	ActionDelete  Action = "delete"
	ActionForget  Action = "forget"
	ActionRecord  Action = "record"
	ActionPublish Action = "publish"
	ActionDeploy  Action = "deploy"
	ActionDestroy Action = "destroy"
)

// Phase orders operations in a run: everything forward, then cleanup; a rollback replaces both.
type Phase string

// The phases.
const (
	PhaseForward  Phase = "forward"
	PhaseCleanup  Phase = "cleanup"
	PhaseRollback Phase = "rollback"
)

// Operation is one step of a plan.
type Operation struct {
	// ID is unique in the run: the logical id; "{logicalId}.old" for the cleanup of a replaced half;
	// "{logicalId}.undo" for a rollback; "asset.{hash}", "stack.{name}" in a deployment.
	ID        string        `json:"id"`
	Kind      OperationKind `json:"kind"`
	Action    Action        `json:"action"`
	Phase     Phase         `json:"phase"`
	LogicalID string        `json:"logicalId"`
	Type      string        `json:"type,omitempty"`
	// DependsOn lists the operation ids that must have succeeded before.
	DependsOn []string `json:"dependsOn,omitempty"`
	// Speculative: nothing may be left to do when its turn comes.
	Speculative bool `json:"speculative,omitempty"`
	// Retain: a replaced half that stays in AWS.
	Retain bool `json:"retain,omitempty"`
	// ChildRun is the run that a stack operation starts.
	ChildRun string `json:"childRun,omitempty"`
}

// Plan is the immutable plan of one run: plan.json.
type Plan struct {
	Version    int         `json:"version"`
	Operations []Operation `json:"operations"`
	// Changes are the verdicts that the operations come from, without property values.
	Unchanged int `json:"unchanged"`
}

// StackView is the redacted plan of one stack, as people see it.
type StackView struct {
	Stack   string              `json:"stack"`
	Region  string              `json:"region"`
	Account string              `json:"account"`
	Command string              `json:"command"`
	Changes []diff.Change       `json:"changes"`
	Outputs []diff.OutputChange `json:"outputs,omitempty"`
	// Unchanged counts the resources that stay as they are.
	Unchanged int `json:"unchanged"`
}
