package diff

import (
	"maps"
	"slices"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/intrinsic"
	"github.com/slipway-cdk/slipway/pkg/schema"
	"github.com/slipway-cdk/slipway/pkg/state"
	"github.com/slipway-cdk/slipway/pkg/template"
)

// Compute decides what has to happen to every resource (reference §6.5, §6.6).
//
// Resources are visited in dependency order, so that each one is compared when it is known what becomes of
// everything it refers to: what is created or replaced has no Ref and no attributes yet, and a property that
// reads them is a change whose value is unknown. If that property is create-only the resource is replaced
// itself, and so on. An update spreads only to what reads a changed property of it through Fn::GetAtt.
// DependsOn spreads nothing.
//
// The diagnostics are errors of values that can't be resolved, replacements that must fail, and cycles, for
// which there is no result. O(size of the properties) plus the graph.
func Compute(in Input) (Result, diag.Diagnostics) {
	g := Graph(in)
	order, err := g.TopologicalOrder()
	if err != nil {
		return Result{}, cycles(g)
	}
	d := newDiffer(in)
	d.diags = CheckStackTags(in.StackTags)
	for _, id := range order {
		d.visit(in.Template.Resources[id])
	}
	d.finish()
	return d.result, d.diags
}

// fate is what becomes of a resource, as far as those who refer to it are concerned.
type fate int

const (
	stays fate = iota
	created
	replaced
	updated
)

type differ struct {
	in       Input
	scope    *intrinsic.Scope
	resolver *intrinsic.Resolver
	fates    map[string]fate
	changes  map[string]Change
	noEcho   bool
	// readersOf lists who refers to each resource; made when it is first needed.
	readersOf map[string][]string
	result    Result
	diags     diag.Diagnostics
}

func newDiffer(in Input) *differ {
	scope := intrinsic.Scope{}
	if in.Scope != nil {
		scope = *in.Scope
	}
	scope.Template, scope.Conditions = in.Template, in.Conditions
	scope.Resources = map[string]intrinsic.Resource{}
	live := in.live()
	for _, r := range live {
		if was := in.recorded(r.LogicalID); was != nil {
			scope.Resources[r.LogicalID] = readable(was)
		}
	}
	return &differ{
		in: in, scope: &scope, resolver: intrinsic.NewResolver(&scope),
		fates: make(map[string]fate, len(live)), changes: map[string]Change{}, noEcho: hasNoEcho(in.Template),
		result: Result{
			Desired: make(map[string]map[string]any, len(live)), Dependencies: make(map[string][]string, len(live)), Scope: &scope,
		},
	}
}

func readable(r *state.Resource) intrinsic.Resource {
	return intrinsic.Resource{Type: r.ResourceType, PhysicalID: r.PhysicalID, Properties: r.Properties, Attributes: r.Attributes}
}

// visit decides on one resource and tells the scope what becomes of it.
func (d *differ) visit(r *template.Resource) {
	id := r.LogicalID
	deps := d.in.recordedDependencies(id)
	d.result.Dependencies[id] = deps
	desired, err := d.resolver.ResolveProperties(r.Properties, "Properties")
	if err != nil {
		d.diags = append(d.diags, diag.From(intrinsic.InResource(err, id))...)
		d.pending(id, created)
		return
	}
	if desired == nil {
		desired = map[string]any{}
	}
	desired = WithStackTags(d.in.lookup(r.Type), desired, d.in.StackTags)
	d.result.Desired[id] = desired
	change := Change{
		LogicalID: id, Type: r.Type,
		DeletionPolicy:      d.policy(id, "DeletionPolicy", r.DeletionPolicy),
		UpdateReplacePolicy: d.policy(id, "UpdateReplacePolicy", r.UpdateReplacePolicy),
	}
	was := d.in.recorded(id)
	switch {
	case was == nil:
		change.Action = ActionCreate
		change.Changes = d.additions(r, desired)
		d.pending(id, created)
	case was.ResourceType != r.Type:
		change.Action, change.OldType = ActionReplace, was.ResourceType
		change.Changes = []PropertyChange{{Path: "Type", Old: was.ResourceType, New: r.Type, Replacement: schema.ReplaceAlways}}
		d.pending(id, replaced)
	default:
		d.compare(&change, r, was, desired)
		d.recreate(&change, was)
		d.spread(&change, r)
	}
	if change.Action == ActionReplace {
		d.replacement(&change, was)
	}
	if change.Action == ActionNone && !change.RecordOnly {
		change.RecordOnly = recordDiffers(was, change, deps)
	}
	if change.Action == ActionNone && !change.RecordOnly {
		d.result.Unchanged++
		return
	}
	d.changes[id] = change
}

