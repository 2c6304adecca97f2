package direct

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/slipway-cdk/slipway/pkg/provider"
)

const (
	handleVersion = 1
	providerName  = "direct"
)

// The operations and phases as positions name them. They are stored: their names stay.
const (
	opCreate = "create"
	opUpdate = "update"
	opDelete = "delete"

	phaseCreate  = "create"
	phaseDoubt   = "doubt"
	phaseStable  = "stable" // usable for the next facet
	phaseFacets  = "facets"
	phaseAwait   = "await" // as far as the wait mode asks
	phaseRead    = "read"
	phasePrepare = "prepare"
	phaseDelete  = "delete"
	phaseGone    = "gone"
	phaseDone    = "done"
)

// position is how far an operation has come.
type position struct {
	Operation string `json:"operation"`
	Phase     string `json:"phase"`
	// Facet is the next facet to put.
	Facet int `json:"facet,omitempty"`
	// Rounds counts how often the facet has said that it is to be put again.
	Rounds int `json:"rounds,omitempty"`
	// ID is the physical id of what this operation has made, or works on.
	ID string `json:"id,omitempty"`
	// Tries counts the waits in this phase.
	Tries int `json:"tries,omitempty"`
	// Stumbles counts the calls that failed in this phase, one after the other: waiting for the resource does not use them up.
	Stumbles int `json:"stumbles,omitempty"`
	// Doubts counts the creates without an answer; DoubtSince is when the last one was made.
	Doubts     int       `json:"doubts,omitempty"`
	DoubtSince time.Time `json:"doubtSince,omitzero"`
	// Taken: the service has said that the name is taken.
	Taken bool      `json:"taken,omitempty"`
	Begun time.Time `json:"begun,omitzero"`
}

// made notes what the operation has made.
func (p *position) made(id string) { p.ID, p.Phase, p.Facet = id, phaseStable, 0 }

// since is when the doubt began.
func (p *position) since(now time.Time) time.Time {
	if p.DoubtSince.IsZero() {
		p.DoubtSince = now
	}
	return p.DoubtSince
}

func (p *position) handle() (*provider.Handle, error) {
	data, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	return &provider.Handle{Version: handleVersion, Provider: providerName, Data: data}, nil
}

// open reads a handle that this package, in this or another process, has made.
func open(req provider.Request, h provider.Handle) (position, error) {
	var pos position
	if h.Provider != providerName || h.Version != handleVersion {
		return pos, &provider.Error{
			Kind: provider.KindFailed, Code: "UnknownHandle",
			Message: fmt.Sprintf("the operation on %s was begun by %s, version %d; this is %s, version %d", req.LogicalID, h.Provider, h.Version, providerName, handleVersion),
		}
	}
	if err := json.Unmarshal(h.Data, &pos); err != nil || pos.Operation == "" || pos.Phase == "" {
		return pos, &provider.Error{
			Kind: provider.KindFailed, Code: "UnknownHandle", Err: err,
			Message: fmt.Sprintf("the handle of the operation on %s can't be read", req.LogicalID),
		}
	}
	return pos, nil
}
