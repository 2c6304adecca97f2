package admission

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// submissionVersion is the version of submissions and options that this release writes and reads.
const submissionVersion = 1

// The keys of the uploads bucket. Whatever a caller writes is below its own prefix, uploads/{who}/.
const (
	uploadsPrefix = "uploads/"
	inboxPrefix   = "inbox/"
	// maxSubmission is the largest submission that is read, in bytes.
	maxSubmission = 8 << 20
)

// ArchiveKey is where a caller uploads the archive with a digest.
func ArchiveKey(who, digest string) string {
	return uploadsPrefix + who + "/assemblies/" + digest + ".zip"
}

// SubmissionKey is where a caller uploads what a run is to do.
func SubmissionKey(who, runID string) string {
	return uploadsPrefix + who + "/submissions/" + runID + ".json"
}

// ReportKey is where a caller finds what the control plane reports to it of a run: the plans of a plan run, the outputs
// of a stack's run.
func ReportKey(who, runID string) string { return uploadsPrefix + who + "/reports/" + runID + ".json" }

// Submission is what a caller uploads to have something done: one for each run. It is read once, when the run is
// admitted.
type Submission struct {
	Version int            `json:"version"`
	RunID   string         `json:"runId"`
	Command runlog.Command `json:"command"`
	// Of is the command whose plan is wanted.
	Of runlog.Command `json:"of,omitempty"`
	// Assembly is the digest of the archive; a deploy and its plan need one.
	Assembly string `json:"assembly,omitempty"`
	// Stacks are what it is about, dependencies first. A deploy takes all but their ids from the archive.
	Stacks  []Stack     `json:"stacks,omitempty"`
	Options run.Options `json:"options"`
	PlanRun string      `json:"planRun,omitempty"`
	// Caller is who asks as it calls itself, which is for people; who it is, the key says.
	Caller string `json:"caller,omitempty"`
	// Region is where environment-agnostic stacks go; "" is the control plane's own.
	Region string `json:"region,omitempty"`
	// Role is an execution role to choose among those that the policy allows.
	Role string `json:"role,omitempty"`
	// Parameters are values by the id of a stack and the name of a parameter. Sealed are those of NoEcho parameters, the
	// same as JSON, encrypted with the vault key of the control plane for the key of this very submission.
	Parameters map[string]map[string]string `json:"parameters,omitempty"`
	Sealed     []byte                       `json:"sealed,omitempty"`
	// Run is the run to cancel.
	Run string `json:"run,omitempty"`
}

// Stack is one stack of a submission.
type Stack struct {
	// ID is assembly.Stack.ID.
	ID                    string   `json:"id"`
	Name                  string   `json:"name,omitempty"`
	DisplayName           string   `json:"displayName,omitempty"`
	Account               string   `json:"account,omitempty"`
	Region                string   `json:"region,omitempty"`
	DependsOn             []string `json:"dependsOn,omitempty"`
	TerminationProtection bool     `json:"terminationProtection,omitempty"`
}

// NewSubmission begins a submission of this release.
func NewSubmission(runID string, command runlog.Command) Submission {
	return Submission{Version: submissionVersion, RunID: runID, Command: command}
}

// Encode renders a submission.
func (s Submission) Encode() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return nil, fmt.Errorf("encoding the submission: %w", err)
	}
	return b.Bytes(), nil
}

// Options is slipway.json, which an archive in an inbox may hold: how it is to be deployed.
type Options struct {
	Version int `json:"version"`
	// Stacks are names, paths or globs, as for `slipway deploy`; without any all stacks are deployed.
	Stacks []string `json:"stacks,omitempty"`
	// Exclusively leaves out what they depend on.
	Exclusively bool                         `json:"exclusively,omitempty"`
	Options     run.Options                  `json:"options"`
	Region      string                       `json:"region,omitempty"`
	Role        string                       `json:"role,omitempty"`
	Parameters  map[string]map[string]string `json:"parameters,omitempty"`
}

// strictly decodes one JSON document. What is not known is an error: it might be an option that an older control plane
// would leave out.
func strictly(b []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the document")
	}
	return nil
}

// place is what the key of an upload says.
type place struct {
	who Who
	// rest is the key below the caller's prefix.
	rest string
}

// placeOf takes a key apart. ok is false for one that no caller can have written.
func placeOf(key string) (p place, ok bool) {
	kind, in := "", false
	if kind, in = strings.CutPrefix(key, uploadsPrefix); in {
		p.who.Principal, p.rest, ok = strings.Cut(kind, "/")
		return p, ok && p.who.Principal != "" && p.rest != ""
	}
	if kind, in = strings.CutPrefix(key, inboxPrefix); in {
		p.who.Inbox, p.rest, ok = strings.Cut(kind, "/")
		return p, ok && p.who.Inbox != "" && p.rest != ""
	}
	return place{}, false
}
