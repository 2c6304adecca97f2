// Package inprocess carries runs in this process: the control plane's own state machines and handlers, over whatever
// stores and providers the engine has. The planes of --local and --direct are this with different parts: it knows what
// is common to them, which is how a run is submitted, carried, handed to a process of its own, followed, cancelled, and
// settled when the process that has carried it is gone.
package inprocess

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/slipway-cdk/slipway/pkg/asl"
	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/plan"
	"github.com/slipway-cdk/slipway/pkg/run"
	submission "github.com/slipway-cdk/slipway/pkg/run/submit"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/state"
)

// Holder is this process as executions and leases name it, and what is known of others.
type Holder interface {
	Name() string
	// Alive reports whether the process of that name may still be at work.
	Alive(ctx context.Context, name string) bool
}

// Plane carries runs. Its exported members are set before Start and not changed after. It is safe for concurrent use.
type Plane struct {
	// Engine does the work. Start makes it ask this plane for its executions.
	Engine *run.Engine
	// Account and Region are where environment-agnostic stacks go.
	Account, Region string
	Holder          Holder
	// Executions keeps the executions of the state machines.
	Executions asl.Store
	// Clock is the engine's.
	Clock  clock.Clock
	Logger *slog.Logger
	// Carrier starts the processes of detached runs; without it a run can't be detached.
	Carrier Carrier
	// Poll is how often it is looked whether another process's run has ended; 20 ms when zero.
	Poll time.Duration

	executor *asl.Executor
}

// Start makes the plane ready.
func (p *Plane) Start() error {
	machines, err := machines()
	if err != nil {
		return err
	}
	p.Engine.Executions, p.Engine.Holder = p, p.Holder.Name()
	p.executor = &asl.Executor{
		Machines: machines, Functions: functions{engine: p.Engine}, Store: p.Executions,
		Clock: p.Clock, Holder: p.Holder.Name(),
	}
	return nil
}

// Close ends this process's part in its runs. Runs that have not ended are settled by whoever meets them.
func (p *Plane) Close() error {
	if p.executor == nil {
		return nil
	}
	return p.executor.Close()
}

// Identity returns the account and region that environment-agnostic stacks go to.
func (p *Plane) Identity(context.Context) (account, region string, err error) {
	return p.Account, p.Region, nil
}

// Log is the run log.
func (p *Plane) Log() runlog.Store { return p.Engine.Log }

// States reads and unlocks stack records.
func (p *Plane) States() *state.Store { return p.Engine.States }

// History returns the history of a run's execution.
func (p *Plane) History(ctx context.Context, runID string) ([]asl.Event, error) {
	h, err := p.Engine.Log.Header(ctx, runID)
	if err != nil {
		return nil, fmt.Errorf("reading the header of run %s: %w", runID, err)
	}
	return p.executor.History(ctx, runExecutions+h.Execution, 0)
}

// Submit stores the templates and the request of a deployment run and starts its execution.
func (p *Plane) Submit(ctx context.Context, asm *assembly.Assembly, stacks []*assembly.Stack, sub run.Submission) (string, error) {
	desk := submission.Desk{Engine: p.Engine, Account: p.Account, Region: p.Region, Holder: p.Holder.Name()}
	req, err := desk.Prepare(ctx, asm, stacks, sub)
	if err != nil {
		return "", err
	}
	if err := p.settleDead(ctx); err != nil {
		// What is left of them is met again where it matters: at the stack's lock.
		p.logger().WarnContext(ctx, "runs of a process that is gone could not be settled", "error", err)
	}
	h, err := p.Engine.Submit(ctx, req)
	if err != nil {
		return "", err
	}
	if sub.Detach {
		return h.RunID, p.handOver(ctx, h)
	}
	return h.RunID, p.start(ctx, h)
}

// Wait returns the header of a run once it is CLOSED, whichever process carries it.
func (p *Plane) Wait(ctx context.Context, runID string) (runlog.Header, error) {
	h, err := p.Engine.Log.Header(ctx, runID)
	if err != nil {
		return h, fmt.Errorf("reading the header of run %s: %w", runID, err)
	}
	if h.Status != runlog.StatusClosed && !p.ours(ctx, h.Execution) {
		if err := p.attend(ctx, runID); err != nil {
			return h, err
		}
	} else if h.Status != runlog.StatusClosed {
		if _, err := p.executor.Wait(ctx, runExecutions+h.Execution); err != nil {
			return h, fmt.Errorf("waiting for run %s: %w", runID, err)
		}
	}
	for {
		if h, err = p.Engine.Log.Header(ctx, runID); err != nil || h.Status == runlog.StatusClosed {
			return h, err
		}
		// The execution has ended and the run has not: the settle machine is on it.
		if err := (clock.Real{}).Sleep(ctx, p.poll()); err != nil {
			return h, err
		}
	}
}

// PlanViews returns the plans that a plan run has computed.
func (p *Plane) PlanViews(ctx context.Context, runID string) ([]plan.StackView, error) {
	return p.Engine.PlanViews(ctx, runID)
}

// Running implements run.Executions: an execution whose process is dead is not running.
func (p *Plane) Running(ctx context.Context, name string) (bool, error) {
	e, err := p.executor.Describe(ctx, runExecutions+name)
	if errors.Is(err, asl.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return e.Status == asl.StatusRunning && p.Holder.Alive(ctx, e.Holder), nil
}

// HolderAlive implements run.Executions.
func (p *Plane) HolderAlive(ctx context.Context, holder string) bool {
	return p.Holder.Alive(ctx, holder)
}

func (p *Plane) poll() time.Duration {
	if p.Poll > 0 {
		return p.Poll
	}
	return 20 * time.Millisecond
}

func (p *Plane) logger() *slog.Logger {
	if p.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return p.Logger
}
