package state

import (
	"strings"
	"time"

	"github.com/slipway-cdk/slipway/pkg/clock"
)

// Region canonicalises a region for keys: lower case (reference §1.1).
func Region(region string) string { return strings.ToLower(strings.TrimSpace(region)) }

// NestedStackName is the name under which the files of a nested stack stand (reference §1.1).
func NestedStackName(parent, logicalID string) string { return parent + "~" + logicalID }

func (s *Store) prefix() string {
	if p := strings.Trim(s.Prefix, "/"); p != "" {
		return p
	}
	return DefaultPrefix
}

func (s *Store) clock() clock.Clock {
	if s.Clock == nil {
		return clock.Real{}
	}
	return s.Clock
}

func (s *Store) now() time.Time { return s.clock().Now() }

func (s *Store) stackKey(stack, region, file string) string {
	return s.prefix() + "/" + stack + "/" + Region(region) + "/" + file
}

// StateKey is the key of a stack's record.
func (s *Store) StateKey(stack, region string) string { return s.stackKey(stack, region, "state.json") }

// LockKey is the key of a stack's lock.
func (s *Store) LockKey(stack, region string) string { return s.stackKey(stack, region, "lock.json") }

// JournalKey is the key of a stack's rollback journal.
func (s *Store) JournalKey(stack, region string) string {
	return s.stackKey(stack, region, "rollback-journal.json")
}

// ExportsKey is the key of the exports index that the commands of one region share.
func (s *Store) ExportsKey(region string) string {
	return s.prefix() + "/_index/" + Region(region) + "/exports.json"
}

// SidecarKey is the key of a stack's sidecar. It is Slipway's own and so not under Prefix; a prefix other
// than the default one becomes a part of it, since the same stack name may stand under both.
func (s *Store) SidecarKey(stack, region string) string {
	base := "slipway/stacks/"
	if p := s.prefix(); p != DefaultPrefix {
		base = "slipway/prefixes/" + p + "/stacks/"
	}
	return base + stack + "/" + Region(region) + "/sidecar.json"
}

// QueuePrefix is below what the runs that wait for a stack's lock leave their tickets. It is Slipway's own, like the
// sidecar.
func (s *Store) QueuePrefix(stack, region string) string {
	return strings.TrimSuffix(s.SidecarKey(stack, region), "sidecar.json") + "queue/"
}

func (s *Store) deploymentsKey(stack, region, file string) string {
	return s.stackKey(stack, region, "deployments/"+file)
}

func (s *Store) legacyStateKey(stack string) string { return s.prefix() + "/" + stack + "/state.json" }

func (s *Store) legacyLockKey(stack string) string { return s.prefix() + "/" + stack + "/lock.json" }
