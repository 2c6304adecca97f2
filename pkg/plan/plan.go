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
	// ActionRollback undoes what failed runs have done to a stack, as its rollback journal tells.
	ActionRollback Action = "rollback"
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
	// "{logicalId}.undo" for a rollback, "{logicalId}.{n}.undo" for the n-th of one that replays several runs,
	// "{logicalId}.undo.old" for the removal of a new half; "asset.{hash}", "stack.{name}" in a deployment.
	ID        string        `json:"id"`
	Kind      OperationKind `json:"kind"`
	Action    Action        `json:"action"`
	Phase     Phase         `json:"phase"`
	LogicalID string        `json:"logicalId"`
	Type      string        `json:"type,omitempty"`
	// DependsOn lists the operation ids that must have succeeded before.
	DependsOn []string `json:"dependsOn,omitempty"`
	// After lists the operation ids that must have ended before, in whatever way.
	After []string `json:"after,omitempty"`
	// Speculative: nothing may be left to do when its turn comes.
	Speculative bool `json:"speculative,omitempty"`
	// Retain: a replaced half, or a resource that a rollback drops from the record, stays in AWS.
	Retain bool `json:"retain,omitempty"`
	// DeleteFirst: a replacement whose halves can't coexist. The operation itself deletes the old resource
	// before it creates the new one, and there is no cleanup operation for it.
	DeleteFirst bool `json:"deleteFirst,omitempty"`
	// Policy is the policy under which the operation, or one that undoes it, removes the resource: Delete,
	// Retain, Snapshot or RetainExceptOnCreate; "" when none is stated.
	Policy string `json:"policy,omitempty"`
	// PhysicalID names the resource that a cleanup or an undo works on, where the plan knows it.
	PhysicalID string `json:"physicalId,omitempty"`
	// Undoes is the id of the operation that this one takes back.
	Undoes string `json:"undoes,omitempty"`
	// ChildRun is the run that a stack operation starts.
	ChildRun string `json:"childRun,omitempty"`
}

// Plan is the immutable plan of one run: plan.json.
type Plan struct {
	Version    int         `json:"version"`
	Operations []Operation `json:"operations"`
	// Unchanged counts the resources that stay as they are.
	Unchanged int `json:"unchanged"`
	// Irreversible lists, in a rollback plan, the operations that can't be taken back, with the reason.
	Irreversible []Irreversible `json:"irreversible,omitempty"`
}

// Version is the version of plan.json.
const Version = 1

// Irreversible is an operation that a rollback can't take back.
type Irreversible struct {
	// ID is the operation's id, LogicalID its resource.
	ID        string `json:"id"`
	LogicalID string `json:"logicalId"`
	Reason    string `json:"reason"`
	// Emptied: the resource is made again, without the data that it held. Else it stays as it is now.
	Emptied bool `json:"emptied,omitempty"`
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
	// Replay tells, for a rollback, what becomes of every entry of the stack's rollback journal.
	Replay []Entry `json:"replay,omitempty"`
	// Nested is set for a nested stack, which stands behind its parent.
	Nested *NestedView `json:"nested,omitempty"`
}

// NestedView says where a nested stack belongs. Its StackView.Stack is "{parent}~{logicalId}" (reference §8.10).
type NestedView struct {
	// Parent is the StackView.Stack of the stack that it is a resource of, LogicalID that resource.
	Parent    string `json:"parent"`
	LogicalID string `json:"logicalId"`
	// Gone: the parent has it in its record and no longer in its template.
	Gone bool `json:"gone,omitempty"`
	// Undecided says why it can't be compared before the deploy; there are no changes in the view then.
	Undecided string `json:"undecided,omitempty"`
}
