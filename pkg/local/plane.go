// Package local is the plane of --local: the control plane's own state machines and handlers, run in this
// process over one SQLite file and the sandbox. Nothing of the engine is written again here: this package
// only connects its parts.
package local

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"path/filepath"

	"github.com/slipway-cdk/slipway/pkg/asset"
	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/inprocess"
	"github.com/slipway-cdk/slipway/pkg/localdb"
	objects "github.com/slipway-cdk/slipway/pkg/objectstore/local"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/run"
	logs "github.com/slipway-cdk/slipway/pkg/runlog/local"
	"github.com/slipway-cdk/slipway/pkg/sandbox"
	"github.com/slipway-cdk/slipway/pkg/secret"
	"github.com/slipway-cdk/slipway/pkg/state"
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
	Carrier inprocess.Carrier
	// WrapProvider, when set, decorates every provider. Tests inject faults with it.
	WrapProvider func(provider.Provider) provider.Provider
}

// Plane is an open local plane. It is safe for concurrent use, and several processes may open one directory.
type Plane struct {
	*inprocess.Plane

	account, region string

	db      *sql.DB
	process *inprocess.Process
	sandbox *sandbox.Sandbox
	engine  *run.Engine
}

// Open opens the plane in a directory, and makes it if it is not there.
func Open(ctx context.Context, opts Options) (*Plane, error) {
	p := &Plane{account: opts.Account, region: opts.Region}
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
	if p.process, err = inprocess.OpenProcess(filepath.Join(opts.Dir, "processes"), ""); err != nil {
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
	clk := clock.Scaled{Speed: opts.Speed}
	p.engine = &run.Engine{
		Objects: store, Log: log, Clock: clk, Outside: clock.Real{}, Logger: opts.Logger,
		States:    &state.Store{Objects: store, Clock: clk},
		Providers: providers(endpoint, clk, opts.WrapProvider),
		Assets:    &asset.Publisher{Bucket: asset.LocalBucket{Dir: filepath.Join(opts.Dir, "assets")}, Missing: asset.SkipMissing},
		Facts:     facts{sandbox: p.sandbox},
		Vault:     &secret.Vault{Objects: store, Sealer: &secret.KeyFile{Path: filepath.Join(opts.Dir, "vault.key")}},
		Secrets:   facts{sandbox: p.sandbox},
	}
	p.Plane = &inprocess.Plane{
		Engine: p.engine, Account: p.account, Region: p.region, Holder: p.process, Executions: &executions{db: p.db},
		Clock: clk, Logger: opts.Logger, Carrier: opts.Carrier,
	}
	return p.Start()
}

// Close ends this process's part in its runs. Runs that have not ended are settled by whoever meets them.
func (p *Plane) Close() error {
	var errs []error
	if p.Plane != nil {
		errs = append(errs, p.Plane.Close())
	}
	if p.sandbox != nil {
		errs = append(errs, p.sandbox.Close())
	}
	if p.db != nil {
		errs = append(errs, p.db.Close())
	}
	if p.process != nil {
		errs = append(errs, p.process.Close())
	}
	return errors.Join(errs...)
}

// Sandbox is the simulated AWS.
func (p *Plane) Sandbox() *sandbox.Sandbox { return p.sandbox }
