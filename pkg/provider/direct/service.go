package direct

import (
	"maps"
	"slices"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/schema"
)

// Service is the types of one AWS service.
type Service[C any] struct {
	// Name is the service's endpoint prefix: "sqs".
	Name string
	// New makes the client.
	New func(aws.Config) C
	// Errors are the kinds of the service's own codes.
	Errors Errors
	Kinds  []Kind[C]
}

// Set is a Service of whatever client.
type Set interface {
	// Providers makes a provider for each type.
	Providers(Env) map[string]provider.Provider
	// Coverage tells what the types' providers can set.
	Coverage() []Coverage
}

// Env is where providers work.
type Env struct {
	// Config is the configuration for clients of an account and region.
	Config func(account, region string) aws.Config
	Clock  clock.Clock
}

// Coverage tells which properties of a type its provider can set.
type Coverage struct {
	Type    string
	Handled []string
	// Fixed are the handled ones that nothing can change once the resource is made.
	Fixed []string
	// Unhandled are the others, with the reason.
	Unhandled map[string]string
	// CloudControl: it takes the resources that have one of the others.
	CloudControl bool
}

// Providers implements Set. Clients are made once for each account and region, and never repeat a call by themselves:
// the phases of an operation do, and a create must not be repeated blindly.
func (s Service[C]) Providers(env Env) map[string]provider.Provider {
	clients := cached(func(account, region string) C {
		cfg := env.Config(account, region)
		cfg.Retryer = func() aws.Retryer { return aws.NopRetryer{} }
		cfg.APIOptions = append(slices.Clone(cfg.APIOptions), impatient)
		return s.New(cfg)
	})
	out := map[string]provider.Provider{}
	for _, k := range s.Kinds {
		out[k.Type] = &machine[C]{kind: k, errors: s.Errors, client: clients, clock: env.Clock}
	}
	return out
}

// Coverage implements Set.
func (s Service[C]) Coverage() []Coverage {
	var out []Coverage
	for _, k := range s.Kinds {
		handled := slices.Clone(k.CreateOnly)
		for _, f := range k.Facets {
			handled = append(handled, f.Properties...)
		}
		slices.Sort(handled)
		c := Coverage{Type: k.Type, Handled: slices.Compact(handled), Fixed: k.CreateOnly, Unhandled: maps.Clone(k.Unhandled)}
		if t, ok := schema.Lookup(k.Type); ok {
			c.CloudControl = t.Provisionable
		}
		out = append(out, c)
	}
	return out
}

func cached[C any](build func(account, region string) C) func(account, region string) C {
	type scope struct{ account, region string }
	var mu sync.Mutex
	clients := map[scope]C{}
	return func(account, region string) C {
		mu.Lock()
		defer mu.Unlock()
		at := scope{account, region}
		client, ok := clients[at]
		if !ok {
			client = build(account, region)
			clients[at] = client
		}
		return client
	}
}
