// Package diff compares what a template asks for with what the record says is there, and says for every
// resource what has to be done and why. It is pure; plan, deploy, diff and rehearse all use it.
package diff

import (
	"github.com/slipway-cdk/slipway/pkg/schema"
)

// Action is what happens to a resource.
type Action string

// The actions. None also covers a change that touches the record only (RecordOnly).
const (
	ActionNone    Action = "none"
	ActionCreate  Action = "create"
	ActionUpdate  Action = "update"
	ActionReplace Action = "replace"
	ActionDelete  Action = "delete"
)

// Change is the verdict on one resource.
type Change struct {
	LogicalID string           `json:"logicalId"`
	Type      string           `json:"type"`
	OldType   string           `json:"oldType,omitempty"` // when the type itself changed
	Action    Action           `json:"action"`
	Changes   []PropertyChange `json:"changes,omitempty"`
	// RecordOnly: only policies or dependencies change, no call is made.
	RecordOnly bool `json:"recordOnly,omitempty"`
	// Speculative: the change is only propagated from another resource; when its turn comes it may turn
	// out that nothing is different, and no call is made.
	Speculative bool `json:"speculative,omitempty"`
	// Retain: the resource leaves the record and stays in AWS (DeletionPolicy, UpdateReplacePolicy).
	Retain bool `json:"retain,omitempty"`
	// Adopted: the resource is in AWS since a rollback has left it there, and is taken back into the record.
	Adopted bool `json:"adopted,omitempty"`
	// Stateful: replacing or deleting the deployed resource loses data.
	Stateful bool `json:"stateful,omitempty"`
	// DeleteFirst: a replacement whose two halves can't coexist: the old one goes before the new one comes.
	DeleteFirst bool `json:"deleteFirst,omitempty"`
	// DeletionPolicy and UpdateReplacePolicy are those that apply: the record's for a deletion, the template's
	// for everything else. "" when none is stated.
	DeletionPolicy      string `json:"deletionPolicy,omitempty"`
	UpdateReplacePolicy string `json:"updateReplacePolicy,omitempty"`
}

// PropertyChange is one differing property of a resource. Old and New are for display: dynamic references are
// shown as their text, and what derives from a NoEcho parameter as "***".
type PropertyChange struct {
	// Path is dotted and starts at the property: "Tags.0.Value". An object or list that is added or removed
	// as a whole is one change.
	Path string `json:"path"`
	Old  any    `json:"old,omitempty"`
	New  any    `json:"new,omitempty"`
	// Unknown: the new value is known after the deploy only; NewRefs says from what.
	Unknown bool     `json:"unknown,omitempty"`
	NewRefs []string `json:"newRefs,omitempty"`
	// Replacement is what the change does to the resource.
	Replacement schema.Replacement `json:"replacement,omitempty"`
	// Cause names the resource whose replacement or update is propagated here; "" for a change of its own.
	Cause string `json:"cause,omitempty"`
}

// OutputChange is one differing output.
type OutputChange struct {
	Name   string `json:"name"`
	Export bool   `json:"export,omitempty"`
	Kind   string `json:"kind"` // add, modify, remove
	Old    any    `json:"old,omitempty"`
	New    any    `json:"new,omitempty"`
	// Unknown: the new value is known after the deploy only.
	Unknown bool `json:"unknown,omitempty"`
	// Withheld: the old value may be a secret and is not shown.
	Withheld bool `json:"withheld,omitempty"`
}
