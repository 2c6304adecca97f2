package simulated

import (
	"context"

	"github.com/slipway-cdk/slipway/pkg/provider"
)

// Snapshots wraps a provider of sandbox resources and takes the final snapshots that it can't take itself: in the
// sandbox those are a note of what was there.
type Snapshots struct {
	provider.Provider
	Client Client
}

// Delete takes the final snapshot, where one is asked for, and then deletes. Both may be repeated.
func (s *Snapshots) Delete(ctx context.Context, req provider.Request) (provider.Progress, error) {
	if req.FinalSnapshot != "" {
		err := s.Client(req.Account, req.Region).Snapshot(ctx, req.Type, req.PhysicalID, req.FinalSnapshot)
		if err = wrap(err); err != nil && !provider.IsNotFound(err) {
			return provider.Progress{}, err
		}
		req.FinalSnapshot = ""
	}
	return s.Provider.Delete(ctx, req)
}
