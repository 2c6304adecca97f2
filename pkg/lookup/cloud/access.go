package cloud

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/credentials/ec2rolecreds"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/slipway-cdk/slipway/pkg/lookup"
)

// What aws-cdk-lib writes for an environment that the app leaves open (@aws-cdk/cloud-assembly-api, environment).
const (
	unknownAccount = "unknown-account"
	unknownRegion  = "unknown-region"
)

// place is an account and a region with credentials to look there.
type place struct {
	cfg     aws.Config
	account string
	role    string // the lookup role that looks, "" where the caller does
}

// String names the place for people.
func (p *place) String() string {
	s := "account " + p.account + ", region " + p.cfg.Region
	if p.role != "" {
		s += ", as " + p.role
	}
	return s
}

// caller is whose credentials these are.
type caller struct{ account, partition string }

// access opens places. The caller is asked for once, and so is each role.
type access struct {
	config func(context.Context) (aws.Config, error)
	tell   func(string)
	said   notices

	mu       sync.Mutex
	loaded   *aws.Config
	who      *caller
	sessions map[string]*assumed
}

// base is the caller's configuration.
func (a *access) base(ctx context.Context) (aws.Config, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.loaded == nil {
		cfg, err := a.config(ctx)
		if err != nil {
			return aws.Config{}, err
		}
		a.loaded = &cfg
	}
	return a.loaded.Copy(), nil
}

func retrieve(ctx context.Context, cfg aws.Config) (aws.Credentials, error) {
	if cfg.Credentials == nil {
		return aws.Credentials{}, &CredentialsError{}
	}
	c, err := cfg.Credentials.Retrieve(ctx)
	switch {
	case ctx.Err() != nil:
		return c, ctx.Err()
	case err != nil:
		return c, &CredentialsError{Err: err, Instance: OfInstance(cfg.Credentials)}
	}
	return c, nil
}

// OfInstance reports whether credentials are those of an EC2 instance: what the SDK tries where nothing is configured.
func OfInstance(p aws.CredentialsProvider) bool {
	return aws.IsCredentialsProvider(p, (*ec2rolecreds.Provider)(nil))
}

// caller asks STS whose credentials those of cfg are.
func (a *access) caller(ctx context.Context, cfg aws.Config) (caller, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.who != nil {
		return *a.who, nil
	}
	if _, err := retrieve(ctx, cfg); err != nil {
		return caller{}, err
	}
	cfg.Region = cmp.Or(cfg.Region, "us-east-1") // every region tells
	out, err := sts.NewFromConfig(cfg).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	switch {
	case ctx.Err() != nil:
		return caller{}, ctx.Err()
	case err != nil:
		return caller{}, &CredentialsError{Err: err}
	}
	who := caller{account: aws.ToString(out.Account), partition: "aws"}
	if parsed, err := arn.Parse(aws.ToString(out.Arn)); err == nil {
		who.partition = parsed.Partition
	}
	a.who = &who
	return who, nil
}

// roleQuery are the properties of a query that say who is to look.
type roleQuery struct {
	LookupRoleArn               string         `json:"lookupRoleArn"`
	LookupRoleExternalID        string         `json:"lookupRoleExternalId"`
	AssumeRoleAdditionalOptions map[string]any `json:"assumeRoleAdditionalOptions"`
}

// open finds the credentials for a query. As the CDK CLI does (SdkProvider.forEnvironment), it takes the lookup role
// that the app names; where that can't be assumed, the caller's own credentials, but only in their own account.
func (a *access) open(ctx context.Context, q lookup.Query) (*place, error) {
	var ask roleQuery
	if err := decode(q, &ask); err != nil {
		return nil, err
	}
	cfg, err := a.base(ctx)
	if err != nil {
		return nil, err
	}
	if q.Region != "" && q.Region != unknownRegion {
		cfg.Region = q.Region
	}
	if cfg.Region == "" {
		return nil, errors.New("no region is known; give --region or set AWS_REGION")
	}
	who, err := a.caller(ctx, cfg)
	if err != nil {
		return nil, err
	}
	in := &place{cfg: cfg, account: q.Account}
	if in.account == "" || in.account == unknownAccount {
		in.account = who.account
	}
	if ask.LookupRoleArn == "" {
		if in.account != who.account {
			return nil, &AccountError{Account: in.account, Own: who.account}
		}
		return in, nil
	}
	role := strings.NewReplacer("${AWS::Partition}", who.partition, "${AWS::AccountId}", in.account, "${AWS::Region}", cfg.Region).Replace(ask.LookupRoleArn)
	input, err := assumption(role, ask)
	if err != nil {
		return nil, err
	}
	credentials, err := a.assume(ctx, cfg, input)
	switch {
	case err == nil:
		in.role, in.cfg.Credentials = role, credentials
		return in, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case in.account != who.account || isExpired(err):
		return nil, &RoleError{Role: role, Account: in.account, Own: who.account, Err: err}
	}
	a.said.say(a.tell, fmt.Sprintf("The lookup role %s can't be assumed (%s); your own credentials are of its account and look instead.", role, reason(err)))
	return in, nil
}

