package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/asset"
	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/diff"
	"github.com/slipway-cdk/slipway/pkg/intrinsic"
	"github.com/slipway-cdk/slipway/pkg/plan"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/state"
	"github.com/slipway-cdk/slipway/pkg/template"
)

// planVersion is the version of plan.json.
const planVersion = 1

// planFile is plan.json: what a run will do, and the facts that all its values are resolved against. It never
// changes once it is written.
type planFile struct {
	Version     int       `json:"version"`
	Plan        plan.Plan `json:"plan"`
	TemplateKey string    `json:"templateKey,omitempty"`
	Facts       facts     `json:"facts"`
	// Dependencies are what each resource's record will list; Attributes what the template reads of it.
	Dependencies map[string][]string `json:"dependencies,omitempty"`
	Attributes   map[string][]string `json:"attributes,omitempty"`
	// Masked are the digests of the places that the record before this run holds as "***": state.Generation.Masked.
	Masked map[string]string `json:"masked,omitempty"`
	// Initial: the stack had no record.
	Initial bool `json:"initial,omitempty"`
	// Parameters are the values that were given, now or before, as the sidecar keeps them: without the NoEcho ones.
	Parameters map[string]string `json:"parameters,omitempty"`
	// StackTags are the stack's tags, which its resources get as well.
	StackTags map[string]string `json:"stackTags,omitempty"`
	// Orphans is what becomes of resources that a rollback has left standing.
	Orphans []orphanFate `json:"orphans,omitempty"`
	// Replay is, in the run of a rollback, how the journal is replayed.
	Replay *plan.Replay `json:"replay,omitempty"`
	// Warnings are what planning had to say.
	Warnings diag.Diagnostics `json:"warnings,omitempty"`
}

// generation is what the sidecar says of the records that this run saves.
func (f planFile) generation() state.Generation {
	digest := strings.TrimSuffix(strings.TrimPrefix(f.TemplateKey, templatePrefix), ".json")
	gen := f.Facts.generation(f.Parameters)
	gen.TemplateDigest = digest
	return gen
}

// interim is what the sidecar says of a record that is saved before the run has succeeded: the values that count
// are still those of the last deploy that has.
func (f planFile) interim(l *ledger) state.Generation {
	gen := f.generation()
	if was := l.generation; was != nil {
		gen.Parameters, gen.NoEcho, gen.Extra = was.Parameters, was.NoEcho, was.Extra
	}
	return gen
}

// stackPlan is everything that planning a stack yields.
type stackPlan struct {
	file    planFile
	view    plan.StackView
	binding binding
	// outputs are what the stack will publish, as far as it is known.
	outputs diff.OutputSet
	// expanded is the template with its macros run and its loops written out; nil when it has none.
	expanded []byte
	// nested are the nested stacks of the template and of the record, children their plans and those of the stacks
	// nested in them: both for Options.Recursive alone.
	nested   []nestedStack
	children []*stackPlan
}

// binding is what a shown plan was made from: a run bound to the plan refuses another base.
type binding struct {
	StateETag   string `json:"stateEtag"`
	TemplateKey string `json:"templateKey"`
	// Parameters is a digest of the parameters' values.
	Parameters string `json:"parameters,omitempty"`
	// Journal is the ETag of the rollback journal that a rollback replays.
	Journal string `json:"journal,omitempty"`
	// Macros is a digest of what the template's macros were given, Expanded the object that holds what they have made.
	Macros   string `json:"macros,omitempty"`
	Expanded string `json:"expanded,omitempty"`
}

// planViews is view.json of a plan run.
type planViews struct {
	Views    []plan.StackView   `json:"views"`
	Bindings map[string]binding `json:"bindings"` // by stackKey
}

