package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/slipway-cdk/slipway/cli/views"
	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/objectstore"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/state"
)

// reportingFake is a plane whose records are out of reach.
type reportingFake struct {
	*fakePlane
	outputs map[string]map[string]any
}

type outOfReach struct{ objectstore.Store }

func (outOfReach) Get(context.Context, string) (objectstore.Object, error) {
	return objectstore.Object{}, errors.New("out of reach")
}

func (outOfReach) List(context.Context, string) ([]objectstore.Info, error) {
	return nil, errors.New("out of reach")
}

func (f reportingFake) States() *state.Store { return &state.Store{Objects: outOfReach{}} }

func (f reportingFake) Outputs(_ context.Context, runID string) (map[string]any, error) {
	return f.outputs[runID], nil
}

func (f reportingFake) Link(runID string, command runlog.Command) string {
	return "https://console.example/" + string(command) + "/" + runID
}

func TestOutputsComeFromTheReportsOfAPlaneWhoseRecordsAreOutOfReach(t *testing.T) {
	plane := reportingFake{&fakePlane{}, map[string]map[string]any{"r1": {"Url": "https://x"}}}
	out, err := outputsOf(context.Background(), plane, runlog.Header{RunID: "r1", Command: runlog.CommandDeploy}, nil)
	if err != nil || out["Url"] != "https://x" {
		t.Errorf("%v, %v", out, err)
	}
}

func TestARollbackOfNamedStacksNeedsNoRecords(t *testing.T) {
	plane := reportingFake{&fakePlane{}, nil}
	stacks, err := journaled(context.Background(), plane, []string{"web", "api"}, "eu-west-1")
	if err != nil || len(stacks) != 2 || stacks[1].Name != "api" || stacks[1].Region != "eu-west-1" || stacks[1].Account == "" {
		t.Errorf("%+v, %v", stacks, err)
	}
	if _, err := journaled(context.Background(), plane, nil, ""); err == nil || !strings.Contains(err.Error(), "no stack was named") {
		t.Errorf("%v", err)
	}
}

// uploadingFake uploads before it submits.
type uploadingFake struct {
	*fakePlane
	watch func() (sent func(done, total int64), end func())
}

func (f *uploadingFake) WatchUploads(watch func() (func(done, total int64), func())) { f.watch = watch }

func (f *uploadingFake) Submit(ctx context.Context, asm *assembly.Assembly, stacks []*assembly.Stack, req run.Submission) (string, error) {
	sent, end := f.watch()
	sent(0, 40_000_000)
	sent(40_000_000, 40_000_000)
	end()
	return f.fakePlane.Submit(ctx, asm, stacks, req)
}

func TestAnUploadIsShownWhereverItIsMade(t *testing.T) {
	var out, errs bytes.Buffer
	env := &environment{
		streams: &views.Streams{Out: views.Stream{Writer: &out}, Err: views.Stream{Writer: &errs}, In: strings.NewReader("")},
		getenv:  func(string) string { return "" }, clock: clock.Real{},
		open: func(context.Context, globalFlags) (Plane, error) { return &uploadingFake{fakePlane: &fakePlane{}}, nil },
	}
	if code := execute(t.Context(), env, []string{"deploy", "--app", planeAssembly(t), "--parameters", "StateBucketName=b", "--dry-run", "--json"}); code != exitDone {
		t.Fatalf("exit code %d:\n%s%s", code, out.String(), errs.String())
	}
	if want := "Uploading 40 MB…\nUploading 40 MB: 100 % are there\n"; errs.String() != want {
		t.Errorf("standard error reads %q", errs.String())
	}
	if strings.Contains(out.String(), "Uploading") {
		t.Errorf("standard output reads %q", out.String())
	}
}

func TestRunsThatOnlyCancelAreNotListed(t *testing.T) {
	list := changes([]runlog.Header{{RunID: "1", Command: runlog.CommandCancel}, {RunID: "2", Command: runlog.CommandPlan}, {RunID: "3", Command: runlog.CommandDeploy}})
	if len(list) != 1 || list[0].RunID != "3" {
		t.Errorf("%+v", list)
	}
}

func TestWithoutRegionOrCredentialsThereIsNowhereToLook(t *testing.T) {
	failing := aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{}, errors.New("secret reasons")
	})
	for name, cfg := range map[string]aws.Config{
		"no region":          {Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")},
		"no credentials":     {Region: "eu-west-1"},
		"failed credentials": {Region: "eu-west-1", Credentials: failing},
	} {
		err := reachable(context.Background(), cfg)
		var list diag.Diagnostics
		if !errors.As(err, &list) {
			t.Fatalf("%s: %v", name, err)
		}
		for _, word := range []string{"bootstrap", "--direct", "--local"} {
			if !strings.Contains(list[0].Next, word) {
				t.Errorf("%s: the next step does not name %s: %s", name, word, list[0].Next)
			}
		}
	}
	ok := aws.Config{Region: "eu-west-1", Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")}
	if err := reachable(context.Background(), ok); err != nil {
		t.Error(err)
	}
}