// assumed is one role as it was asked for. Its credentials renew themselves; that it can't be had is remembered.
type assumed struct {
	mu    sync.Mutex
	cache *aws.CredentialsCache
	err   error
	asked bool
}

// assume gives the credentials of a role, after it was assumed once.
func (a *access) assume(ctx context.Context, cfg aws.Config, input *sts.AssumeRoleInput) (aws.CredentialsProvider, error) {
	name, err := json.Marshal(input)
	if err != nil {
		return nil, fmt.Errorf("naming the session of role %s: %w", aws.ToString(input.RoleArn), err)
	}
	id := cfg.Region + " " + string(name)
	a.mu.Lock()
	s := a.sessions[id]
	if s == nil {
		client := sts.NewFromConfig(cfg)
		s = &assumed{cache: aws.NewCredentialsCache(aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
			return fetch(ctx, client, input)
		}))}
		a.sessions[id] = s
	}
	a.mu.Unlock()

	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.asked {
		_, err := s.cache.Retrieve(ctx)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		s.asked, s.err = true, err
	}
	return s.cache, s.err
}

func fetch(ctx context.Context, client *sts.Client, input *sts.AssumeRoleInput) (aws.Credentials, error) {
	out, err := client.AssumeRole(ctx, input)
	if err != nil {
		return aws.Credentials{}, err
	}
	if out.Credentials == nil {
		return aws.Credentials{}, errors.New("the answer has no credentials")
	}
	return aws.Credentials{
		AccessKeyID: aws.ToString(out.Credentials.AccessKeyId), SecretAccessKey: aws.ToString(out.Credentials.SecretAccessKey),
		SessionToken: aws.ToString(out.Credentials.SessionToken), Source: "LookupRole",
		CanExpire: true, Expires: aws.ToTime(out.Credentials.Expiration),
	}, nil
}

// assumption is the request for a role. The additional options are those of STS's AssumeRole in its own spelling; tags
// are passed on to roles that are assumed from there, as the CDK CLI has it.
func assumption(role string, ask roleQuery) (*sts.AssumeRoleInput, error) {
	for _, ours := range []string{"RoleArn", "ExternalId"} {
		if _, ok := ask.AssumeRoleAdditionalOptions[ours]; ok {
			return nil, fmt.Errorf("the query's assumeRoleAdditionalOptions must not have %s: lookupRoleArn and lookupRoleExternalId are for that", ours)
		}
	}
	in := &sts.AssumeRoleInput{}
	if len(ask.AssumeRoleAdditionalOptions) > 0 {
		b, err := json.Marshal(ask.AssumeRoleAdditionalOptions)
		if err != nil {
			return nil, fmt.Errorf("reading the query's assumeRoleAdditionalOptions: %w", err)
		}
		d := json.NewDecoder(bytes.NewReader(b))
		d.DisallowUnknownFields()
		if err := d.Decode(in); err != nil {
			return nil, fmt.Errorf("the query's assumeRoleAdditionalOptions are not those of sts:AssumeRole: %w", err)
		}
	}
	in.RoleArn = &role
	in.RoleSessionName = aws.String(cmp.Or(aws.ToString(in.RoleSessionName), "slipway-lookup"))
	if ask.LookupRoleExternalID != "" {
		in.ExternalId = &ask.LookupRoleExternalID
	}
	if len(in.Tags) > 0 {
		in.TransitiveTagKeys = nil
		for _, t := range in.Tags {
			in.TransitiveTagKeys = append(in.TransitiveTagKeys, aws.ToString(t.Key))
		}
	}
	return in, nil
}
