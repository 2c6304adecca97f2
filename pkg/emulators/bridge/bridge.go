package bridge

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/slipway-cdk/slipway/pkg/clock"
)

// Limits of Lambda (https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html).
const (
	// initLimit is how long a process may take until it first asks for work.
	initLimit = 10 * time.Second
	// maxPayload bounds the payload and the response of an invocation, in bytes.
	maxPayload = 6 << 20
	// defaultConcurrency is an account's quota.
	defaultConcurrency = 1000
)

// The error types that Lambda itself answers with, not the function.
const (
	ErrorTimeout    = "Sandbox.Timedout"
	ErrorExit       = "Runtime.ExitError"
	ErrorEntrypoint = "Runtime.InvalidEntrypoint"
	ErrorTooLarge   = "Function.ResponseSizeTooLarge"
)

// Options tune a bridge.
type Options struct {
	// Dir is where code is unpacked. Required.
	Dir string
	// Endpoint returns the address that a function's calls of AWS go to; nil leaves them to the function's environment.
	Endpoint func(function string) (string, error)
	// Clock times invocations; nil is the real one.
	Clock clock.Clock
	// Log takes what the processes write; nil drops it. The last 4 KB of an invocation are in its result as well.
	Log io.Writer
	// Concurrency is how many invocations may run at once; 0 is an account's quota of 1,000.
	Concurrency int
}

// Bridge runs functions. It is safe for concurrent use.
type Bridge struct {
	opts  Options
	clock clock.Clock
	codes codes
	book  book

	base    context.Context // ends when the bridge is closed
	closing context.CancelFunc
	work    sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	running int
	pools   map[string]*pool // by ARN and version
	logs    sync.Mutex
}

// pool holds the idle processes of one definition of a function, the one that was used last at the end.
type pool struct {
	definition string
	idle       []*process
}

// New makes a bridge without functions.
func New(opts Options) *Bridge {
	b := &Bridge{opts: opts, clock: opts.Clock, codes: codes{dir: opts.Dir}, pools: map[string]*pool{}}
	if b.clock == nil {
		b.clock = clock.Real{}
	}
	if b.opts.Concurrency == 0 {
		b.opts.Concurrency = defaultConcurrency
	}
	b.base, b.closing = context.WithCancel(context.Background())
	return b
}

// AddCode unpacks a function's archive, a zip with a file bootstrap, and returns its SHA-256 in hex.
func (b *Bridge) AddCode(archive []byte) (string, error) { return b.codes.add(archive) }

// Close kills every process and waits until they are gone. Invocations that were running fail.
func (b *Bridge) Close() error {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.closing()
	b.work.Wait()
	return nil
}

// Event is one invocation's input.
type Event struct {
	// RequestID is made up when it is empty.
	RequestID string
	// Payload is JSON.
	Payload []byte
	// TraceID is X-Ray's trace header, if there is one.
	TraceID string
}

// Result is what has become of an invocation.
type Result struct {
	RequestID string
	// Payload is the function's response or, where FunctionError is set, the error: {"errorType": …, "errorMessage": …}.
	Payload []byte
	// FunctionError is "Unhandled" where the function has failed, the value of the header X-Amz-Function-Error.
	FunctionError string
	// ErrorType says which error, where there is one.
	ErrorType string
	// Log is the end of what the process has written during the invocation, 4 KB at most.
	Log []byte
	// Duration is from the delivery of the event to the answer; Init, of the first invocation of a process, from its
	// start until it asked for work.
	Duration, Init time.Duration
	// Cold says that a process was started for it.
	Cold bool
}

// What keeps an invocation from the function.
var (
	// ErrThrottled: as many invocations run as may.
	ErrThrottled = errors.New("rate exceeded")
	// ErrClosed: the bridge is closed.
	ErrClosed = errors.New("the bridge is closed")
)

