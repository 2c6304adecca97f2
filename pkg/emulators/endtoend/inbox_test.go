//go:build emulators

package endtoend

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	ebtypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/emulators"
	"github.com/slipway-cdk/slipway/pkg/objectstore/s3"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/trigger"
)

// zipped is an assembly as any tool packs a directory.
func zipped(t *testing.T, asm *assembly.Assembly) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	if err := z.AddFS(os.DirFS(asm.Dir)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// notices has a queue of the test's own receive what EventBridge tells of the uploads bucket, and returns how to
// take one.
func (w *world) notices() (take func() []byte) {
	w.Helper()
	ctx := w.Context()
	name := "notices-" + randomHex(4)
	queues, rules := sqs.NewFromConfig(w.cfg), eventbridge.NewFromConfig(w.cfg)
	made, err := queues.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: &name})
	if err == nil {
		_, err = rules.PutRule(ctx, &eventbridge.PutRuleInput{
			Name: &name, EventPattern: aws.String(`{"source":["aws.s3"],"detail":{"bucket":{"name":["` + w.descriptor.UploadsBucket + `"]}}}`),
		})
	}
	if err == nil {
		_, err = rules.PutTargets(ctx, &eventbridge.PutTargetsInput{Rule: &name, Targets: []ebtypes.Target{
			{Id: aws.String("queue"), Arn: aws.String("arn:aws:sqs:" + region + ":" + w.descriptor.Account + ":" + name)},
		}})
	}
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		ctx := context.WithoutCancel(ctx)
		_, _ = rules.RemoveTargets(ctx, &eventbridge.RemoveTargetsInput{Rule: &name, Ids: []string{"queue"}})
		_, _ = rules.DeleteRule(ctx, &eventbridge.DeleteRuleInput{Name: &name})
		_, _ = queues.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: made.QueueUrl})
	})
	return func() []byte {
		w.Helper()
		var body []byte
		w.until("EventBridge has told of the upload", func(ctx context.Context) (bool, error) {
			out, err := queues.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: made.QueueUrl, MaxNumberOfMessages: 1})
			if err != nil || len(out.Messages) == 0 {
				return false, err
			}
			body = []byte(aws.ToString(out.Messages[0].Body))
			return true, nil
		})
		return body
	}
}

func TestAnAssemblyInAnInboxIsDeployedOnceHoweverOftenItIsTold(t *testing.T) {
	w := newWorld(t)
	before := w.inventory()
	take := w.notices()
	stack := "Inbox" + randomHex(3)
	asm := chains(t, stack, 2, 2)
	uploads := s3.NewClient(w.cfg, "")
	if _, err := uploads.PutObject(t.Context(), &sdk.PutObjectInput{
		Bucket: &w.descriptor.UploadsBucket, Key: aws.String("inbox/web/" + stack + ".zip"), Body: bytes.NewReader(zipped(t, asm)),
	}); err != nil {
		t.Fatal(err)
	}

	// EventBridge delivers it to the trigger; the same notice comes twice more.
	notice := take()
	var told trigger.Event
	if err := json.Unmarshal(notice, &told); err != nil {
		t.Fatal(err)
	}
	emulators.LeaveOut(t, []emulators.Capability{{
		Name: "EventBridge: the notice of an object in a versioned bucket names its version",
		Probe: func(context.Context) (string, error) {
			return emulators.Unless(told.Detail.Object.VersionID != "", "it has none: ETag and sequencer tell versions apart"), nil
		},
	}})
	ids := map[string]bool{}
	for range 2 {
		out, err := lambda.NewFromConfig(w.cfg).Invoke(t.Context(), &lambda.InvokeInput{FunctionName: aws.String(w.name("trigger")), Payload: notice})
		var started trigger.Started
		if err == nil {
			err = json.Unmarshal(out.Payload, &started)
		}
		if err != nil || out.FunctionError != nil || started.RunID == "" {
			t.Fatalf("the trigger says %s, %v", out.Payload, err)
		}
		ids[started.RunID] = true
	}
	if len(ids) != 1 {
		t.Fatalf("one notice has started the runs %v", ids)
	}
	var runs []runlog.Header
	w.until("the stack's run is there", func(ctx context.Context) (bool, error) {
		var err error
		runs, err = w.plane.Engine.Log.ListRuns(ctx, runlog.Filter{Stack: runlog.StackRef{Account: w.descriptor.Account, Region: region, Name: stack}})
		return len(runs) > 0, err
	})
	h := w.wait(runs[0].Root)
	if h.Result != runlog.ResultSucceeded || h.Counts.Created != 4 || !ids[h.RunID] {
		tell(t, w.plane.Engine.Log, h.RunID)
		t.Errorf("run %s ended as %s with %+v; the notice's was %v", h.RunID, h.Result, h.Counts, ids)
	}
	w.live(w.record(stack))
	w.unlocked(stack)
	w.run(asm, run.Submission{Command: runlog.CommandDestroy}, runlog.ResultSucceeded)
	after, err := w.plane.Engine.Log.ListRuns(t.Context(), runlog.Filter{Stack: runlog.StackRef{Account: w.descriptor.Account, Region: region, Name: stack}})
	if err != nil || len(after) != 2 {
		t.Errorf("the stack had %d runs, want its deploy and its destroy: %v", len(after), err)
	}
	for _, d := range difference(before, w.inventory()) {
		if d[:8] != "+ queue " || !bytes.Contains([]byte(d), []byte("/notices-")) {
			t.Errorf("it leaves %s", d)
		}
	}
}
