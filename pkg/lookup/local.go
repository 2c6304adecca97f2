package lookup

import (
	"context"
	"errors"
	"slices"
)

// Local is the registry for runs without an AWS account. It answers availability-zones with the zones that
// the sandbox has: {region}a, {region}b and {region}c. Any other lookup fails and says why.
func Local() *Registry {
	r := &Registry{why: func(kind string) error {
		return &UnavailableError{Kind: kind, Local: slices.Contains(Kinds(), kind)}
	}}
	r.Register("availability-zones", Func(localZones))
	return r
}

func localZones(_ context.Context, q Query) (any, error) {
	if q.Region == "" {
		return nil, errors.New("no region is known; give --region or set AWS_REGION")
	}
	return []any{q.Region + "a", q.Region + "b", q.Region + "c"}, nil
}
