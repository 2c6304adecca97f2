package objects

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/slipway-cdk/slipway/pkg/objectstore"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

func eventsPrefix(runID string) string { return runsPrefix + escape(runID) + "/events/" }

func eventKey(runID, id string) string { return eventsPrefix(runID) + escape(id) + ".json" }

// Append implements runlog.Store: each event is an object of its own, made once. Those of one call are written side by
// side, so a call that fails may have stored any of them; it is repeated as a whole.
func (s *Store) Append(ctx context.Context, events ...runlog.Event) error {
	for _, e := range events {
		if e.RunID == "" || e.ID == "" {
			return fmt.Errorf("appending event %s: it has no run or no id", e.Type)
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	seen := map[string]bool{}
	for _, e := range events {
		key := eventKey(e.RunID, e.ID)
		if seen[key] {
			continue
		}
		seen[key] = true
		group.Go(func() error {
			body, err := encode(e)
			if err == nil {
				_, err = s.Objects.Put(ctx, key, body, objectstore.Condition{IfNoneMatch: true})
			}
			switch {
			case errors.Is(err, objectstore.ErrPrecondition):
				return nil // it is told already
			case err != nil:
				return fmt.Errorf("appending event %s of run %s: %w", e.ID, e.RunID, err)
			}
			s.kept.put(key, body)
			return nil
		})
	}
	return group.Wait()
}

// Events implements runlog.Store.
func (s *Store) Events(ctx context.Context, runID, after string) ([]runlog.Event, error) {
	out, err := s.events(ctx, runID, after)
	if err != nil {
		return nil, fmt.Errorf("reading the events of run %s: %w", runID, err)
	}
	return out, nil
}

func (s *Store) events(ctx context.Context, runID, after string) ([]runlog.Event, error) {
	infos, err := s.Objects.List(ctx, eventsPrefix(runID))
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, info := range infos {
		id, err := unescape(strings.TrimSuffix(strings.TrimPrefix(info.Key, eventsPrefix(runID)), ".json"))
		if err != nil {
			return nil, err
		}
		if id > after {
			ids = append(ids, id)
		}
	}
	// Escaped, they may come in another order.
	slices.Sort(ids)
	out := make([]runlog.Event, len(ids))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i, id := range ids {
		group.Go(func() error { return s.unchanging(ctx, eventKey(runID, id), &out[i]) })
	}
	return out, group.Wait()
}
