// Package trigger starts a deployment for an archive that was put into an inbox of the uploads bucket. It is told by
// EventBridge, which tells at least once and in any order: the execution's name comes from the object's key and version,
// so that however often it is told one run begins. It does not look into the archive: the run that it starts does, and
// tells what is wrong with it.
package trigger

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"

	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/run/execution"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/state"
)

// inbox is the prefix of what starts deployments.
const inbox = "inbox/"

// Event is EventBridge's notice of an object that was created
// (https://docs.aws.amazon.com/AmazonS3/latest/userguide/ev-events.html). Keys stand in it as they are, not encoded.
type Event struct {
	ID         string    `json:"id"`
	Source     string    `json:"source"`
	DetailType string    `json:"detail-type"`
	Account    string    `json:"account"`
	Region     string    `json:"region"`
	Time       time.Time `json:"time"`
	Resources  []string  `json:"resources"`
	Version    string    `json:"version"`
	Detail     Detail    `json:"detail"`
}

// Detail is what the notice is about.
type Detail struct {
	Version string `json:"version"`
	Bucket  struct {
		Name string `json:"name"`
	} `json:"bucket"`
	Object struct {
		Key       string `json:"key"`
		Size      int64  `json:"size"`
		ETag      string `json:"etag"`
		VersionID string `json:"version-id"`
		Sequencer string `json:"sequencer"`
	} `json:"object"`
	RequestID string `json:"request-id"`
	Requester string `json:"requester"`
	SourceIP  string `json:"source-ip-address"`
	Reason    string `json:"reason"`
}

// Objects looks at objects of the uploads bucket.
type Objects interface {
	HeadObject(context.Context, *s3.HeadObjectInput, ...func(*s3.Options)) (*s3.HeadObjectOutput, error)
}

// Executions starts executions.
type Executions interface {
	StartExecution(context.Context, *sfn.StartExecutionInput, ...func(*sfn.Options)) (*sfn.StartExecutionOutput, error)
}

// Trigger starts the deployments of one control plane.
type Trigger struct {
	Objects    Objects
	Executions Executions
	// Bucket is the uploads bucket, Account whose it is, Machine the ARN of the run state machine.
	Bucket, Account, Machine string
	Clock                    clock.Clock
	Logger                   *slog.Logger
}

// Started is the function's answer.
type Started struct {
	RunID     string `json:"runId,omitempty"`
	Execution string `json:"execution,omitempty"`
	// Ignored is why nothing was started.
	Ignored string `json:"ignored,omitempty"`
}

// Handle starts the run for one event. An event that can't be understood starts a run as well, which fails and says so:
// somebody has put something somewhere and waits for it. An error has EventBridge deliver the event again.
func (t *Trigger) Handle(ctx context.Context, payload []byte) (Started, error) {
	x, ignored := t.execution(ctx, payload)
	if ignored != "" {
		t.Logger.InfoContext(ctx, "nothing to deploy", "why", ignored)
		return Started{Ignored: ignored}, nil
	}
	input, err := x.Input()
	if err != nil {
		return Started{}, fmt.Errorf("encoding the input of run %s: %w", x.RunID, err)
	}
	name := x.Name()
	_, err = t.Executions.StartExecution(ctx, &sfn.StartExecutionInput{
		StateMachineArn: &t.Machine, Name: &name, Input: aws.String(string(input)),
	})
	var there *types.ExecutionAlreadyExists
	if err != nil && !errors.As(err, &there) {
		return Started{}, fmt.Errorf("starting execution %s: %w", name, err)
	}
	t.Logger.InfoContext(ctx, "deployment started", "runId", x.RunID, "execution", name, "key", clip(x.Upload.Key), "again", there != nil)
	return Started{RunID: x.RunID, Execution: name}, nil
}

// execution is what an event is to start.
func (t *Trigger) execution(ctx context.Context, payload []byte) (x execution.Upload, ignored string) {
	var e Event
	x.Command = runlog.CommandDeploy
	if err := json.Unmarshal(payload, &e); err != nil || e.Detail.Object.Key == "" || e.Detail.Bucket.Name != t.Bucket || !strings.HasPrefix(e.Detail.Object.Key, inbox) {
		// The key is kept only where the object is in this bucket: a run refuses all that is not in an inbox.
		if e.Detail.Bucket.Name == t.Bucket && !strings.HasPrefix(e.Detail.Object.Key, "uploads/") {
			x.Upload.Key = clip(e.Detail.Object.Key)
		}
		at := e.Time
		if at.IsZero() {
			at = t.Clock.Now()
		}
		x.RunID = runID(at, string(payload))
		return x, ""
	}
	object := e.Detail.Object
	if strings.HasSuffix(object.Key, "/") && object.Size == 0 {
		return x, "it is the marker of a folder"
	}
	x.Upload = execution.UploadRef{Key: object.Key, Version: object.VersionID}
	x.RunID = runID(t.created(ctx, e), t.Bucket, object.Key, object.VersionID, unversioned(e))
	return x, ""
}

// unversioned tells apart what was put under one key, in a bucket without versions.
func unversioned(e Event) string {
	if e.Detail.Object.VersionID != "" {
		return ""
	}
	return e.Detail.Object.ETag + e.Detail.Object.Sequencer
}

// created is when the object was put. The object says the same whenever it is asked, which two notices of it need not;
// one that is gone meanwhile leaves the notice's word.
func (t *Trigger) created(ctx context.Context, e Event) time.Time {
	in := &s3.HeadObjectInput{Bucket: &t.Bucket, Key: &e.Detail.Object.Key, ExpectedBucketOwner: &t.Account}
	if e.Detail.Object.VersionID != "" {
		in.VersionId = &e.Detail.Object.VersionID
	}
	out, err := t.Objects.HeadObject(ctx, in)
	if err == nil && out.LastModified != nil {
		return *out.LastModified
	}
	t.Logger.WarnContext(ctx, "the object could not be looked at", "key", clip(e.Detail.Object.Key), "error", err)
	if e.Time.IsZero() {
		return t.Clock.Now()
	}
	return e.Time
}

// runID is a run id that is the same for the same parts.
func runID(at time.Time, parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return state.DeploymentRunID(at.UTC().Truncate(time.Millisecond), binary.BigEndian.Uint32(h.Sum(nil)))
}

// clip keeps what somebody else has chosen to a length, without control characters.
func clip(s string) string {
	s = state.Printable(s)
	if len(s) > 1024 {
		s = strings.ToValidUTF8(s[:1024], "")
	}
	return s
}
