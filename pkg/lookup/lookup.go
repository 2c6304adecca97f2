// Package lookup answers the questions that a CDK app asks about the account while it is synthesized
// ("which zones does the region have?"). Each kind of question has a provider; a registry holds them. Local answers
// without an account; package cloud answers from AWS. Running the app, and remembering the answers, is synth's work.
package lookup

import (
	"context"
	"fmt"
	"sort"
)

// Query is one question, as the manifest's "missing" list has it.
type Query struct {
	// Kind names the provider: "availability-zones", "vpc-provider", …
	Kind string
	// Account and Region are where to look: the query's own, or the run's where it has none.
	Account string
	Region  string
	// Props are all properties of the query, account and region included.
	Props map[string]any
}

// Provider answers one kind of query.
//
// The answer is a JSON value in the shape that the CDK construct expects (reference § 4, context providers);
// it becomes part of the app's context. An error is a lookup that failed: nothing found, no access. Where it has a
// method Next() string, that says in a sentence what to do about it. Lookups are asked concurrently.
type Provider interface {
	Lookup(ctx context.Context, q Query) (any, error)
}

// Func is a function as a Provider.
type Func func(ctx context.Context, q Query) (any, error)

// Lookup calls f.
func (f Func) Lookup(ctx context.Context, q Query) (any, error) { return f(ctx, q) }

// Kinds are the lookups that aws-cdk-lib can ask for (@aws-cdk/cloud-assembly-schema, ContextProvider).
func Kinds() []string {
	return []string{
		"ami", "availability-zones", "cc-api-provider", "endpoint-service-availability-zones", "hosted-zone",
		"key-provider", "load-balancer", "load-balancer-listener", "plugin", "security-group", "ssm", "vpc-provider",
	}
}

// Registry holds a provider for each kind. The zero value holds none.
type Registry struct {
	providers map[string]Provider
	// why explains a kind without provider; nil gives the general explanation.
	why func(kind string) error
}

// Register sets the provider of a kind. It must not be called while the registry answers.
func (r *Registry) Register(kind string, p Provider) {
	if r.providers == nil {
		r.providers = map[string]Provider{}
	}
	r.providers[kind] = p
}

// Kinds returns the kinds that have a provider, sorted.
func (r *Registry) Kinds() []string {
	out := make([]string, 0, len(r.providers))
	for k := range r.providers {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}

// Lookup answers q with the provider of its kind, or fails with an *UnavailableError when there is none.
func (r *Registry) Lookup(ctx context.Context, q Query) (any, error) {
	if p := r.providers[q.Kind]; p != nil {
		v, err := p.Lookup(ctx, q)
		if err != nil {
			return nil, fmt.Errorf("%s lookup: %w", q.Kind, err)
		}
		return v, nil
	}
	if r.why != nil {
		return nil, r.why(q.Kind)
	}
	return nil, &UnavailableError{Kind: q.Kind}
}

// UnavailableError says that no provider answers a kind of query.
type UnavailableError struct {
	Kind string
	// Local is true where the reason is that there is no AWS account to look into.
	Local bool
}

// Error implements error.
func (e *UnavailableError) Error() string {
	if e.Local {
		return fmt.Sprintf("lookups of kind %s need an AWS account; not available with --local", e.Kind)
	}
	return fmt.Sprintf("lookups of kind %s are not supported", e.Kind)
}
