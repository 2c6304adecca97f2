package bootstrap

import (
	"github.com/slipway-cdk/slipway/pkg/iampolicy"
	"github.com/slipway-cdk/slipway/pkg/statebucket"
)

// BucketPermissions is what `bootstrap --bucket-only` needs of IAM: to find the state bucket by the names that it may
// have, to make it, and to complete what it lacks. region is where the command runs; it is part of a name of earlier
// times, which is only looked for. sts:GetCallerIdentity needs no permission.
func BucketPermissions(partition, bucket, account, region string) iampolicy.Document {
	arn := "arn:" + partition + ":s3:::"
	return iampolicy.New(
		iampolicy.Allow("FindStateBucket", []string{"s3:ListBucket"}, arn+bucket, arn+statebucket.LegacyName(account, region)),
		iampolicy.Allow("MakeStateBucket", []string{
			"s3:CreateBucket", "s3:PutBucketOwnershipControls", "s3:PutBucketPublicAccessBlock", "s3:GetBucketPolicy", "s3:PutBucketPolicy",
			"s3:GetEncryptionConfiguration", "s3:PutEncryptionConfiguration", "s3:PutBucketVersioning",
			"s3:GetLifecycleConfiguration", "s3:PutLifecycleConfiguration",
		}, arn+bucket),
	)
}
