package state

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/slipway-cdk/slipway/pkg/objectstore"
)

// KeptDeployments is how many runs of a stack keep their events (reference §3).
const KeptDeployments = 20

// DeploymentEvent is one line of deployments/{runId}.jsonl (reference §3). It never holds a property.
type DeploymentEvent struct {
	Timestamp     string                     `json:"timestamp"` // see DeploymentTime
	EventType     string                     `json:"eventType"`
	StackName     string                     `json:"stackName"`
	Command       string                     `json:"command,omitempty"`
	Region        string                     `json:"region,omitempty"`
	CdkdVersion   string                     `json:"cdkdVersion,omitempty"`
	Result        string                     `json:"result,omitempty"`    // SUCCEEDED or FAILED
	Operation     string                     `json:"operation,omitempty"` // CREATE, UPDATE or DELETE
	LogicalID     string                     `json:"logicalId,omitempty"`
	ResourceType  string                     `json:"resourceType,omitempty"`
	ProvisionedBy string                     `json:"provisionedBy,omitempty"`
	PhysicalID    string                     `json:"physicalId,omitempty"`
	DurationMs    *int64                     `json:"durationMs,omitempty"`
	Counts        *DeploymentCounts          `json:"counts,omitempty"`
	Reason        string                     `json:"reason,omitempty"`
	Error         *DeploymentError           `json:"error,omitempty"`
	Extra         map[string]json.RawMessage `json:"-"`
}

// DeploymentCounts are the counts on RUN_FINISHED.
type DeploymentCounts struct {
	Created int `json:"created"`
	Updated int `json:"updated"`
	Deleted int `json:"deleted"`
	Failed  int `json:"failed,omitempty"`
	Skipped int `json:"skipped,omitempty"`
}

// DeploymentError is the error of an event, masked.
type DeploymentError struct {
	Name         string `json:"name"`
	Message      string `json:"message"`
	AWSErrorCode string `json:"awsErrorCode,omitempty"`
	RequestID    string `json:"requestId,omitempty"`
}

// DeploymentRun is a run's entry in deployments/index.json.
type DeploymentRun struct {
	RunID       string                     `json:"runId"`
	Command     string                     `json:"command"`
	CdkdVersion string                     `json:"cdkdVersion,omitempty"`
	StartedAt   string                     `json:"startedAt"`
	FinishedAt  string                     `json:"finishedAt,omitempty"`
	Result      string                     `json:"result"`
	EventCount  int                        `json:"eventCount"`
	Extra       map[string]json.RawMessage `json:"-"`
}

// DeploymentIndex is deployments/index.json: the newest runs of a stack, newest first.
type DeploymentIndex struct {
	IndexVersion int                        `json:"indexVersion"`
	StackName    string                     `json:"stackName"`
	Region       string                     `json:"region"`
	Runs         []DeploymentRun            `json:"runs"`
	LastModified int64                      `json:"lastModified"`
	Extra        map[string]json.RawMessage `json:"-"`
}

// DeploymentTime renders a time as cdkd's events do: ISO 8601 in UTC with milliseconds.
func DeploymentTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// DeploymentRunID is a run id in cdkd's form, which sorts by time: YYYYMMDDTHHMMSSmmmZ-xxxxxxxx. random
// supplies the eight hex digits.
func DeploymentRunID(t time.Time, random uint32) string {
	stamp := strings.NewReplacer("-", "", ":", "", ".", "").Replace(DeploymentTime(t))
	return fmt.Sprintf("%s-%08x", stamp, random)
}

// EncodeEvents renders events as JSON lines.
func EncodeEvents(events []DeploymentEvent) ([]byte, error) {
	var b bytes.Buffer
	for _, e := range events {
		line, err := compact(e)
		if err != nil {
			return nil, fmt.Errorf("encoding a deployment event of stack %s: %w", e.StackName, err)
		}
		b.Write(line)
		b.WriteByte('\n')
	}
	return b.Bytes(), nil
}

// DecodeEvents reads JSON lines. A last line that is torn is dropped: its writer was killed.
func DecodeEvents(data []byte) ([]DeploymentEvent, error) {
	var out []DeploymentEvent
	lines := bytes.Split(data, []byte("\n"))
	for i, line := range lines {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var e DeploymentEvent
		if err := unmarshal(line, &e); err != nil {
			if i == len(lines)-1 {
				break
			}
			return nil, fmt.Errorf("line %d of the deployment events: %w", i+1, err)
		}
		out = append(out, e)
	}
	return out, nil
}

// WriteDeployment stores the story of one run in cdkd's format, adds run to the index, and removes the events
// of runs that the index no longer names. It may be repeated. run.EventCount is set here.
func (s *Store) WriteDeployment(ctx context.Context, stack, region string, events []DeploymentEvent, run DeploymentRun) error {
	fail := func(err error) error {
		return fmt.Errorf("writing the deployment events of stack %s in %s: %w", stack, Region(region), err)
	}
	if run.RunID == "" || strings.ContainsAny(run.RunID, "/\\") {
		return fail(errors.New("the run has no usable id"))
	}
	body, err := EncodeEvents(events)
	if err != nil {
		return fail(err)
	}
	if _, err := s.Objects.Put(ctx, s.deploymentsKey(stack, region, run.RunID+".jsonl"), body, objectstore.Condition{}); err != nil {
		return fail(err)
	}
	run.EventCount = len(events)
	x, err := s.indexDeployment(ctx, stack, region, run)
	if err != nil {
		return fail(err)
	}
	if len(x.Runs) < KeptDeployments {
		return nil
	}
	return s.pruneDeployments(ctx, stack, region, x.Runs[len(x.Runs)-1].RunID)
}

