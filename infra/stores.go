package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awskms"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/jsii-runtime-go"

	"github.com/slipway-cdk/slipway/pkg/runlog/dynamo"
)

// stores are what keeps data. Each outlives the stack: deleting the stack leaves it.
type stores struct {
	uploads awss3.CfnBucket
	table   awsdynamodb.CfnTable
	vault   awskms.CfnKey
}

func newStores(s settings) stores {
	return stores{uploads: newUploads(s), table: newTable(s), vault: newVault(s)}
}

// newUploads is the bucket for assemblies. Its name is generated: nobody can guess it and take it first. Old
// versions are kept for a day only; an inbox object's version is what names its deployment.
func newUploads(s settings) awss3.CfnBucket {
	bucket := awss3.NewCfnBucket(s.stack, jsii.String("Uploads"), &awss3.CfnBucketProps{
		// A generated name is made of the stack's and the resource's, and names of buckets are everybody's.
		BucketName: jsii.String(*s.prefix + "-" + *awscdk.Aws_ACCOUNT_ID() + "-" + *awscdk.Aws_REGION()),
		BucketEncryption: &awss3.CfnBucket_BucketEncryptionProperty{
			ServerSideEncryptionConfiguration: []any{&awss3.CfnBucket_ServerSideEncryptionRuleProperty{
				ServerSideEncryptionByDefault: &awss3.CfnBucket_ServerSideEncryptionByDefaultProperty{
					SseAlgorithm:   awscdk.Token_AsString(awscdk.Fn_ConditionIf(s.hasUploadsKey.LogicalId(), "aws:kms", "AES256"), nil),
					KmsMasterKeyId: awscdk.Token_AsString(when(s.hasUploadsKey, s.uploadsKey), nil),
				},
				// One data key for many objects: without it every read and write is a call of KMS.
				BucketKeyEnabled: true,
			}},
		},
		// What is put into the inbox is told to EventBridge, where the rule listens.
		NotificationConfiguration: &awss3.CfnBucket_NotificationConfigurationProperty{
			EventBridgeConfiguration: &awss3.CfnBucket_EventBridgeConfigurationProperty{EventBridgeEnabled: true},
		},
		PublicAccessBlockConfiguration: &awss3.CfnBucket_PublicAccessBlockConfigurationProperty{
			BlockPublicAcls: true, BlockPublicPolicy: true, IgnorePublicAcls: true, RestrictPublicBuckets: true,
		},
		OwnershipControls: &awss3.CfnBucket_OwnershipControlsProperty{
			Rules: []any{&awss3.CfnBucket_OwnershipControlsRuleProperty{ObjectOwnership: jsii.String("BucketOwnerEnforced")}},
		},
		VersioningConfiguration: &awss3.CfnBucket_VersioningConfigurationProperty{Status: jsii.String("Enabled")},
		LifecycleConfiguration: &awss3.CfnBucket_LifecycleConfigurationProperty{Rules: []any{
			&awss3.CfnBucket_RuleProperty{
				Id: jsii.String("expire"), Status: jsii.String("Enabled"), ExpirationInDays: s.uploadDays,
				NoncurrentVersionExpiration:    &awss3.CfnBucket_NoncurrentVersionExpirationProperty{NoncurrentDays: jsii.Number(1)},
				AbortIncompleteMultipartUpload: &awss3.CfnBucket_AbortIncompleteMultipartUploadProperty{DaysAfterInitiation: jsii.Number(1)},
			},
			// A rule cannot both expire objects after days and remove the markers that this leaves.
			&awss3.CfnBucket_RuleProperty{
				Id: jsii.String("remove delete markers"), Status: jsii.String("Enabled"), ExpiredObjectDeleteMarker: true,
			},
		}},
	})
	retain(bucket)
	awss3.NewCfnBucketPolicy(s.stack, jsii.String("UploadsPolicy"), &awss3.CfnBucketPolicyProps{
		Bucket: bucket.Ref(),
		PolicyDocument: policy(statement{
			Sid: "OnlyTLS", Effect: "Deny", Principal: "*", Action: []string{"s3:*"},
			Resource:  []any{bucket.AttrArn(), *bucket.AttrArn() + "/*"},
			Condition: map[string]any{"Bool": map[string]any{"aws:SecureTransport": "false"}},
		}),
	})
	return bucket
}

