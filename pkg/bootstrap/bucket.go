package bootstrap

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"

	"github.com/slipway-cdk/slipway/pkg/asset"
	store "github.com/slipway-cdk/slipway/pkg/objectstore/s3"
	"github.com/slipway-cdk/slipway/pkg/runlog/objects"
)

// Bucket is a bucket as it should be: private, encrypted, over TLS only, for its own account only.
type Bucket struct {
	Name, Region, Account string
	// Versioned keeps what was overwritten: for records of stacks.
	Versioned bool
	// Expires are prefixes of keys whose objects are expired after Days.
	Expires []string
	Days    int32
}

// keepDays is how long the log and the plans of runs are kept, and what was overwritten.
const keepDays = 90

// StateBucket is the bucket for the records of an account's stacks.
func StateBucket(name, region, account string) Bucket {
	return Bucket{Name: name, Region: region, Account: account, Versioned: true, Expires: []string{objects.Prefix, "slipway/runs/"}, Days: keepDays}
}

// AssetBucket is the bucket for the functions of control planes in a region.
func AssetBucket(account, region string) Bucket {
	return Bucket{Name: "slipway-assets-" + account + "-" + region, Region: region, Account: account}
}

// Make makes the bucket, or completes one that is there. What somebody has set otherwise on purpose is left as it is: an
// encryption, a policy, a lifecycle of its own. made tells whether the bucket was not there.
func (b Bucket) Make(ctx context.Context, cfg aws.Config) (made bool, err error) {
	client := store.NewClient(cfg, b.Region)
	made, err = b.create(ctx, client)
	if err != nil {
		return made, fmt.Errorf("making bucket %s: %w", b.Name, err)
	}
	for _, step := range []struct {
		what string
		do   func(context.Context, *s3.Client) error
	}{
		{"blocking public access", b.blockPublicAccess}, {"its policy", b.policy}, {"its encryption", b.encryption},
		{"its versioning", b.versioning}, {"its lifecycle", b.lifecycle},
	} {
		if err := step.do(ctx, client); err != nil {
			return made, fmt.Errorf("setting up bucket %s: %s: %w", b.Name, step.what, err)
		}
	}
	return made, nil
}

func (b Bucket) create(ctx context.Context, client *s3.Client) (bool, error) {
	_, err := client.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: &b.Name, ExpectedBucketOwner: &b.Account})
	if err == nil {
		return false, nil
	}
	if c := code(err); c != "NotFound" && c != "NoSuchBucket" {
		return false, err
	}
	in := &s3.CreateBucketInput{Bucket: &b.Name, ObjectOwnership: types.ObjectOwnershipBucketOwnerEnforced}
	if b.Region != "us-east-1" { // which is no location constraint
		in.CreateBucketConfiguration = &types.CreateBucketConfiguration{LocationConstraint: types.BucketLocationConstraint(b.Region)}
	}
	_, err = client.CreateBucket(ctx, in)
	if code(err) == "BucketAlreadyOwnedByYou" { // an earlier attempt, whose answer was lost
		err = nil
	}
	return err == nil, err
}

func (b Bucket) blockPublicAccess(ctx context.Context, client *s3.Client) error {
	_, err := client.PutPublicAccessBlock(ctx, &s3.PutPublicAccessBlockInput{
		Bucket: &b.Name, ExpectedBucketOwner: &b.Account, PublicAccessBlockConfiguration: &types.PublicAccessBlockConfiguration{
			BlockPublicAcls: aws.Bool(true), BlockPublicPolicy: aws.Bool(true), IgnorePublicAcls: aws.Bool(true), RestrictPublicBuckets: aws.Bool(true),
		},
	})
	return err
}

func (b Bucket) policy(ctx context.Context, client *s3.Client) error {
	_, err := client.GetBucketPolicy(ctx, &s3.GetBucketPolicyInput{Bucket: &b.Name, ExpectedBucketOwner: &b.Account})
	if code(err) != "NoSuchBucketPolicy" {
		return err
	}
	document, err := b.policyDocument()
	if err == nil {
		_, err = client.PutBucketPolicy(ctx, &s3.PutBucketPolicyInput{Bucket: &b.Name, ExpectedBucketOwner: &b.Account, Policy: &document})
	}
	return err
}

// policyDocument refuses other accounts, as cdkd's does (reference §1.1), and everything that is not encrypted on its way.
func (b Bucket) policyDocument() (string, error) {
	arn := "arn:" + asset.PartitionOf(b.Region) + ":s3:::" + b.Name
	all := []string{arn, arn + "/*"}
	body, err := json.Marshal(map[string]any{"Version": "2012-10-17", "Statement": []any{
		map[string]any{
			"Sid": "DenyExternalAccess", "Effect": "Deny", "Principal": "*", "Action": "s3:*", "Resource": all,
			"Condition": map[string]any{"StringNotEquals": map[string]any{"aws:PrincipalAccount": b.Account}},
		},
		map[string]any{
			"Sid": tlsOnly, "Effect": "Deny", "Principal": "*", "Action": "s3:*", "Resource": all,
			"Condition": map[string]any{"Bool": map[string]any{"aws:SecureTransport": "false"}},
		},
	}})
	return string(body), err
}

