package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigatewayv2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigatewayv2integrations"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

func newWebStack(scope constructs.Construct, id string, data dataStack, cfg config) {
	stack := awscdk.NewStack(scope, jsii.String(id), &awscdk.StackProps{
		Description: jsii.String("Guestbook: what is served"),
	})

	queueProps := &awssqs.QueueProps{
		VisibilityTimeout: awscdk.Duration_Seconds(jsii.Number(cfg.visibility)),
		EnforceSSL:        jsii.Bool(true),
	}
	if cfg.queue != "" {
		queueProps.QueueName = jsii.String(cfg.queue)
	}
	if cfg.archive {
		queueProps.DeadLetterQueue = &awssqs.DeadLetterQueue{
			MaxReceiveCount: jsii.Number(3),
			Queue:           awssqs.NewQueue(stack, jsii.String("Archive"), nil),
		}
	}
	queue := awssqs.NewQueue(stack, jsii.String("Inbox"), queueProps)

	logs := awslogs.NewLogGroup(stack, jsii.String("Logs"), &awslogs.LogGroupProps{
		Retention:     awslogs.RetentionDays_ONE_WEEK,
		RemovalPolicy: awscdk.RemovalPolicy_DESTROY,
	})
	handler := awslambda.NewFunction(stack, jsii.String("Handler"), &awslambda.FunctionProps{
		Runtime:    awslambda.Runtime_NODEJS_22_X(),
		Handler:    jsii.String("index.handler"),
		Code:       awslambda.Code_FromAsset(jsii.String(cfg.handler), nil),
		Timeout:    awscdk.Duration_Seconds(jsii.Number(20)),
		MemorySize: jsii.Number(256),
		LogGroup:   logs,
		Environment: &map[string]*string{
			"TABLE_NAME": data.table.TableName(),
			"BUCKET":     data.uploads.BucketName(),
			"QUEUE_URL":  queue.QueueUrl(),
			"MESSAGE":    jsii.String(cfg.message),
		},
	})
	data.table.GrantReadWriteData(handler)
	data.uploads.GrantReadWrite(handler, nil)
	queue.GrantSendMessages(handler)
	queue.GrantConsumeMessages(handler)
	handler.AddEventSourceMapping(jsii.String("FromInbox"), &awslambda.EventSourceMappingOptions{
		EventSourceArn:          queue.QueueArn(),
		BatchSize:               jsii.Number(10),
		ReportBatchItemFailures: jsii.Bool(true),
	})

	api := awsapigatewayv2.NewHttpApi(stack, jsii.String("Api"), &awsapigatewayv2.HttpApiProps{
		Description: jsii.String("The guestbook"),
	})
	api.AddRoutes(&awsapigatewayv2.AddRoutesOptions{
		Path:        jsii.String(cfg.route),
		Methods:     &[]awsapigatewayv2.HttpMethod{awsapigatewayv2.HttpMethod_GET, awsapigatewayv2.HttpMethod_POST},
		Integration: awsapigatewayv2integrations.NewHttpLambdaIntegration(jsii.String("HandlerIntegration"), handler, nil),
	})

	awscdk.NewCfnOutput(stack, jsii.String("Url"), &awscdk.CfnOutputProps{
		Value:       awscdk.Fn_Join(jsii.String(""), &[]*string{api.ApiEndpoint(), jsii.String(cfg.route)}),
		Description: jsii.String("Where the guestbook is"),
	})
	awscdk.NewCfnOutput(stack, jsii.String("QueueUrl"), &awscdk.CfnOutputProps{Value: queue.QueueUrl()})
}
