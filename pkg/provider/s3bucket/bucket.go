package s3bucket

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

// bucket: in us-east-1 CreateBucket answers for a bucket that the account has already, and resets its access control, so
// that it is looked for first.
// https://docs.aws.amazon.com/AmazonS3/latest/API/API_CreateBucket.html#API_CreateBucket_Errors
func bucket() direct.Kind[*s3.Client] {
	return direct.Kind[*s3.Client]{
		Type: "AWS::S3::Bucket", Identity: direct.ByName, LookFirst: true,
		CreateOnly: []string{"BucketName"},
		Create:     createBucket, Find: findBucket, Read: readBucket, Delete: deleteBucket,
		Facets: facets(),
		Unhandled: map[string]string{
			"AbacStatus":                       "rare, and no default to go back to while policies rely on it",
			"AnalyticsConfigurations":          "rare",
			"BucketNamePrefix":                 "the service makes the name up",
			"BucketNamespace":                  "names with a suffix of the account's own",
			"IntelligentTieringConfigurations": "rare",
			"MetadataConfiguration":            "tables in another service",
			"MetadataTableConfiguration":       "tables in another service",
			"MetricsConfigurations":            "rare",
		},
	}
}

func createBucket(ctx context.Context, c *call) (string, error) {
	in := s3.CreateBucketInput{
		Bucket:                    aws.String(c.Text("BucketName")),
		CreateBucketConfiguration: &types.CreateBucketConfiguration{Tags: direct.TagList(c.Tags(), tag)},
		ObjectOwnership:           types.ObjectOwnership(ownership(c)),
	}
	if c.Region != "us-east-1" { // which is the default and can't be named
		in.CreateBucketConfiguration.LocationConstraint = types.BucketLocationConstraint(c.Region)
	}
	if c.Text("ObjectLockEnabled") == "true" {
		in.ObjectLockEnabledForBucket = aws.Bool(true)
	}
	_, err := c.Client.CreateBucket(ctx, &in)
	return *in.Bucket, err
}

// findBucket: the name may be that of a bucket that the account can't read, or in another region.
func findBucket(ctx context.Context, c *call) (direct.Found, error) {
	name := c.Text("BucketName")
	tags, err := bucketTags(ctx, c, name)
	switch code(err) {
	case "":
		if err != nil {
			return direct.Found{}, err
		}
		return direct.Found{ID: name, Tags: tags}, nil
	case "AccessDenied":
		// Another account's bucket denies everything; a bucket that this account may look at is not known by its tags.
		if _, headErr := c.Client.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: &name}); errorKinds.IsKind(headErr, provider.KindAccessDenied) {
			return direct.Found{ID: name, Tags: map[string]string{}}, nil
		}
	case "PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException":
		return direct.Found{ID: name, Tags: map[string]string{}}, nil
	}
	return direct.Found{}, err
}

// bucketTags are all tags of a bucket, AWS's own among them.
func bucketTags(ctx context.Context, c *call, name string) (map[string]string, error) {
	out, err := c.Client.GetBucketTagging(ctx, &s3.GetBucketTaggingInput{Bucket: &name})
	if err != nil {
		return map[string]string{}, absent(err, "NoSuchTagSet")
	}
	return direct.TagMap(out.TagSet, pair), nil
}

// putTags: the API replaces all tags at once, so that those that are not the template's are sent again.
func putTags(ctx context.Context, c *call) error {
	tags, err := bucketTags(ctx, c, c.PhysicalID)
	if err != nil {
		return err
	}
	before, now := direct.TagsOf(c.Previous["Tags"]), direct.TagsOf(c.Properties["Tags"])
	for k := range before {
		if !strings.HasPrefix(k, "aws:") {
			delete(tags, k)
		}
	}
	for k, v := range now {
		if !strings.HasPrefix(k, "aws:") {
			tags[k] = v
		}
	}
	if len(tags) == 0 {
		_, err = c.Client.DeleteBucketTagging(ctx, &s3.DeleteBucketTaggingInput{Bucket: &c.PhysicalID})
		return err
	}
	_, err = c.Client.PutBucketTagging(ctx, &s3.PutBucketTaggingInput{Bucket: &c.PhysicalID, Tagging: &types.Tagging{TagSet: direct.TagList(tags, tag)}})
	return err
}

const (
	// autoDelete is the tag that CDK gives a bucket whose content may go with it.
	// https://docs.aws.amazon.com/cdk/api/v2/docs/aws-cdk-lib.aws_s3.Bucket.html#autodeleteobjects
	autoDelete = "aws-cdk:auto-delete-objects"
	// maxPages is how much of a bucket one step deletes, in pages of a thousand.
	maxPages = 10
)

// deleteBucket deletes what is in a bucket only where the template has asked for it: CDK's own handler has emptied it by then, but for
// what has been written since.
func deleteBucket(ctx context.Context, c *call) error {
	in := s3.DeleteBucketInput{Bucket: &c.PhysicalID}
	_, err := c.Client.DeleteBucket(ctx, &in)
	if code(err) != "BucketNotEmpty" || direct.TagsOf(c.Previous["Tags"])[autoDelete] != "true" {
		return err
	}
	for range maxPages {
		if more, err := deletePage(ctx, c); err != nil || !more {
			if err != nil {
				return err
			}
			break
		}
	}
	if _, err = c.Client.DeleteBucket(ctx, &in); code(err) == "BucketNotEmpty" {
		return &provider.Error{Kind: provider.KindConflict, Code: "BucketNotEmpty", Message: "the bucket is being emptied", Err: err}
	}
	return err
}

// deletePage deletes a page of what is in a bucket, every version of it.
func deletePage(ctx context.Context, c *call) (more bool, err error) {
	page, err := c.Client.ListObjectVersions(ctx, &s3.ListObjectVersionsInput{Bucket: &c.PhysicalID})
	if err != nil {
		return false, err
	}
	var objects []types.ObjectIdentifier
	for _, v := range page.Versions {
		objects = append(objects, types.ObjectIdentifier{Key: v.Key, VersionId: v.VersionId})
	}
	for _, m := range page.DeleteMarkers {
		objects = append(objects, types.ObjectIdentifier{Key: m.Key, VersionId: m.VersionId})
	}
	if len(objects) == 0 {
		return false, nil
	}
	out, err := c.Client.DeleteObjects(ctx, &s3.DeleteObjectsInput{Bucket: &c.PhysicalID, Delete: &types.Delete{Objects: objects, Quiet: aws.Bool(true)}})
	if err != nil {
		return false, err
	}
	if len(out.Errors) > 0 { // a lock, or a permission that is missing
		return false, &provider.Error{Kind: provider.KindDependencyViolation, Code: aws.ToString(out.Errors[0].Code), Message: "the bucket can't be emptied: " + aws.ToString(out.Errors[0].Message)}
	}
	return aws.ToBool(page.IsTruncated), nil
}
