//go:build emulators

package endtoend

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// slipway runs the command line against the emulator, for a control plane, as a user of it does: what it knows of AWS it
// has from the environment. It returns what was printed, and the exit code.
func slipway(t *testing.T, cfg aws.Config, plane string, args ...string) (out, told []byte, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, need(t, programVariable), args...)
	home := t.TempDir()
	var stdout, stderr bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = home, &stdout, &stderr
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "SLIPWAY_PLANE=" + plane, "USER=me",
		"AWS_ENDPOINT_URL=" + aws.ToString(cfg.BaseEndpoint), "AWS_REGION=" + region, "AWS_EC2_METADATA_DISABLED=true",
		"AWS_ACCESS_KEY_ID=testing", "AWS_SECRET_ACCESS_KEY=testing",
	}
	err := cmd.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		t.Fatalf("slipway %s: %v", args[0], err)
	}
	return stdout.Bytes(), stderr.Bytes(), cmd.ProcessState.ExitCode()
}

// result is what a command prints with --json that changes stacks.
type result struct {
	Result runlog.Result
	Runs   []struct {
		RunID, Stack string
		Result       runlog.Result
		Counts       runlog.Counts
		Error        *struct{ Summary, LogicalID string }
	}
}

// counts are those of all stacks together.
func (r result) counts() (sum runlog.Counts) {
	for _, one := range r.Runs {
		c := one.Counts
		sum.Created, sum.Updated, sum.Replaced, sum.Deleted = sum.Created+c.Created, sum.Updated+c.Updated, sum.Replaced+c.Replaced, sum.Deleted+c.Deleted
		sum.Failed, sum.Skipped, sum.Unchanged = sum.Failed+c.Failed, sum.Skipped+c.Skipped, sum.Unchanged+c.Unchanged
	}
	return sum
}

// changes runs a command that changes stacks, with --yes and --json. It must end as wanted, with the exit code for it.
func changes(t *testing.T, cfg aws.Config, plane string, want runlog.Result, args ...string) (result, error) {
	t.Helper()
	args = append(slices.Clone(args), "--yes", "--json")
	out, told, code := slipway(t, cfg, plane, args...)
	var r result
	if err := json.Unmarshal(out, &r); err != nil {
		return r, fmt.Errorf("slipway %s has ended with %d and printed %q: %w\n%s", args[0], code, out, err, told)
	}
	if r.Result != want || (code == 0) != (want == runlog.ResultSucceeded) {
		return r, fmt.Errorf("slipway %s ended with %d as %s, want %s\n%s\n%s", args[0], code, r.Result, want, out, told)
	}
	return r, nil
}

// guestbook runs a command for the example's stacks.
func (w *world) guestbook(want runlog.Result, command string, more ...string) result {
	w.Helper()
	r, err := changes(w.T, w.cfg, w.prefix, want, append([]string{command, "--all", "--app", `"` + need(w.T, guestbookVariable) + `"`}, more...)...)
	if err != nil {
		for _, one := range r.Runs {
			tell(w.T, w.plane.Engine.Log, one.RunID)
		}
		w.Fatal(err)
	}
	return r
}
