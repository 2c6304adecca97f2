package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/slipway-cdk/slipway/pkg/objectstore"
)

// SidecarVersion is the version of sidecar.json that Slipway writes and the highest that it reads.
const SidecarVersion = 1

// Sidecar is what Slipway must know of a stack and state.json has no member for. cdkd rebuilds a record from
// the members that it knows, so nothing of ours would survive there.
//
// # Binding
//
// Half of a sidecar depends on the record that it was written beside (a Generation: with which parameters
// and from which template did that record come about?), and two objects cannot be written in one step. So
// the sidecar is written first and holds two generations: Next, of the record that is about to be saved, and
// Previous, of the one that stands. Each names its record by Digest. A reader takes the one whose digest the
// standing record has. Every crash point of SaveWithSidecar is therefore safe:
//
//   - before the sidecar's write: the old sidecar beside the old record, its Next;
//   - between the two writes: the new sidecar beside the old record, its Previous. The generation of the
//     record that was never saved is not believed;
//   - after the record's write, answer lost or not: the new sidecar beside the new record, its Next.
//
// If neither digest fits, another tool has written the record: there is no generation (For returns nil), and
// what the sidecar says of AWS must be verified before it is acted on. A next save starts from whatever For
// returns, so a series of crashes between the two writes does not lose the standing record's generation.
//
// The other half does not depend on the record. Cleanup only ever names resources that are superseded, and
// Pending leaves out those that the standing record still holds: after a crash between the writes the
// replacement has, as far as the record knows, not happened.
//
// Both writes are conditional, so of two writers one stops at the sidecar with ErrModified before it has
// touched the record.
type Sidecar struct {
	Version   int        `json:"version"`
	StackName string     `json:"stackName"`
	Region    string     `json:"region"`
	Next      Generation `json:"next"`
	// Previous is nil when no record stood, or none that the sidecar knew.
	Previous *Generation `json:"previous,omitempty"`
	// Cleanup lists old halves of replacements, and removed resources, that still stand in AWS.
	Cleanup []OldHalf `json:"cleanup,omitempty"`
	// LastModified is Unix milliseconds.
	LastModified int64                      `json:"lastModified"`
	Extra        map[string]json.RawMessage `json:"-"`
}

// Generation is what belongs to one version of the record.
type Generation struct {
	// StateDigest is the Digest of that record.
	StateDigest string `json:"stateDigest"`
	// RunID is the run that has saved it.
	RunID string `json:"runId,omitempty"`
	// Parameters are the values that were used, except those of NoEcho parameters.
	Parameters map[string]string `json:"parameters,omitempty"`
	// NoEcho are keyed digests (HMAC) of NoEcho values, by parameter name: they show that one has changed
	// and nothing else.
	NoEcho map[string]string `json:"noEcho,omitempty"`
	// Masked are keyed digests of other secrets that the record holds as "***", by "logicalId.path".
	Masked map[string]string `json:"masked,omitempty"`
	// TemplateDigest is the SHA-256, in hex, of the template that was deployed.
	TemplateDigest string                     `json:"templateDigest,omitempty"`
	Extra          map[string]json.RawMessage `json:"-"`
}

// OldHalf is a superseded resource that awaits its deletion.
type OldHalf struct {
	LogicalID string `json:"logicalId"`
	// Resource is its record as it stood before.
	Resource *Resource `json:"resource"`
	// Remnant: a creation that failed has left it. Nothing has ever used it, and it may stand in the way of the next try.
	Remnant bool `json:"remnant,omitempty"`
	// RunID is the run that has superseded it.
	RunID string `json:"runId,omitempty"`
	// Since is Unix milliseconds.
	Since int64                      `json:"since,omitempty"`
	Extra map[string]json.RawMessage `json:"-"`
}

// For returns the generation that belongs to the record with this digest, or nil if the sidecar has none:
// then another tool has written the record.
func (c *Sidecar) For(digest string) *Generation {
	switch {
	case c == nil || digest == "":
		return nil
	case c.Next.StateDigest == digest:
		return &c.Next
	case c.Previous != nil && c.Previous.StateDigest == digest:
		return c.Previous
	}
	return nil
}

// Bound reports whether the sidecar knows the record with this digest.
func (c *Sidecar) Bound(digest string) bool { return c.For(digest) != nil }

// Pending returns the old halves that are not what the record rec still holds. rec may be nil.
func (c *Sidecar) Pending(rec *Record) []OldHalf {
	if c == nil {
		return nil
	}
	var out []OldHalf
	for _, h := range c.Cleanup {
		if rec != nil && h.Resource != nil {
			if now := rec.Resources[h.LogicalID]; now != nil &&
				now.PhysicalID == h.Resource.PhysicalID && now.ResourceType == h.Resource.ResourceType {
				continue
			}
		}
		out = append(out, h)
	}
	return out
}

