// Package iam provisions the resource types of AWS Identity and Access Management through its own API.
package iam

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

type call = direct.Call[*iam.Client]

// Service returns the types.
func Service() direct.Set {
	return direct.Service[*iam.Client]{
		Name:   "iam",
		New:    func(cfg aws.Config) *iam.Client { return iam.NewFromConfig(cfg) },
		Errors: errorKinds,
		Kinds:  []direct.Kind[*iam.Client]{role(), policy(), managedPolicy(), instanceProfile()},
	}
}

// errorKinds are the service's own codes.
// https://docs.aws.amazon.com/IAM/latest/APIReference/API_CreateRole.html#API_CreateRole_Errors
var errorKinds = direct.Errors{
	"EntityTemporarilyUnmodifiable": provider.KindConflict,
	"PolicyNotAttachable":           provider.KindInvalid,
	"UnmodifiableEntity":            provider.KindInvalid,
}

// gone is err unless it says that what was to be removed is not there.
func gone(err error) error { return errorKinds.Unless(err, provider.KindNotFound) }

func tag(k, v *string) types.Tag                { return types.Tag{Key: k, Value: v} }
func pair(t types.Tag) (k, v *string)           { return t.Key, t.Value }
func tagMap(tags []types.Tag) map[string]string { return direct.TagMap(tags, pair) }

// principals are what a policy is put on: a property, and what its calls are for.
type principals struct {
	property    string
	put, remove func(ctx context.Context, c *call, principal string) error
}

// move takes a policy from the principals that the template no longer names and puts it on those that it names; all of them
// when again is set, else the new ones.
func move(ctx context.Context, c *call, kinds []principals, again bool) error {
	for _, k := range kinds {
		before, now := direct.Texts(c.Previous[k.property]), direct.Texts(c.Properties[k.property])
		for _, name := range direct.Without(before, now) {
			if err := gone(k.remove(ctx, c, name)); err != nil {
				return err
			}
		}
		if !again {
			now = direct.Without(now, before)
		}
		for _, name := range now {
			if err := k.put(ctx, c, name); err != nil {
				return err
			}
		}
	}
	return nil
}
