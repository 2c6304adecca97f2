//go:build emulators

package endtoend

import (
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	gocmp "github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/lookup"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/synth"
)

const (
	dataStack = "GuestbookData"
	webStack  = "GuestbookWeb"
)

// guestbook synthesizes the example with a context.
func guestbook(t *testing.T, context ...string) *assembly.Assembly {
	t.Helper()
	values, err := synth.ParseContext(context)
	if err != nil {
		t.Fatal(err)
	}
	asm, err := synth.Run(t.Context(), synth.Options{
		App: `"` + need(t, guestbookVariable) + `"`, WorkDir: t.TempDir(), Account: account, Region: region,
		Context: values, Env: os.Environ(), Lookup: lookup.Local(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return asm
}

func nothing(c runlog.Counts) bool {
	return c.Created+c.Updated+c.Replaced+c.Deleted+c.Failed+c.Skipped == 0
}

func TestTheGuestbookIsDeployedChangedRolledBackAndDestroyed(t *testing.T) {
	w := newWorld(t)
	deploy := run.Submission{Command: runlog.CommandDeploy}
	taken := "inbox-" + randomHex(4)
	queues := sqs.NewFromConfig(w.cfg)
	other, err := queues.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &taken, Attributes: map[string]string{"VisibilityTimeout": "33"}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = queues.DeleteQueue(t.Context(), &sqs.DeleteQueueInput{QueueUrl: other.QueueUrl}) }()
	before := w.inventory()

	good := guestbook(t)
	h := w.run(good, deploy, runlog.ResultSucceeded)
	data, web := w.record(dataStack), w.record(webStack)
	w.live(data)
	w.live(web)
	if made := len(data.Resources) + len(web.Resources); h.Counts.Created != made {
		t.Errorf("it has created %d of %d resources", h.Counts.Created, made)
	}
	w.unlocked(dataStack, webStack)

	if h := w.run(good, deploy, runlog.ResultSucceeded); !nothing(h.Counts) {
		t.Errorf("the same again is not without changes: %+v", h.Counts)
	}

	changed := guestbook(t, "message=Hello", "visibility=90")
	if h := w.run(changed, deploy, runlog.ResultSucceeded); h.Counts.Updated != 2 || h.Counts.Created+h.Counts.Replaced+h.Counts.Deleted != 0 {
		t.Errorf("the change of a message and a timeout: %+v", h.Counts)
	}
	web = w.record(webStack)
	w.live(web)
	found := false
	for _, r := range web.Resources {
		if r.ResourceType == "AWS::Lambda::Function" {
			found = found || w.describe(r)["MESSAGE"].live == "Hello"
		}
	}
	if !found {
		t.Error("the function does not say Hello")
	}

	lived := w.inventory()
	bad := guestbook(t, "message=Hi", "visibility=120", "route=/notes", "archive=true", "queue="+taken)
	h = w.run(bad, run.Submission{Command: runlog.CommandDeploy, Options: run.Options{ForceStatefulRecreation: true}}, runlog.ResultFailed)
	failed := w.stackRun(h.RunID, webStack)
	if failed.Failure == nil || !strings.HasPrefix(failed.Failure.LogicalID, "Inbox") {
		t.Errorf("the queue whose name is taken has not failed: %+v", failed.Failure)
	}
	after := w.record(webStack)
	if d := gocmp.Diff(web, after); d != "" {
		t.Errorf("the record after the rollback (-before +after):\n%s", d)
	}
	w.live(after)
	if d := difference(lived, w.inventory()); len(d) > 0 {
		t.Errorf("the rollback leaves (-before +after):\n%s", strings.Join(d, "\n"))
	}
	w.unlocked(dataStack, webStack)

	h = w.run(changed, run.Submission{Command: runlog.CommandDestroy}, runlog.ResultSucceeded)
	if w.record(dataStack) != nil || w.record(webStack) != nil {
		t.Error("records are left")
	}
	if d := difference(before, w.inventory()); len(d) > 0 {
		t.Errorf("the destroy leaves (-before +after):\n%s", strings.Join(d, "\n"))
	}
	w.unlocked(dataStack, webStack)
	if got, err := queues.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: &taken}); err != nil || aws.ToString(got.QueueUrl) != aws.ToString(other.QueueUrl) {
		t.Errorf("the queue of somebody else: %v", err)
	}
	for _, i := range w.book().Invocations {
		if i.ErrorType != "" {
			t.Logf("an invocation of %s ended with %s", i.Function, i.ErrorType)
		}
	}
}
