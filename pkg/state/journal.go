package state

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/objectstore"
)

// JournalVersion is the version of the rollback journal (reference §1.4). A higher one is refused.
const JournalVersion = 1

// The reasons of a journal segment (reference §1.4).
const (
	ReasonNoRollback    = "no-rollback-failure"
	ReasonInterrupted   = "interrupted"
	ReasonRollingBack   = "auto-rollback-started"
	ReasonRollbackClean = "auto-rollback-clean"
)

// The change types of journal and deployment events.
const (
	ChangeCreate = "CREATE"
	ChangeUpdate = "UPDATE"
	ChangeDelete = "DELETE"
)

// Journal is rollback-journal.json (reference §1.4): what failed deploys have done and nobody has undone or
// completed yet. One segment per failed attempt, newest last.
type Journal struct {
	JournalVersion int                        `json:"journalVersion"`
	StackName      string                     `json:"stackName"`
	Region         string                     `json:"region"`
	Segments       []Segment                  `json:"segments"`
	Extra          map[string]json.RawMessage `json:"-"`
}

// Segment is one failed attempt.
type Segment struct {
	RunID string `json:"runId,omitempty"`
	// Timestamp is Unix milliseconds.
	Timestamp int64  `json:"timestamp"`
	Reason    string `json:"reason"`
	// InitialDeploy: there was no state before.
	InitialDeploy bool                 `json:"initialDeploy"`
	RoleARN       string               `json:"roleArn,omitempty"`
	CdkdVersion   string               `json:"cdkdVersion,omitempty"`
	Operations    []CompletedOperation `json:"operations"`
	// FailedOperations is nil when the segment has no such member: an interrupted run.
	FailedOperations []FailedOperation          `json:"failedOperations,omitzero"`
	Extra            map[string]json.RawMessage `json:"-"`
}

// CompletedOperation is a change that was made. Properties are redacted as in the record.
type CompletedOperation struct {
	LogicalID     string                     `json:"logicalId"`
	ChangeType    string                     `json:"changeType"`
	ResourceType  string                     `json:"resourceType"`
	ProvisionedBy string                     `json:"provisionedBy,omitempty"`
	PreviousState *Resource                  `json:"previousState,omitempty"`
	PhysicalID    string                     `json:"physicalId,omitempty"`
	Properties    map[string]any             `json:"properties,omitzero"`
	Extra         map[string]json.RawMessage `json:"-"`
}

// FailedOperation is a change that was attempted. AttemptedProperties is nil when they could not even be
// resolved (reference §0.9).
type FailedOperation struct {
	LogicalID           string                     `json:"logicalId"`
	ChangeType          string                     `json:"changeType"`
	ResourceType        string                     `json:"resourceType"`
	ProvisionedBy       string                     `json:"provisionedBy,omitempty"`
	PreviousState       *Resource                  `json:"previousState,omitempty"`
	PhysicalID          string                     `json:"physicalId,omitempty"`
	AttemptedProperties map[string]any             `json:"attemptedProperties,omitzero"`
	Extra               map[string]json.RawMessage `json:"-"`
}

// DecodeJournal reads a rollback journal.
func DecodeJournal(data []byte) (*Journal, error) {
	j := &Journal{}
	if err := versioned(data, j, "rollback journal", "", "journalVersion"); err != nil {
		return nil, err
	}
	if err := j.check(); err != nil {
		return nil, damagedFile("rollback journal", Printable(j.StackName), err)
	}
	return j, nil
}

// check refuses a journal that would read as if there was less to undo than there is.
func (j *Journal) check() error {
	if j.Segments == nil {
		return errors.New("it has no list of segments")
	}
	for i, seg := range j.Segments {
		if seg.Operations == nil {
			return fmt.Errorf("segments.%d has no list of operations", i)
		}
		for k, op := range seg.Operations {
			if op.LogicalID == "" || op.ChangeType == "" || op.ResourceType == "" {
				return fmt.Errorf("segments.%d.operations.%d lacks its logicalId, changeType or resourceType", i, k)
			}
		}
		for k, op := range seg.FailedOperations {
			if op.LogicalID == "" || op.ChangeType == "" || op.ResourceType == "" {
				return fmt.Errorf("segments.%d.failedOperations.%d lacks its logicalId, changeType or resourceType", i, k)
			}
		}
	}
	return nil
}

// Encode renders the journal as cdkd does.
func (j *Journal) Encode() ([]byte, error) {
	data, err := pretty(j)
	if err != nil {
		return nil, fmt.Errorf("encoding the rollback journal of stack %s: %w", j.StackName, err)
	}
	return data, nil
}

