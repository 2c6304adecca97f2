package state

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

type recordJSON struct {
	Version         int            `json:"version"`
	Region          string         `json:"region,omitempty"`
	StackName       string         `json:"stackName"`
	Resources       map[string]any `json:"resources"`
	Outputs         map[string]any `json:"outputs"`
	Imports         []Import       `json:"imports,omitempty"`
	OutputReads     []OutputRead   `json:"outputReads,omitempty"`
	Orphans         []Orphan       `json:"orphans,omitempty"`
	LastModified    int64          `json:"lastModified"`
	ParentStack     string         `json:"parentStack,omitempty"`
	ParentLogicalID string         `json:"parentLogicalId,omitempty"`
	ParentRegion    string         `json:"parentRegion,omitempty"`
}

type resourceJSON struct {
	PhysicalID          string         `json:"physicalId"`
	ResourceType        string         `json:"resourceType"`
	Properties          map[string]any `json:"properties"`
	Attributes          map[string]any `json:"attributes"`
	Dependencies        []string       `json:"dependencies,omitempty"`
	Metadata            map[string]any `json:"metadata,omitempty"`
	DeletionPolicy      string         `json:"deletionPolicy,omitempty"`
	UpdateReplacePolicy string         `json:"updateReplacePolicy,omitempty"`
	ProvisionedBy       string         `json:"provisionedBy,omitempty"`
	ObservedProperties  map[string]any `json:"observedProperties,omitempty"`
}

type orphanJSON struct {
	LogicalID  string    `json:"logicalId"`
	OrphanedAt int64     `json:"orphanedAt"`
	State      *Resource `json:"state"`
}

// Encode renders state.json (reference §1.2): two spaces of indent, no trailing newline, no HTML escaping.
// Empty resources, outputs, properties and attributes are written as {}; every other empty member is left
// out (§0.8). It writes Version as it stands; Save sets it.
func (r *Record) Encode() ([]byte, error) {
	line, err := r.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("encoding the state of stack %s: %w", r.StackName, err)
	}
	return indent(line)
}

// MarshalJSON implements json.Marshaler.
func (r *Record) MarshalJSON() ([]byte, error) {
	for id, res := range r.Resources {
		if res == nil {
			return nil, fmt.Errorf("resource %s has no record", id)
		}
	}
	return withExtra(r.plain(), r.Extra)
}

// plain is the record as a struct of plain values. encoding/json checks and copies whatever a MarshalJSON
// returns, at every level, so it is only used where a member of Extra needs it.
func (r *Record) plain() recordJSON {
	resources := make(map[string]any, len(r.Resources))
	for id, res := range r.Resources {
		if resources[id] = res; len(res.Extra) == 0 {
			resources[id] = res.plain()
		}
	}
	return recordJSON{
		Version: r.Version, Region: r.Region, StackName: r.StackName,
		Resources: resources, Outputs: orEmpty(r.Outputs),
		Imports: r.Imports, OutputReads: r.OutputReads, Orphans: r.Orphans, LastModified: r.LastModified,
		ParentStack: r.ParentStack, ParentLogicalID: r.ParentLogicalID, ParentRegion: r.ParentRegion,
	}
}

// MarshalJSON implements json.Marshaler: a resource record as it stands in state.json, in the rollback
// journal and in the operation journal.
func (r *Resource) MarshalJSON() ([]byte, error) {
	return withExtra(r.plain(), r.Extra)
}

func (r *Resource) plain() resourceJSON {
	return resourceJSON{
		PhysicalID: r.PhysicalID, ResourceType: r.ResourceType,
		Properties: orEmpty(r.Properties), Attributes: orEmpty(r.Attributes),
		Dependencies: r.Dependencies, Metadata: r.Metadata,
		DeletionPolicy: r.DeletionPolicy, UpdateReplacePolicy: r.UpdateReplacePolicy,
		ProvisionedBy: r.ProvisionedBy, ObservedProperties: r.ObservedProperties,
	}
}

// MarshalJSON implements json.Marshaler.
func (o Orphan) MarshalJSON() ([]byte, error) {
	if o.Resource == nil {
		return nil, fmt.Errorf("orphan %s has no record", o.LogicalID)
	}
	return withExtra(orphanJSON{LogicalID: o.LogicalID, OrphanedAt: o.OrphanedAt, State: o.Resource}, o.Extra)
}

func (r *Record) hasExtra() bool {
	if len(r.Extra) > 0 {
		return true
	}
	for _, res := range r.Resources {
		if len(res.Extra) > 0 {
			return true
		}
	}
	for _, o := range r.Orphans {
		if len(o.Extra) > 0 || len(o.Resource.Extra) > 0 {
			return true
		}
	}
	return false
}

func orEmpty[V any](m map[string]V) map[string]V {
	if m == nil {
		return map[string]V{}
	}
	return m
}

// Digest is the SHA-256, in hex, of what a record says, whoever wrote it and when: of its encoding with
// members in order and without version and lastModified. nil, the absent record, has the digest "". Two
// records have one digest exactly if they state the same.
//
// It is what binds a sidecar to a record. An ETag cannot: it is known only after the write, and in a bucket
// with SSE-KMS it says nothing about the content
// (https://docs.aws.amazon.com/AmazonS3/latest/API/API_Object.html).
func Digest(r *Record) (string, error) {
	if r == nil {
		return "", nil
	}
	same := *r
	same.Version, same.LastModified = 0, 0
	body, err := same.MarshalJSON()
	if err == nil && same.hasExtra() {
		// Through one generic decode, so that the order of members inside Extra does not matter.
		var v any
		if err = unmarshal(body, &v); err == nil {
			body, err = compact(v)
		}
	}
	if err != nil {
		return "", fmt.Errorf("digesting the state of stack %s: %w", r.StackName, err)
	}
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:]), nil
}

var (
	_ json.Marshaler = (*Record)(nil)
	_ json.Marshaler = (*Resource)(nil)
	_ json.Marshaler = Orphan{}
)