// recordDiffers reports whether the policies or dependencies in the record are not the template's.
func recordDiffers(was *state.Resource, change Change, deps []string) bool {
	return !samePolicy(change.Type, was.DeletionPolicy, change.DeletionPolicy) ||
		!samePolicy(change.Type, was.UpdateReplacePolicy, change.UpdateReplacePolicy) ||
		!sameSet(was.Dependencies, deps)
}

// samePolicy: stating Delete is stating nothing, except where the default is Snapshot (RDS).
func samePolicy(typ, a, b string) bool {
	if a == b {
		return true
	}
	if strings.HasPrefix(typ, "AWS::RDS::") {
		return false
	}
	return (a == "" || a == "Delete") && (b == "" || b == "Delete")
}

func (d *differ) policy(id, name string, v any) string {
	if s, ok := v.(string); ok || v == nil {
		return s
	}
	resolved, err := d.resolver.Resolve(v, name)
	if err != nil {
		d.diags = append(d.diags, diag.From(intrinsic.InResource(err, id))...)
		return ""
	}
	if _, none := resolved.(intrinsic.NoValue); none {
		return ""
	}
	s, ok := resolved.(string)
	if !ok {
		d.diags = append(d.diags, diag.Diagnostic{
			Severity: diag.Error, LogicalID: id, Path: name, Summary: name + " is not text that is known before the deploy",
			Next: "Use Delete, Retain, RetainExceptOnCreate or Snapshot, or a parameter that holds one of them.",
		})
	}
	return s
}

func (d *differ) comparer(r *template.Resource) *comparer {
	c := &comparer{t: d.in.lookup(r.Type)}
	if d.noEcho {
		c.secrets = secretPlaces(&d.in, d.in.Template.References(r.LogicalID), "Properties")
	}
	return c
}

// additions are the properties of a new resource, one change per top-level property.
func (d *differ) additions(r *template.Resource, desired map[string]any) []PropertyChange {
	c := d.comparer(r)
	var out []PropertyChange
	for _, key := range slices.Sorted(maps.Keys(desired)) {
		out = append(out, c.display(leaf{path: []string{key}, new: desired[key]}))
	}
	return out
}

// compare fills in what differs between the record and what is wanted.
func (d *differ) compare(change *Change, r *template.Resource, was *state.Resource, desired map[string]any) {
	change.Action = ActionNone
	if identical(was.Properties, desired) || len(was.Properties) == 0 && len(desired) == 0 {
		return
	}
	c := d.comparer(r)
	change.Action, change.Changes = c.decide(was.Properties, desired, ignoredKey(r.Type), d.causeOf)
	change.Speculative = len(change.Changes) > 0
	for _, pc := range change.Changes {
		change.Speculative = change.Speculative && pc.Cause != ""
	}
}

// recreate makes a replacement of a resource that another layer is to take over.
func (d *differ) recreate(change *Change, was *state.Resource) {
	via, wanted := d.in.Recreate[change.LogicalID]
	if !wanted {
		return
	}
	change.Action, change.Speculative = ActionReplace, false
	change.Changes = append([]PropertyChange{{
		Path: "provisionedBy", Old: was.ProvisionedBy, New: via, Replacement: schema.ReplaceAlways,
	}}, change.Changes...)
}

// ignoredKey: the Timestamp of a custom resource only makes it run (reference §6.5).
func ignoredKey(typ string) func(string) bool {
	if !template.IsCustomResource(typ) {
		return nil
	}
	return func(key string) bool { return key == "Timestamp" }
}

// decide compares properties and chooses between nothing, an update and a replacement. cause tells for an
// unknown value which resource's change it is propagated from, and whether that one is replaced; nil when
// there are no unknown values.
func (c *comparer) decide(old, desired map[string]any, ignored func(string) bool, cause func(refs []string) (string, fate)) (Action, []PropertyChange) {
	action := ActionNone
	var changes []PropertyChange
	for _, l := range c.properties(old, desired, ignored) {
		pc := c.display(l)
		pc.Replacement = c.verdict(l)
		if stated, ok := special(c.t, l.path, old, desired); ok {
			pc.Replacement = stated
		}
		if c.t != nil && c.t.Provisionable && !c.t.Updatable {
			pc.Replacement = schema.ReplaceAlways
		}
		if len(pc.NewRefs) > 0 && cause != nil {
			var how fate
			if pc.Cause, how = cause(pc.NewRefs); how == updated && pc.Replacement == schema.ReplaceAlways {
				// The value may well stay the same. Replacing on suspicion is no option.
				pc.Replacement = schema.ReplaceMaybe
			}
		}
		if pc.Replacement == schema.ReplaceAlways && resolvedBefore(l.old, l.new) {
			pc.Replacement = schema.ReplaceMaybe
		}
		if pc.Replacement == schema.ReplaceAlways {
			action = ActionReplace
		} else if action == ActionNone {
			action = ActionUpdate
		}
		changes = append(changes, pc)
	}
	return action, changes
}

