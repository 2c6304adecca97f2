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
	taken := "inbox-" + randomHex(4)
	queues := sqs.NewFromConfig(w.cfg)
	other, err := queues.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &taken, Attributes: map[string]string{"VisibilityTimeout": "33"}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = queues.DeleteQueue(t.Context(), &sqs.DeleteQueueInput{QueueUrl: other.QueueUrl}) }()
	before := w.inventory()

	c := w.guestbook(runlog.ResultSucceeded, "deploy").counts()
	data, web := w.record(dataStack), w.record(webStack)
	w.live(data)
	w.live(web)
	if made := len(data.Resources) + len(web.Resources); c.Created != made {
		t.Errorf("it has created %d of %d resources", c.Created, made)
	}
	w.unlocked(dataStack, webStack)

	if c := w.guestbook(runlog.ResultSucceeded, "deploy").counts(); !nothing(c) || c.Unchanged != len(data.Resources)+len(web.Resources) {
		t.Errorf("the same again is not without changes: %+v", c)
	}

	changed := []string{"-c", "message=Hello", "-c", "visibility=90"}
	if c := w.guestbook(runlog.ResultSucceeded, "deploy", changed...).counts(); c.Updated != 2 || c.Created+c.Replaced+c.Deleted != 0 {
		t.Errorf("the change of a message and a timeout: %+v", c)
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
	failed := w.guestbook(runlog.ResultFailed, "deploy", "--force-stateful-recreation", "-c", "message=Hi", "-c", "visibility=120",
		"-c", "route=/notes", "-c", "archive=true", "-c", "queue="+taken)
	blamed := false
	for _, r := range failed.Runs {
		blamed = blamed || r.Stack == webStack && r.Result == runlog.ResultFailed && r.Error != nil && strings.HasPrefix(r.Error.LogicalID, "Inbox")
	}
	if !blamed {
		t.Errorf("the queue whose name is taken is not what has failed: %+v", failed.Runs)
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

	w.guestbook(runlog.ResultSucceeded, "destroy", changed...)
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
	w.heldAgainstPolicies()
	for _, part := range []string{"planner", "provisioner", "publisher"} {
		if !called(part) {
			t.Errorf("nothing is known of what the %s has called", part)
		}
	}
	for _, i := range w.book().Invocations {
		if i.ErrorType != "" {
			t.Logf("an invocation of %s ended with %s", i.Function, i.ErrorType)
		}
	}
}
