package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/slipway-cdk/slipway/pkg/clock"
)

// process is one execution environment: a bootstrap and the Runtime API that it alone talks to.
type process struct {
	function   Function
	definition string
	clock      clock.Clock
	cmd        *exec.Cmd
	server     *http.Server
	log        *tail
	started    time.Time
	initTook   time.Duration

	asked  chan struct{}    // closed when it first asks for work
	events chan *invocation // taken by whoever asks for work
	exited chan struct{}    // closed when it is gone

	mu       sync.Mutex
	current  *invocation // delivered and not answered
	waits    bool        // it has asked for work
	initFail []byte      // what it has posted to init/error
	status   string      // how it ended
}

// invocation is an event on its way through a process.
type invocation struct {
	Event
	outcome chan Result // one
}

// start starts a bootstrap. A failure is what the caller of the function gets to see.
func (b *Bridge) start(f Function, dir, requestID string) (*process, *Result) {
	fail := func(kind string, err error) (*process, *Result) {
		r := failed(requestID, kind, err.Error())
		return nil, &r
	}
	p := &process{
		function: f, definition: f.definition(), clock: b.clock,
		asked: make(chan struct{}), events: make(chan *invocation), exited: make(chan struct{}),
	}
	var err error
	if p.log, err = b.newTail(f.Name); err != nil {
		return fail(ErrorExit, err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		p.log.close()
		return fail(ErrorExit, fmt.Errorf("serving the Runtime API: %w", err))
	}
	p.server = &http.Server{Handler: p.runtimeAPI()} //nolint:gosec // it serves one process of this machine
	environment, err := b.environment(f, dir, listener.Addr().String())
	if err != nil {
		p.log.close()
		_ = listener.Close()
		return fail(ErrorExit, err)
	}
	p.cmd = exec.Command(filepath.Join(dir, "bootstrap")) //nolint:gosec // to run it is what the package is for
	p.cmd.Dir, p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = dir, environment, p.log.file, p.log.file
	// What it starts itself goes with it.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.started = p.clock.Now()
	if err := startRetrying(p.cmd); err != nil {
		p.log.close()
		_ = listener.Close()
		return fail(ErrorEntrypoint, fmt.Errorf("Couldn't find valid bootstrap(s): %w", err))
	}
	go func() { _ = p.server.Serve(listener) }()
	stop := context.AfterFunc(b.base, p.kill)
	b.work.Add(1)
	go func() {
		defer b.work.Done()
		_ = p.cmd.Wait()
		stop()
		p.mu.Lock()
		p.status = p.cmd.ProcessState.String()
		p.mu.Unlock()
		p.log.close()
		close(p.exited)
		_ = p.server.Close()
	}()
	return p, nil
}

// startRetrying starts a command. A process that is forked while the file was still being written holds it open for
// writing until it executes its own, and the kernel refuses to execute it for that moment (golang.org/issue/22315).
func startRetrying(cmd *exec.Cmd) error {
	again := *cmd
	err := cmd.Start()
	for range 20 {
		if err == nil || !strings.Contains(err.Error(), syscall.ETXTBSY.Error()) {
			return err
		}
		time.Sleep(5 * time.Millisecond)
		*cmd = again
		err = cmd.Start()
	}
	return err
}

// environment is what Lambda sets
// (https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html#configuration-envvars-runtime), what the
// function has, and where its calls go. Of the bridge's own environment the process sees nothing but the path.
func (b *Bridge) environment(f Function, dir, api string) ([]string, error) {
	region, account := f.place()
	values := map[string]string{
		"PATH": os.Getenv("PATH"), "LANG": "en_US.UTF-8", "TZ": ":UTC", "TMPDIR": os.TempDir(),
		"AWS_REGION": region, "AWS_DEFAULT_REGION": region,
		"AWS_LAMBDA_FUNCTION_NAME": f.Name, "AWS_LAMBDA_FUNCTION_VERSION": f.version(),
		"AWS_LAMBDA_FUNCTION_MEMORY_SIZE": strconv.Itoa(max(f.MemoryMB, 128)),
		"AWS_LAMBDA_LOG_GROUP_NAME":       "/aws/lambda/" + f.Name,
		"AWS_LAMBDA_LOG_STREAM_NAME":      b.clock.Now().UTC().Format("2006/01/02") + "/[" + f.version() + "]" + strings.ReplaceAll(newID(), "-", ""),
		"AWS_LAMBDA_INITIALIZATION_TYPE":  "on-demand",
		"LAMBDA_TASK_ROOT":                dir, "LAMBDA_RUNTIME_DIR": dir, "_HANDLER": f.Handler,
		// Emulators take an access key id that is an account id for that account.
		"AWS_ACCESS_KEY_ID": account, "AWS_SECRET_ACCESS_KEY": "bridge", "AWS_SESSION_TOKEN": "bridge",
		"AWS_EC2_METADATA_DISABLED": "true",
	}
	for name, value := range f.Environment {
		values[name] = value
	}
	values["AWS_LAMBDA_RUNTIME_API"] = api
	if b.opts.Endpoint != nil {
		endpoint, err := b.opts.Endpoint(f.Name)
		if err != nil {
			return nil, fmt.Errorf("the endpoint of function %s: %w", f.Name, err)
		}
		values["AWS_ENDPOINT_URL"] = endpoint
	}
	out := make([]string, 0, len(values))
	for name, value := range values {
		out = append(out, name+"="+value)
	}
	return out, nil
}

// ready waits until the process asks for work, and ends it when it takes longer than limit.
func (p *process) ready(ctx context.Context, limit time.Duration, requestID string) *Result {
	expired, stop := after(ctx, p.clock, limit)
	defer stop()
	select {
	case <-p.asked:
		p.initTook = p.clock.Now().Sub(p.started)
		return nil
	case <-p.exited:
		r := p.exitFailure(requestID)
		return &r
	case <-expired:
	case <-ctx.Done():
	}
	p.kill()
	<-p.exited
	r := failed(requestID, ErrorTimeout, fmt.Sprintf("Init timed out after %.2f seconds", limit.Seconds()))
	r.Log = p.log.take()
	return &r
}

// serve delivers the event and waits for the answer. It is not delivered where the process has gone before it asked
// for work. One that never asks has used up the invocation's time all the same.
func (p *process) serve(ctx context.Context, e Event) (r Result, delivered bool) {
	timeout := p.function.timeout()
	inv := &invocation{Event: e, outcome: make(chan Result, 1)}
	p.log.take() // what it has written since its last answer is not this invocation's
	began := p.clock.Now()
	expired, stop := after(ctx, p.clock, timeout)
	defer stop()
	select {
	case p.events <- inv:
	case <-p.exited:
		return Result{}, false
	case <-expired:
	case <-ctx.Done():
	}
	select {
	case r = <-inv.outcome:
	case <-p.exited:
		select {
		case r = <-inv.outcome: // it has answered and ended
		default:
			r = p.exitFailure(e.RequestID)
		}
	case <-expired:
		p.kill()
		<-p.exited
		select {
		case r = <-inv.outcome: // the answer has come in the last moment
		default:
			r = failed(e.RequestID, ErrorTimeout, fmt.Sprintf("Task timed out after %.2f seconds", timeout.Seconds()))
		}
	case <-ctx.Done():
		p.kill()
		<-p.exited
		r = p.exitFailure(e.RequestID)
	}
	r.RequestID, r.Duration, r.Log = e.RequestID, p.clock.Now().Sub(began), p.log.take()
	return r, true
}

// exitFailure is what Lambda answers when the runtime ends without an answer. What the process has said itself while
// it started goes before.
func (p *process) exitFailure(requestID string) Result {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.initFail != nil {
		return errorResult(p.initFail)
	}
	r := failed(requestID, ErrorExit, "Runtime exited with error: "+p.status)
	if p.status == "exit status 0" {
		r = failed(requestID, ErrorExit, "Runtime exited without providing a reason")
	}
	r.Log = p.log.take()
	return r
}

func (p *process) alive() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// kill ends the process and all that it has started.
func (p *process) kill() {
	if p.alive() { // its number may be another's afterwards
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	}
}

// after returns a channel that is closed when d has passed on the clock.
func after(ctx context.Context, clk clock.Clock, d time.Duration) (expired chan struct{}, stop func()) {
	ctx, stop = context.WithCancel(ctx)
	expired = make(chan struct{})
	go func() {
		if clk.Sleep(ctx, d) == nil {
			close(expired)
		}
	}()
	return expired, stop
}

// failed is the answer of Lambda itself, in its words.
func failed(requestID, kind, message string) Result {
	payload, err := json.Marshal(map[string]string{"errorType": kind, "errorMessage": "RequestId: " + requestID + " Error: " + message})
	if err != nil {
		panic(err) // two strings
	}
	return Result{RequestID: requestID, Payload: payload, FunctionError: "Unhandled", ErrorType: kind}
}

// errorResult is an error that the runtime has posted.
func errorResult(body []byte) Result {
	var said struct {
		ErrorType string `json:"errorType"`
	}
	_ = json.Unmarshal(body, &said) // without a type there is none
	return Result{Payload: body, FunctionError: "Unhandled", ErrorType: said.ErrorType}
}