// display renders a difference.
func (c *comparer) display(l leaf) PropertyChange {
	secret := c.secret(l.path)
	pc := PropertyChange{Path: dotted(l.path), NewRefs: intrinsic.HasUnknown(l.new)}
	if l.hadOld {
		pc.Old = Redact(l.old, secret)
	}
	switch _, unknown := l.new.(intrinsic.Unknown); {
	case unknown:
		pc.Unknown = true
	case !l.gone:
		pc.New = Redact(l.new, secret)
	}
	return pc
}

// causeOf names the resource whose change an unknown value is propagated from: "" when one of those it
// waits for is new, since then the template has changed here.
func (d *differ) causeOf(refs []string) (string, fate) {
	var from [updated + 1]string
	for _, ref := range refs {
		target, _, _ := strings.Cut(ref, ".")
		f, known := d.fates[target]
		switch {
		case strings.Contains(ref, ":"):
			// "export:Name", "output:Stack|Region|Name": another stack's change. Logical ids have no colon.
			target, f = ref, updated
		case !known:
			f = created
		}
		if from[f] == "" {
			from[f] = target
		}
	}
	switch {
	case from[created] != "":
		return "", created
	case from[replaced] != "":
		return from[replaced], replaced
	}
	return from[updated], updated
}

// pending makes every reference to the resource unknown.
func (d *differ) pending(id string, f fate) {
	d.fates[id] = f
	r := d.scope.Resources[id]
	r.Pending = true
	d.scope.Resources[id] = r
}

// spread tells the scope what an update or a replacement does to those who refer to the resource.
func (d *differ) spread(change *Change, r *template.Resource) {
	id := change.LogicalID
	switch change.Action {
	case ActionReplace:
		d.pending(id, replaced)
	case ActionUpdate:
		if anythingMayChange(r.Type) {
			d.pending(id, updated)
			return
		}
		d.fates[id] = updated
		uncertain := changedAttributes(d.in.Dependencies, d.readers(id), id, r.Type, change.Changes)
		if len(uncertain) == 0 {
			return
		}
		now := d.scope.Resources[id]
		now.Attributes = maps.Clone(now.Attributes)
		if now.Attributes == nil {
			now.Attributes = map[string]any{}
		}
		for _, attribute := range uncertain {
			now.Attributes[attribute] = intrinsic.Unknown{Refs: []string{id + "." + attribute}}
		}
		d.scope.Resources[id] = now
	}
}

// finish puts the changes in order and adds the deletions.
func (d *differ) finish() {
	live := map[string]bool{}
	for _, r := range d.in.live() {
		live[r.LogicalID] = true
		if c, ok := d.changes[r.LogicalID]; ok {
			d.result.Changes = append(d.result.Changes, c)
		}
	}
	if d.in.Record != nil {
		for _, id := range slices.Sorted(maps.Keys(d.in.Record.Resources)) {
			was := d.in.Record.Resources[id]
			if live[id] || was.ResourceType == cdkMetadata {
				continue
			}
			d.result.Changes = append(d.result.Changes, Change{
				LogicalID: id, Type: was.ResourceType, Action: ActionDelete, Retain: Retained(was.DeletionPolicy),
				Stateful:       stateful(d.in.lookup(was.ResourceType), was.ResourceType, was.Properties),
				DeletionPolicy: was.DeletionPolicy, UpdateReplacePolicy: was.UpdateReplacePolicy,
			})
		}
	}
	refused := d.renames()
	d.diags = append(d.diags, refused...)
	d.diags = append(d.diags, d.renamed(refused)...)
}

// Reassess compares the properties that the record holds with fully resolved ones, when an operation's turn
// has come: what a speculative change really is.
func Reassess(t *schema.Type, typ string, recorded, resolved map[string]any) (Action, []PropertyChange) {
	c := &comparer{t: t}
	return c.decide(recorded, resolved, ignoredKey(typ), nil)
}
