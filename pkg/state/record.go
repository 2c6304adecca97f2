// Package state keeps what Slipway knows of each stack: the record of its resources (state.json), the lock,
// the sidecar of what the record has no member for, the rollback journal and the exports index. Keys and JSON
// are cdkd's (reference §0–2), so that either tool can work on the other's stacks; every write is
// conditional. The package does no AWS call: it works on an objectstore.Store and a clock that it is given.
package state

import (
	"encoding/json"
)

// SchemaVersion is the version of state.json that Slipway writes; it reads 1 to SchemaVersion.
const SchemaVersion = 8

// Record is state.json: one deployed stack. Members that it does not know survive a round trip in Extra.
type Record struct {
	Version     int
	StackName   string
	Region      string
	Resources   map[string]*Resource
	Outputs     map[string]any
	Imports     []Import
	OutputReads []OutputRead
	// The three parent members are set together, on nested children only.
	ParentStack     string
	ParentLogicalID string
	ParentRegion    string
	// Orphans are retained resources that a rollback has left standing (seed 001).
	Orphans []Orphan
	// LastModified is Unix milliseconds.
	LastModified int64
	Extra        map[string]json.RawMessage

	// LegacyETag is set when the record was read from the version 1 key, which has no region (reference
	// §1.2). It is not part of the file. Save then writes the new key and removes the old one.
	LegacyETag string
}

// Resource is the record of one live resource.
type Resource struct {
	PhysicalID   string
	ResourceType string
	// Properties are the resolved desired properties, secrets as their {{resolve:…}} text or "***".
	Properties map[string]any
	// ObservedProperties is the live model read after the last step: the drift baseline. nil when absent.
	ObservedProperties  map[string]any
	Attributes          map[string]any
	Dependencies        []string
	Metadata            map[string]any
	DeletionPolicy      string
	UpdateReplacePolicy string
	// ProvisionedBy is "sdk" or "cc-api"; absent means sdk.
	ProvisionedBy string
	Extra         map[string]json.RawMessage
}

// Import is one Fn::ImportValue that the stack's last deploy has read.
type Import struct {
	SourceStack  string `json:"sourceStack"`
	SourceRegion string `json:"sourceRegion"`
	ExportName   string `json:"exportName"`
}

// OutputRead is one Fn::GetStackOutput that the stack's last deploy has read. It is informational.
type OutputRead struct {
	SourceStack  string `json:"sourceStack"`
	SourceRegion string `json:"sourceRegion"`
	OutputName   string `json:"outputName"`
}

// Orphan is a resource that a rollback has left standing under DeletionPolicy Retain and that the next deploy
// can adopt: in the file {"logicalId", "orphanedAt", "state"}, state being the record that the rollback took
// out of resources.
type Orphan struct {
	LogicalID string
	// OrphanedAt is Unix milliseconds.
	OrphanedAt int64
	Resource   *Resource
	Extra      map[string]json.RawMessage
}