// planStack plans one stack: it loads the record, gathers the facts, diffs, and checks every type and property.
// Nothing is written. earlier is what stacks before it in the same deployment publish, nil in the stack's own run.
// An error is a failure of a store, and the same call may succeed later; what is wrong with the stack is told by
// diagnostics.
func (e *Engine) planStack(ctx context.Context, req Request, s StackRequest, command runlog.Command, earlier *published) (*stackPlan, diag.Diagnostics, error) {
	l, warnings, err := e.planningLedger(ctx, s.StackRef, req.Options.Lenient)
	if err != nil {
		diags, err := refusal(err)
		return nil, diags.InStack(s.Name), err
	}
	p := &stackPlan{
		view:    plan.StackView{Stack: s.Name, Region: s.Region, Account: s.Account, Command: string(command)},
		binding: binding{StateETag: l.stateETag, TemplateKey: s.TemplateKey},
	}
	p.file = planFile{Version: planVersion, Initial: l.stands == nil}
	switch command {
	case runlog.CommandDestroy:
		diags := p.destroy(l, req.Options.DeleteRetained)
		return p, append(warnings, diags.InStack(s.Name)...), nil
	case runlog.CommandRollback:
		diags, err := e.planReplay(ctx, req, s, l, p)
		if err != nil {
			diags, err = refusal(err)
		}
		return p, append(warnings, diags...).InStack(s.Name), err
	}
	if _, _, err := e.States.LoadJournal(ctx, s.Name, s.Region); err != nil && !state.IsNotFound(err) && !req.Options.Lenient {
		// A failure could not be added to it.
		diags, err := refusal(err)
		return nil, append(warnings, diags...).InStack(s.Name), err
	}
	src, err := e.sourceTemplate(ctx, req, s, l.generation)
	if err != nil {
		diags, err := refusal(err)
		return nil, diags.InStack(s.Name), err
	}
	p.binding.Macros, p.binding.Expanded = src.macros, src.expanded
	warnings = append(warnings, src.warnings...)
	diags, err := e.planDeploy(ctx, req, s, src.t, src.macros != "", l, earlier, p)
	if err != nil {
		return nil, nil, err
	}
	return p, append(warnings, diags...).InStack(s.Name), nil
}

// refusal tells what is wrong with a file from a store that could not be read: only the first is for good.
func refusal(err error) (diag.Diagnostics, error) {
	var diags diag.Diagnostics
	var version *state.VersionError
	if errors.As(err, &diags) || errors.As(err, &version) {
		return diag.From(err), nil
	}
	var one diag.Diagnostic
	if errors.As(err, &one) {
		return diag.From(err), nil
	}
	return nil, err
}

// planningLedger loads what a plan starts from. With lenient a damaged record is repaired for the eye, with a
// warning: nothing is provisioned from such a plan.
func (e *Engine) planningLedger(ctx context.Context, ref runlog.StackRef, lenient bool) (*ledger, diag.Diagnostics, error) {
	l, err := e.loadLedger(ctx, ref)
	if err == nil || !lenient || !state.IsDamaged(err) {
		return l, nil, err
	}
	rec, etag, warnings, err := e.States.LoadLenient(ctx, ref.Name, ref.Region)
	if err != nil {
		return nil, nil, err
	}
	return &ledger{stands: rec, stateETag: etag, record: copyRecord(rec, ref), sidecar: &state.Sidecar{}}, warnings, nil
}

