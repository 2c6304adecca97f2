package local

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/objectstore"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// smallApp is a stack of three resources.
func smallApp(t *testing.T, stack string) *assembly.Assembly {
	return writeApp(t, map[string]object{stack: {"Resources": object{
		"Topic": resource("AWS::SNS::Topic", object{}),
		"Queue": resource("AWS::SQS::Queue", object{"Tags": []any{object{"Key": "topic", "Value": ref("Topic")}}}),
		"Name":  resource("AWS::SSM::Parameter", object{"Type": "String", "Value": att("Queue", "QueueName")}),
	}}}, nil)
}

// contender is one of two deployers: a plane of its own on the shared directory.
type contender struct {
	name  string
	plane *Plane
	calls faults
	h     runlog.Header
	err   error
}

func TestTwoDeploysOfOneStackExcludeEachOther(t *testing.T) {
	const rounds = 20
	asm := smallApp(t, "Shared")
	wins := map[string]int{}
	for round := range rounds {
		dir := t.TempDir()
		// Whoever gets to a provider waits there until the other one has its answer.
		release := make(chan struct{})
		contenders := []*contender{{name: "alice"}, {name: "bob"}}
		for _, c := range contenders {
			count := c.calls.decorator()
			c.plane = openPlane(t, Options{Dir: dir, WrapProvider: func(p provider.Provider) provider.Provider {
				return through(func(_ string, _ provider.Request, call func() (provider.Progress, error)) (provider.Progress, error) {
					<-release
					return call()
				})(count(p))
			}})
		}
		var start, all sync.WaitGroup
		start.Add(1)
		answers := make(chan *contender, len(contenders))
		for _, c := range contenders {
			offset := time.Duration(rand.IntN(15_000)) * time.Microsecond
			all.Go(func() {
				start.Wait()
				time.Sleep(offset) // the offsets are what is varied here
				c.h, c.err = deployAs(c.plane, asm, c.name)
				answers <- c
			})
		}
		start.Done()
		loser := <-answers
		close(release)
		winner := <-answers
		all.Wait()
		if loser.err != nil || winner.err != nil {
			t.Fatalf("round %d: %v, %v", round, loser.err, winner.err)
		}
		wins[winner.name]++
		if winner.h.Result != runlog.ResultSucceeded || winner.h.Counts.Created != 3 {
			t.Errorf("round %d: the one that runs is %s with %+v: %s", round, winner.h.Result, winner.h.Counts, story(t, winner.plane, winner.h))
		}
		refusedByLock(t, loser.h, winner.name+"@host", "until 20")
		if loser.h.Counts != (runlog.Counts{}) {
			t.Errorf("round %d: the refused run counts %+v", round, loser.h.Counts)
		}
		if n := len(loser.calls.calls); n != 0 {
			t.Errorf("round %d: the refused run has called providers: %v", round, loser.calls.calls)
		}
		created := 0
		for what, n := range sandboxWork(t, dir) {
			if strings.HasPrefix(what, "CREATE ") {
				created += n
			}
		}
		if created != 3 {
			t.Errorf("round %d: the sandbox has created %d resources, want 3", round, created)
		}
		sound(t, winner.plane, asm, fmt.Sprintf("round %d", round))
		unchanged(t, loser.plane, asm, fmt.Sprintf("round %d, the loser once more", round))
	}
	t.Logf("%d rounds, won by %v", rounds, wins)
}

// deployAs deploys under a name.
func deployAs(p *Plane, asm *assembly.Assembly, name string) (runlog.Header, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	id, err := p.Submit(ctx, asm, asm.Stacks, run.Submission{Command: runlog.CommandDeploy, Caller: name + "@host"})
	if err != nil {
		return runlog.Header{}, err
	}
	return p.Wait(ctx, id)
}

// refusedByLock checks that a run was refused for a lock, and what it says of it.
func refusedByLock(t *testing.T, h runlog.Header, says ...string) {
	t.Helper()
	if h.Result != runlog.ResultFailed || h.Status != runlog.StatusClosed || h.Failure == nil {
		t.Errorf("the run is %s %s with %+v, want it refused", h.Status, h.Result, h.Failure)
		return
	}
	text := h.Failure.Summary + ": " + h.Failure.Detail
	for _, want := range append(says, "is locked", "force-unlock") {
		if !strings.Contains(text, want) {
			t.Errorf("the refusal does not say %q: %s", want, text)
		}
	}
}

func TestTwoProcessesExcludeEachOther(t *testing.T) {
	asm := smallApp(t, "Shared")
	dir := t.TempDir()
	if err := openAndClose(dir); err != nil {
		t.Fatal(err)
	}
	gate := filepath.Join(dir, "gate")
	type outcome struct {
		out    bytes.Buffer
		err    error
		result childResult
	}
	answers := make(chan *outcome, 2)
	for range 2 {
		cmd := childSpec{Dir: dir, Assembly: asm.Dir, Command: runlog.CommandDeploy, Gate: gate, Start: time.Now().Add(300 * time.Millisecond)}.command(t)
		o := &outcome{}
		cmd.Stdout = &o.out
		cmd.Stderr = os.Stderr
		go func(cmd *exec.Cmd) {
			o.err = cmd.Run()
			answers <- o
		}(cmd)
	}
	loser := <-answers
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	winner := <-answers
	for _, o := range []*outcome{loser, winner} {
		if o.err != nil {
			t.Fatal(o.err)
		}
		if err := json.Unmarshal(o.out.Bytes(), &o.result); err != nil || o.result.Error != "" {
			t.Fatalf("a child says %q: %v", o.out.String(), err)
		}
	}
	if h := winner.result.Header; h.Result != runlog.ResultSucceeded || h.Counts.Created != 3 {
		t.Errorf("the one that runs is %s with %+v", h.Result, h.Counts)
	}
	refusedByLock(t, loser.result.Header, "child@host", "until 20")
	p := openPlane(t, Options{Dir: dir})
	sound(t, p, asm, "after both")
	unchanged(t, p, asm, "third process")
}

