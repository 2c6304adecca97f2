// Package provider is the contract between the engine and whatever makes one resource exist: Cloud Control,
// a service's own API, a custom resource's handler, the sandbox. It holds the interface, its typed errors
// and the registry that chooses a provider; each implementation has a package of its own below this one.
package provider

import (
	"context"
	"encoding/json"
	"time"
)

// Route names the layer that owns a resource, as the state record's provisionedBy does
// (reference §1.2): "sdk" for a direct provider, "cc-api" for Cloud Control. It is sticky.
type Route string

// The two routes of the state format.
const (
	RouteSDK          Route = "sdk"
	RouteCloudControl Route = "cc-api"
)

// Request asks for one step on one resource.
type Request struct {
	Stack     string
	Region    string
	Account   string
	LogicalID string
	Type      string

	// PhysicalID is empty for a create.
	PhysicalID string
	// Properties are the resolved desired properties, without intrinsics: JSON values with json.Number for
	// numbers. Create and Update only.
	Properties map[string]any
	// Previous are the properties that the record holds: for an update what was sent last, for a delete
	// what the resource was made from.
	Previous map[string]any
	// Attributes are those the record holds. Update, Delete and Read only.
	Attributes map[string]any

	// Token makes the call repeatable: two requests with one token are one request. At most 128 characters
	// of [-A-Za-z0-9+/=], as Cloud Control's ClientToken demands.
	Token string
	// Attempt is 1 for the first try. A deliberate retry after a recorded failure raises it (and so the token).
	Attempt int
	// Operation names the operation that the step belongs to: it is the same for all its attempts, where Token
	// changes. Empty: the token stands for it.
	Operation string
	// Repeat: an earlier call under Operation may have been made, with an answer that nobody has seen. A create
	// then looks for what that call has left before it makes another one.
	Repeat bool
	// Wait says how far a create or an update is followed before it is done.
	Wait WaitMode
	// FinalSnapshot is the name under which a Delete takes a final snapshot before the resource goes, "" for none. The
	// same name stands for the same snapshot when the deletion is repeated. A provider that can't take one answers
	// NoFinalSnapshot and deletes nothing.
	FinalSnapshot string
	// NameSuffix is set when a resource with a generated name is replaced: the new half must not collide
	// with the old one, which still stands.
	NameSuffix string
	// WantAttributes names the attributes that the template reads of this resource.
	WantAttributes []string
}

// WaitMode says how far a create or an update is followed (reference §8.8). A deletion is always followed to its end.
type WaitMode string

// The modes.
const (
	// WaitDefault waits for whatever something else in the deploy may need and for whatever can still fail.
	WaitDefault WaitMode = ""
	// WaitNone waits only until the resource can be called.
	WaitNone WaitMode = "none"
	// WaitFull waits for what CloudFormation waits for.
	WaitFull WaitMode = "full"
)

// Handle is a slow operation in flight: what Poll needs to go on with it in another process, later.
// It is stored, so it is versioned and holds no secret.
type Handle struct {
	Version  int             `json:"version"`
	Provider string          `json:"provider"`
	Data     json.RawMessage `json:"data"`
}

// Progress is the answer to a step: either done, with what is now known of the resource, or a handle.
type Progress struct {
	Done bool
	// PhysicalID is the id that the record will hold (reference §10.3). It may be known before Done: it is
	// then recorded, so that a failed create can be cleaned up.
	PhysicalID string
	// Attributes are the values that Fn::GetAtt reads, by attribute name; nested ones as flat dotted keys
	// or nested objects.
	Attributes map[string]any
	// Effective replaces the recorded properties when the provider sent something else than it was given.
	// nil means: record what was asked for.
	Effective map[string]any
	// Observed is the live model after the step, the later drift baseline. nil when it was not read.
	Observed map[string]any
	// NoEcho: the attributes are secret. They reach other resources of the same run through its vault, and are recorded
	// as "***".
	NoEcho bool
	// Skipped says why a delete could not address the resource; the record is then kept and the run is
	// PARTIAL.
	Skipped string

	// Handle continues the operation when Done is false.
	Handle *Handle
	// Throttled: the wait is there because the service asked to slow down.
	Throttled bool
	// RetryAfter is the earliest useful moment for the next Poll.
	RetryAfter time.Duration
}

// Snapshot is a live resource as read from its service.
type Snapshot struct {
	PhysicalID string
	Properties map[string]any
	Attributes map[string]any
}

// Provider makes resources of some types exist.
//
// Every step may be repeated with the same token, after a crash or a lost answer, and then has the effect
// of one. Errors are *Error values; their Kind decides what the engine does. A failed step leaves nothing
// behind that the returned error (Error.PhysicalID) does not name. No call sleeps: slow work is a Handle.
type Provider interface {
	// Create makes the resource. IsAlreadyExists when its name is taken by another one.
	Create(ctx context.Context, req Request) (Progress, error)
	// Update changes the resource in place from req.Previous to req.Properties.
	Update(ctx context.Context, req Request) (Progress, error)
	// Delete removes the resource, after its final snapshot where req asks for one; one that is already gone is Done.
	Delete(ctx context.Context, req Request) (Progress, error)
	// Poll continues an operation that answered with a handle. req is the request that started it.
	Poll(ctx context.Context, req Request, h Handle) (Progress, error)
	// Read returns the live resource: for drift, import and recovery. IsNotFound when there is none.
	Read(ctx context.Context, req Request) (Snapshot, error)
}

// Cleaner is a provider that keeps something for the length of a step: what it needs to be repeatable, until the
// result of the step is recorded.
type Cleaner interface {
	// Clean removes what a step has left for its repetition. req is the request that started it. It may be repeated,
	// and not be called at all: what it leaves is of no further use.
	Clean(ctx context.Context, req Request) error
}