func (e *Engine) planDeploy(ctx context.Context, req Request, s StackRequest, t *template.Template, ran bool, l *ledger, earlier *published, p *stackPlan) (diag.Diagnostics, error) {
	var diags diag.Diagnostics
	if !t.Unexpanded { // else it is validated once its loops are written out
		diags = template.Validate(t)
	}
	if diags.HasErrors() {
		return diags, nil
	}
	f, expanded, more, err := e.gather(ctx, req, s, t, l, earlier)
	if err != nil {
		return nil, err
	}
	if diags = append(diags, more...); diags.HasErrors() {
		return diags, nil
	}
	p.file.TemplateKey = s.TemplateKey
	if ran || expanded != t {
		if p.expanded, p.file.TemplateKey, err = writtenOut(expanded); err != nil {
			return nil, err
		}
		t = expanded
	}
	deps := template.Dependencies(t, f.Conditions, dependencyOptions(req.Options)...)
	if diags = append(diags, checkSnapshots(t, f.Conditions)...); diags.HasErrors() {
		return diags, nil
	}
	orphans, err := e.adoptable(ctx, s, t, f.Conditions, l)
	if err != nil {
		return nil, err
	}
	v := &veil{e: e, s: s, t: t, f: f, masked: l.masked}
	var in diff.Input
	var result diff.Result
	recorded := l.stands
	for {
		l.stands = orphans.into(recorded)
		in = diff.Input{
			Record: l.stands, Template: t, Conditions: f.Conditions, Dependencies: deps, Scope: f.scope(t),
			StackTags: s.Tags, DeleteFirst: req.Options.Replace,
		}
		if in.Recreate, more = e.recreated(req.Options.RecreateVia, t, l.stands); more.HasErrors() {
			return append(diags, more...), nil
		}
		checked := diff.Check(in)
		if checked.HasErrors() {
			return append(diags, checked...), nil
		}
		if in.Template, more, err = v.compared(ctx, l.stands); err != nil {
			return nil, err
		}
		in.ChangedParameters = v.changed()
		checked = append(checked, more...)
		result, more = diff.Compute(in)
		if recorded != nil && orphans.release(result.Changes, recorded.Orphans) {
			continue
		}
		if diags = append(append(diags, checked...), more...); diags.HasErrors() {
			return diags, nil
		}
		break
	}
	diags, p.file.Orphans = append(diags, orphans.diags...), orphans.fates
	orphans.show(&result, t)
	if e.Providers != nil {
		diags = append(diags, e.routes(result.Changes, t, l.stands, req.Options.RecreateVia)...)
	}
	v.told = answering(result.Changes)
	for _, c := range result.Changes {
		if c.Speculative && c.Action == diff.ActionUpdate && !followsReplacement(c, result.Changes) {
			continue // it may come to nothing: its turn will tell
		}
		diags = append(diags, v.missing(c, recordOf(l.stands, c.LogicalID))...)
	}
	if diags.HasErrors() {
		return diags, nil
	}
	if !req.Options.ForceStatefulRecreation {
		severity := diag.Error
		if req.Options.Lenient {
			severity = diag.Warning
		}
		if diags = append(diags, guardStateful(result.Changes, severity)...); diags.HasErrors() {
			return diags, nil
		}
	}
	if p.binding.Parameters, err = f.parameterDigest(); err != nil {
		return nil, err
	}
	p.file.Facts, p.file.Parameters, p.file.StackTags = f, f.given, s.Tags
	p.file.Masked = l.masked
	p.file.Dependencies = result.Dependencies
	p.file.Attributes = wantedAttributes(t, deps)
	p.file.Plan = plan.Build(plan.Input{
		Changes: result.Changes, Dependencies: result.Dependencies, Record: l.stands,
		DeleteEdges: template.DeleteEdges(deployed(l.stands)), Leftovers: inTheWayFirst(leftovers(l), l, result.Changes),
		Unchanged: result.Unchanged,
	})
	p.file.Plan.Operations = append(p.file.Plan.Operations, handlersChoice(p.file.Plan, l.stands)...)
	p.view.Changes, p.view.Unchanged = result.Changes, result.Unchanged
	if req.Options.Recursive {
		p.nested, more = v.nested(l.stands, result)
		diags = append(diags, more...)
	}
	in.Scope = result.Scope
	p.outputs = diff.EvaluateOutputs(in)
	p.view.Outputs = p.outputs.Changes
	more, err = e.guardExports(ctx, req, s, p.outputs)
	return append(diags, more...), err
}

// followsReplacement reports whether a change is there because another resource is replaced: that is no mere
// possibility.
func followsReplacement(c diff.Change, all []diff.Change) bool {
	return slices.ContainsFunc(c.Changes, func(pc diff.PropertyChange) bool {
		return slices.ContainsFunc(all, func(other diff.Change) bool {
			return other.LogicalID == pc.Cause && other.Action == diff.ActionReplace
		})
	})
}

// recordOf is a resource's record, nil when it has none.
func recordOf(rec *state.Record, id string) *state.Resource {
	if rec == nil {
		return nil
	}
	return rec.Resources[id]
}

// guardStateful refuses replacements that lose data (reference §6.6), or warns of them where a plan is only
// looked at.
func guardStateful(changes []diff.Change, severity diag.Severity) diag.Diagnostics {
	var diags diag.Diagnostics
	for _, c := range diff.StatefulReplacements(changes) {
		diags = append(diags, diag.Diagnostic{
			Severity: severity, LogicalID: c.LogicalID,
			Summary: fmt.Sprintf("%s (%s) would be replaced and its data lost", c.LogicalID, c.Type),
			Detail:  "a property that can't be changed in place has changed: " + strings.Join(replacingPaths(c), ", "),
			Next:    "Pass --force-stateful-recreation if that is meant, set UpdateReplacePolicy: Retain, or undo the change.",
		})
	}
	return diags
}

func replacingPaths(c diff.Change) []string {
	var paths []string
	for _, pc := range c.Changes {
		if pc.Replacement != "" {
			paths = append(paths, pc.Path)
		}
	}
	if len(paths) == 0 {
		return []string{"Type"}
	}
	return paths
}

// wantedAttributes lists what Fn::GetAtt and Fn::Sub read of every resource.
func wantedAttributes(t *template.Template, deps map[string][]template.Reference) map[string][]string {
	out := map[string][]string{}
	add := func(ref template.Reference) {
		if ref.Attribute != "" && !slices.Contains(out[ref.Target], ref.Attribute) {
			out[ref.Target] = append(out[ref.Target], ref.Attribute)
		}
	}
	for _, refs := range deps {
		for _, ref := range refs {
			add(ref)
		}
	}
	for _, ref := range t.OutputReferences() {
		add(ref)
	}
	for _, list := range out {
		slices.Sort(list)
	}
	return out
}

