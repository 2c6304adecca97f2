//go:build emulators

package endtoend

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sfn"

	"github.com/slipway-cdk/slipway/pkg/admission"
	"github.com/slipway-cdk/slipway/pkg/assembly"
	install "github.com/slipway-cdk/slipway/pkg/bootstrap"
	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/controlplane"
	"github.com/slipway-cdk/slipway/pkg/emulators"
	"github.com/slipway-cdk/slipway/pkg/emulators/bridge"
	"github.com/slipway-cdk/slipway/pkg/iampolicy/calls"
	"github.com/slipway-cdk/slipway/pkg/objectstore"
	"github.com/slipway-cdk/slipway/pkg/remote"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/run/submit"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// The variables that run.sh sets for this suite.
const (
	// bridgeVariable is the bridge's address.
	bridgeVariable = "SLIPWAY_TEST_BRIDGE"
	// programVariable is the command line, built.
	programVariable = "SLIPWAY_TEST_PROGRAM"
	// planeVariable is the control plane's own assembly, with functions for this machine.
	planeVariable = "SLIPWAY_TEST_PLANE"
	// guestbookVariable is the guestbook's app, built.
	guestbookVariable = "SLIPWAY_TEST_GUESTBOOK"
	emulatorVariable  = "SLIPWAY_TEST_EMULATOR"
)

const (
	account = "000000000000" // of callers without one, in MiniStack
	region  = "us-east-1"
)

// patience is how long a run may take on a busy machine.
const patience = 8 * time.Minute

// world is a control plane on the emulator, as a caller of it sees it.
type world struct {
	*testing.T
	cfg        aws.Config
	descriptor controlplane.Descriptor
	// plane is the engine with all rights: what the tests look at records with.
	plane    *controlplane.Plane
	machines *sfn.Client
	// caller is the plane as its callers have it; without one requests are written directly.
	caller *remote.Plane
	prefix string
}

// name is the name of one of the control plane's parts.
func (w *world) name(part string) string { return w.prefix + "-" + part }

// policy lets every caller do everything, and one inbox deploy, under the execution role that bootstrap has made.
func policy(d controlplane.Descriptor, plane string) []byte {
	roles := `"roles":[{"arn":"arn:aws:iam::` + d.Account + `:role/` + install.RoleName(plane, d.Region) + `"}]`
	return []byte(`{"version":1,"rules":[
		{"principals":["*"],"stacks":["*"],"commands":["deploy","destroy","rollback","plan","cancel"],"options":["*"],` + roles + `},
		{"inboxes":["web"],"stacks":["*"],"commands":["deploy"],` + roles + `}]}`)
}

// deployed is the control plane of this process.
var deployed struct {
	once       sync.Once
	prefix     string
	descriptor controlplane.Descriptor
	err        error
}

// newWorld installs the control plane, once in a process.
func newWorld(t *testing.T) *world {
	t.Helper()
	if name := os.Getenv(emulatorVariable); name != "ministack" {
		t.Skipf("the emulator cannot do this: %s has no executor of functions without Docker", name)
	}
	cfg := emulators.Config(t)
	deployed.once.Do(func() {
		deployed.prefix = "t" + randomHex(4)
		deployed.descriptor, deployed.err = bootstrap(t, cfg, deployed.prefix)
	})
	if deployed.err != nil {
		t.Fatalf("installing the control plane: %v", deployed.err)
	}
	w := see(t, cfg, deployed.descriptor, deployed.prefix)
	_, err := w.plane.Engine.Objects.Put(t.Context(), admission.PolicyKey, policy(w.descriptor, w.prefix), objectstore.Condition{})
	if err != nil {
		t.Fatal(err)
	}
	made.mu.Lock()
	if made.policies == nil {
		made.policies, made.calls = w.policies(), map[string]calls.Recorded{}
	}
	made.mu.Unlock()
	t.Cleanup(w.heldAgainstPolicies)
	return w
}

// see is a control plane as the tests see it.
func see(t *testing.T, cfg aws.Config, d controlplane.Descriptor, prefix string) *world {
	t.Helper()
	values := map[string]string{
		controlplane.StateBucketVariable: d.StateBucket, controlplane.TableNameVariable: d.Table,
		controlplane.RunStateMachineVariable: d.StateMachine, controlplane.VaultKeyVariable: d.VaultKey,
	}
	env, err := controlplane.ReadEnvironment(func(name string) string { return values[name] })
	if err != nil {
		t.Fatal(err)
	}
	return &world{
		T: t, cfg: cfg, descriptor: d, plane: controlplane.New(cfg, env, nil), machines: sfn.NewFromConfig(cfg),
		caller: remote.Connect(cfg, d, "AIDACKCEVSQ6C2EXAMPLE"), prefix: prefix,
	}
}

