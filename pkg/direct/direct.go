package direct

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/slipway-cdk/slipway/pkg/asl"
	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/asset"
	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/controlplane"
	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/inprocess"
	"github.com/slipway-cdk/slipway/pkg/macro"
	"github.com/slipway-cdk/slipway/pkg/objectstore"
	"github.com/slipway-cdk/slipway/pkg/objectstore/s3"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/provider/custom"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog/objects"
	"github.com/slipway-cdk/slipway/pkg/secret"
	"github.com/slipway-cdk/slipway/pkg/state"
	"github.com/slipway-cdk/slipway/pkg/statebucket"
)

// Options say where a plane works.
type Options struct {
	// Config has the caller's credentials and region.
	Config aws.Config
	// Bucket names the state bucket, where something does.
	Bucket statebucket.Choice
	// Dir is where processes of this machine register, so that they know of each other at once.
	Dir string
	// ControlPlane is the name of the control plane whose key is used where there is one; "" is the default name.
	ControlPlane string
	Logger       *slog.Logger
	// Carrier starts the processes of detached runs; without it a run can't be detached.
	Carrier inprocess.Carrier
	// WrapProvider, when set, decorates every provider. Tests inject faults with it.
	WrapProvider func(provider.Provider) provider.Provider
}

// Plane deploys from this machine. It is safe for concurrent use.
type Plane struct {
	*inprocess.Plane

	cfg      aws.Config
	plane    string
	bucket   *statebucket.Store
	presence *presence
}

// followEvery is how often another process's run is looked at: every look is a request.
const followEvery = 500 * time.Millisecond

// Open asks whose the credentials are, begins to look for the state bucket, and returns. The bucket is waited for where
// it is first needed.
func Open(ctx context.Context, opts Options) (*Plane, error) {
	cfg, logger := opts.Config, opts.Logger
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Region == "" {
		return nil, diag.Diagnostics{{
			Severity: diag.Error, Summary: "no region is known", Detail: "neither the command line nor the AWS configuration names one",
			Next: "Give --region, or set AWS_REGION.",
		}}
	}
	account, err := Account(ctx, cfg)
	if err != nil {
		return nil, err
	}
	process, err := inprocess.OpenProcess(filepath.Join(opts.Dir, "processes"), "@"+hostname())
	if err != nil {
		return nil, err
	}
	clk := clock.Real{}
	p := &Plane{cfg: cfg, plane: opts.ControlPlane}
	p.bucket = statebucket.NewStore(ctx, func(ctx context.Context) (objectstore.Store, statebucket.Found, error) {
		found, err := statebucket.Resolve(ctx, cfg, account, cfg.Region, opts.Bucket)
		if err != nil {
			return nil, found, err
		}
		return &s3.Store{Client: s3.NewClient(cfg, found.Region), Bucket: found.Name, Owner: found.Owner, Clock: clk}, found, nil
	})
	p.presence = &presence{process: process, objects: p.bucket, clock: clk, logger: logger}
	accounts := &controlplane.Accounts{Base: p.presence.guard(cfg), Own: account, Clock: clk}
	engine := &run.Engine{
		Objects: p.bucket, Log: &objects.Store{Objects: p.bucket, Clock: clk}, Clock: clk, Logger: logger,
		States:    &state.Store{Objects: p.bucket, Clock: clk, Prefix: opts.Bucket.Prefix},
		Providers: wrapped(accounts.Providers(clk, responses{plane: p}), opts.WrapProvider),
		Assets:    &asset.Publisher{Bucket: accounts.AssetBuckets()},
		Facts:     accounts.Facts(),
		Roles:     accounts,
		Macros:    accounts.Macros(templates{plane: p}, clk, ""),
		Vault:     &secret.Vault{Objects: p.bucket, Sealer: &secret.Chosen{Choose: p.sealer}},
		Secrets:   accounts.Secrets(),
	}
	p.Plane = &inprocess.Plane{
		Engine: engine, Account: account, Region: cfg.Region, Holder: p.presence,
		Executions: registered{executions: &executions{objects: p.bucket}, presence: p.presence},
		Clock:      clk, Logger: logger, Carrier: opts.Carrier, Poll: followEvery,
	}
	if err := p.Start(); err != nil {
		return nil, errors.Join(err, process.Close())
	}
	return p, nil
}