func openAndClose(dir string) error {
	p, err := Open(context.Background(), Options{Dir: dir})
	if err != nil {
		return err
	}
	return p.Close()
}

func TestDifferentStacksDeployAtOnce(t *testing.T) {
	const rounds = 5
	apps := []*assembly.Assembly{smallApp(t, "One"), smallApp(t, "Two"), smallApp(t, "Three")}
	for round := range rounds {
		dir := t.TempDir()
		var all sync.WaitGroup
		contenders := make([]*contender, len(apps))
		for i, asm := range apps {
			c := &contender{name: fmt.Sprint(i), plane: openPlane(t, Options{Dir: dir})}
			contenders[i] = c
			all.Go(func() { c.h, c.err = deployAs(c.plane, asm, c.name) })
		}
		all.Wait()
		for i, c := range contenders {
			if c.err != nil {
				t.Fatal(c.err)
			}
			if c.h.Result != runlog.ResultSucceeded || c.h.Counts.Created != 3 {
				t.Errorf("round %d: %s", round, story(t, c.plane, c.h))
			}
			sound(t, c.plane, apps[i], fmt.Sprintf("round %d", round))
		}
	}
}

func TestALockOfAnotherToolRefusesExpiredOrNot(t *testing.T) {
	now := time.Now()
	for name, lock := range map[string]struct {
		body string
		says []string
	}{
		"standing": {
			fmt.Sprintf(`{"owner":"carol@laptop:4711","timestamp":%d,"expiresAt":%d,"operation":"deploy"}`, now.UnixMilli(), now.Add(20*time.Minute).UnixMilli()),
			[]string{"carol@laptop:4711", "deploy", "until 20"},
		},
		"expired": {
			fmt.Sprintf(`{"owner":"carol@laptop:4711","timestamp":%d,"expiresAt":%d,"operation":"deploy"}`, now.Add(-2*time.Hour).UnixMilli(), now.Add(-time.Hour).UnixMilli()),
			[]string{"carol@laptop:4711", "expired"},
		},
		"unreadable": {`not a lock`, []string{"unreadable"}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			p := openPlane(t, Options{Dir: t.TempDir()})
			asm := smallApp(t, "Shared")
			key := p.States().LockKey("Shared", p.region)
			for _, command := range []runlog.Command{runlog.CommandDeploy, runlog.CommandDestroy} {
				etag, err := p.engine.Objects.Put(ctx, key, []byte(lock.body), objectstore.Condition{})
				if err != nil {
					t.Fatal(err)
				}
				before := worldOf(t, p, "Shared")
				h := submit(t, p, asm, run.Submission{Command: command})
				refusedByLock(t, h, lock.says...)
				if after := worldOf(t, p, "Shared"); len(after.Live) != len(before.Live) || (after.Record == nil) != (before.Record == nil) {
					t.Errorf("a refused %s has changed something", command)
				}
				if obj, err := p.engine.Objects.Get(ctx, key); err != nil || obj.ETag != etag {
					t.Errorf("the lock is not as it was: %v", err)
				}
				if _, err := p.States().ForceUnlock(ctx, "Shared", p.region); err != nil {
					t.Fatal(err)
				}
				if h := submit(t, p, asm, run.Submission{Command: runlog.CommandDeploy}); h.Result != runlog.ResultSucceeded {
					t.Fatalf("after the unlock: %s", story(t, p, h))
				}
			}
			sound(t, p, asm, "after the unlock")
		})
	}
}

// TestALockThatIsForcedAwayStopsItsRun: a run whose lock was removed and taken by another one stops before it saves
// anything, and what it has made is not lost.
func TestALockThatIsForcedAwayStopsItsRun(t *testing.T) {
	ctx := context.Background()
	var p *Plane
	var once sync.Once
	const stranger = `{"owner":"carol@laptop:4711","timestamp":1,"expiresAt":2,"operation":"deploy"}`
	p = openPlane(t, Options{Dir: t.TempDir(), WrapProvider: through(func(_ string, _ provider.Request, call func() (provider.Progress, error)) (provider.Progress, error) {
		once.Do(func() {
			if _, err := p.engine.Objects.Put(ctx, p.States().LockKey("Shared", p.region), []byte(stranger), objectstore.Condition{}); err != nil {
				t.Error(err)
			}
		})
		return call()
	})})
	asm := smallApp(t, "Shared")
	h := submit(t, p, asm, run.Submission{Command: runlog.CommandDeploy})
	if h.Result != runlog.ResultFailed {
		t.Errorf("the run is %s", h.Result)
	}
	lock, err := p.States().ReadLock(ctx, "Shared", p.region)
	if err != nil || lock.Owner != "carol@laptop:4711" {
		t.Errorf("the other's lock is %+v, %v", lock, err)
	}
	if _, err := p.States().ForceUnlock(ctx, "Shared", p.region); err != nil {
		t.Fatal(err)
	}
	if h := submit(t, p, asm, run.Submission{Command: runlog.CommandDeploy}); h.Result != runlog.ResultSucceeded {
		t.Fatalf("the next deploy: %s", story(t, p, h))
	}
	if d := liveDiffers(t, p); d != "" {
		t.Error(d)
	}
	sound(t, p, asm, "the next deploy")
}
