package inprocess

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
)

// Process is this process as executions and leases name it. It holds an exclusive lock on a file of its own
// for as long as it lives; the operating system drops the lock with the process, however it ends. Whoever
// can take the lock of a process's file therefore knows that the process is dead.
type Process struct {
	name string
	dir  string
	lock *flock.Flock
}

var _ Holder = (*Process)(nil)

// Liveness is what this machine knows of a process.
type Liveness int

// What is known of a process: Unknown is one that has no file here. It may have ended orderly, or be on another machine.
const (
	Unknown Liveness = iota
	Alive
	Dead
)

// OpenProcess registers this process in a directory that it shares with all whose liveness is asked for. suffix becomes
// a part of its name; it may be empty.
func OpenProcess(dir, suffix string) (*Process, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("registering this process: %w", err)
	}
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails
	p := &Process{name: fmt.Sprintf("%d-%s%s", os.Getpid(), hex.EncodeToString(b[:]), suffix), dir: dir}
	p.lock = flock.New(p.path(p.name))
	ok, err := p.lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("registering this process: %w", err)
	}
	if !ok {
		return nil, errors.New("registering this process: another process has taken its file")
	}
	return p, nil
}

func (p *Process) path(name string) string { return filepath.Join(p.dir, name+".lock") }

// Name implements Holder.
func (p *Process) Name() string { return p.name }

// Alive implements Holder, where every process of interest is registered in the one directory.
func (p *Process) Alive(_ context.Context, name string) bool { return p.Look(name) == Alive }

// Look says what is known of the process of that name. What can't be found out counts as alive.
func (p *Process) Look(name string) Liveness {
	if name == p.name {
		return Alive
	}
	if name == "" || filepath.Base(name) != name {
		return Unknown
	}
	path := p.path(name)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return Unknown
	} else if err != nil {
		return Alive
	}
	l := flock.New(path)
	ok, err := l.TryLock()
	if err != nil || !ok {
		return Alive
	}
	// It is dead: its file has no more use.
	_ = os.Remove(path)
	_ = l.Unlock()
	return Dead
}

// Close ends the registration.
func (p *Process) Close() error {
	err := os.Remove(p.path(p.name))
	return errors.Join(err, p.lock.Unlock())
}