// Account returns the account of the credentials.
func Account(ctx context.Context, cfg aws.Config) (string, error) {
	out, err := sts.NewFromConfig(cfg).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return "", fmt.Errorf("%w: %w", err, diag.Diagnostics{{
			Severity: diag.Error, Summary: "AWS does not know who is asking", Detail: err.Error(),
			Next: "Check the credentials: `aws sts get-caller-identity` must work, or name others with --profile.",
		}})
	}
	return aws.ToString(out.Account), nil
}

var notHostChar = regexp.MustCompile(`[^A-Za-z0-9-]+`)

func hostname() string {
	name, err := os.Hostname()
	if err != nil || name == "" {
		return "unknown"
	}
	name = notHostChar.ReplaceAllString(name, "-")
	return name[:min(len(name), 60)]
}

// Submit implements the plane of the command line. The process makes itself known first: a run whose process nobody
// knows is taken for one that will never be started.
func (p *Plane) Submit(ctx context.Context, asm *assembly.Assembly, stacks []*assembly.Stack, sub run.Submission) (string, error) {
	if err := p.presence.Begin(ctx); err != nil {
		return "", err
	}
	return p.Plane.Submit(ctx, asm, stacks, sub)
}

// Ready waits until the state bucket is found, and returns what the user should know of it.
func (p *Plane) Ready(ctx context.Context) (diag.Diagnostics, error) {
	found, err := p.bucket.Found(ctx)
	return found.Warnings, err
}

// Bucket is the state bucket.
func (p *Plane) Bucket(ctx context.Context) (statebucket.Found, error) { return p.bucket.Found(ctx) }

// FollowEvery is how often a run should be looked at by who follows it.
func (p *Plane) FollowEvery() time.Duration { return followEvery }

// Close ends this process's part in its runs. Runs that have not ended are settled by whoever meets them.
func (p *Plane) Close() error {
	err := p.Plane.Close()
	return errors.Join(err, p.presence.Close(context.Background()))
}

// registered makes the process known before it carries anything.
type registered struct {
	*executions
	presence *presence
}

// Create implements asl.Store.
func (r registered) Create(ctx context.Context, e asl.Execution, first []asl.Event) (asl.Execution, bool, error) {
	if err := r.presence.Begin(ctx); err != nil {
		return asl.Execution{}, false, err
	}
	return r.executions.Create(ctx, e, first)
}

// wrapped decorates the providers of a registry.
func wrapped(r *provider.Registry, wrap func(provider.Provider) provider.Provider) *provider.Registry {
	if wrap == nil {
		return r
	}
	r.Custom, r.CloudControl = wrap(r.Custom), wrap(r.CloudControl)
	for name, p := range r.Direct {
		r.Direct[name] = wrap(p)
	}
	return r
}

// templates are in the state bucket, where CloudFormation reads what is too large for a call.
type templates struct{ plane *Plane }

var _ macro.Templates = templates{}

// URL implements macro.Templates.
func (t templates) URL(ctx context.Context, key string) (string, error) {
	found, err := t.plane.bucket.Found(ctx)
	if err != nil {
		return "", err
	}
	return macro.Bucket{Client: s3.NewClient(t.plane.cfg, found.Region), Name: found.Name}.URL(ctx, key)
}

// responses are the objects under which handlers of custom resources answer, in the state bucket.
type responses struct{ plane *Plane }

var _ custom.Responses = responses{}

func (r responses) bucket(ctx context.Context) (*custom.Bucket, error) {
	found, err := r.plane.bucket.Found(ctx)
	if err != nil {
		return nil, err
	}
	return &custom.Bucket{Client: s3.NewClient(r.plane.cfg, found.Region), Name: found.Name, Owner: found.Owner}, nil
}

// URL implements custom.Responses.
func (r responses) URL(ctx context.Context, key string) (string, error) {
	b, err := r.bucket(ctx)
	if err != nil {
		return "", err
	}
	return b.URL(ctx, key)
}

// Get implements custom.Responses.
func (r responses) Get(ctx context.Context, key string) ([]byte, bool, error) {
	b, err := r.bucket(ctx)
	if err != nil {
		return nil, false, err
	}
	return b.Get(ctx, key)
}

// Delete implements custom.Responses.
func (r responses) Delete(ctx context.Context, key string) error {
	b, err := r.bucket(ctx)
	if err != nil {
		return err
	}
	return b.Delete(ctx, key)
}
