//go:build emulators

package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/direct"
	"github.com/slipway-cdk/slipway/pkg/emulators"
	"github.com/slipway-cdk/slipway/pkg/objectstore/s3"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/statebucket"
	"github.com/slipway-cdk/slipway/pkg/synth"
)

// The variables by which the test has another process deploy, which it then kills.
const (
	doomedAssembly = "GUESTBOOK_DOOMED_ASSEMBLY"
	doomedBucket   = "GUESTBOOK_DOOMED_BUCKET"
	doomedDir      = "GUESTBOOK_DOOMED_DIR"
)

// TestDirect deploys with --direct's plane against an emulator.
func TestDirect(t *testing.T) {
	cfg := emulators.Config(t)
	account, err := direct.Account(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	client := s3.NewClient(cfg, "")
	name := fmt.Sprintf("slipway-direct-%d", time.Now().UnixNano())
	for _, b := range []string{name, "cdk-hnb659fds-assets-" + account + "-us-east-1"} {
		if _, err := client.CreateBucket(t.Context(), &sdk.CreateBucketInput{Bucket: &b}); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	first, second := forAccount(t, account), forAccount(t, account, "message=Hello", "visibility=90", "archive=true")

	p := openDirect(t, name, dir, nil)
	if c := directly(t, p, first, runlog.CommandDeploy); c.Created != 17 {
		t.Errorf("the first deploy has done %+v", c)
	}
	if c := directly(t, p, first, runlog.CommandDeploy); c.Unchanged != 17 {
		t.Errorf("the second deploy is not without changes: %+v", c)
	}
	// Another process deploys the change and is killed in the middle of it.
	doomed := exec.Command(os.Args[0], "-test.run", "^TestADoomedDeploy$")
	doomed.Env = append(os.Environ(), doomedAssembly+"="+second.Dir, doomedBucket+"="+name, doomedDir+"="+dir)
	out, err := doomed.StdoutPipe()
	if err == nil {
		err = doomed.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil { // it says a line when it is in the middle of a call
		t.Fatal(err)
	}
	if err := doomed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = doomed.Wait() // it was killed

	// The dead one may have made the new queue.
	if c := directly(t, p, second, runlog.CommandDeploy); c.Created > 1 || c.Updated < 1 || c.Failed+c.Replaced+c.Deleted != 0 {
		t.Errorf("the deploy after the dead one has done %+v", c)
	}
	if c := directly(t, p, second, runlog.CommandDeploy); c.Unchanged != 18 {
		t.Errorf("the last deploy is not without changes: %+v", c)
	}
	open, err := p.Log().ListRuns(t.Context(), runlog.Filter{Open: true})
	if err != nil || len(open) != 0 {
		t.Errorf("%d runs are open, %v", len(open), err)
	}
	if c := directly(t, p, second, runlog.CommandDestroy); c.Deleted != 18 {
		t.Errorf("the destroy has done %+v", c)
	}
	if refs, err := p.States().List(t.Context()); err != nil || len(refs) != 0 {
		t.Errorf("there are still records: %v, %v", refs, err)
	}
}

// TestADoomedDeploy is the process that is killed: its calls for queues never return.
func TestADoomedDeploy(t *testing.T) {
	if os.Getenv(doomedAssembly) == "" {
		return // nobody has asked for it
	}
	asm, err := assembly.Read(os.Getenv(doomedAssembly))
	if err != nil {
		t.Fatal(err)
	}
	p := openDirect(t, os.Getenv(doomedBucket), os.Getenv(doomedDir), func(next provider.Provider) provider.Provider {
		return stuck{next}
	})
	directly(t, p, asm, runlog.CommandDeploy)
}

// stuck says a line and never returns from an update.
type stuck struct{ provider.Provider }

func (stuck) Update(ctx context.Context, _ provider.Request) (provider.Progress, error) {
	fmt.Println("stuck")
	<-ctx.Done()
	return provider.Progress{}, ctx.Err()
}

func openDirect(t *testing.T, bucket, dir string, wrap func(provider.Provider) provider.Provider) *direct.Plane {
	t.Helper()
	p, err := direct.Open(t.Context(), direct.Options{
		Config: emulators.Config(t), Bucket: statebucket.Choice{Bucket: bucket, From: "the test"}, Dir: dir, WrapProvider: wrap,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// directly carries out a command and returns what it has done to both stacks.
func directly(t *testing.T, p *direct.Plane, asm *assembly.Assembly, command runlog.Command) runlog.Counts {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	id, err := p.Submit(ctx, asm, asm.Stacks, run.Submission{Command: command, Caller: "test@host"})
	if err != nil {
		t.Fatal(err)
	}
	h, err := p.Wait(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	if h.Result != runlog.ResultSucceeded {
		t.Fatalf("%s has ended as %s: %+v %v", command, h.Result, h.Failure, h.Diagnostics)
	}
	return h.Counts
}

// forAccount is the app for the emulator's account.
func forAccount(t *testing.T, account string, context ...string) *assembly.Assembly {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	values, err := synth.ParseContext(context)
	if err != nil {
		t.Fatal(err)
	}
	asm, err := synth.Run(t.Context(), synth.Options{
		App: `"` + self + `"`, WorkDir: t.TempDir(), Account: account, Region: "us-east-1",
		Context: values, Env: append(os.Environ(), "GUESTBOOK_TEST_APP=1"),
	})
	if err != nil {
		t.Fatal(err)
	}
	return asm
}
