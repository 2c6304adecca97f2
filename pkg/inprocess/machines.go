package inprocess

import (
	"context"
	"errors"

	"github.com/slipway-cdk/slipway/pkg/asl"
	"github.com/slipway-cdk/slipway/pkg/asl/shipped"
	"github.com/slipway-cdk/slipway/pkg/run"
)

// Names of the functions and machines. The ARNs only have to look like ARNs.
const (
	plannerFunction     = "slipway-planner"
	provisionerFunction = "slipway-provisioner"
	publisherFunction   = "slipway-publisher"
	janitorFunction     = "slipway-janitor"
	runMachine          = "arn:aws:states:us-east-1:000000000000:stateMachine:slipway-run"
	settleMachine       = "arn:aws:states:us-east-1:000000000000:stateMachine:slipway-settle"
	runExecutions       = "arn:aws:states:us-east-1:000000000000:execution:slipway-run:"
)

// machines loads the shipped definitions.
func machines() (map[string]*asl.Machine, error) {
	return shipped.Machines(shipped.Names{
		Planner: plannerFunction, Provisioner: provisionerFunction, Publisher: publisherFunction, Janitor: janitorFunction,
		Run: runMachine, Settle: settleMachine,
	})
}

// functions invokes the engine's handlers as Lambda would: bytes in, bytes out, a failure by its name.
type functions struct{ engine *run.Engine }

// Invoke implements asl.Functions.
func (f functions) Invoke(ctx context.Context, name string, payload []byte) ([]byte, error) {
	var out []byte
	var err error
	switch name {
	case plannerFunction:
		out, err = f.engine.HandlePlanner(ctx, payload)
	case provisionerFunction:
		out, err = f.engine.HandleProvisioner(ctx, payload)
	case publisherFunction:
		out, err = f.engine.HandlePublisher(ctx, payload)
	case janitorFunction:
		out, err = f.engine.HandleJanitor(ctx, payload)
	default:
		return nil, asl.ErrFunctionNotFound
	}
	var failed *run.HandlerError
	if errors.As(err, &failed) {
		return nil, &asl.FunctionError{Type: failed.Name, Message: failed.Error()}
	}
	return out, err
}
