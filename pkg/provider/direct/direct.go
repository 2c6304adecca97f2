// Package direct provisions resources through their services' own APIs. A Kind says what is particular to one
// resource type, as data and small functions; this package makes a provider.Provider of it: the phases of an operation,
// what to do when an answer is lost, waiting, retries, tags, errors, mapping, reading back. docs/providers.md
// shows how to write a Kind.
//
// An operation is a row of phases. A create is made (create), looked for when its answer was lost (doubt), awaited
// (stable), completed by the facets that the create call does not set (facets), awaited again and read. An
// update is the facets whose properties differ. A deletion is prepared, made and followed until the resource is gone.
// Between two phases that wait there is a handle: nothing sleeps, and another process can go on.
package direct

import (
	"context"
	"errors"
	"time"

	"github.com/slipway-cdk/slipway/pkg/provider"
)

// Identity says how a create that may have been made already is told from one that was not.
type Identity int

// The identities.
const (
	// ByName: the template or provider.Named gives the name. Find reads what has it; the mark among its tags, or, where the
	// type has no tags, its properties, tell our own resource from a foreign one.
	ByName Identity = iota
	// ByMark: the service makes the id up, and the create call takes tags. Find looks for the mark (Call.Mark). A
	// call whose answer was lost is looked for over Kind.Window before it is made again.
	ByMark
	// ByToken: the create call takes a client token (Call.Token): made again it answers with the same resource.
	ByToken
	// ByPut: the create call replaces what stands there, as CloudFormation's does. It is simply made again.
	ByPut
)

// Level is how far a resource has come.
type Level int

// The levels.
const (
	// NotYet: other calls on the resource may be refused.
	NotYet Level = iota
	// Usable: it can be called. --no-wait stops here.
	Usable
	// Ready: whatever in the deploy needs it will work, and nothing of it can fail any more. The default stops here.
	Ready
	// Settled: as CloudFormation waits for it. --full-wait stops here.
	Settled
)

// Kind describes a resource type. C is the client of its service.
type Kind[C any] struct {
	// Type is the CloudFormation type.
	Type     string
	Identity Identity
	// LookFirst: the service answers the creation of a name that is taken with the resource that has it, so that Find is asked
	// before the first create. ByName only.
	LookFirst bool

	// Create makes the resource and returns its physical id (reference §10.3). It is one call: what the call
	// can't set is a facet.
	Create func(ctx context.Context, c *Call[C]) (id string, err error)
	// CreateOnly lists the top-level properties that Create sets and nothing can change.
	CreateOnly []string
	// Find reads what an earlier create has made: by name, or by Call.Mark. KindNotFound or a zero Found: nothing.
	Find func(ctx context.Context, c *Call[C]) (Found, error)
	// Stable returns how far the resource has come; nil: it is Settled when the call has been answered. An error ends the
	// operation: the resource will not come any further.
	Stable func(ctx context.Context, c *Call[C]) (Level, error)
	// Facets are the aspects that can be changed, in the order in which they are put.
	Facets []Facet[C]
	// Read returns the live resource c.PhysicalID, KindNotFound when there is none. c.Properties is empty in a drift check.
	Read func(ctx context.Context, c *Call[C]) (Live, error)
	// Prepare, when there is one, makes the deletion possible. It may be called more than once.
	Prepare func(ctx context.Context, c *Call[C]) error
	// Delete removes the resource; KindNotFound: it is gone.
	Delete func(ctx context.Context, c *Call[C]) error
	// Gone reports whether a deleted resource has gone (KindNotFound: it has); nil: it has when Delete has been answered.
	Gone func(ctx context.Context, c *Call[C]) (bool, error)

	// Unhandled lists properties of the type that this Kind can't set, with the reason: a resource that has one is made
	// through Cloud Control.
	Unhandled map[string]string
	// Window is how long a create whose answer was lost is looked for, 30 seconds when it is 0. ByMark only.
	Window time.Duration
	// Deadline is how long an operation may take, 30 minutes when it is 0.
	Deadline time.Duration
}

// Facet is an aspect of a resource that has a call of its own.
type Facet[C any] struct {
	// Properties are the top-level properties that it covers.
	Properties []string
	// Created: Create sets them as well, so that a create does not put the facet.
	Created bool
	// Defaults are what a property that is removed from the template becomes: Put finds it among the properties as if the
	// template gave it. For a property without one Put asks Call.Removed.
	Defaults map[string]any
	// Put sets the facet to c.Properties. It has the same effect made twice. A facet that takes several calls, each of which
	// has to wait for the one before, makes one of them and answers ErrAgain while others are left.
	Put func(ctx context.Context, c *Call[C]) error
	// Settle: the resource has to be Usable again before the next facet.
	Settle bool
}

// ErrAgain is what Put answers to be called once more when the resource is Usable again.
var ErrAgain = errors.New("the facet is to be put again")

// Found is what Find has found.
type Found struct {
	// ID is the physical id; "" when there is nothing.
	ID string
	// Tags are those of the resource, the mark among them.
	Tags map[string]string
	// Properties are compared with the desired ones where the type has no tags.
	Properties map[string]any
}

// Live is a resource as its service describes it, in CloudFormation's shapes.
type Live struct {
	Properties map[string]any
	// Attributes are what Fn::GetAtt reads.
	Attributes map[string]any
}

// Call is one step on one resource: the request (its properties with the defaults of removed ones) and the client of the
// resource's account and region.
type Call[C any] struct {
	provider.Request
	Client C
	// Doubt: an earlier call of this operation, without an answer, may have made what is to be created.
	Doubt bool
}

// Has reports whether the template gives a property.
func (c *Call[C]) Has(property string) bool { return c.Properties[property] != nil }

// Text is a property as text: "" when the template does not give it.
func (c *Call[C]) Text(property string) string { return Text(c.Properties[property]) }

// Known is a property that the request has: as desired, or, for a deletion or a read, as recorded.
func (c *Call[C]) Known(property string) any {
	if v := c.Properties[property]; v != nil {
		return v
	}
	return c.Previous[property]
}

// Changed reports whether a property differs from what the resource was made from or last updated to.
func (c *Call[C]) Changed(property string) bool {
	return !Same(c.Type, property, c.Previous[property], c.Properties[property])
}

// Removed reports whether the template no longer gives a property that it gave.
func (c *Call[C]) Removed(property string) bool {
	return c.Previous[property] != nil && c.Properties[property] == nil
}

// operation names the operation, the same for all its attempts.
func (c *Call[C]) operation() string {
	if c.Operation != "" {
		return c.Operation
	}
	return c.Token
}
