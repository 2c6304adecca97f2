package state

import (
	"errors"
	"fmt"

	"github.com/slipway-cdk/slipway/pkg/diag"
)

// versioned reads a file whose member versionName must be there and not above known.
func versioned(data []byte, into any, file, stack, versionName string, known int) error {
	head, err := asObject(data)
	if err != nil {
		return damagedFile(file, stack, err)
	}
	raw, ok := head[versionName]
	if !ok {
		return damagedFile(file, stack, fmt.Errorf("it has no %s", versionName))
	}
	if n := integer(raw); n < 1 || n > int64(known) {
		return &VersionError{File: file, Stack: stack, Version: clip(string(raw)), Known: known}
	}
	if err := unmarshal(data, into); err != nil {
		var d *DamagedError
		if errors.As(err, &d) {
			return err
		}
		return damagedFile(file, stack, err)
	}
	return nil
}

func damagedFile(file, stack string, err error) error {
	return &DamagedError{Diagnostics: diag.Diagnostics{{
		Severity: diag.Error, Stack: stack, Summary: "the " + file + " is damaged", Detail: err.Error(),
		Next: "Restore its last good version from the bucket's version history, then run the command again.",
	}}}
}
