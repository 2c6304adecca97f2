package run

import "sync"

// AtWork are the operations that a process is working on. Of its own leases it knows whether somebody stands behind
// them: where an execution is stopped, an invocation that it had begun goes on in the same process. The zero value is
// ready, and safe for concurrent use.
type AtWork struct {
	mu  sync.Mutex
	ops map[[2]string]int // by run and operation: a message may come twice
}

// begin notes that an operation is worked on, until end.
func (a *AtWork) begin(runID, opID string) (end func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ops == nil {
		a.ops = map[[2]string]int{}
	}
	key := [2]string{runID, opID}
	a.ops[key]++
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.ops[key]--; a.ops[key] == 0 {
			delete(a.ops, key)
		}
	}
}

// on reports whether an operation is worked on.
func (a *AtWork) on(runID, opID string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ops[[2]string{runID, opID}] > 0
}