// LoadSidecar returns a stack's sidecar and its ETag, or ErrNotFound.
func (s *Store) LoadSidecar(ctx context.Context, stack, region string) (*Sidecar, string, error) {
	obj, err := s.Objects.Get(ctx, s.SidecarKey(stack, region))
	if errors.Is(err, objectstore.ErrNotFound) {
		return nil, "", fmt.Errorf("sidecar of stack %s in %s: %w", stack, Region(region), ErrNotFound)
	}
	if err != nil {
		return nil, "", fmt.Errorf("reading the sidecar of stack %s in %s: %w", stack, Region(region), err)
	}
	c := &Sidecar{}
	if err := versioned(obj.Body, c, "sidecar", stack, "version"); err != nil {
		return nil, "", fmt.Errorf("reading the sidecar of stack %s in %s: %w", stack, Region(region), err)
	}
	return c, obj.ETag, nil
}

// SaveSidecar writes the sidecar alone, where the record does not change: an old half has been deleted. etag
// and errors are as for Save.
func (s *Store) SaveSidecar(ctx context.Context, c *Sidecar, etag string) (string, error) {
	c.Version, c.LastModified, c.Region = SidecarVersion, s.now().UnixMilli(), Region(c.Region)
	if c.StackName == "" || c.Region == "" {
		return "", errors.New("saving a sidecar: it names no stack or no region")
	}
	body, err := pretty(c)
	if err != nil {
		return "", fmt.Errorf("encoding the sidecar of stack %s: %w", c.StackName, err)
	}
	newETag, err := s.put(ctx, s.SidecarKey(c.StackName, c.Region), body, etag, func(stands []byte) bool {
		other := &Sidecar{}
		if versioned(stands, other, "sidecar", c.StackName, "version") != nil {
			return false
		}
		other.LastModified = c.LastModified
		a, err := pretty(other)
		return err == nil && string(a) == string(body)
	})
	if err != nil {
		return "", fmt.Errorf("saving the sidecar of stack %s in %s: %w", c.StackName, c.Region, err)
	}
	return newETag, nil
}

// DeleteSidecar removes the sidecar, after the record, if its ETag is still the given one, else it returns ErrModified.
// Nothing there is success.
func (s *Store) DeleteSidecar(ctx context.Context, stack, region, etag string) error {
	err := s.Objects.Delete(ctx, s.SidecarKey(stack, region), objectstore.Condition{IfMatch: etag})
	if errors.Is(err, objectstore.ErrPrecondition) {
		err = ErrModified
	}
	if err != nil && !errors.Is(err, objectstore.ErrNotFound) {
		return fmt.Errorf("deleting the sidecar of stack %s in %s: %w", stack, Region(region), err)
	}
	return nil
}

// Save is what SaveWithSidecar needs to know.
type Save struct {
	// Record is what shall stand, StateETag what stands now ("" for nothing).
	Record    *Record
	StateETag string
	// Was is the Digest of the record that stands now, "" for none.
	Was string
	// Sidecar is the sidecar as it was loaded, or nil, with its Cleanup as it shall be. SidecarETag is the ETag
	// it was loaded with.
	Sidecar     *Sidecar
	SidecarETag string
	// Next describes Record. Its StateDigest is filled in.
	Next Generation
}

// Saved is what stands after SaveWithSidecar.
type Saved struct {
	StateETag   string
	SidecarETag string
	Sidecar     *Sidecar
	// Digest is that of the record which stands: the next Save's Was.
	Digest string
	// Stood: the record stood there already, by an answer that was lost or by the hand of somebody else.
	Stood bool
}

// SaveWithSidecar saves the sidecar and then the record, in the order that makes every crash point safe (see
// Sidecar). After an error Saved says what stands as far as it is known: the sidecar may be the new one
// beside the old record. The call may be repeated.
func (s *Store) SaveWithSidecar(ctx context.Context, save Save) (Saved, error) {
	saved := Saved{StateETag: save.StateETag, SidecarETag: save.SidecarETag, Sidecar: save.Sidecar, Digest: save.Was}
	rec := save.Record
	rec.Region = Region(rec.Region)
	digest, err := Digest(rec)
	if err != nil {
		return saved, err
	}
	c := &Sidecar{}
	if save.Sidecar != nil {
		same := *save.Sidecar
		c = &same
	}
	c.StackName, c.Region = rec.StackName, rec.Region
	if save.Was != digest {
		var previous *Generation
		if g := c.For(save.Was); g != nil {
			same := *g
			previous = &same
		}
		c.Previous = previous
	}
	c.Next = save.Next
	c.Next.StateDigest = digest
	sidecarETag, err := s.SaveSidecar(ctx, c, save.SidecarETag)
	if err != nil {
		return saved, err
	}
	saved.Sidecar, saved.SidecarETag = c, sidecarETag
	stateETag, stood, err := s.save(ctx, rec, save.StateETag)
	if err != nil {
		return saved, err
	}
	saved.StateETag, saved.Digest, saved.Stood = stateETag, digest, stood
	return saved, nil
}
