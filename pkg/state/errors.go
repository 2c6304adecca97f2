package state

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/slipway-cdk/slipway/pkg/diag"
)

// Errors that callers decide on.
var (
	// ErrNotFound: no record, sidecar, journal, index or lock stands under that name.
	ErrNotFound = errors.New("not found in the state store")
	// ErrModified: what stands there is not what the caller has read, and not what it was about to write.
	ErrModified = errors.New("modified by another process since it was read")
	// ErrLockLost: the lock is no longer the caller's. It must stop without writing anything.
	ErrLockLost = errors.New("the stack lock was lost")
)

// IsNotFound reports whether err says that nothing stands there.
func IsNotFound(err error) bool { return errors.Is(err, ErrNotFound) }

// IsModified reports whether err says that somebody else has written in between.
func IsModified(err error) bool { return errors.Is(err, ErrModified) }

// VersionError is a file in a format version that this Slipway does not know. It is never read as far as it
// goes: a member that is ignored may be the one that matters.
type VersionError struct {
	File    string // "state record", "rollback journal", "exports index", "sidecar"
	Stack   string
	Version string // as it stands in the file
	Known   int    // the highest version that can be read
}

// Error implements error.
func (e *VersionError) Error() string {
	of := ""
	if e.Stack != "" {
		of = " of stack " + e.Stack
	}
	return fmt.Sprintf("the %s%s has the unsupported format version %s (this Slipway reads up to %d): upgrade Slipway",
		e.File, of, Printable(e.Version), e.Known)
}

// DamagedError is a file whose content does not have the shape of its format. Its Diagnostics name every
// member that is wrong.
type DamagedError struct {
	Diagnostics diag.Diagnostics
}

// Error implements error.
func (e *DamagedError) Error() string { return e.Diagnostics.Error() }

// Unwrap returns the diagnostics, for diag.From.
func (e *DamagedError) Unwrap() error { return e.Diagnostics }

// IsDamaged reports whether err says that a file is damaged.
func IsDamaged(err error) bool {
	var d *DamagedError
	return errors.As(err, &d)
}

// Printable returns s without control characters and without the invisible ones that reorder text: what
// others have written into a lock or a record must not reach a terminal as commands (reference §2).
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029' || r == unicode.ReplacementChar {
			return -1
		}
		return r
	}, s)
}

func clip(s string) string {
	const most = 40
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}
