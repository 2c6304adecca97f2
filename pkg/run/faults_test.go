package run_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/objectstore"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

var errBroken = errors.New("the connection broke")

// faults stands between the engine and its stores, counts their calls and breaks one of them.
type faults struct {
	mu sync.Mutex
	// n counts calls; names tells what they were.
	n     int
	names []string
	// breaks is the number of the call that breaks, 0 for none; after: it has taken effect first, and its answer
	// is lost. dies: so does everything until revive: the process is gone.
	breaks int
	// on breaks the next call whose name contains it.
	on          string
	after, dies bool
	dead        bool
	// struck: the call has broken.
	struck bool
	// before runs ahead of a call whose name contains the key: what others do meanwhile. It runs once.
	before map[string]func()
	// onCall runs ahead of every call, with its number.
	onCall func(n int)
}

func (f *faults) around(name string, do func() error) error {
	f.mu.Lock()
	if f.dead {
		f.mu.Unlock()
		return errBroken
	}
	f.n++
	f.names = append(f.names, name)
	broken := f.n == f.breaks
	if f.on != "" && strings.Contains(name, f.on) {
		f.on, broken = "", true
	}
	var then func()
	if n, fn := f.n, f.onCall; fn != nil {
		then = func() { fn(n) }
	}
	for part, fn := range f.before {
		if strings.Contains(name, part) {
			then = fn
			delete(f.before, part)
			break
		}
	}
	f.mu.Unlock()
	if then != nil {
		then()
	}
	if broken && !f.after {
		f.kill()
		return errBroken
	}
	err := do()
	if broken {
		f.kill()
		return errBroken
	}
	return err
}

func (f *faults) kill() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dead, f.struck = f.dies, true
}

// revive: the next call is made by another process.
func (f *faults) revive() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dead = false
}

// killAt: the process dies at the next call whose name contains part, before it takes effect or after.
func (f *faults) killAt(part string, after bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.on, f.after, f.dies = part, after, true
}

// meanwhile makes fn run once, ahead of the next call whose name contains part.
func (f *faults) meanwhile(part string, fn func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.before == nil {
		f.before = map[string]func(){}
	}
	f.before[part] = fn
}

type faultyObjects struct {
	objectstore.Store
	f *faults
}

func (s faultyObjects) Get(ctx context.Context, key string) (o objectstore.Object, err error) {
	err = s.f.around("get "+key, func() error { o, err = s.Store.Get(ctx, key); return err })
	return o, err
}

func (s faultyObjects) List(ctx context.Context, prefix string) (list []objectstore.Info, err error) {
	err = s.f.around("list "+prefix, func() error { list, err = s.Store.List(ctx, prefix); return err })
	return list, err
}

func (s faultyObjects) Put(ctx context.Context, key string, body []byte, c objectstore.Condition) (etag string, err error) {
	err = s.f.around("put "+key, func() error { etag, err = s.Store.Put(ctx, key, body, c); return err })
	if err != nil {
		return "", err
	}
	return etag, nil
}

func (s faultyObjects) Delete(ctx context.Context, key string, c objectstore.Condition) error {
	return s.f.around("delete "+key, func() error { return s.Store.Delete(ctx, key, c) })
}

type faultyLog struct {
	runlog.Store
	f *faults
}

func (s faultyLog) CreateRun(ctx context.Context, h runlog.Header) (out runlog.Header, err error) {
	err = s.f.around("create run "+h.RunID, func() error { out, err = s.Store.CreateRun(ctx, h); return err })
	return out, err
}

func (s faultyLog) Header(ctx context.Context, runID string) (out runlog.Header, err error) {
	err = s.f.around("header "+runID, func() error { out, err = s.Store.Header(ctx, runID); return err })
	return out, err
}

func (s faultyLog) UpdateHeader(ctx context.Context, h runlog.Header) (out runlog.Header, err error) {
	err = s.f.around("update header "+string(h.Status)+" "+string(h.Result), func() error { out, err = s.Store.UpdateHeader(ctx, h); return err })
	return out, err
}

func (s faultyLog) SetHead(ctx context.Context, ref runlog.StackRef, runID string) error {
	return s.f.around("set head", func() error { return s.Store.SetHead(ctx, ref, runID) })
}

func (s faultyLog) PutOp(ctx context.Context, runID string, in runlog.Status, op runlog.Op) (out runlog.Op, err error) {
	err = s.f.around("put op "+op.OpID+" "+string(op.Status), func() error { out, err = s.Store.PutOp(ctx, runID, in, op); return err })
	return out, err
}

func (s faultyLog) Op(ctx context.Context, runID, opID string) (out runlog.Op, err error) {
	err = s.f.around("op "+opID, func() error { out, err = s.Store.Op(ctx, runID, opID); return err })
	return out, err
}

func (s faultyLog) Ops(ctx context.Context, runID string) (out []runlog.Op, err error) {
	err = s.f.around("ops", func() error { out, err = s.Store.Ops(ctx, runID); return err })
	return out, err
}

func (s faultyLog) Append(ctx context.Context, events ...runlog.Event) error {
	return s.f.around("append "+string(events[0].Type), func() error { return s.Store.Append(ctx, events...) })
}

// sampled is the distance between the calls that a short test breaks: it has one go at every kind of call, not at every
// call.
const sampled = 31

// stride is the distance between the points of a run that a test tries out.
func stride() int {
	if testing.Short() {
		return 5
	}
	return 1
}
