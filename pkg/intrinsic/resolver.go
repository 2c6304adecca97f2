// Package intrinsic resolves CloudFormation's intrinsic functions and pseudo parameters. It is pure: facts
// that come from AWS or from other stacks are fetched before and handed in as a Scope.
package intrinsic

import "github.com/slipway-cdk/slipway/pkg/template"

// Unknown stands for a value that only exists after a deploy: a Ref or GetAtt of a resource that is yet to
// be created or replaced. A function over an unknown is unknown.
type Unknown struct {
	// Refs lists what it waits for: "Bucket", "Role.Arn".
	Refs []string
}

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
	// Resources holds every resource of the stack, by logical id.
	Resources map[string]Resource
	// Imports holds the value of every export that the template imports, by export name. A name that is
	// not in it is an error, unless PendingImports has it.
	Imports        map[string]any
	PendingImports map[string]bool
	// StackOutputs holds the values that Fn::GetStackOutput reads: "stack|region|output".
	StackOutputs        map[string]any
	PendingStackOutputs map[string]bool
	// Zones lists the availability zones of each region, sorted.
	Zones map[string][]string
}
