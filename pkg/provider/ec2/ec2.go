// Package ec2 provisions the resource types of Amazon EC2 through its own API.
package ec2

import (
	"context"
	"errors"
	"net/netip"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

type call = direct.Call[*ec2.Client]

// Service returns the types.
func Service() direct.Set {
	return direct.Service[*ec2.Client]{
		Name:   "ec2",
		New:    func(cfg aws.Config) *ec2.Client { return ec2.NewFromConfig(cfg) },
		Errors: errorKinds,
		Kinds: []direct.Kind[*ec2.Client]{
			vpc(), subnet(), internetGateway(), gatewayAttachment(), routeTable(), routeTableAssociation(), route(),
			elasticIP(), natGateway(), securityGroup(), securityGroupIngress(), securityGroupEgress(),
		},
	}
}

// errorKinds are the service's own codes. Those that end in ".NotFound" are known to all.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
var errorKinds = direct.Errors{
	"InvalidSubnet.Conflict":         provider.KindAlreadyExists, // the range is taken
	"IncorrectState":                 provider.KindConflict,
	"InvalidState":                   provider.KindConflict,
	"InvalidSubnet.Range":            provider.KindInvalid,
	"InvalidVpc.Range":               provider.KindInvalid,
	"InvalidParameter":               provider.KindInvalid,
	"OperationNotPermitted":          provider.KindInvalid,
	"InvalidVPCNetworkStateFault":    provider.KindConflict,
	"ConcurrentTagAccess":            provider.KindConflict,
	"RequestResourceCountExceeded":   provider.KindThrottled,
	"InvalidNetworkAclEntry.Unknown": provider.KindNotFound,
	"Gateway.NotAttached":            provider.KindNotFound,
	"Resource.AlreadyAssociated":     provider.KindAlreadyExists,
	"RouteAlreadyExists":             provider.KindAlreadyExists,
	"InvalidGroup.Duplicate":         provider.KindAlreadyExists,
	"InvalidGroup.InUse":             provider.KindDependencyViolation,
	"InvalidPermission.Duplicate":    provider.KindAlreadyExists,
	"InvalidPermission.Malformed":    provider.KindInvalid,
	"NatGatewayNotFound":             provider.KindNotFound,
	"InvalidIPAddress.InUse":         provider.KindDependencyViolation,
}

// young is the error of a create: what it refers to may have been made a moment ago, and is not known everywhere at once. How
// long that is worth waiting for is the engine's business.
// https://docs.aws.amazon.com/ec2/latest/devguide/eventual-consistency.html
func young(err error) error {
	if !errorKinds.IsKind(err, provider.KindNotFound) {
		return err
	}
	failure := &provider.Error{Kind: provider.KindPropagation, Code: "NotFound", Err: err}
	var api smithy.APIError
	if errors.As(err, &api) {
		failure.Code, failure.Message = api.ErrorCode(), api.ErrorMessage()
	}
	return failure
}

// canonical is a range of addresses as the service keeps it, anything else as it is.
func canonical(text string) string {
	if p, err := netip.ParsePrefix(text); err == nil {
		return p.Masked().String()
	}
	return text
}

// mark is the filter that finds what this operation has created.
func mark(c *call) []types.Filter {
	return []types.Filter{filter("tag:"+direct.MarkKey, c.Mark())}
}

// marked is the one of a list that this operation has created. The filter has chosen it; the mark itself decides.
func marked[T any](c *call, list []T, tagsOf func(T) []types.Tag) (one T, found bool) {
	for _, e := range list {
		if direct.TagMap(tagsOf(e), pair)[direct.MarkKey] == c.Mark() {
			return e, true
		}
	}
	return one, false
}

func filter(name, value string) types.Filter {
	return types.Filter{Name: &name, Values: []string{value}}
}

// tagged are the tags to create a resource with.
func tagged(c *call, kind types.ResourceType) []types.TagSpecification {
	return []types.TagSpecification{{ResourceType: kind, Tags: direct.TagList(c.Tags(), tag)}}
}

func tag(k, v *string) types.Tag      { return types.Tag{Key: k, Value: v} }
func pair(t types.Tag) (k, v *string) { return t.Key, t.Value }

// model are tags as a model has them.
func model(tags []types.Tag) any { return direct.TagModel(direct.TagMap(tags, pair)) }

// tags is the facet of the tags, which is the same for all types of the service.
func tags() direct.Facet[*ec2.Client] {
	return tagsOf(func(c *call) string { return c.PhysicalID })
}

// tagsOf is tags of a type whose calls take another id than the physical one.
func tagsOf(id func(*call) string) direct.Facet[*ec2.Client] {
	return direct.Tags("Tags",
		func(ctx context.Context, c *call, tags map[string]string) error {
			_, err := c.Client.CreateTags(ctx, &ec2.CreateTagsInput{Resources: []string{id(c)}, Tags: direct.TagList(tags, tag)})
			return err
		},
		func(ctx context.Context, c *call, keys []string) error {
			in := ec2.DeleteTagsInput{Resources: []string{id(c)}}
			for _, k := range keys {
				in.Tags = append(in.Tags, types.Tag{Key: &k})
			}
			_, err := c.Client.DeleteTags(ctx, &in)
			return err
		})
}

// toggle is a property that is true or false, as a call takes it.
func toggle(c *call, property string) *types.AttributeBooleanValue {
	return &types.AttributeBooleanValue{Value: aws.Bool(c.Text(property) == "true")}
}