// LoadJournal returns the rollback journal of a stack and its ETag, or ErrNotFound.
func (s *Store) LoadJournal(ctx context.Context, stack, region string) (*Journal, string, error) {
	obj, err := s.Objects.Get(ctx, s.JournalKey(stack, region))
	if errors.Is(err, objectstore.ErrNotFound) {
		return nil, "", fmt.Errorf("rollback journal of stack %s in %s: %w", stack, Region(region), ErrNotFound)
	}
	if err != nil {
		return nil, "", fmt.Errorf("reading the rollback journal of stack %s in %s: %w", stack, Region(region), err)
	}
	j, err := DecodeJournal(obj.Body)
	if err != nil {
		return nil, "", fmt.Errorf("reading the rollback journal of stack %s in %s: %w", stack, Region(region), inStack(err, stack))
	}
	return j, obj.ETag, nil
}

// ListJournals names every stack that has a rollback journal, ordered by name, then region.
func (s *Store) ListJournals(ctx context.Context) ([]Ref, error) {
	infos, err := s.Objects.List(ctx, s.prefix()+"/")
	if err != nil {
		return nil, fmt.Errorf("listing the rollback journals: %w", err)
	}
	var refs []Ref
	for _, info := range infos {
		rest, ok := strings.CutSuffix(strings.TrimPrefix(info.Key, s.prefix()+"/"), "/rollback-journal.json")
		if parts := strings.Split(rest, "/"); ok && len(parts) == 2 && parts[0] != "" && parts[1] != "" {
			refs = append(refs, Ref{Stack: parts[0], Region: parts[1]})
		}
	}
	slices.SortFunc(refs, func(a, b Ref) int {
		return cmp.Or(cmp.Compare(a.Stack, b.Stack), cmp.Compare(a.Region, b.Region))
	})
	return refs, nil
}

// ReplaceJournal writes the whole journal if its ETag is still the given one, "" meaning that none stands
// there; else it returns ErrModified. A journal without segments is deleted instead. The caller holds the
// stack's lock.
func (s *Store) ReplaceJournal(ctx context.Context, j *Journal, etag string) (string, error) {
	if len(j.Segments) == 0 {
		return "", s.DeleteJournal(ctx, j.StackName, j.Region, etag)
	}
	j.JournalVersion, j.Region = JournalVersion, Region(j.Region)
	body, err := j.Encode()
	if err != nil {
		return "", err
	}
	newETag, err := s.put(ctx, s.JournalKey(j.StackName, j.Region), body, etag, nil)
	if err != nil {
		return "", fmt.Errorf("saving the rollback journal of stack %s in %s: %w", j.StackName, j.Region, err)
	}
	return newETag, nil
}

// AppendSegment adds a segment as the newest one. A segment of the same run is replaced: a run that is
// settled twice leaves one, and cdkd's "started" becomes "clean" in one write.
func (s *Store) AppendSegment(ctx context.Context, stack, region string, seg Segment) error {
	if seg.Timestamp == 0 {
		seg.Timestamp = s.now().UnixMilli()
	}
	if seg.Operations == nil {
		seg.Operations = []CompletedOperation{}
	}
	j, etag, err := s.LoadJournal(ctx, stack, region)
	if errors.Is(err, ErrNotFound) {
		j, err = &Journal{StackName: stack, Region: Region(region)}, nil
	}
	if err != nil {
		return err
	}
	kept := make([]Segment, 0, len(j.Segments)+1)
	for _, have := range j.Segments {
		if seg.RunID == "" || have.RunID != seg.RunID {
			kept = append(kept, have)
		}
	}
	j.Segments = append(kept, seg)
	_, err = s.ReplaceJournal(ctx, j, etag)
	return err
}

// DeleteJournal removes the journal; nothing there is success. With an ETag it is only removed if it is
// still that one, else the error is ErrModified.
func (s *Store) DeleteJournal(ctx context.Context, stack, region, etag string) error {
	err := s.Objects.Delete(ctx, s.JournalKey(stack, region), objectstore.Condition{IfMatch: etag})
	if errors.Is(err, objectstore.ErrPrecondition) {
		err = ErrModified
	}
	if err != nil && !errors.Is(err, objectstore.ErrNotFound) {
		return fmt.Errorf("deleting the rollback journal of stack %s in %s: %w", stack, Region(region), err)
	}
	return nil
}
