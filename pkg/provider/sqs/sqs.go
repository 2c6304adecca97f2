// Package sqs provisions the resource types of Amazon SQS through its own API.
package sqs

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

type call = direct.Call[*sqs.Client]

// Service returns the types.
func Service() direct.Set {
	return direct.Service[*sqs.Client]{
		Name:   "sqs",
		New:    func(cfg aws.Config) *sqs.Client { return sqs.NewFromConfig(cfg) },
		Errors: errorKinds,
		Kinds:  []direct.Kind[*sqs.Client]{queue(), queuePolicy()},
	}
}

// errorKinds are the service's own codes.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_CreateQueue.html#API_CreateQueue_Errors
var errorKinds = direct.Errors{
	"QueueDoesNotExist":                           provider.KindNotFound,
	"AWS.SimpleQueueService.NonExistentQueue":     provider.KindNotFound,
	"QueueNameExists":                             provider.KindAlreadyExists,
	"QueueAlreadyExists":                          provider.KindAlreadyExists,
	"QueueDeletedRecently":                        provider.KindRecentlyDeleted,
	"AWS.SimpleQueueService.QueueDeletedRecently": provider.KindRecentlyDeleted,
	"InvalidAttributeName":                        provider.KindInvalid,
	"InvalidAttributeValue":                       provider.KindInvalid,
}
