package run

import (
	"context"
	"fmt"
	"reflect"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// halfway notes how far an update has come that has failed for good: services change one property after the other, and
// leave what they have changed. It asks the service, and what it reports as it was to be is recorded so, in op.After.
// Without that a deploy that asks for the values from before would find them recorded, and leave the others in place.
//
// Where the service can't be asked, the record stays as it was. Properties that hold secrets are left out: their record
// does not tell what they are.
func (e *Engine) halfway(ctx context.Context, p provider.Provider, req provider.Request, call attempted, op runlog.Op) (runlog.Op, error) {
	op.After = nil
	if call.before == nil || !touched(op) || retryDue(op) {
		return op, nil
	}
	read := req
	read.Previous = call.before.Properties
	live, err := p.Read(ctx, read)
	if err != nil {
		if ctx.Err() != nil {
			return op, fmt.Errorf("reading %s after its update has failed: %w", op.LogicalID, ctx.Err())
		}
		return op, nil
	}
	after := *call.before
	after.Properties = arrived(call.before.Properties, call.before.ObservedProperties, call.recorded, req.Properties, live.Properties)
	if reflect.DeepEqual(after.Properties, call.before.Properties) {
		return op, nil
	}
	if op.After, err = marshal(&after); err != nil {
		return op, fmt.Errorf("encoding how far the update of %s has come: %w", op.LogicalID, err)
	}
	return op, nil
}

// arrived are the properties before an update, with those in it that the live resource has as they were to be. recorded
// are the ones sent as they may be recorded; observed is what the service reported before: what it does not report at all
// can't be missed now.
func arrived(before, observed, recorded, sent, live map[string]any) map[string]any {
	out := make(map[string]any, len(before))
	for name, value := range before {
		_, stays := sent[name]
		_, reported := observed[name]
		_, there := live[name]
		if stays || !reported || there {
			out[name] = value
		}
	}
	for name, value := range sent {
		if now, there := live[name]; there && reflect.DeepEqual(now, value) && reflect.DeepEqual(recorded[name], value) {
			out[name] = value
		}
	}
	return out
}
