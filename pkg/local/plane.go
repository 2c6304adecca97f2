// Package local is the plane of --local: the control plane's own state machines and handlers, run in this
// process over one SQLite file and the sandbox. Nothing of the engine is written again here: this package
// only connects its parts.
package local

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/slipway-cdk/slipway/pkg/asl"
	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/asset"
	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/localdb"
	objects "github.com/slipway-cdk/slipway/pkg/objectstore/local"
	"github.com/slipway-cdk/slipway/pkg/plan"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/run"
	submission "github.com/slipway-cdk/slipway/pkg/run/submit"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	logs "github.com/slipway-cdk/slipway/pkg/runlog/local"
	"github.com/slipway-cdk/slipway/pkg/sandbox"
	"github.com/slipway-cdk/slipway/pkg/secret"
	"github.com/slipway-cdk/slipway/pkg/state"
	"github.com/slipway-cdk/slipway/statemachine"
)

// Options tune a local plane.
type Options struct {
	// Dir holds everything: slipway.db, sandbox.db, assets/.
	Dir string
	// Account and Region are where environment-agnostic stacks go; the sandbox's defaults when empty.
	Account string
	Region  string
	// Speed is the sandbox's: 0 is instant, N is N times real time.
	Speed  float64
	Logger *slog.Logger
	// Carrier starts the processes of detached runs; without it a run can't be detached.
	Carrier Carrier
	// WrapProvider, when set, decorates every provider. Tests inject faults with it.
	WrapProvider func(provider.Provider) provider.Provider
}

// Plane is an open local plane. It is safe for concurrent use, and several processes may open one directory.
type Plane struct {
	account, region string

	db       *sql.DB
	holder   *holder
	sandbox  *sandbox.Sandbox
	executor *asl.Executor
	engine   *run.Engine
	clock    clock.Clock
	logger   *slog.Logger
	carrier  Carrier
}

// Names of the local functions and machines. The ARNs only have to look like ARNs.
const (
	plannerFunction     = "slipway-planner"
	provisionerFunction = "slipway-provisioner"
	publisherFunction   = "slipway-publisher"
	janitorFunction     = "slipway-janitor"
	runMachine          = "arn:aws:states:us-east-1:000000000000:stateMachine:slipway-run"
	settleMachine       = "arn:aws:states:us-east-1:000000000000:stateMachine:slipway-settle"
	runExecutions       = "arn:aws:states:us-east-1:000000000000:execution:slipway-run:"
)

