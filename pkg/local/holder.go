package local

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
)

// holder is this process as executions and leases name it. It holds an exclusive lock on a file of its own
// for as long as it lives; the operating system drops the lock with the process, however it ends. Whoever
// can take the lock of a holder's file therefore knows that the holder is dead.
type holder struct {
	name string
	dir  string
	lock *flock.Flock
}

func newHolder(dir string) (*holder, error) {
	dir = filepath.Join(dir, "processes")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("registering this process: %w", err)
	}
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails
	h := &holder{name: fmt.Sprintf("%d-%s", os.Getpid(), hex.EncodeToString(b[:])), dir: dir}
	h.lock = flock.New(h.path(h.name))
	ok, err := h.lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("registering this process: %w", err)
	}
	if !ok {
		return nil, errors.New("registering this process: another process has taken its file")
	}
	return h, nil
}

func (h *holder) path(name string) string { return filepath.Join(h.dir, name+".lock") }

// alive reports whether the holder of that name may still be at work.
func (h *holder) alive(name string) bool {
	if name == h.name {
		return true
	}
	if name == "" || filepath.Base(name) != name {
		return false
	}
	path := h.path(name)
	if _, err := os.Stat(path); err != nil {
		return !errors.Is(err, os.ErrNotExist)
	}
	l := flock.New(path)
	ok, err := l.TryLock()
	if err != nil || !ok {
		return true
	}
	// It is dead: its file has no more use.
	_ = os.Remove(path)
	_ = l.Unlock()
	return false
}

func (h *holder) close() error {
	err := os.Remove(h.path(h.name))
	return errors.Join(err, h.lock.Unlock())
}
