package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsssm"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// dataStack holds the table and the bucket.
type dataStack struct {
	awscdk.Stack
	table   awsdynamodb.Table
	uploads awss3.Bucket
}

func newDataStack(scope constructs.Construct, id string) dataStack {
	stack := awscdk.NewStack(scope, jsii.String(id), &awscdk.StackProps{
		Description: jsii.String("Guestbook: what is kept"),
	})
	retention := awscdk.NewCfnParameter(stack, jsii.String("UploadRetentionDays"), &awscdk.CfnParameterProps{
		Type:        jsii.String("Number"),
		Default:     30,
		MinValue:    jsii.Number(1),
		MaxValue:    jsii.Number(365),
		Description: jsii.String("Days after which uploads are deleted"),
	})

	table := awsdynamodb.NewTable(stack, jsii.String("Entries"), &awsdynamodb.TableProps{
		PartitionKey:        &awsdynamodb.Attribute{Name: jsii.String("id"), Type: awsdynamodb.AttributeType_STRING},
		BillingMode:         awsdynamodb.BillingMode_PAY_PER_REQUEST,
		TimeToLiveAttribute: jsii.String("expires"),
		RemovalPolicy:       awscdk.RemovalPolicy_DESTROY,
	})
	uploads := awss3.NewBucket(stack, jsii.String("Uploads"), &awss3.BucketProps{
		BlockPublicAccess: awss3.BlockPublicAccess_BLOCK_ALL(),
		Encryption:        awss3.BucketEncryption_S3_MANAGED,
		Versioned:         jsii.Bool(true),
		RemovalPolicy:     awscdk.RemovalPolicy_DESTROY,
		LifecycleRules: &[]*awss3.LifecycleRule{{
			Id:         jsii.String("expire"),
			Expiration: awscdk.Duration_Days(retention.ValueAsNumber()),
		}},
	})
	// Other tools find the table by this parameter.
	awsssm.NewStringParameter(stack, jsii.String("TableName"), &awsssm.StringParameterProps{
		ParameterName: jsii.String("/guestbook/table-name"),
		StringValue:   table.TableName(),
	})

	awscdk.NewCfnOutput(stack, jsii.String("TableArn"), &awscdk.CfnOutputProps{Value: table.TableArn()})
	awscdk.NewCfnOutput(stack, jsii.String("UploadsBucket"), &awscdk.CfnOutputProps{
		Value:      uploads.BucketName(),
		ExportName: jsii.String("guestbook-uploads"),
	})
	return dataStack{Stack: stack, table: table, uploads: uploads}
}
