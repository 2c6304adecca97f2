// Package sns provisions the resource types of Amazon SNS through its own API.
package sns

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sns/types"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

type call = direct.Call[*sns.Client]

// Service returns the types.
func Service() direct.Set {
	return direct.Service[*sns.Client]{
		Name:   "sns",
		New:    func(cfg aws.Config) *sns.Client { return sns.NewFromConfig(cfg) },
		Errors: errorKinds,
		Kinds:  []direct.Kind[*sns.Client]{topic(), subscription(), topicPolicy()},
	}
}

// errorKinds are the service's own codes. That a key is not found (KMSNotFound) does not mean that the topic is gone.
// https://docs.aws.amazon.com/sns/latest/api/API_CreateTopic.html#API_CreateTopic_Errors
var errorKinds = direct.Errors{
	"Throttled":             provider.KindThrottled,
	"KMSThrottling":         provider.KindThrottled,
	"ConcurrentAccess":      provider.KindConflict,
	"StaleTag":              provider.KindConflict,
	"ParameterValueInvalid": provider.KindInvalid,
	"InvalidSecurity":       provider.KindAccessDenied,
	"KMSAccessDenied":       provider.KindAccessDenied,
	"KMSOptInRequired":      provider.KindAccessDenied,
}

func tag(k, v *string) types.Tag                { return types.Tag{Key: k, Value: v} }
func pair(t types.Tag) (k, v *string)           { return t.Key, t.Value }
func tagMap(tags []types.Tag) map[string]string { return direct.TagMap(tags, pair) }

// part is an element of an ARN: 3 is the region, 4 the account, 5 the name of a topic. "" when there is none.
func part(arn string, n int) string {
	if parts := strings.Split(arn, ":"); n < len(parts) {
		return parts[n]
	}
	return ""
}
