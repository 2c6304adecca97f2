// Package intrinsic resolves CloudFormation's intrinsic functions and pseudo parameters. It is pure: facts
// that come from AWS or from other stacks are fetched before and handed in as a Scope.
package intrinsic

import (
	"errors"
	"fmt"

	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/schema"
	"github.com/slipway-cdk/slipway/pkg/template"
)

// Unknown stands for a value that only exists after a deploy: a Ref or GetAtt of a resource that is yet to
// be created or replaced. A function over an unknown is unknown.
type Unknown struct {
	// Refs lists what it waits for, sorted: "Bucket", "Role.Arn"; "export:Name" for a pending import,
	// "output:Stack|Region|Name" for a pending stack output.
	Refs []string
}

// NoValue is what Resolve returns for a value that is AWS::NoValue as a whole. Inside a map or a list it
// never appears: the key or the item is dropped.
type NoValue struct{}

// Resource is what Ref and Fn::GetAtt can read of one resource.
type Resource struct {
	Type       string
	PhysicalID string
	Properties map[string]any
	Attributes map[string]any
	// Pending: it does not exist yet or will be replaced; Ref and GetAtt are Unknown.
	Pending bool
}

// Pseudo holds the pseudo parameters of one stack.
type Pseudo struct {
	AccountID        string
	Region           string
	Partition        string
	URLSuffix        string
	StackName        string
	StackID          string
	NotificationARNs []string
}

// Scope is everything that an expression may refer to.
type Scope struct {
	Template   *template.Template
	Parameters map[string]any
	// Conditions holds the evaluated conditions.
	Conditions map[string]bool
	Pseudo     Pseudo
	// Resources holds every resource of the stack, by logical id. A resource of the template that is not in
	// it does not exist yet: as if Pending.
	Resources map[string]Resource
	// Imports holds the value of every export that the template imports, by export name. A name that is
	// not in it is an error, unless PendingImports has it.
	Imports        map[string]any
	PendingImports map[string]bool
	// StackOutputs holds the values that Fn::GetStackOutput reads, by StackOutput.Key: "stack|region|output".
	StackOutputs        map[string]any
	PendingStackOutputs map[string]bool
	// Zones lists the availability zones of each region, sorted.
	Zones map[string][]string
	// Schema looks a resource type up (schema.Lookup): what Ref returns and which attributes are parts of
	// the identifier, for types that the tables here do not name. nil: the tables alone.
	Schema func(typ string) (*schema.Type, bool)
}

// Resolver resolves values in one scope. It keeps no state between calls and may be used concurrently as
// long as nobody changes the scope.
type Resolver struct {
	scope *Scope
}

// NewResolver returns a resolver for the scope, which it does not change.
func NewResolver(scope *Scope) *Resolver { return &Resolver{scope: scope} }

// Resolve replaces every intrinsic function in a value. What depends on something that does not exist yet
// becomes Unknown at its place; its known siblings stay. A value that is AWS::NoValue becomes NoValue. The
// path ("Properties.Role") is where the value stands and starts the path of every problem.
//
// The error is diag.Diagnostics with all problems found, not just the first. Values are not quoted in it.
// Dynamic references ({{resolve:…}}) are text here and stay as they are. The input is not changed; parts of
// it without functions may be shared with the result.
func (r *Resolver) Resolve(v any, path string) (any, error) {
	e := r.evaluation(inProperties)
	out := e.value(v, path)
	if err := e.diags.Err(); err != nil {
		return nil, err
	}
	return out, nil
}

// ResolveProperties resolves a resource's properties. nil stays nil.
func (r *Resolver) ResolveProperties(props map[string]any, path string) (map[string]any, error) {
	if props == nil {
		return nil, nil
	}
	v, err := r.Resolve(props, path)
	if err != nil {
		return nil, err
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, diag.Diagnostics{{Severity: diag.Error, Summary: "the properties as a whole are not an object", Path: path}}
	}
	return m, nil
}

// InResource returns the error with the logical id filled in where a diagnostic names none.
func InResource(err error, logicalID string) error {
	var ds diag.Diagnostics
	if !errors.As(err, &ds) {
		return fmt.Errorf("resolving %s: %w", logicalID, err)
	}
	out := make(diag.Diagnostics, len(ds))
	for i, d := range ds {
		if d.LogicalID == "" {
			d.LogicalID = logicalID
		}
		out[i] = d
	}
	return out
}