const tlsOnly = "DenyInsecureTransport"

func (b Bucket) encryption(ctx context.Context, client *s3.Client) error {
	out, err := client.GetBucketEncryption(ctx, &s3.GetBucketEncryptionInput{Bucket: &b.Name, ExpectedBucketOwner: &b.Account})
	if err == nil && out.ServerSideEncryptionConfiguration != nil && len(out.ServerSideEncryptionConfiguration.Rules) > 0 {
		return nil
	}
	if err != nil && code(err) != "ServerSideEncryptionConfigurationNotFoundError" {
		return err
	}
	_, err = client.PutBucketEncryption(ctx, &s3.PutBucketEncryptionInput{
		Bucket: &b.Name, ExpectedBucketOwner: &b.Account,
		ServerSideEncryptionConfiguration: &types.ServerSideEncryptionConfiguration{Rules: []types.ServerSideEncryptionRule{{
			ApplyServerSideEncryptionByDefault: &types.ServerSideEncryptionByDefault{SSEAlgorithm: types.ServerSideEncryptionAes256},
		}}},
	})
	return err
}

func (b Bucket) versioning(ctx context.Context, client *s3.Client) error {
	if !b.Versioned {
		return nil
	}
	_, err := client.PutBucketVersioning(ctx, &s3.PutBucketVersioningInput{
		Bucket: &b.Name, ExpectedBucketOwner: &b.Account,
		VersioningConfiguration: &types.VersioningConfiguration{Status: types.BucketVersioningStatusEnabled},
	})
	return err
}

func (b Bucket) lifecycle(ctx context.Context, client *s3.Client) error {
	if len(b.Expires) == 0 {
		return nil
	}
	_, err := client.GetBucketLifecycleConfiguration(ctx, &s3.GetBucketLifecycleConfigurationInput{Bucket: &b.Name, ExpectedBucketOwner: &b.Account})
	if code(err) != "NoSuchLifecycleConfiguration" {
		return err
	}
	rules := []types.LifecycleRule{{
		ID: aws.String("slipway-overwritten"), Status: types.ExpirationStatusEnabled, Filter: &types.LifecycleRuleFilter{Prefix: aws.String("")},
		NoncurrentVersionExpiration:    &types.NoncurrentVersionExpiration{NoncurrentDays: &b.Days},
		AbortIncompleteMultipartUpload: &types.AbortIncompleteMultipartUpload{DaysAfterInitiation: aws.Int32(7)},
	}}
	for i, prefix := range b.Expires {
		rules = append(rules, types.LifecycleRule{
			ID: aws.String(fmt.Sprintf("slipway-runs-%d", i+1)), Status: types.ExpirationStatusEnabled,
			Filter: &types.LifecycleRuleFilter{Prefix: aws.String(prefix)}, Expiration: &types.LifecycleExpiration{Days: &b.Days},
		})
	}
	_, err = client.PutBucketLifecycleConfiguration(ctx, &s3.PutBucketLifecycleConfigurationInput{
		Bucket: &b.Name, ExpectedBucketOwner: &b.Account, LifecycleConfiguration: &types.BucketLifecycleConfiguration{Rules: rules},
	})
	return err
}

// Remove deletes the bucket with all that is in it. Nothing there is success. It is for buckets that are not versioned.
func (b Bucket) Remove(ctx context.Context, cfg aws.Config) error {
	client := store.NewClient(cfg, b.Region)
	s := &store.Store{Client: client, Bucket: b.Name, Owner: b.Account}
	_, err := client.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: &b.Name, ExpectedBucketOwner: &b.Account})
	if c := code(err); c == "NotFound" || c == "NoSuchBucket" {
		return nil
	}
	if err == nil {
		infos, listErr := s.List(ctx, "")
		err = listErr
		for _, info := range infos {
			if err == nil {
				_, err = client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &b.Name, Key: &info.Key, ExpectedBucketOwner: &b.Account})
			}
		}
	}
	if err == nil {
		_, err = client.DeleteBucket(ctx, &s3.DeleteBucketInput{Bucket: &b.Name, ExpectedBucketOwner: &b.Account})
	}
	if err != nil {
		return fmt.Errorf("deleting bucket %s: %w", b.Name, err)
	}
	return nil
}

// code is the error code of AWS, "" where there is no error or it has none.
func code(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return ""
}