func need(t *testing.T, variable string) string {
	t.Helper()
	v := os.Getenv(variable)
	if v == "" {
		t.Fatalf("%s is not set: run pkg/emulators/run.sh", variable)
	}
	return v
}

func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// submit uploads what is to be done and starts its execution, as a caller of the plane does, and returns its run.
func (w *world) submit(asm *assembly.Assembly, sub run.Submission) runlog.Header {
	w.Helper()
	ctx := w.Context()
	sub.Caller = "me@host"
	if w.caller != nil {
		id, err := w.caller.Submit(ctx, asm, asm.Stacks, sub)
		if err != nil {
			w.Fatal(err)
		}
		h, err := w.plane.Engine.Log.Header(ctx, id)
		if err != nil {
			w.Fatal(err)
		}
		return h
	}
	desk := submit.Desk{Engine: w.plane.Engine, Account: w.descriptor.Account, Region: region}
	req, err := desk.Prepare(ctx, asm, asm.Stacks, sub)
	if err != nil {
		w.Fatal(err)
	}
	h, err := w.plane.Engine.Submit(ctx, req)
	if err != nil {
		w.Fatal(err)
	}
	_, err = w.machines.StartExecution(ctx, &sfn.StartExecutionInput{
		StateMachineArn: &w.descriptor.StateMachine, Name: &h.Execution, Input: aws.String(`{"runId":"` + h.RunID + `"}`),
	})
	if err != nil {
		w.Fatal(err)
	}
	return h
}

// wait returns the header of a run once it is closed.
func (w *world) wait(runID string) runlog.Header {
	w.Helper()
	var h runlog.Header
	w.until("run "+runID+" is closed", func(ctx context.Context) (bool, error) {
		var err error
		h, err = w.plane.Engine.Log.Header(ctx, runID)
		return h.Status == runlog.StatusClosed, err
	})
	return h
}

// until asks until the answer is yes.
func (w *world) until(what string, ask func(context.Context) (bool, error)) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	for {
		ok, err := ask(ctx)
		if err != nil {
			w.Fatalf("waiting until %s: %v", what, err)
		}
		if ok {
			return
		}
		if err := (clock.Real{}).Sleep(ctx, 100*time.Millisecond); err != nil {
			w.Fatalf("waiting until %s: %v", what, err)
		}
	}
}

// run carries a command to its end, which must be as wanted.
func (w *world) run(asm *assembly.Assembly, sub run.Submission, want runlog.Result) runlog.Header {
	w.Helper()
	h := w.wait(w.submit(asm, sub).RunID)
	if h.Result != want {
		tell(w.T, w.plane.Engine.Log, h.RunID)
		w.Fatalf("%s ended as %s, want %s", sub.Command, h.Result, want)
	}
	return h
}

func (w *world) runs(root string) []runlog.Header {
	w.Helper()
	list, err := w.plane.Engine.Log.ListRuns(w.Context(), runlog.Filter{Root: root})
	if err != nil {
		w.Fatal(err)
	}
	return list
}

// tell logs what a run and its stacks' runs say.
func tell(t *testing.T, log runlog.Store, root string) {
	t.Helper()
	list, err := log.ListRuns(t.Context(), runlog.Filter{Root: root})
	if err != nil {
		t.Error(err)
	}
	for _, h := range list {
		t.Logf("run %s of %q: %s %s %+v %+v", h.RunID, h.Stack.Name, h.Status, h.Result, h.Counts, h.Failure)
		for _, d := range h.Diagnostics {
			t.Log("  ", d.Error())
		}
		events, err := log.Events(t.Context(), h.RunID, "")
		if err != nil {
			t.Error(err)
		}
		for _, ev := range events {
			if ev.Error != nil {
				t.Logf("   %s %s %s: %s %s", ev.LogicalID, ev.ResourceType, ev.Action, ev.Error.Code, ev.Error.Message)
			}
		}
	}
}

// book returns what the bridge has written down, and forget empties it.
func (w *world) book() bridge.Book {
	w.Helper()
	var b bridge.Book
	w.ask(http.MethodGet, "/bridge/book", &b)
	return b
}

// forget empties the book; what is in it is held against the policies before.
func (w *world) forget() {
	w.Helper()
	w.heldAgainstPolicies()
	w.ask(http.MethodDelete, "/bridge/book", nil)
}

func (w *world) ask(method, path string, into any) {
	w.Helper()
	// The last question is asked when a test is over.
	r, err := http.NewRequestWithContext(context.WithoutCancel(w.Context()), method, need(w.T, bridgeVariable)+path, nil)
	if err != nil {
		w.Fatal(err)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		w.Fatal(err)
	}
	defer response.Body.Close()
	if into == nil {
		return
	}
	if err := json.NewDecoder(response.Body).Decode(into); err != nil {
		w.Fatal(err)
	}
}
