// Package statebucket finds the S3 bucket that holds the records of stacks, in the order that cdkd has laid down
// (reference §1.1), so that both tools find the same one, and gives access to it before it is found.
package statebucket

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"golang.org/x/sync/errgroup"

	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/objectstore/s3"
)

// DefaultName is the name of an account's state bucket where nothing names another: one for all regions.
func DefaultName(account string) string { return "cdkd-state-" + account }

// LegacyName is the default name of earlier times: one for each region.
func LegacyName(account, region string) string { return DefaultName(account) + "-" + region }

// DefaultPrefix is the first part of the keys of records.
const DefaultPrefix = "cdkd"

// Choice is what names the bucket. Zero is the default name.
type Choice struct {
	Bucket string
	// From says where the name comes from, for messages: "--state-bucket", "cdk.json".
	From string
	// Prefix is the first part of the keys of records; "" is DefaultPrefix.
	Prefix string
}

// Choose takes the first name that is given: on the command line, in the environment, in the app's configuration
// ("context" of cdk.json).
func Choose(flag string, getenv func(string) string, appContext map[string]any) Choice {
	if flag != "" {
		return Choice{Bucket: flag, From: "--state-bucket"}
	}
	for _, name := range []string{"SLIPWAY_STATE_BUCKET", "CDKD_STATE_BUCKET"} {
		if v := getenv(name); v != "" {
			return Choice{Bucket: v, From: name}
		}
	}
	for _, tool := range []string{"slipway", "cdkd"} {
		of, _ := appContext[tool].(map[string]any)
		if v, _ := of["stateBucket"].(string); v != "" {
			return Choice{Bucket: v, From: `"` + tool + `" in the context of cdk.json`}
		}
	}
	return Choice{}
}

// Found is a bucket that is there.
type Found struct {
	Name   string
	Region string
	// Owner is the account that must own it: every call names it.
	Owner string
	// Legacy: it has the default name of earlier times.
	Legacy bool
	// Warnings are what the user should know of the choice.
	Warnings diag.Diagnostics
}

// ErrNone is in the chain of the error where the account has no state bucket.
var ErrNone = errors.New("there is no state bucket")

// Resolve finds the bucket of a choice for the account whose credentials cfg has, in whatever region it is. region is
// the command's own; it is part of the legacy name only.
func Resolve(ctx context.Context, cfg aws.Config, account, region string, c Choice) (Found, error) {
	r := resolver{cfg: cfg, account: account, prefix: c.Prefix}
	if r.prefix == "" {
		r.prefix = DefaultPrefix
	}
	if c.Bucket != "" {
		at, err := r.look(ctx, c.Bucket)
		switch {
		case err != nil:
			return Found{}, err
		case at.stands == missing:
			return Found{}, fmt.Errorf("%w: %w", ErrNone, diag.Diagnostics{{
				Severity: diag.Error, Summary: "there is no state bucket " + c.Bucket, Detail: "it is named by " + c.From,
				Next: "Correct the name, or make it with `slipway bootstrap --state-bucket " + c.Bucket + "`.",
			}})
		case at.stands == denied:
			return Found{}, refused(c.Bucket, account, at.err)
		}
		return Found{Name: c.Bucket, Region: at.region, Owner: account}, nil
	}
	return r.defaults(ctx, region)
}

type resolver struct {
	cfg             aws.Config
	account, prefix string
}

// defaults looks for both default names at once.
func (r resolver) defaults(ctx context.Context, region string) (Found, error) {
	name, legacy := DefaultName(r.account), LegacyName(r.account, region)
	var now, before place
	group, looking := errgroup.WithContext(ctx)
	group.Go(func() (err error) { now, err = r.look(looking, name); return err })
	if region != "" {
		group.Go(func() (err error) { before, err = r.look(looking, legacy); return err })
	}
	if err := group.Wait(); err != nil {
		return Found{}, err
	}
	found := Found{Name: name, Region: now.region, Owner: r.account}
	old := Found{Name: legacy, Region: before.region, Owner: r.account, Legacy: true, Warnings: diag.Diagnostics{{
		Severity: diag.Warning, Summary: "the state bucket has a name of earlier times: " + legacy,
		Detail: "the default is one bucket for all regions, " + name,
		Next:   "Move its objects there, or name it with --state-bucket to go on with it.",
	}}}
	switch {
	case now.stands == missing && before.stands == missing:
		return Found{}, fmt.Errorf("%w: %w", ErrNone, diag.Diagnostics{{
			Severity: diag.Error, Summary: "account " + r.account + " has no state bucket", Detail: "there is no bucket " + name + ", and nothing names another",
			Next: "Make it with `slipway bootstrap`, or name one with --state-bucket.",
		}})
	case now.stands == missing && before.stands == denied:
		return Found{}, refused(legacy, r.account, before.err)
	case now.stands == missing:
		return old, nil
	case now.stands == denied:
		return Found{}, refused(name, r.account, now.err)
	case before.stands != there:
		return found, nil
	}
	filled, err := r.filled(ctx, found)
	if err != nil || filled {
		return found, err
	}
	if filled, err = r.filled(ctx, old); err != nil || !filled {
		return found, err
	}
	return old, nil
}

// stands tells what a look at a bucket has found.
type stands int

const (
	missing stands = iota
	there
	denied // it is there, and the caller may not look at it or it is another account's
)

type place struct {
	stands stands
	region string
	err    error // of a refusal
}

// look looks at a bucket. A failure that says nothing of the bucket is an error: a bucket that could not be looked at
// must not pass for missing.
func (r resolver) look(ctx context.Context, bucket string) (place, error) {
	region, err := s3.BucketRegion(ctx, s3.NewClient(r.cfg, ""), bucket, r.account)
	var response *smithyhttp.ResponseError
	switch {
	case err == nil:
		return place{stands: there, region: region}, nil
	case errors.As(err, &response) && response.HTTPStatusCode() == http.StatusNotFound:
		return place{stands: missing}, nil
	case errors.As(err, &response) && response.HTTPStatusCode() == http.StatusForbidden:
		return place{stands: denied, err: err}, nil
	}
	return place{}, err
}

// filled reports whether a bucket holds any record.
func (r resolver) filled(ctx context.Context, f Found) (bool, error) {
	out, err := s3.NewClient(r.cfg, f.Region).ListObjectsV2(ctx, &sdk.ListObjectsV2Input{
		Bucket: &f.Name, ExpectedBucketOwner: &f.Owner, Prefix: aws.String(strings.TrimSuffix(r.prefix, "/") + "/"), MaxKeys: aws.Int32(1),
	})
	if err != nil {
		return false, fmt.Errorf("looking for records in bucket %s: %w", f.Name, err)
	}
	return len(out.Contents) > 0, nil
}

func refused(bucket, account string, err error) error {
	return fmt.Errorf("looking at the state bucket: %w: %w", err, diag.Diagnostics{{
		Severity: diag.Error, Summary: "the state bucket " + bucket + " can't be used",
		Detail: "the credentials of account " + account + " may not look at it, or it is another account's",
		Next:   "Ask for s3:ListBucket on it, or name another bucket with --state-bucket.",
	}})
}
