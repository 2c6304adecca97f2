package views

import (
	"io"
	"time"

	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// NDJSON writes every event as one line of JSON (https://github.com/ndjson/ndjson-spec), as the run log has
// it: members are added over time, "v" grows when one changes its meaning.
type NDJSON struct {
	to  io.Writer
	err error
}

// NewNDJSON writes to to.
func NewNDJSON(to io.Writer) *NDJSON { return &NDJSON{to: to} }

// Events implements Renderer. After a failed write nothing more is written; Err tells why.
func (v *NDJSON) Events(list []runlog.Event) {
	for _, e := range list {
		if v.err == nil {
			v.err = writeJSONLine(v.to, e)
		}
	}
}

// Tick implements Renderer.
func (v *NDJSON) Tick(time.Time) {}

// Finish implements Renderer.
func (v *NDJSON) Finish() {}

// Err is the first write that failed.
func (v *NDJSON) Err() error { return v.err }

var (
	_ Renderer = (*Live)(nil)
	_ Renderer = (*Plain)(nil)
	_ Renderer = (*NDJSON)(nil)
)