// deployed is a record as template.DeleteEdges reads it.
func deployed(rec *state.Record) map[string]template.Deployed {
	if rec == nil {
		return nil
	}
	out := make(map[string]template.Deployed, len(rec.Resources))
	for id, r := range rec.Resources {
		out[id] = template.Deployed{
			Type: r.ResourceType, PhysicalID: r.PhysicalID, Properties: r.Properties,
			Attributes: r.Attributes, Dependencies: r.Dependencies,
		}
	}
	return out
}

// planRun plans a stack's own run, under its lock, and checks that it still is what was shown.
func (e *Engine) planRun(ctx context.Context, h runlog.Header, req Request) (planFile, diag.Diagnostics, error) {
	s := req.Stacks[0]
	ctx = actingFor(ctx, h.RunID, s)
	if diags, err := e.checkRole(ctx, s); err != nil || diags.HasErrors() {
		return planFile{}, diags, err
	}
	p, diags, err := e.planStack(ctx, req, s, h.Command, nil)
	if err != nil {
		return planFile{}, nil, err
	}
	// The deployment has checked this before any lock was taken, and whoever imports from the stack may have been
	// meant to be destroyed before it.
	more, err := e.checkDestroy(ctx, req)
	if err != nil {
		return planFile{}, nil, err
	}
	if diags = append(diags, more...); diags.HasErrors() {
		return planFile{}, diags, nil
	}
	if req.PlanRun != "" {
		var shown planViews
		err := getJSON(ctx, e.Objects, viewsKey(req.PlanRun), &shown)
		if isAbsent(err) {
			return planFile{}, diag.Diagnostics{{
				Severity: diag.Error, Stack: s.Name, Summary: "run " + req.PlanRun + " has no plan",
				Detail: "it has not come to one, or it is no plan run",
				Next:   "Run the command again and look at the new plan.",
			}}, nil
		}
		if err != nil {
			return planFile{}, nil, err
		}
		if was, ok := shown.Bindings[stackKey(s.StackRef)]; ok && was != p.binding {
			next := "Run the command again and look at the new plan."
			if req.Options.WaitForLock > 0 {
				next += " With --yes a run that has waited for the lock plans anew, whatever the run before it has done."
			}
			return planFile{}, diag.Diagnostics{{
				Severity: diag.Error, Stack: s.Name, Summary: "stack " + s.Name + " has changed since its plan was shown",
				Detail: "another run has written its record, or the template or its parameters are others", Next: next,
			}}, nil
		}
	}
	if !diags.HasErrors() && p != nil {
		if err := e.sealFacts(ctx, req.root(), &p.file.Facts); err != nil {
			return planFile{}, nil, err
		}
		if err := e.keepExpanded(ctx, p); err != nil {
			return planFile{}, nil, err
		}
	}
	return p.file, diags, nil
}

// planAll plans every stack of a deployment, in order: what a stack will publish is pending for the ones after it.
func (e *Engine) planAll(ctx context.Context, req Request) ([]*stackPlan, diag.Diagnostics, error) {
	command := req.Command
	if command == runlog.CommandPlan {
		command = req.Of
	}
	earlier := newPublished()
	var plans []*stackPlan
	var diags diag.Diagnostics
	for i, s := range req.Stacks {
		ctx := actingFor(ctx, req.RunID, s)
		more, err := e.checkRole(ctx, s)
		if err != nil {
			return nil, nil, err
		}
		if more.HasErrors() {
			// Nothing of its account can be read.
			diags = append(diags, more...)
			e.presume(ctx, s, earlier)
			continue
		}
		p, more, err := e.planStack(ctx, req, s, command, earlier)
		if running := stillRunning(err); running != nil {
			return nil, nil, e.startOthers(ctx, req, req.Stacks[i+1:], running)
		}
		if err != nil {
			return nil, nil, err
		}
		diags = append(diags, more...)
		if more.HasErrors() {
			// What it would have published is not known: the stacks after it must not fail for that.
			e.presume(ctx, s, earlier)
			continue
		}
		plans = append(plans, p)
		earlier.add(s, p)
		if more, err = e.planNested(ctx, req, s, p, earlier); err != nil {
			return nil, nil, err
		}
		diags = append(diags, more...)
	}
	return plans, append(diags, unmatched(req.Options.RecreateVia, plans)...), nil
}

