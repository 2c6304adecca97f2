package plan

import (
	"fmt"
	"slices"

	"github.com/slipway-cdk/slipway/pkg/diff"
	"github.com/slipway-cdk/slipway/pkg/graph"
	"github.com/slipway-cdk/slipway/pkg/state"
	"github.com/slipway-cdk/slipway/pkg/template"
)

// cdkMetadata is the resource that the CDK adds for its own statistics. It never existed in AWS.
const cdkMetadata = "AWS::CDK::Metadata"

// OldSuffix, UndoSuffix end the ids of cleanup and undo operations.
const (
	OldSuffix  = ".old"
	UndoSuffix = ".undo"
)

// Input is what a stack's plan is built from.
type Input struct {
	// Changes are the verdicts of diff.Compute, in its order.
	Changes []diff.Change
	// Dependencies lists, for every resource of the template, the resources it comes after: diff's
	// Result.Dependencies.
	Dependencies map[string][]string
	// Record is what is deployed; nil when nothing is.
	Record *state.Record
	// DeleteEdges are orders of deletion beyond the recorded dependencies: template.DeleteEdges.
	DeleteEdges []template.DeleteEdge
	// Leftovers are old halves that an earlier run has not cleaned up.
	Leftovers []Leftover
	// Unchanged counts the resources that stay as they are.
	Unchanged int
}

// Leftover is a resource that a replacement has left and that is still to be deleted.
type Leftover struct {
	LogicalID    string
	Type         string
	PhysicalID   string
	Dependencies []string
	Policy       string
	// RunID is the run that has left it.
	RunID string
	// DeleteFirst: it goes before its resource is made anew, not with the cleanup after that: a creation that failed has
	// left it, or it has the name that the next one is to get.
	DeleteFirst bool
}

// Build turns changes into operations.
//
// Forward: creates, updates, replacements and record-only changes, each after the operations of what it
// depends on; a dependency through unchanged resources counts. Cleanup: removed resources, the old halves of
// replacements ("{id}.old") and leftovers, each after the cleanups of what depended on it. What is retained
// is forgotten instead of deleted. Operations stand in the order of the changes, cleanup last. What a failed creation has
// left, or what has the name that the next one needs, is removed before that is tried ("{id}.remnant.old").
//
// O(V+E) for the usual sparse graph.
func Build(in Input) Plan {
	p := Plan{Version: Version, Unchanged: in.Unchanged}
	ops := forward(in)
	first, left := deletedFirst(ops, in.Leftovers)
	in.Leftovers = left
	p.Operations = slices.Concat(first, ops, cleanup(in))
	return p
}

// deletedFirst plans the removal of what has to go before resources are made anew, and lets those wait for it. It returns
// the leftovers that remain for the cleanup.
func deletedFirst(ops []Operation, leftovers []Leftover) (first []Operation, rest []Leftover) {
	for _, l := range leftovers {
		i := slices.IndexFunc(ops, func(op Operation) bool {
			return op.LogicalID == l.LogicalID && (op.Action == ActionCreate || op.Action == ActionReplace)
		})
		if !l.DeleteFirst || i < 0 {
			rest = append(rest, l)
			continue
		}
		op := Operation{
			ID: l.LogicalID + ".remnant" + OldSuffix, Kind: KindResource, Phase: PhaseForward, Action: ActionDelete,
			LogicalID: l.LogicalID, Type: l.Type, Policy: l.Policy, PhysicalID: l.PhysicalID,
		}
		if slices.Contains(ops[i].DependsOn, op.ID) {
			op.ID = fmt.Sprintf("%s.remnant%d%s", l.LogicalID, len(first)+1, OldSuffix)
		}
		ops[i].DependsOn = append(slices.Clone(ops[i].DependsOn), op.ID)
		first = append(first, op)
	}
	return first, rest
}

func forward(in Input) []Operation {
	var ops []Operation
	planned := map[string]bool{}
	for _, c := range in.Changes {
		op := Operation{
			ID: c.LogicalID, Kind: KindResource, Phase: PhaseForward, LogicalID: c.LogicalID, Type: c.Type,
			Speculative: c.Speculative, Policy: c.DeletionPolicy,
		}
		switch {
		case c.Action == diff.ActionCreate:
			op.Action = ActionCreate
		case c.Action == diff.ActionUpdate:
			op.Action = ActionUpdate
		case c.Action == diff.ActionReplace:
			op.Action, op.Retain, op.DeleteFirst = ActionReplace, c.Retain, c.DeleteFirst && !c.Retain
		case c.RecordOnly:
			op.Action = ActionRecord
		default:
			continue
		}
		planned[c.LogicalID] = true
		ops = append(ops, op)
	}
	after := dependencies(in).Contract(func(id string) bool { return planned[id] })
	for i, op := range ops {
		ops[i].DependsOn = after.Dependencies(op.ID)
	}
	return ops
}

// dependencies is the template's graph, with the nodes in the order of the changes, then sorted.
func dependencies(in Input) *graph.Graph {
	g := graph.New(len(in.Dependencies))
	for _, c := range in.Changes {
		g.AddNode(c.LogicalID)
	}
	ids := sorted(in.Dependencies)
	for _, id := range ids {
		g.AddNode(id)
	}
	for _, id := range ids {
		for _, d := range in.Dependencies[id] {
			g.AddEdge(d, id)
		}
	}
	return g
}

