package bridge

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"sync"
)

// tailSize is how much of an invocation's log Lambda returns, in bytes
// (https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html).
const tailSize = 4 << 10

// tail is the log of a process: a file, so that what was written before an answer is there when the answer is.
type tail struct {
	file *os.File
	out  io.Writer   // takes every line, with the function's name; may be nil
	lock *sync.Mutex // of out
	name string

	mu     sync.Mutex
	read   int64
	closed bool
	rest   []byte // what was not taken before it was closed
}

func (b *Bridge) newTail(name string) (*tail, error) {
	f, err := os.CreateTemp(b.opts.Dir, "log-*")
	if err != nil {
		return nil, fmt.Errorf("the log of function %s: %w", name, err)
	}
	return &tail{file: f, out: b.opts.Log, lock: &b.logs, name: name}, nil
}

// take passes on what was written since it was last called, and returns the end of that.
func (t *tail) take() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		rest := t.rest
		t.rest = nil
		return rest
	}
	return t.more()
}

func (t *tail) more() []byte {
	info, err := t.file.Stat()
	if err != nil || info.Size() == t.read {
		return nil
	}
	written := make([]byte, info.Size()-t.read)
	n, err := t.file.ReadAt(written, t.read)
	if err != nil {
		return nil
	}
	t.read += int64(n)
	if t.out != nil {
		t.lock.Lock()
		for line := range bytes.Lines(written) {
			_, _ = fmt.Fprintf(t.out, "%s %s\n", t.name, bytes.TrimRight(line, "\n"))
		}
		t.lock.Unlock()
	}
	return written[max(0, len(written)-tailSize):]
}

// close removes the file. What is left can still be taken.
func (t *tail) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rest, t.closed = t.more(), true
	_ = t.file.Close()
	_ = os.Remove(t.file.Name())
}