// Invoke runs a function once and returns what it says. A function that fails is no error: see Result. When ctx ends
// the function goes on, as in Lambda, and only its answer is lost.
func (b *Bridge) Invoke(ctx context.Context, f Function, e Event) (Result, error) {
	dir, err := b.codes.path(f.Code)
	if err != nil {
		return Result{}, err
	}
	if e.RequestID == "" {
		e.RequestID = newID()
	}
	b.mu.Lock()
	switch {
	case b.closed:
		err = ErrClosed
	case b.running >= b.opts.Concurrency:
		err = ErrThrottled
	default:
		b.running++
		b.work.Add(1)
	}
	b.mu.Unlock()
	if err != nil {
		return Result{}, err
	}
	type answer struct {
		Result
		error
	}
	answers := make(chan answer, 1)
	go func() {
		defer b.work.Done()
		r, err := b.invoke(f, dir, e)
		b.mu.Lock()
		b.running--
		b.mu.Unlock()
		if err == nil {
			b.book.invoked(f, e, r)
		}
		answers <- answer{r, err}
	}()
	select {
	case a := <-answers:
		return a.Result, a.error
	case <-ctx.Done():
		return Result{}, ctx.Err()
	}
}

// invoke finds a process and has it serve the event.
func (b *Bridge) invoke(f Function, dir string, e Event) (Result, error) {
	for {
		p := b.take(f)
		if p == nil {
			return b.cold(f, dir, e)
		}
		// A process that has died since it was last used has not seen the event: another one may.
		if r, delivered := p.serve(b.base, e); delivered {
			return b.settle(f, p, r)
		}
	}
}

// cold starts a process for the event. A process that does not get ready in time is started again and then has the
// function's own timeout to do so
// (https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtime-environment.html#runtimes-lifecycle-ib).
func (b *Bridge) cold(f Function, dir string, e Event) (Result, error) {
	for _, limit := range []time.Duration{initLimit, f.timeout()} {
		p, failure := b.start(f, dir, e.RequestID)
		if failure == nil {
			failure = p.ready(b.base, limit, e.RequestID)
		}
		switch {
		case b.base.Err() != nil:
			return Result{}, ErrClosed
		case failure == nil:
			init := p.initTook
			r, delivered := p.serve(b.base, e)
			if !delivered {
				r = p.exitFailure(e.RequestID)
			}
			r.Init, r.Cold = init, true
			return b.settle(f, p, r)
		case failure.ErrorType == ErrorTimeout && limit == initLimit:
			continue
		}
		failure.Cold = true
		return *failure, nil
	}
	r := failed(e.RequestID, ErrorTimeout, fmt.Sprintf("Task timed out after %.2f seconds", f.timeout().Seconds()))
	r.Cold = true
	return r, nil
}

// settle puts a process that lives back into its pool.
func (b *Bridge) settle(f Function, p *process, r Result) (Result, error) {
	if b.base.Err() != nil {
		return Result{}, ErrClosed
	}
	if !p.alive() {
		return r, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if pool := b.pools[f.ARN+f.version()]; pool != nil && pool.definition == p.definition {
		pool.idle = append(pool.idle, p)
	} else {
		p.kill()
	}
	return r, nil
}

// take returns an idle process, or nil. Processes of an older definition are ended.
func (b *Bridge) take(f Function) *process {
	key, definition := f.ARN+f.version(), f.definition()
	b.mu.Lock()
	defer b.mu.Unlock()
	have := b.pools[key]
	if have == nil || have.definition != definition {
		if have != nil {
			for _, old := range have.idle {
				old.kill()
			}
		}
		have = &pool{definition: definition}
		b.pools[key] = have
	}
	for len(have.idle) > 0 {
		p := have.idle[len(have.idle)-1]
		have.idle = have.idle[:len(have.idle)-1]
		if p.alive() {
			return p
		}
	}
	return nil
}

// newID makes a request id, a version 4 UUID as Lambda's are.
func newID() string {
	var u [16]byte
	_, _ = rand.Read(u[:]) // never fails
	u[6], u[8] = u[6]&0x0f|0x40, u[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}