// cleanup plans the removals. Their order comes from what the record says depended on what, since that is
// how the old world stands, and from the template where it says more.
func cleanup(in Input) []Operation {
	c := newRemovals()
	for _, change := range in.Changes {
		id := change.LogicalID
		switch {
		case change.Action == diff.ActionReplace && !change.Retain && !change.DeleteFirst:
			typ := change.Type
			if change.OldType != "" {
				typ = change.OldType
			}
			c.add(Operation{
				ID: id + OldSuffix, Action: ActionDelete, LogicalID: id, Type: typ,
				Policy: change.UpdateReplacePolicy, PhysicalID: physicalID(in.Record, id), Speculative: change.Speculative,
			})
		case change.Action == diff.ActionDelete:
			c.add(removal(id, change.Type, change.DeletionPolicy, change.Retain, in.Record))
		}
	}
	c.record(in.Record, in.DeleteEdges)
	for _, id := range sorted(in.Dependencies) {
		for _, d := range in.Dependencies[id] {
			c.before(id, d, true)
		}
	}
	for i, l := range in.Leftovers {
		op := Operation{
			ID: l.LogicalID + OldSuffix, Action: ActionDelete, LogicalID: l.LogicalID, Type: l.Type,
			Policy: l.Policy, PhysicalID: l.PhysicalID,
		}
		if c.has(op.ID) {
			op.ID = fmt.Sprintf("%s.%d%s", l.LogicalID, i+1, OldSuffix)
		}
		c.add(op)
		for _, d := range l.Dependencies {
			c.beforeOperation(op.ID, d)
		}
	}
	return c.operations()
}

func removal(id, typ, policy string, retain bool, record *state.Record) Operation {
	op := Operation{
		ID: id, Action: ActionDelete, LogicalID: id, Type: typ, Policy: policy, PhysicalID: physicalID(record, id),
	}
	if retain {
		op.Action, op.Retain = ActionForget, true
	}
	return op
}

func physicalID(record *state.Record, id string) string {
	if record == nil || record.Resources[id] == nil {
		return ""
	}
	return record.Resources[id].PhysicalID
}

// BuildDestroy plans the removal of everything in a record, in reverse dependency order: what depends on a
// resource goes before it. extra are orders beyond the recorded dependencies (template.DeleteEdges).
// Resources under the policies Retain and RetainExceptOnCreate are forgotten.
func BuildDestroy(record *state.Record, extra []template.DeleteEdge, leftovers ...Leftover) Plan {
	in := Input{Record: record, DeleteEdges: extra, Leftovers: leftovers}
	if record != nil {
		for _, id := range sorted(record.Resources) {
			r := record.Resources[id]
			in.Changes = append(in.Changes, diff.Change{
				LogicalID: id, Type: r.ResourceType, Action: diff.ActionDelete, DeletionPolicy: r.DeletionPolicy,
				Retain: diff.Retained(r.DeletionPolicy) || r.ResourceType == cdkMetadata,
			})
		}
	}
	return Plan{Version: Version, Operations: cleanup(in)}
}

// removals collects cleanup operations and their order.
type removals struct {
	ops []Operation
	// byResource are the ids of the operations that remove something of a logical id.
	byResource map[string][]string
	ids        map[string]bool
	g          *graph.Graph
	// soft edges are dropped first where the order would be a circle.
	soft map[[2]string]bool
}

func newRemovals() *removals {
	return &removals{byResource: map[string][]string{}, ids: map[string]bool{}, g: graph.New(0), soft: map[[2]string]bool{}}
}

func (c *removals) add(op Operation) {
	op.Kind, op.Phase = KindResource, PhaseCleanup
	c.ops = append(c.ops, op)
	c.byResource[op.LogicalID] = append(c.byResource[op.LogicalID], op.ID)
	c.ids[op.ID] = true
	c.g.AddNode(op.ID)
}

func (c *removals) has(id string) bool { return c.ids[id] }

// record orders the operations as the record's dependencies and the delete edges say.
func (c *removals) record(record *state.Record, extra []template.DeleteEdge) {
	if record != nil {
		for _, id := range sorted(record.Resources) {
			for _, d := range record.Resources[id].Dependencies {
				c.before(id, d, false)
			}
		}
	}
	for _, e := range extra {
		c.before(e.First, e.Then, true)
	}
}

// before says that what is removed of the resource first goes before what is removed of then.
func (c *removals) before(first, then string, soft bool) {
	for _, f := range c.byResource[first] {
		for _, t := range c.byResource[then] {
			if f == t || c.g.HasEdge(f, t) {
				continue
			}
			c.g.AddEdge(f, t)
			if soft {
				c.soft[[2]string{f, t}] = true
			}
		}
	}
}

func (c *removals) beforeOperation(op, then string) {
	for _, t := range c.byResource[then] {
		if t != op && !c.g.HasEdge(op, t) {
			c.g.AddEdge(op, t)
			c.soft[[2]string{op, t}] = true
		}
	}
}

// operations returns the operations with their order. Records of different ages can contradict each other;
// a circle is broken where the order matters least, and the providers' retries on "in use" do the rest.
func (c *removals) operations() []Operation {
	for {
		cycles := c.g.Cycles()
		if len(cycles) == 0 {
			break
		}
		for _, cycle := range cycles {
			edge := cycle.Edges[len(cycle.Edges)-1]
			for _, e := range cycle.Edges {
				if c.soft[[2]string{e.From, e.To}] {
					edge = e
				}
			}
			c.g.RemoveEdge(edge.From, edge.To)
		}
	}
	for i, op := range c.ops {
		c.ops[i].DependsOn = c.g.Dependencies(op.ID)
	}
	return c.ops
}

func sorted[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