// Open opens the plane in a directory, and makes it if it is not there.
func Open(ctx context.Context, opts Options) (*Plane, error) {
	p := &Plane{account: opts.Account, region: opts.Region, clock: clock.Scaled{Speed: opts.Speed}, logger: opts.Logger, carrier: opts.Carrier}
	if p.logger == nil {
		p.logger = slog.New(slog.DiscardHandler)
	}
	if p.account == "" {
		p.account = sandbox.DefaultAccount
	}
	if p.region == "" {
		p.region = sandbox.DefaultRegion
	}
	if err := p.open(ctx, opts); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

func (p *Plane) open(ctx context.Context, opts Options) error {
	var err error
	if p.db, err = localdb.Open(filepath.Join(opts.Dir, "slipway.db")); err != nil {
		return err
	}
	if p.holder, err = newHolder(opts.Dir); err != nil {
		return err
	}
	if p.sandbox, err = sandbox.Open(ctx, opts.Dir, sandbox.Options{Speed: opts.Speed}); err != nil {
		return err
	}
	endpoint, err := p.sandbox.Serve()
	if err != nil {
		return err
	}
	store, err := objects.New(p.db, clock.Real{})
	if err != nil {
		return err
	}
	log, err := logs.New(p.db)
	if err != nil {
		return err
	}
	p.engine = &run.Engine{
		Objects: store, Log: log, Clock: p.clock, Outside: clock.Real{}, Holder: p.holder.name, Logger: opts.Logger,
		States:     &state.Store{Objects: store, Clock: p.clock},
		Providers:  providers(endpoint, p.clock, opts.WrapProvider),
		Assets:     &asset.Publisher{Bucket: asset.LocalBucket{Dir: filepath.Join(opts.Dir, "assets")}, Missing: asset.SkipMissing},
		Facts:      facts{sandbox: p.sandbox},
		Executions: p,
		Vault:      &secret.Vault{Objects: store, Sealer: &secret.KeyFile{Path: filepath.Join(opts.Dir, "vault.key")}},
		Secrets:    facts{sandbox: p.sandbox},
	}
	machines, err := machines()
	if err != nil {
		return err
	}
	p.executor = &asl.Executor{
		Machines: machines, Functions: functions{engine: p.engine}, Store: &executions{db: p.db},
		Clock: p.clock, Holder: p.holder.name,
	}
	return nil
}

// machines loads the shipped definitions.
func machines() (map[string]*asl.Machine, error) {
	names := map[string]string{
		statemachine.PlannerFunction: plannerFunction, statemachine.ProvisionerFunction: provisionerFunction,
		statemachine.PublisherFunction: publisherFunction, statemachine.JanitorFunction: janitorFunction,
		statemachine.SettleStateMachine: settleMachine,
	}
	out := map[string]*asl.Machine{}
	for arn, definition := range map[string][]byte{runMachine: statemachine.Run, settleMachine: statemachine.Settle} {
		m, err := asl.Load(definition, names)
		if err != nil {
			return nil, fmt.Errorf("loading %s: %w", arn, err)
		}
		out[arn] = m
	}
	return out, nil
}

// Close ends this process's part in its runs. Runs that have not ended are settled by whoever meets them.
func (p *Plane) Close() error {
	var errs []error
	if p.executor != nil {
		errs = append(errs, p.executor.Close())
	}
	if p.sandbox != nil {
		errs = append(errs, p.sandbox.Close())
	}
	if p.db != nil {
		errs = append(errs, p.db.Close())
	}
	if p.holder != nil {
		errs = append(errs, p.holder.close())
	}
	return errors.Join(errs...)
}

// Identity returns the account and region that environment-agnostic stacks go to.
func (p *Plane) Identity(context.Context) (account, region string, err error) {
	return p.account, p.region, nil
}

// Log is the run log.
func (p *Plane) Log() runlog.Store { return p.engine.Log }

// States reads and unlocks stack records.
func (p *Plane) States() *state.Store { return p.engine.States }

// Sandbox is the simulated AWS.
func (p *Plane) Sandbox() *sandbox.Sandbox { return p.sandbox }

// History returns the history of a run's execution.
func (p *Plane) History(ctx context.Context, runID string) ([]asl.Event, error) {
	h, err := p.engine.Log.Header(ctx, runID)
	if err != nil {
		return nil, fmt.Errorf("reading the header of run %s: %w", runID, err)
	}
	return p.executor.History(ctx, runExecutions+h.Execution, 0)
}

// Submit stores the templates and the request of a deployment run and starts its execution.
func (p *Plane) Submit(ctx context.Context, asm *assembly.Assembly, stacks []*assembly.Stack, sub run.Submission) (string, error) {
	desk := submission.Desk{Engine: p.engine, Account: p.account, Region: p.region, Holder: p.holder.name}
	req, err := desk.Prepare(ctx, asm, stacks, sub)
	if err != nil {
		return "", err
	}
	if err := p.settleDead(ctx); err != nil {
		// What is left of them is met again where it matters: at the stack's lock.
		p.logger.WarnContext(ctx, "runs of a process that is gone could not be settled", "error", err)
	}
	h, err := p.engine.Submit(ctx, req)
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
	h, err := p.engine.Log.Header(ctx, runID)
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
		if h, err = p.engine.Log.Header(ctx, runID); err != nil || h.Status == runlog.StatusClosed {
			return h, err
		}
		// The execution has ended and the run has not: the settle machine is on it.
		if err := (clock.Real{}).Sleep(ctx, 20*time.Millisecond); err != nil {
			return h, err
		}
	}
}

// PlanViews returns the plans that a plan run has computed.
func (p *Plane) PlanViews(ctx context.Context, runID string) ([]plan.StackView, error) {
	return p.engine.PlanViews(ctx, runID)
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
	return e.Status == asl.StatusRunning && p.holder.alive(e.Holder), nil
}

// HolderAlive implements run.Executions.
func (p *Plane) HolderAlive(_ context.Context, holder string) bool { return p.holder.alive(holder) }