// newTable is the run log's table, as its store defines it.
func newTable(s settings) awsdynamodb.CfnTable {
	defined := dynamo.Table("")
	keys := func(elements []types.KeySchemaElement) []any {
		var out []any
		for _, k := range elements {
			out = append(out, &awsdynamodb.CfnTable_KeySchemaProperty{AttributeName: k.AttributeName, KeyType: jsii.String(string(k.KeyType))})
		}
		return out
	}
	var attributes, indexes []any
	for _, a := range defined.AttributeDefinitions {
		attributes = append(attributes, &awsdynamodb.CfnTable_AttributeDefinitionProperty{
			AttributeName: a.AttributeName, AttributeType: jsii.String(string(a.AttributeType)),
		})
	}
	for _, i := range defined.GlobalSecondaryIndexes {
		indexes = append(indexes, &awsdynamodb.CfnTable_GlobalSecondaryIndexProperty{
			IndexName: i.IndexName, KeySchema: keys(i.KeySchema),
			Projection: &awsdynamodb.CfnTable_ProjectionProperty{
				ProjectionType: jsii.String(string(i.Projection.ProjectionType)), NonKeyAttributes: jsii.Strings(i.Projection.NonKeyAttributes...),
			},
		})
	}
	ttl := dynamo.TimeToLive("").TimeToLiveSpecification
	table := awsdynamodb.NewCfnTable(s.stack, jsii.String("RunLog"), &awsdynamodb.CfnTableProps{
		BillingMode: jsii.String(string(defined.BillingMode)), KeySchema: keys(defined.KeySchema),
		AttributeDefinitions: attributes, GlobalSecondaryIndexes: indexes,
		TimeToLiveSpecification:          &awsdynamodb.CfnTable_TimeToLiveSpecificationProperty{AttributeName: ttl.AttributeName, Enabled: aws.ToBool(ttl.Enabled)},
		PointInTimeRecoverySpecification: &awsdynamodb.CfnTable_PointInTimeRecoverySpecificationProperty{PointInTimeRecoveryEnabled: true},
		// Without a key of the team's own it is AWS's for DynamoDB in this account: its uses are in the account's trail.
		SseSpecification: &awsdynamodb.CfnTable_SSESpecificationProperty{
			SseEnabled: true,
			SseType:    awscdk.Token_AsString(when(s.hasTableKey, "KMS"), nil), KmsMasterKeyId: awscdk.Token_AsString(when(s.hasTableKey, s.tableKey), nil),
		},
		DeletionProtectionEnabled: awscdk.Fn_ConditionIf(s.tableProtection.LogicalId(), true, false),
	})
	retain(table)
	return table
}

// newVault is the key under which the secrets of runs are encrypted. A lost key loses the digests of NoEcho
// values too: the next deploy takes each for changed.
func newVault(s settings) awskms.CfnKey {
	key := awskms.NewCfnKey(s.stack, jsii.String("Vault"), &awskms.CfnKeyProps{
		Description:       jsii.String("Slipway: secrets of runs"),
		EnableKeyRotation: true,
		KeyPolicy: policy(statement{
			// The account decides with the policies of its roles, as in KMS's default key policy. Anything less
			// makes a key that nobody can administer
			// (https://docs.aws.amazon.com/kms/latest/developerguide/key-policy-default.html).
			Sid: "AccountDecides", Effect: "Allow", Action: []string{"kms:*"}, Resource: []any{"*"},
			Principal: map[string]any{"AWS": "arn:" + *awscdk.Aws_PARTITION() + ":iam::" + *awscdk.Aws_ACCOUNT_ID() + ":root"},
		}),
	})
	retain(key)
	awskms.NewCfnAlias(s.stack, jsii.String("VaultAlias"), &awskms.CfnAliasProps{
		AliasName: jsii.String("alias/" + *s.name("vault")), TargetKeyId: key.Ref(),
	})
	return key
}

// retain leaves a resource where it is when its stack is deleted or it is replaced.
func retain(r awscdk.CfnResource) { r.ApplyRemovalPolicy(awscdk.RemovalPolicy_RETAIN, nil) }
