package bootstrap

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/slipway-cdk/slipway/pkg/state"
)

// keptPrefix is where it is remembered what a removed control plane has left standing: it has names of its own, and the
// next installation would collide with them.
const keptPrefix = "slipway/kept"

func kept(states *state.Store) *state.Store {
	return &state.Store{Objects: states.Objects, Clock: states.Clock, Prefix: keptPrefix}
}

// Remember notes what the deletion of a stack will leave standing, before it is deleted. A stack that has no record
// leaves what was noted before.
func Remember(ctx context.Context, states *state.Store, stack, region string, now time.Time) error {
	rec, _, err := states.Load(ctx, stack, region)
	if state.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	note := &state.Record{StackName: stack, Region: region, Resources: map[string]*state.Resource{}, Outputs: map[string]any{}}
	for _, id := range slices.Sorted(maps.Keys(rec.Resources)) {
		if r := rec.Resources[id]; r.DeletionPolicy == "Retain" || r.DeletionPolicy == "RetainExceptOnCreate" {
			note.Orphans = append(note.Orphans, state.Orphan{LogicalID: id, OrphanedAt: now.UnixMilli(), Resource: r})
		}
	}
	if len(note.Orphans) == 0 {
		return nil
	}
	_, etag, err := kept(states).Load(ctx, stack, region)
	if err != nil && !state.IsNotFound(err) {
		return err
	}
	if _, err := kept(states).Save(ctx, note, etag); err != nil {
		return fmt.Errorf("noting what stack %s will leave: %w", stack, err)
	}
	return nil
}

// Recall gives a stack that has no record back what an earlier one has left, as orphans, which its next deploy adopts.
func Recall(ctx context.Context, states *state.Store, stack, region string) error {
	if _, _, err := states.Load(ctx, stack, region); !state.IsNotFound(err) {
		return err
	}
	note, _, err := kept(states).Load(ctx, stack, region)
	if state.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := states.Save(ctx, note, ""); err != nil {
		return fmt.Errorf("taking back what an earlier stack %s has left: %w", stack, err)
	}
	return nil
}
