package run

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/asset"
	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/objectstore"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/run/execution"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/secret"
	"github.com/slipway-cdk/slipway/pkg/state"
)

// Engine is everything the functions need. All members that do not say what becomes of their absence must be set.
type Engine struct {
	Objects   objectstore.Store
	Log       runlog.Store
	States    *state.Store
	Clock     clock.Clock
	Providers Providers
	Assets    Publisher
	Facts     Facts
	// Roles checks the stacks' roles; nil where stacks have none.
	Roles Roles
	// Macros runs template macros; nil where there is no AWS to run them.
	Macros Macros
	// Admission makes runs of uploads, Uploads publishes assets out of them, and Reports tell those who have uploaded
	// them how it went; nil where nothing is uploaded.
	Admission Admission
	Uploads   UploadPublisher
	Reports   Reports
	// Executions tells which executions still run.
	Executions Executions
	// Outside, when set, tells and waits real time where Clock is scaled.
	Outside clock.Clock
	// Holder names this process in leases.
	Holder string
	// Work is what engines of one process, with one Holder, have in common; nil where there is but one.
	Work   *AtWork
	Logger *slog.Logger
	// Vault keeps NoEcho values for the length of a run. Without it a stack that has some is refused.
	Vault *secret.Vault
	// Secrets resolves dynamic references. Without it an operation that needs one fails.
	Secrets secret.Source
	// History is the number of history events after which a run goes on in a successor execution. 0 means
	// what the quota of Step Functions allows.
	History int

	// resolvers are the secret.Resolver of each root run that this process works on.
	resolvers sync.Map
	waves     waveCache
	own       AtWork
}

// atWork are the operations that this process is working on.
func (e *Engine) atWork() *AtWork {
	if e.Work != nil {
		return e.Work
	}
	return &e.own
}

func (e *Engine) historyBudget() int {
	if e.History > 0 {
		return e.History
	}
	return defaultHistory
}

// Providers chooses the provider of a resource type; *provider.Registry is one.
type Providers interface {
	For(typeName string, recorded provider.Route, properties []string) (provider.Provider, provider.Route, error)
}

// Publisher publishes assets.
type Publisher interface {
	Publish(ctx context.Context, a assembly.Asset, env asset.Env) (asset.Outcome, error)
}

// UploadPublisher publishes the assets of requests that came with an upload.
type UploadPublisher interface {
	PublishUpload(ctx context.Context, req Request, a assembly.Asset, env asset.Env) (asset.Outcome, error)
}

// Facts are what a plan needs to know of AWS, read under the stack's role.
type Facts interface {
	// Zones returns the names of a region's available availability zones, sorted.
	Zones(ctx context.Context, account, region string) ([]string, error)
	// SSMParameter returns the value of a parameter for AWS::SSM::Parameter::Value<…>.
	SSMParameter(ctx context.Context, account, region, name string) (string, error)
}

// Executions tells what has become of an execution and of a process.
type Executions interface {
	// Running reports whether the execution of that name may still be at work. An execution that nobody
	// knows is not running.
	Running(ctx context.Context, name string) (bool, error)
	// HolderAlive reports whether the process of a lease may still be at work; where that can't be known
	// it says true, and the lease is waited for.
	HolderAlive(ctx context.Context, holder string) bool
}

// NewRunID returns a run id in cdkd's form (reference §3): "20261129T213124236Z-9d519276".
func NewRunID(now time.Time) string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return state.DeploymentRunID(now, binary.BigEndian.Uint32(b[:]))
}

// childRunID derives the run of one stack of a deployment: a repeated Open finds the same one.
func childRunID(parent, stack string, ref runlog.StackRef) string {
	stamp, _, _ := strings.Cut(parent, "-")
	return stamp + "-" + digest(parent, stack, ref.Account, ref.Region)[:8]
}

// digest hashes its parts, unambiguously joined, to hex.
func digest(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// token makes the client token of one attempt at an operation: the same for every repeat of the attempt.
func token(runID, opID, action string, attempt int) string {
	return "slipway-" + digest(runID, opID, action, fmt.Sprint(attempt))[:48]
}

// ExecutionName makes the name of a run's execution.
func ExecutionName(subject string, command runlog.Command, runID string) string {
	return execution.Name(subject, command, runID)
}

// executionOf is the name of the first execution of a run. It lasts as long as its successors do.
func executionOf(h runlog.Header) string { return ExecutionName(subjectOf(h), h.Command, h.RunID) }

// successorOf is the name of the execution in which a run goes on after a decision.
func successorOf(h runlog.Header, decision int) string {
	return ExecutionName(subjectOf(h)+"-"+strconv.Itoa(decision), h.Command, h.RunID)
}

func subjectOf(h runlog.Header) string {
	if h.Kind == runlog.KindDeployment {
		return "deployment"
	}
	return h.Stack.Name
}

func (e *Engine) logger() *slog.Logger {
	if e.Logger != nil {
		return e.Logger
	}
	return slog.New(slog.DiscardHandler)
}