// stackSet holds the stacks of a request.
func stackSet(req Request) map[state.Ref]bool {
	set := map[state.Ref]bool{}
	for _, s := range req.Stacks {
		set[state.Ref{Stack: s.Name, Region: state.Region(s.Region)}] = true
	}
	return set
}

// add notes what a planned stack publishes.
func (pub *published) add(s StackRequest, p *stackPlan) {
	key := func(name string) string {
		return intrinsic.StackOutput{Stack: s.Name, Region: s.Region, Output: name}.Key()
	}
	for name, v := range p.outputs.Values {
		pub.outputs[key(name)] = v
	}
	for _, name := range p.outputs.Unknown {
		pub.unknown[key(name)] = true
	}
	for name := range p.outputs.Exports {
		if v, known := p.outputs.Values[name]; known {
			pub.values[name] = v
		} else {
			pub.pending[name] = true
		}
	}
	for _, c := range p.outputs.Changes {
		if c.Kind == "remove" {
			pub.gone[c.Name] = true
		}
	}
}

// presume marks everything that a stack's template exports as pending.
func (e *Engine) presume(ctx context.Context, s StackRequest, earlier *published) {
	if s.TemplateKey == "" {
		return
	}
	t, err := e.template(ctx, s.TemplateKey)
	if err != nil {
		return
	}
	scope := &intrinsic.Scope{Template: t, Pseudo: intrinsic.PseudoFor(s.Account, s.Region, s.Name)}
	for name, o := range t.Outputs {
		earlier.unknown[intrinsic.StackOutput{Stack: s.Name, Region: s.Region, Output: name}.Key()] = true
		if o.ExportName == nil {
			continue
		}
		if v, err := intrinsic.NewResolver(scope).Resolve(o.ExportName, "Export.Name"); err == nil {
			if export, ok := v.(string); ok {
				earlier.pending[export] = true
			}
		}
	}
}

// openPlan carries out a plan run: it stores the redacted plans and closes. Nothing else is written.
func (e *Engine) openPlan(ctx context.Context, h runlog.Header, req Request) (Step, error) {
	plans, diags, err := e.planAll(ctx, req)
	if err != nil {
		return Step{}, err
	}
	more, err := e.checkDestroy(ctx, req)
	if err != nil {
		return Step{}, err
	}
	if diags = append(diags, more...); diags.HasErrors() {
		return e.refuse(ctx, h, diags)
	}
	views := planViews{Bindings: map[string]binding{}}
	for i, p := range plans {
		views.Views = append(views.Views, p.view)
		for _, child := range p.children {
			views.Views = append(views.Views, child.view)
		}
		views.Bindings[stackKey(req.Stacks[i].StackRef)] = p.binding
	}
	if err := putOnce(ctx, e.Objects, viewsKey(h.RunID), &views); err != nil {
		return Step{}, err
	}
	if e.Reports != nil && req.From != "" {
		if err := e.Reports.Planned(ctx, req, views.Views); err != nil {
			return Step{}, fmt.Errorf("reporting the plan of run %s: %w", h.RunID, err)
		}
	}
	h.Diagnostics = diags
	if h, err = e.closeHeader(ctx, h, runlog.ResultSucceeded); err != nil {
		return Step{}, err
	}
	return e.closed(ctx, h)
}

// PlanViews returns the redacted plans of a plan run, in stack order.
func (e *Engine) PlanViews(ctx context.Context, runID string) ([]plan.StackView, error) {
	var views planViews
	if err := getJSON(ctx, e.Objects, viewsKey(runID), &views); err != nil {
		return nil, err
	}
	return views.Views, nil
}

// Submit stores a deployment's request and header. The caller then starts the execution that the header names.
func (e *Engine) Submit(ctx context.Context, req Request) (runlog.Header, error) {
	if err := putOnce(ctx, e.Objects, requestKey(req.RunID), &req); err != nil {
		return runlog.Header{}, err
	}
	h := runlog.Header{
		RunID: req.RunID, Kind: runlog.KindDeployment, Command: req.Command, Root: req.RunID,
		Owner: state.Owner(req.Caller, req.RunID), Status: runlog.StatusNew, CreatedAt: req.CreatedAt,
	}
	h.Execution = executionOf(h)
	created, err := e.Log.CreateRun(ctx, h)
	if errors.Is(err, runlog.ErrExists) {
		return e.Log.Header(ctx, req.RunID)
	}
	if err != nil {
		return h, fmt.Errorf("creating run %s: %w", req.RunID, err)
	}
	return created, nil
}

func assetEnvironment(account, region string) asset.Env {
	return asset.Env{Account: account, Region: region}
}
