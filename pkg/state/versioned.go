package state

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/slipway-cdk/slipway/pkg/diag"
)

// ownVersion is the version of every file but the record: the sidecar, the journal, the two indexes.
const ownVersion = 1

// versioned reads a file whose member versionName must be there and not above ownVersion.
func versioned(data []byte, into json.Unmarshaler, file, stack, versionName string) error {
	head, err := asObject(data)
	if err != nil {
		return damagedFile(file, stack, err)
	}
	raw, ok := head[versionName]
	if !ok {
		return damagedFile(file, stack, fmt.Errorf("it has no %s", versionName))
	}
	if n := integer(raw); n < 1 || n > ownVersion {
		return &VersionError{File: file, Stack: stack, Version: clip(string(raw)), Known: ownVersion}
	}
	// That it is one JSON value is known by now.
	if err := into.UnmarshalJSON(data); err != nil {
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
