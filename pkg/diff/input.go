package diff

import (
	"slices"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/graph"
	"github.com/slipway-cdk/slipway/pkg/intrinsic"
	"github.com/slipway-cdk/slipway/pkg/schema"
	"github.com/slipway-cdk/slipway/pkg/state"
	"github.com/slipway-cdk/slipway/pkg/template"
)

// Input is what the verdicts are made from.
type Input struct {
	// Record is what is deployed; nil when nothing is.
	Record *state.Record
	// Template is what is wanted, Conditions its evaluated conditions.
	Template   *template.Template
	Conditions map[string]bool
	// Dependencies are the edges of every live resource: template.Dependencies.
	Dependencies map[string][]template.Reference
	// Scope is what expressions may refer to, without Resources: those are made from the record. For Outputs
	// alone, Resources that are set are taken as they are.
	Scope *intrinsic.Scope
	// Schema looks resource types up; nil means schema.Lookup.
	Schema func(typ string) (*schema.Type, bool)
	// ChangedParameters names the NoEcho parameters whose value is not the one that the record was made
	// with. The record holds such values as "***", so only the caller, who keeps their digests, can tell.
	ChangedParameters map[string]bool
	// StackTags are the stack's tags: every resource that can have them gets them (WithStackTags).
	StackTags map[string]string
	// DeleteFirst allows a replacement that keeps a fixed name to delete the old resource first. Without it
	// such a replacement is refused.
	DeleteFirst bool
	// Recreate are recorded resources that are to be replaced although nothing about them changes, with the layer that
	// makes them then: "sdk" or "cc-api", as the record's provisionedBy says.
	Recreate map[string]string
}

// Result is what Compute has found.
type Result struct {
	// Changes are the verdicts on everything that changes: in template order, then the deletions, sorted.
	Changes []Change
	// Unchanged counts the live resources without a change.
	Unchanged int
	// Desired holds the properties of every live resource as far as they are known; intrinsic.Unknown stands
	// for the rest. These are real values, secrets included: they are not for display.
	Desired map[string]map[string]any
	// Dependencies are what the record will say each resource depends on: DependsOn first, then references,
	// resources only, each once.
	Dependencies map[string][]string
	// Scope is the scope as it stands after the changes: replaced and new resources are Pending. With it in
	// the input, Outputs tells what the outputs will be.
	Scope *intrinsic.Scope
}

// cdkMetadata is the resource that the CDK adds for its own statistics. It is skipped everywhere.
const cdkMetadata = "AWS::CDK::Metadata"

func (in *Input) lookup(typ string) *schema.Type {
	find := in.Schema
	if find == nil {
		find = schema.Lookup
	}
	t, _ := find(typ)
	return t
}

// live lists the resources that are wanted, in template order.
func (in *Input) live() []*template.Resource {
	var list []*template.Resource
	for _, id := range in.Template.Order {
		if r := in.Template.Resources[id]; r != nil && r.Type != cdkMetadata && in.Template.Live(id, in.Conditions) {
			list = append(list, r)
		}
	}
	return list
}

func (in *Input) recorded(id string) *state.Resource {
	if in.Record == nil {
		return nil
	}
	return in.Record.Resources[id]
}

// Graph is the dependency graph of the live resources, in template order. Its labels name the properties
// that make each edge: "Function.Properties.Role".
func Graph(in Input) *graph.Graph {
	live := in.live()
	g := graph.New(len(live))
	for _, r := range live {
		g.AddNode(r.LogicalID)
	}
	for _, r := range live {
		for _, ref := range in.Dependencies[r.LogicalID] {
			if g.Has(ref.Target) {
				g.AddEdge(ref.Target, r.LogicalID, r.LogicalID+"."+place(ref.Path))
			}
		}
	}
	return g
}

// place cuts a reference's path at its functions: "Properties.Role.Fn::GetAtt" is "Properties.Role".
func place(path string) string {
	segments := strings.Split(path, ".")
	for i, s := range segments {
		if s == "Ref" || strings.HasPrefix(s, "Fn::") {
			return strings.Join(segments[:i], ".")
		}
	}
	return path
}

// recordedDependencies is what the record says of a resource's dependencies (reference §1.2).
func (in *Input) recordedDependencies(id string) []string {
	var deps []string
	seen := map[string]bool{id: true}
	add := func(stated bool) {
		for _, ref := range in.Dependencies[id] {
			r := in.Template.Resources[ref.Target]
			if seen[ref.Target] || r == nil || r.Type == cdkMetadata || (ref.Kind == template.RefDependsOn) != stated {
				continue
			}
			seen[ref.Target] = true
			deps = append(deps, ref.Target)
		}
	}
	add(true)
	add(false)
	return deps
}

// sameSet compares two lists without their order.
func sameSet(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}

// Retained reports whether a resource under this DeletionPolicy stays in AWS when it leaves the stack.
// RetainExceptOnCreate only differs where the creation itself is rolled back
// (https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-attribute-deletionpolicy.html).
func Retained(policy string) bool { return policy == "Retain" || policy == "RetainExceptOnCreate" }
