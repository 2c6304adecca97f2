package trigger

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"

	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/run"
)

const bucket = "slipway-uploads-123456789012-eu-west-1"

// fakes are what the function calls.
type fakes struct {
	modified time.Time // zero: the object is gone
	heads    []s3.HeadObjectInput
	err      error
	started  map[string]string // input by name
	calls    int
}

func (f *fakes) HeadObject(_ context.Context, in *s3.HeadObjectInput, _ ...func(*s3.Options)) (*s3.HeadObjectOutput, error) {
	f.heads = append(f.heads, *in)
	if f.modified.IsZero() {
		return nil, errors.New("NotFound")
	}
	return &s3.HeadObjectOutput{LastModified: &f.modified}, nil
}

func (f *fakes) StartExecution(_ context.Context, in *sfn.StartExecutionInput, _ ...func(*sfn.Options)) (*sfn.StartExecutionOutput, error) {
	f.calls++
	if f.err != nil {
		return nil, f.err
	}
	if f.started == nil {
		f.started = map[string]string{}
	}
	if old, there := f.started[*in.Name]; there && old != *in.Input {
		return nil, &types.ExecutionAlreadyExists{}
	}
	f.started[*in.Name] = *in.Input
	return &sfn.StartExecutionOutput{}, nil
}

func newTrigger(f *fakes) *Trigger {
	return &Trigger{
		Objects: f, Executions: f, Bucket: bucket, Account: "123456789012", Machine: "arn:aws:states:eu-west-1:123456789012:stateMachine:slipway-run",
		Clock: clock.NewFake(time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)), Logger: slog.New(slog.DiscardHandler),
	}
}

func sample(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "events", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestOneRunForOneVersionHoweverOftenItIsTold(t *testing.T) {
	f := &fakes{modified: time.Date(2026, 11, 29, 21, 31, 20, 0, time.UTC)}
	tr := newTrigger(f)
	body := sample(t, "trigger-object-created.json")
	again := strings.NewReplacer("2d4eba74", "00000000", "21:31:24Z", "21:33:01Z").Replace(string(body))
	for _, payload := range []string{string(body), again, string(body)} {
		started, err := tr.Handle(context.Background(), []byte(payload))
		if err != nil || !strings.HasPrefix(started.RunID, "20261129T213120000Z-") {
			t.Fatalf("%+v, %v", started, err)
		}
	}
	if len(f.started) != 1 || f.calls != 3 {
		t.Fatalf("%d executions: %v", len(f.started), f.started)
	}
	for name, input := range f.started {
		var x run.UploadExecution
		if err := json.Unmarshal([]byte(input), &x); err != nil {
			t.Fatal(err)
		}
		if x.Name() != name || len(name) > 80 || !run.ValidRunID(x.RunID) || x.Upload != (run.UploadRef{Key: "inbox/web/guestbook.zip", Version: "IYV3p45BT0ac8hjHg1houSdS1a.Mro8e"}) {
			t.Errorf("execution %s begins with %s", name, input)
		}
	}
	if h := f.heads[0]; aws.ToString(h.ExpectedBucketOwner) != "123456789012" || aws.ToString(h.VersionId) != "IYV3p45BT0ac8hjHg1houSdS1a.Mro8e" {
		t.Errorf("it looked at %+v", h)
	}
	// Another version of the same object is another run.
	if _, err := tr.Handle(context.Background(), []byte(strings.ReplaceAll(string(body), "IYV3p45", "ABCDEFG"))); err != nil || len(f.started) != 2 {
		t.Errorf("%d executions, %v", len(f.started), err)
	}
}

func TestAnObjectThatIsGoneStillStartsARunThatSaysSo(t *testing.T) {
	f := &fakes{}
	started, err := newTrigger(f).Handle(context.Background(), sample(t, "trigger-object-created.json"))
	if err != nil || !strings.HasPrefix(started.RunID, "20261129T213124000Z-") {
		t.Errorf("%+v, %v", started, err)
	}
}

func TestBadEventsStartARunThatFails(t *testing.T) {
	good := string(sample(t, "trigger-object-created.json"))
	for name, payload := range map[string]string{
		"no JSON":                "hello",
		"nothing in it":          "{}",
		"another bucket":         strings.ReplaceAll(good, bucket, "somebody-elses"),
		"not in an inbox":        string(sample(t, "trigger-not-in-an-inbox.json")),
		"a caller's submission":  strings.ReplaceAll(good, "inbox/web/guestbook.zip", "uploads/ann/submissions/x.json"),
		"a key that is no text":  strings.ReplaceAll(good, `"inbox/web/guestbook.zip"`, "7"),
		"an object without name": strings.ReplaceAll(good, "inbox/web/guestbook.zip", ""),
	} {
		t.Run(name, func(t *testing.T) {
			f := &fakes{modified: time.Now()}
			tr := newTrigger(f)
			for range 2 {
				if _, err := tr.Handle(context.Background(), []byte(payload)); err != nil {
					t.Fatal(err)
				}
			}
			if len(f.started) != 1 || len(f.heads) != 0 {
				t.Fatalf("%d executions, %d looks", len(f.started), len(f.heads))
			}
			for name, input := range f.started {
				var x run.UploadExecution
				if err := json.Unmarshal([]byte(input), &x); err != nil || x.Name() != name || !run.ValidRunID(x.RunID) {
					t.Errorf("%s: %s, %v", name, input, err)
				}
				if strings.HasPrefix(x.Upload.Key, inbox) || strings.HasPrefix(x.Upload.Key, "uploads/") {
					t.Errorf("it points to %q", x.Upload.Key)
				}
			}
		})
	}
}

func TestAFolderIsNoUpload(t *testing.T) {
	f := &fakes{modified: time.Now()}
	payload := strings.NewReplacer("guestbook.zip", "", "48231", "0").Replace(string(sample(t, "trigger-object-created.json")))
	if started, err := newTrigger(f).Handle(context.Background(), []byte(payload)); err != nil || started.Ignored == "" || f.calls != 0 {
		t.Errorf("%+v, %v", started, err)
	}
}

func TestAFailureOfTheServiceIsDeliveredAgain(t *testing.T) {
	f := &fakes{modified: time.Now(), err: errors.New("throttled")}
	if _, err := newTrigger(f).Handle(context.Background(), sample(t, "trigger-object-created.json")); err == nil {
		t.Error("it was lost")
	}
}

func TestNewReadsItsEnvironment(t *testing.T) {
	good := map[string]string{UploadsBucketVariable: "b", RunStateMachineVariable: "arn:aws:states:eu-west-1:123456789012:stateMachine:slipway-run"}
	tr, err := New(aws.Config{Region: "eu-west-1"}, func(k string) string { return good[k] }, slog.New(slog.DiscardHandler))
	if err != nil || tr.Account != "123456789012" || tr.Bucket != "b" {
		t.Errorf("%+v, %v", tr, err)
	}
	for _, missing := range []string{UploadsBucketVariable, RunStateMachineVariable} {
		if _, err := New(aws.Config{}, func(k string) string {
			if k == missing {
				return ""
			}
			return good[k]
		}, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), missing) {
			t.Errorf("%v", err)
		}
	}
}