func (s *Store) indexDeployment(ctx context.Context, stack, region string, run DeploymentRun) (*DeploymentIndex, error) {
	key := s.deploymentsKey(stack, region, "index.json")
	var refused error
	for attempt := range exportAttempts {
		if attempt > 0 {
			if err := s.clock().Sleep(ctx, exportBackoff<<attempt); err != nil {
				return nil, err
			}
		}
		x, etag, err := s.LoadDeployments(ctx, stack, region)
		if err != nil {
			return nil, err
		}
		runs := []DeploymentRun{run}
		for _, have := range x.Runs {
			if have.RunID != run.RunID {
				runs = append(runs, have)
			}
		}
		sort.SliceStable(runs, func(i, j int) bool { return runs[i].RunID > runs[j].RunID })
		x.Runs = runs[:min(len(runs), KeptDeployments)]
		x.LastModified = s.now().UnixMilli()
		body, err := pretty(x)
		if err != nil {
			return nil, err
		}
		if _, refused = s.Objects.Put(ctx, key, body, onlyIf(etag)); refused == nil {
			return x, nil
		}
		if !errors.Is(refused, objectstore.ErrPrecondition) && !errors.Is(refused, objectstore.ErrNotFound) {
			break
		}
	}
	return nil, refused
}

// LoadDeployments returns the index of a stack's runs and its ETag. A missing or damaged index is derived
// from the event files (reference §3); the ETag is then that of the damaged file, or "".
func (s *Store) LoadDeployments(ctx context.Context, stack, region string) (*DeploymentIndex, string, error) {
	obj, err := s.Objects.Get(ctx, s.deploymentsKey(stack, region, "index.json"))
	if err != nil && !errors.Is(err, objectstore.ErrNotFound) {
		return nil, "", fmt.Errorf("reading the deployments index of stack %s: %w", stack, err)
	}
	if err == nil {
		x := &DeploymentIndex{}
		err := versioned(obj.Body, x, "deployments index", stack, "indexVersion")
		if err == nil {
			return x, obj.ETag, nil
		}
		if !IsDamaged(err) {
			return nil, "", err
		}
	}
	x, err := s.deriveDeployments(ctx, stack, region)
	return x, obj.ETag, err
}

func (s *Store) deriveDeployments(ctx context.Context, stack, region string) (*DeploymentIndex, error) {
	x := &DeploymentIndex{IndexVersion: IndexVersion, StackName: stack, Region: Region(region), Runs: []DeploymentRun{}}
	infos, err := s.Objects.List(ctx, s.deploymentsKey(stack, region, ""))
	if err != nil {
		return nil, fmt.Errorf("listing the deployments of stack %s: %w", stack, err)
	}
	for i := len(infos) - 1; i >= 0 && len(x.Runs) < KeptDeployments; i-- {
		runID, ok := strings.CutSuffix(infos[i].Key[strings.LastIndex(infos[i].Key, "/")+1:], ".jsonl")
		if !ok {
			continue
		}
		events, err := s.LoadDeploymentEvents(ctx, stack, region, runID)
		if err != nil {
			continue // one unreadable story does not hide the others
		}
		run := DeploymentRun{RunID: runID, Result: "UNKNOWN", EventCount: len(events)}
		for _, e := range events {
			switch e.EventType {
			case "RUN_STARTED":
				run.Command, run.CdkdVersion, run.StartedAt = e.Command, e.CdkdVersion, e.Timestamp
			case "RUN_FINISHED":
				run.Result, run.FinishedAt = e.Result, e.Timestamp
			}
		}
		x.Runs = append(x.Runs, run)
	}
	return x, nil
}

// LoadDeploymentEvents returns the events of one run, or ErrNotFound.
func (s *Store) LoadDeploymentEvents(ctx context.Context, stack, region, runID string) ([]DeploymentEvent, error) {
	obj, err := s.Objects.Get(ctx, s.deploymentsKey(stack, region, runID+".jsonl"))
	if errors.Is(err, objectstore.ErrNotFound) {
		return nil, fmt.Errorf("events of run %s of stack %s: %w", runID, stack, ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the events of run %s of stack %s: %w", runID, stack, err)
	}
	events, err := DecodeEvents(obj.Body)
	if err != nil {
		return nil, fmt.Errorf("reading the events of run %s of stack %s: %w", runID, stack, err)
	}
	return events, nil
}

// pruneDeployments deletes the events of every run whose id sorts before oldest.
func (s *Store) pruneDeployments(ctx context.Context, stack, region, oldest string) error {
	base := s.deploymentsKey(stack, region, "")
	infos, err := s.Objects.List(ctx, base)
	if err != nil {
		return fmt.Errorf("pruning the deployment events of stack %s: %w", stack, err)
	}
	for _, info := range infos {
		runID, ok := strings.CutSuffix(strings.TrimPrefix(info.Key, base), ".jsonl")
		if !ok || runID >= oldest {
			continue
		}
		if err := s.Objects.Delete(ctx, info.Key, objectstore.Condition{}); err != nil {
			return fmt.Errorf("pruning the deployment events of stack %s: %w", stack, err)
		}
	}
	return nil
}
