// Package execution is what whoever starts an execution of the run state machine has to know of it: its name and its
// input. It is apart from package run because the function that starts deployments out of an inbox needs nothing else of
// the engine, and starts sooner without it.
package execution

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"

	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// UploadRef points to what a run was asked for with: an object of the uploads bucket. It is all that an execution's
// input says of it.
type UploadRef struct {
	Key string `json:"key"`
	// Version is the version of the object; "" is the current one.
	Version string `json:"version,omitempty"`
}

// Upload is the input of the execution that an upload begins with. It is the same however often that is
// started.
type Upload struct {
	RunID   string         `json:"runId"`
	Command runlog.Command `json:"command"`
	Upload  UploadRef      `json:"upload"`
}

// Name is the name of the execution: an execution of another name is not admitted.
func (x Upload) Name() string { return Name("deployment", x.Command, x.RunID) }

// Input is the execution's input as JSON.
func (x Upload) Input() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(x); err != nil {
		return nil, fmt.Errorf("encoding an execution's input: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

var notNameChar = regexp.MustCompile(`[^A-Za-z0-9_-]+`)

// Name makes the name of a run's execution: "{subject}-{command}-{runId}", legal for Step Functions
// (80 characters of a safe set); a subject that had to be changed is told apart by a hash.
func Name(subject string, command runlog.Command, runID string) string {
	tail := "-" + string(command) + "-" + runID
	safe := notNameChar.ReplaceAllString(subject, "-")
	if limit := 80 - len(tail); safe != subject || len(safe) > limit {
		hash := sha256.Sum256(fmt.Appendf(nil, "%d:%s", len(subject), subject))
		safe = safe[:min(len(safe), limit-9)] + "-" + hex.EncodeToString(hash[:])[:8]
	}
	return safe + tail
}
