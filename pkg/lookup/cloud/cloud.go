// Package cloud answers the questions of CDK apps from AWS itself: each kind of question has a file. What an answer
// looks like is what aws-cdk-lib's constructs read (@aws-cdk/cloud-assembly-api, lib/context) and what the CDK CLI
// writes into cdk.context.json, so that either tool can use the other's file.
//
// Who asks is the caller of the command line, under the lookup role that the app names for a stack where it can be
// assumed (access.go). Nothing is called, and no configuration is read, before the first question.
package cloud

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/slipway-cdk/slipway/pkg/lookup"
)

// Options say with whose credentials is looked, and who is told of what should be known.
type Options struct {
	// Config returns the caller's configuration. It is called until it succeeds, and then no more.
	Config func(context.Context) (aws.Config, error)
	// Notice is told one sentence at a time, never two at once. Nil tells nobody.
	Notice func(string)
}

// Lookups answers every kind of context query from AWS. It is safe for concurrent use.
type Lookups struct {
	registry lookup.Registry
	access   access
}

// New makes the lookups of a caller. It calls nothing.
func New(o Options) *Lookups {
	l := &Lookups{access: access{config: o.Config, tell: o.Notice, sessions: map[string]*assumed{}}}
	for kind, f := range map[string]answer{
		"ami":                                 image,
		"availability-zones":                  zones,
		"cc-api-provider":                     resources,
		"endpoint-service-availability-zones": endpointServiceZones,
		"hosted-zone":                         hostedZone,
		"key-provider":                        key,
		"load-balancer":                       loadBalancer,
		"load-balancer-listener":              listener,
		"security-group":                      securityGroup,
		"ssm":                                 parameter,
		"vpc-provider":                        vpc,
	} {
		l.registry.Register(kind, lookup.Func(func(ctx context.Context, q lookup.Query) (any, error) {
			return l.ask(ctx, q, f)
		}))
	}
	l.registry.Register("plugin", lookup.Func(plugin))
	return l
}

// Kinds are the kinds of queries that are answered or refused with their own reason, sorted.
func (l *Lookups) Kinds() []string { return l.registry.Kinds() }

// Lookup answers q. Where nothing is found and the query has a value for that (ignoreErrorOnMissingContext with
// dummyValue), the value is the answer. Errors tell the account, the region and the role; an error that has a method
// Next says what to do: *NotFoundError, *AmbiguousError, *DeniedError, *AccountError, *RoleError, *CredentialsError.
func (l *Lookups) Lookup(ctx context.Context, q lookup.Query) (any, error) {
	return l.registry.Lookup(ctx, q)
}

// Identity returns the account of the caller's credentials, and the region of the configuration, "" where it has none.
func (l *Lookups) Identity(ctx context.Context) (account, region string, err error) {
	cfg, err := l.access.base(ctx)
	if err != nil {
		return "", "", err
	}
	c, err := retrieve(ctx, cfg)
	if err != nil {
		return "", cfg.Region, err
	}
	if c.AccountID != "" {
		return c.AccountID, cfg.Region, nil
	}
	who, err := l.access.caller(ctx, cfg)
	return who.account, cfg.Region, err
}

// answer is what answers one kind, in a place that is open.
type answer func(ctx context.Context, in *place, q lookup.Query) (any, error)

func (l *Lookups) ask(ctx context.Context, q lookup.Query, f answer) (any, error) {
	in, err := l.access.open(ctx, q)
	if err != nil {
		return nil, err
	}
	v, err := f(ctx, in, q)
	var none *NotFoundError
	if errors.As(err, &none) {
		if dummy, ok := q.Props["dummyValue"]; ok && q.Props["ignoreErrorOnMissingContext"] == true {
			return dummy, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("in %s: %w", in, err)
	}
	return v, nil
}

// notices tells one sentence at a time, and each but once.
type notices struct {
	mu   sync.Mutex
	told map[string]bool
}

func (n *notices) say(tell func(string), text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if tell == nil || n.told[text] {
		return
	}
	if n.told == nil {
		n.told = map[string]bool{}
	}
	n.told[text] = true
	tell(text)
}
