package run

import (
	"cmp"
	"context"
	"time"

	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// RequestVersion is the version of request.json.
const RequestVersion = 1

// Request is what a run is asked to do: slipway/runs/{id}/request.json. The caller writes it once, before it
// starts the execution; a deployment's Open writes one for each of its stacks.
type Request struct {
	Version int    `json:"version"`
	RunID   string `json:"runId"`
	// Root is the deployment run that a stack's own run belongs to; empty in the deployment's request.
	Root    string         `json:"root,omitempty"`
	Command runlog.Command `json:"command"`
	// Caller is who asked, for the lock and the log: "user@host".
	Caller string `json:"caller"`
	// Region is the caller's own region: the key of the exports index (reference §0.1).
	Region string `json:"region"`
	// Stacks are the selected stacks in dependency order. A stack's own run has exactly one.
	Stacks []StackRequest `json:"stacks"`
	// Assets are what the stacks need published.
	Assets    []AssetRequest `json:"assets,omitempty"`
	Options   Options        `json:"options"`
	CreatedAt time.Time      `json:"createdAt"`
	// From is the key of the upload that the request was made of, and Upload the archive that the sources of its assets
	// are in; their paths are those in the archive. Both are empty for a request that a process has submitted itself.
	From   string  `json:"from,omitempty"`
	Upload *Upload `json:"upload,omitempty"`
	// Of is the command whose plan a plan run computes: deploy or destroy.
	Of runlog.Command `json:"of,omitempty"`
	// PlanRun binds the run to a plan that was shown: a stack whose record or template has changed since is
	// refused.
	PlanRun string `json:"planRun,omitempty"`
	// Holder is the process that submits the run, where it can be known that it is gone (--local, --direct): a
	// run whose execution it has not come to start is then closed by the next process.
	Holder string `json:"holder,omitempty"`
}

// root is the run whose vault holds the request's secrets.
func (r Request) root() string { return cmp.Or(r.Root, r.RunID) }

// StackRequest is one stack of a request.
type StackRequest struct {
	runlog.StackRef
	DisplayName string `json:"displayName"`
	// TemplateKey is the object that holds the template; empty for a destroy.
	TemplateKey string            `json:"templateKey,omitempty"`
	DependsOn   []string          `json:"dependsOn,omitempty"` // names of stacks in the request
	Assets      []string          `json:"assets,omitempty"`    // AssetRequest ids
	Parameters  map[string]string `json:"parameters,omitempty"`
	// NoEcho are the handles in the run vault under which the values of NoEcho parameters are.
	NoEcho                map[string]string `json:"noEcho,omitempty"`
	Tags                  map[string]string `json:"tags,omitempty"`
	TerminationProtection bool              `json:"terminationProtection,omitempty"`
	// Role is what the calls for the stack are made under; nil for the credentials of the process.
	Role *Role `json:"role,omitempty"`
	// Nested are the templates of the stacks nested in it, by logical ID: what Options.Recursive looks into.
	Nested map[string]NestedTemplate `json:"nested,omitempty"`

	// passed is set while a nested stack is planned: what its parent passes to it.
	passed *passed
}

// AssetRequest is one asset to publish. The source is a path below the assembly that the publisher can read.
type AssetRequest struct {
	ID    string         `json:"id"`
	Asset assembly.Asset `json:"asset"`
}

// Options are the switches of a deploy or destroy.
type Options struct {
	// Concurrency caps the operations in one wave. 0 means 40.
	Concurrency int `json:"concurrency,omitempty"`
	// NoRollback keeps what a failed deploy has done.
	NoRollback bool `json:"noRollback,omitempty"`
	// ForceStatefulRecreation allows the replacement of a resource that holds data.
	ForceStatefulRecreation bool `json:"forceStatefulRecreation,omitempty"`
	// Replace allows a replacement that keeps a fixed name: the old resource is deleted first.
	Replace bool `json:"replace,omitempty"`
	// RelaxVPCRoutes drops the DependsOn edges from functions and roles to routes that CDK adds by habit
	// (reference §6.3).
	RelaxVPCRoutes bool `json:"relaxVpcRoutes,omitempty"`
	// RemoveProtection lets a destroy pass a stack's termination protection.
	RemoveProtection bool `json:"removeProtection,omitempty"`
	// DeleteRetained makes a destroy delete what the templates say to retain, too. In a simulated account
	// there is nobody to retain it for.
	DeleteRetained bool `json:"deleteRetained,omitempty"`
	// Wait says how far creates and updates are followed.
	Wait provider.WaitMode `json:"wait,omitempty"`
	// SkipFinalSnapshot deletes without the final snapshot that a policy of Snapshot asks for.
	SkipFinalSnapshot bool `json:"skipFinalSnapshot,omitempty"`
	// RevertFailed makes a rollback undo what has failed, too; Force give up what can't be undone, for good; Orphans
	// leave these resources as they are: see plan.ReplayInput.
	RevertFailed bool     `json:"revertFailed,omitempty"`
	Force        bool     `json:"force,omitempty"`
	Orphans      []string `json:"orphans,omitempty"`
	// RecreateVia are recorded resources, by logical id, that are replaced so that another layer provisions them.
	RecreateVia map[string]provider.Route `json:"recreateVia,omitempty"`
	// WaitForLock is for how many seconds a run waits for the lock of a stack that somebody else works on, in the
	// order in which the runs have come. 0 refuses at once; more than MaxWaitForLock is MaxWaitForLock.
	WaitForLock int `json:"waitForLock,omitempty"`
	// Lenient is for a plan that is only looked at (diff): a damaged record is repaired, and what a deploy
	// would refuse for the sake of data is a warning.
	Lenient bool `json:"lenient,omitempty"`
	// Recursive makes a plan run plan the nested stacks as well. It is for plans that are only looked at, too.
	Recursive bool `json:"recursive,omitempty"`
}

// Submission is what a caller decides about a run; the plane turns it into a Request.
type Submission struct {
	Command runlog.Command
	Of      runlog.Command // plan runs: the command whose plan is wanted
	Options Options
	PlanRun string
	Caller  string
	// Detach: the run is to go on when the process that submits it has ended.
	Detach bool
	// Parameters are values for the parameters of templates, by assembly.Stack.ID and parameter name. Those of
	// NoEcho parameters are in clear here: the plane puts them into the run vault before it stores anything.
	Parameters map[string]map[string]string
}

// Deploys reports whether the run, or the one whose plan is wanted, deploys: only that needs templates and parameters.
func (s Submission) Deploys() bool {
	return s.Command == runlog.CommandDeploy || s.Command == runlog.CommandPlan && s.Of == runlog.CommandDeploy
}

// Request returns what a run was asked to do.
func (e *Engine) Request(ctx context.Context, runID string) (Request, error) {
	var req Request
	err := getJSON(ctx, e.Objects, requestKey(runID), &req)
	return req, err
}
