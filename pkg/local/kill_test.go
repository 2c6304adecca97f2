package local

import (
	"bytes"
	"database/sql"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/slipway-cdk/slipway/pkg/assembly"
)

const (
	// killsVariable and killSeedVariable choose how many processes are killed, and at which moments.
	killsVariable    = "SLIPWAY_KILLS"
	killSeedVariable = "SLIPWAY_KILL_SEED"
	defaultKills     = 10
	// killSpeed makes the operations of the app take a tenth of a second and more: most of a run passes while some are
	// in flight.
	killSpeed = "10"
)

// victim is a `slipway deploy --local` that is to be killed.
type victim struct {
	binary, dir string
	asm         *assembly.Assembly
}

// command is the deploy as a process of its own.
func (v victim) command(speed string) *exec.Cmd {
	cmd := exec.Command(v.binary, "deploy", "--local", "--local-dir", v.dir, "--app", v.asm.Dir, "--all", "--yes", "--sandbox-speed", speed,
		"--force-stateful-recreation", "--region", "us-east-1")
	cmd.Env = append(os.Environ(), "HOME="+filepath.Dir(v.binary))
	return cmd
}

// progress counts the steps that the database of a plane shows: every write to the journal, every event.
func progress(t *testing.T, dir string) int {
	t.Helper()
	n := 0
	query(t, dir, `SELECT (SELECT coalesce(sum(version), 0) FROM ops) + (SELECT count(*) FROM events)`, &n)
	return n
}

// openIntents counts the operations of resources that are begun and have not ended.
func openIntents(t *testing.T, dir string) int {
	t.Helper()
	n := 0
	query(t, dir, `SELECT count(*) FROM ops WHERE json_extract(CAST(body AS TEXT), '$.kind') = 'resource'
		AND json_extract(CAST(body AS TEXT), '$.status') IN ('INTENT', 'RUNNING')`, &n)
	return n
}

// query reads one number of a plane's database, which other processes may have open; 0 as long as there is none.
func query(t *testing.T, dir, text string, into *int) {
	t.Helper()
	file := filepath.Join(dir, "slipway.db")
	if _, err := os.Stat(file); err != nil {
		return
	}
	db, err := sql.Open("sqlite", "file:"+file+"?mode=ro&_pragma=busy_timeout(20000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // nothing was written
	if err := db.QueryRow(text).Scan(into); err != nil && !strings.Contains(err.Error(), "no such table") {
		t.Fatal(err)
	}
}

// kill starts the deploy and kills it a moment after it has come to a step. It reports false where the process was
// faster and has ended.
func (v victim) kill(t *testing.T, step int, moment time.Duration) bool {
	t.Helper()
	cmd := v.command(killSpeed)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var failure error
	ended := make(chan struct{})
	go func() {
		failure = cmd.Wait()
		close(ended)
	}()
	for tick := time.NewTicker(5 * time.Millisecond); ; {
		select {
		case <-ended:
			if failure != nil {
				t.Fatalf("the deploy has failed by itself: %v\n%s", failure, out.String())
			}
			return false
		case <-tick.C:
		}
		if progress(t, v.dir) >= step {
			break
		}
	}
	select {
	case <-ended:
		return false
	case <-time.After(moment):
	}
	if err := cmd.Process.Kill(); err != nil {
		<-ended
		return false
	}
	<-ended
	return !cmd.ProcessState.Exited()
}

// TestADeployThatIsKilledAtAnyMomentIsFinishedByTheNext kills the command as people run it, with SIGKILL, while a slow
// sandbox works on its requests, and deploys again.
func TestADeployThatIsKilledAtAnyMomentIsFinishedByTheNext(t *testing.T) {
	kills, seed := fromEnvironment(t, killsVariable, defaultKills), fromEnvironment(t, killSeedVariable, int(time.Now().UnixNano()))
	chance := rand.New(rand.NewPCG(uint64(seed), 1))
	t.Logf("%s=%d %s=%d", killsVariable, kills, killSeedVariable, seed)

	binary := filepath.Join(t.TempDir(), "slipway")
	build := exec.Command("go", "build", "-o", binary, "github.com/slipway-cdk/slipway/cli")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the command: %v\n%s", err, out)
	}
	phases := crashPhases(t)[:2] // the first deploy, and a change
	last := map[string]int{}
	for _, ph := range phases {
		v := victim{binary: binary, dir: t.TempDir(), asm: ph.asm}
		copyPlane(t, ph.base, v.dir)
		before := progress(t, v.dir)
		if out, err := v.command("0").CombinedOutput(); err != nil {
			t.Fatalf("%s without a kill: %v\n%s", ph.name, err, out)
		}
		last[ph.name] = progress(t, v.dir) - before
	}

	var table strings.Builder
	open, converged := 0, 0
	for n := 1; n <= kills; {
		ph := phases[chance.IntN(len(phases))]
		step, moment := 1+chance.IntN(last[ph.name]), time.Duration(chance.IntN(100))*time.Millisecond
		v := victim{binary: binary, dir: t.TempDir(), asm: ph.asm}
		copyPlane(t, ph.base, v.dir)
		began := progress(t, v.dir)
		if !v.kill(t, began+step, moment) {
			continue // it was over before the moment had come
		}
		intents := openIntents(t, v.dir)
		if intents > 0 {
			open++
		}
		ok := t.Run(fmt.Sprintf("%d %s at step %d", n, ph.name, step), func(t *testing.T) { v.converges(t, ph) })
		if ok {
			converged++
		}
		fmt.Fprintf(&table, "\n%4d  %-12s step %3d of %3d + %3d ms  %2d open  %v", n, ph.name, step, last[ph.name], moment.Milliseconds(), intents, ok)
		n++
	}
	t.Logf("killed at %d moments, %d of them with an intent open, %d converged (%s=%d):%s", kills, open, converged, killSeedVariable, seed, table.String())
	if converged != kills {
		t.Errorf("%d of %d converged", converged, kills)
	}
	if open*5 < kills*4 {
		t.Errorf("an intent was open at %d of %d moments, four in five are wanted", open, kills)
	}
}

// converges deploys again after the kill, and checks that both deploys together have done what one would have.
func (v victim) converges(t *testing.T, ph *crashPhase) {
	if out, err := v.command("0").CombinedOutput(); err != nil {
		t.Fatalf("the next deploy: %v\n%s", err, out)
	}
	want, got := ph.done, minus(sandboxWork(t, v.dir), sandboxWork(t, ph.base))
	if !maps.Equal(got, want) {
		t.Errorf("both deploys together have done something else than one without a kill:\n got %v\nwant %v", got, want)
	}
	p := openPlane(t, Options{Dir: v.dir})
	sound(t, p, v.asm, "after the next deploy")
	for _, s := range v.asm.Stacks {
		if lock, err := p.States().ReadLock(t.Context(), s.Name, p.region); err == nil {
			t.Errorf("stack %s is locked by %s", s.Name, lock.Owner)
		}
	}
	unchanged(t, p, v.asm, "third deploy")
}

// fromEnvironment reads a number from a variable.
func fromEnvironment(t *testing.T, name string, otherwise int) int {
	t.Helper()
	v := os.Getenv(name)
	if v == "" {
		return otherwise
	}
	n, err := strconv.Atoi(v)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}
