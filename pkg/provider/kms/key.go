package kms

import (
	"context"
	"fmt"
	"maps"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

// fixed are the properties that a key has for good, with their defaults.
// https://docs.aws.amazon.com/kms/latest/APIReference/API_CreateKey.html
var fixed = map[string]any{"KeySpec": "SYMMETRIC_DEFAULT", "KeyUsage": "ENCRYPT_DECRYPT", "MultiRegion": false, "Origin": "AWS_KMS"}

func key() direct.Kind[*kms.Client] {
	return direct.Kind[*kms.Client]{
		Type: "AWS::KMS::Key", Identity: direct.ByMark,
		Create: createKey, Find: findKey, Stable: stableKey, Read: readKey, Delete: deleteKey,
		// A key that is not enabled can't be given a rotation: it is enabled before, and disabled after.
		Facets: []direct.Facet[*kms.Client]{
			{
				Properties: []string{"KeySpec", "KeyUsage", "MultiRegion", "Origin"}, Created: true, Defaults: fixed,
				Put: func(_ context.Context, c *call) error {
					for name, standard := range fixed {
						if was, is := orElse(c.Previous[name], standard), orElse(c.Properties[name], standard); was != is {
							return &provider.Error{Kind: provider.KindImmutable, Code: "NotUpdatable", Message: name + " of a key can't be changed"}
						}
					}
					return nil
				},
			},
			{Properties: []string{"Description"}, Created: true, Put: living(func(ctx context.Context, c *call) error {
				_, err := c.Client.UpdateKeyDescription(ctx, &kms.UpdateKeyDescriptionInput{KeyId: &c.PhysicalID, Description: aws.String(c.Text("Description"))})
				return err
			})},
			{Properties: []string{"KeyPolicy", "BypassPolicyLockoutSafetyCheck"}, Created: true, Put: living(putPolicy)},
			{Properties: []string{"Enabled"}, Defaults: map[string]any{"Enabled": true}, Put: living(enable)},
			{Properties: []string{"EnableKeyRotation", "RotationPeriodInDays"}, Put: living(putRotation)},
			{Properties: []string{"Enabled"}, Defaults: map[string]any{"Enabled": true}, Put: living(disable)},
			// The deletion reads it.
			{Properties: []string{"PendingWindowInDays"}, Created: true, Put: func(context.Context, *call) error { return nil }},
			direct.Tags("Tags",
				func(ctx context.Context, c *call, tags map[string]string) error {
					_, err := c.Client.TagResource(ctx, &kms.TagResourceInput{KeyId: &c.PhysicalID, Tags: direct.TagList(tags, tag)})
					return alive(ctx, c, err)
				},
				func(ctx context.Context, c *call, keys []string) error {
					_, err := c.Client.UntagResource(ctx, &kms.UntagResourceInput{KeyId: &c.PhysicalID, TagKeys: keys})
					return alive(ctx, c, err)
				}),
		},
	}
}

// orElse is a value as text, or its default.
func orElse(v, standard any) string {
	if v == nil {
		v = standard
	}
	return direct.Text(v)
}

func createKey(ctx context.Context, c *call) (string, error) {
	in := kms.CreateKeyInput{Tags: direct.TagList(c.Tags(), tag)}
	if err := direct.Into(c.Properties, &in, nil, "BypassPolicyLockoutSafetyCheck", "Description", "KeySpec", "KeyUsage", "MultiRegion", "Origin"); err != nil {
		return "", err
	}
	if c.Has("KeyPolicy") {
		policy, err := direct.Document(c.Properties["KeyPolicy"])
		if err != nil {
			return "", err
		}
		in.Policy = &policy
	}
	out, err := c.Client.CreateKey(ctx, &in)
	if err != nil {
		return "", err
	}
	return *out.KeyMetadata.KeyId, nil
}

// findKey looks through all keys: the service can't search for tags. A key whose policy hides its tags is none of this operation's,
// and one that is being deleted is gone.
func findKey(ctx context.Context, c *call) (direct.Found, error) {
	keys := kms.NewListKeysPaginator(c.Client, &kms.ListKeysInput{Limit: aws.Int32(1000)})
	for keys.HasMorePages() {
		page, err := keys.NextPage(ctx)
		if err != nil {
			return direct.Found{}, err
		}
		for _, k := range page.Keys {
			tags, err := keyTags(ctx, c, *k.KeyId)
			if errorKinds.IsKind(err, provider.KindAccessDenied) || errorKinds.IsKind(err, provider.KindNotFound) {
				continue
			}
			if err != nil {
				return direct.Found{}, err
			}
			if tags[direct.MarkKey] != c.Mark() {
				continue
			}
			switch _, err := describeKey(ctx, c, *k.KeyId); {
			case err == nil:
				return direct.Found{ID: *k.KeyId, Tags: tags}, nil
			case !errorKinds.IsKind(err, provider.KindNotFound):
				return direct.Found{}, err
			}
		}
	}
	return direct.Found{}, nil
}

func keyTags(ctx context.Context, c *call, id string) (map[string]string, error) {
	tags := map[string]string{}
	pages := kms.NewListResourceTagsPaginator(c.Client, &kms.ListResourceTagsInput{KeyId: &id})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		maps.Copy(tags, direct.TagMap(page.Tags, pair))
	}
	return tags, nil
}

// describeKey returns a key, NotFound also when it is about to be deleted, as CloudFormation has it.
func describeKey(ctx context.Context, c *call, id string) (*types.KeyMetadata, error) {
	out, err := c.Client.DescribeKey(ctx, &kms.DescribeKeyInput{KeyId: &id})
	if err != nil {
		return nil, err
	}
	switch out.KeyMetadata.KeyState {
	case types.KeyStatePendingDeletion, types.KeyStatePendingReplicaDeletion:
		return nil, direct.NotFound("key", id)
	}
	return out.KeyMetadata, nil
}

// alive is err, or NotFound when it is about the state of a key that is being deleted.
func alive(ctx context.Context, c *call, err error) error {
	if code(err) == "KMSInvalidStateException" {
		if _, gone := describeKey(ctx, c, c.PhysicalID); gone != nil {
			return gone
		}
	}
	return err
}

func living(put func(ctx context.Context, c *call) error) func(ctx context.Context, c *call) error {
	return func(ctx context.Context, c *call) error { return alive(ctx, c, put(ctx, c)) }
}

// stableKey: a key that waits for its material from elsewhere is as far as it comes.
func stableKey(ctx context.Context, c *call) (direct.Level, error) {
	k, err := describeKey(ctx, c, c.PhysicalID)
	if err != nil {
		return direct.NotYet, err
	}
	switch k.KeyState {
	case types.KeyStateCreating, types.KeyStateUpdating:
		return direct.NotYet, nil
	}
	return direct.Settled, nil
}

// policyName is the name of the one policy that a key has.
const policyName = "default"

// defaultPolicy is what the service gives a key without one.
// https://docs.aws.amazon.com/kms/latest/developerguide/key-policy-default.html
func defaultPolicy(c *call) map[string]any {
	return map[string]any{
		"Version": "2012-10-17", "Id": "key-default-1",
		"Statement": []any{map[string]any{
			"Sid": "Enable IAM User Permissions", "Effect": "Allow", "Action": "kms:*", "Resource": "*",
			"Principal": map[string]any{"AWS": fmt.Sprintf("arn:%s:iam::%s:root", direct.Partition(c.Region), c.Account)},
		}},
	}
}

func putPolicy(ctx context.Context, c *call) error {
	if !c.Changed("KeyPolicy") {
		return nil // whether the check is bypassed matters to the next policy
	}
	var given any = defaultPolicy(c)
	if c.Has("KeyPolicy") {
		given = c.Properties["KeyPolicy"]
	}
	policy, err := direct.Document(given)
	if err != nil {
		return err
	}
	_, err = c.Client.PutKeyPolicy(ctx, &kms.PutKeyPolicyInput{
		KeyId: &c.PhysicalID, PolicyName: aws.String(policyName), Policy: &policy, BypassPolicyLockoutSafetyCheck: c.Text("BypassPolicyLockoutSafetyCheck") == "true",
	})
	return err
}

func enabled(properties map[string]any) bool {
	return properties["Enabled"] == nil || direct.Text(properties["Enabled"]) == "true"
}

func enable(ctx context.Context, c *call) error {
	if !enabled(c.Properties) || c.Previous == nil || enabled(c.Previous) {
		return nil
	}
	_, err := c.Client.EnableKey(ctx, &kms.EnableKeyInput{KeyId: &c.PhysicalID})
	return err
}

func disable(ctx context.Context, c *call) error {
	if enabled(c.Properties) {
		return nil
	}
	_, err := c.Client.DisableKey(ctx, &kms.DisableKeyInput{KeyId: &c.PhysicalID})
	return err
}

// putRotation: a disabled key is enabled for as long as it takes.
func putRotation(ctx context.Context, c *call) error {
	rotates := c.Text("EnableKeyRotation") == "true"
	if !rotates && direct.Text(c.Previous["EnableKeyRotation"]) != "true" {
		return nil
	}
	set := func() error {
		if !rotates {
			_, err := c.Client.DisableKeyRotation(ctx, &kms.DisableKeyRotationInput{KeyId: &c.PhysicalID})
			return err
		}
		in := kms.EnableKeyRotationInput{KeyId: &c.PhysicalID}
		if err := direct.Into(c.Properties, &in, nil, "RotationPeriodInDays"); err != nil {
			return err
		}
		if in.RotationPeriodInDays == nil && c.Previous["RotationPeriodInDays"] != nil {
			in.RotationPeriodInDays = aws.Int32(365) // https://docs.aws.amazon.com/kms/latest/APIReference/API_EnableKeyRotation.html
		}
		_, err := c.Client.EnableKeyRotation(ctx, &in)
		return err
	}
	err := set()
	if code(err) != "DisabledException" {
		return err
	}
	if _, err := c.Client.EnableKey(ctx, &kms.EnableKeyInput{KeyId: &c.PhysicalID}); err != nil {
		return err
	}
	if err := set(); err != nil {
		return err
	}
	return disable(ctx, c)
}

func readKey(ctx context.Context, c *call) (direct.Live, error) {
	k, err := describeKey(ctx, c, c.PhysicalID)
	if err != nil {
		return direct.Live{}, err
	}
	tags, err := keyTags(ctx, c, c.PhysicalID)
	if err != nil {
		return direct.Live{}, err
	}
	properties := direct.From(c.Type, k, nil)
	properties["Tags"] = direct.TagModel(tags)
	drift := len(c.Properties) == 0
	if drift || c.Known("KeyPolicy") != nil {
		out, err := c.Client.GetKeyPolicy(ctx, &kms.GetKeyPolicyInput{KeyId: &c.PhysicalID, PolicyName: aws.String(policyName)})
		if err != nil {
			return direct.Live{}, err
		}
		properties["KeyPolicy"] = direct.ParseDocument(out.Policy)
	}
	// Only keys of this kind can be rotated.
	if symmetric := k.KeySpec == types.KeySpecSymmetricDefault && k.Origin != types.OriginTypeAwsCloudhsm; symmetric && (drift || c.Known("EnableKeyRotation") != nil) {
		out, err := c.Client.GetKeyRotationStatus(ctx, &kms.GetKeyRotationStatusInput{KeyId: &c.PhysicalID})
		if err != nil {
			return direct.Live{}, err
		}
		properties["EnableKeyRotation"] = out.KeyRotationEnabled
		if out.KeyRotationEnabled && out.RotationPeriodInDays != nil {
			properties["RotationPeriodInDays"] = int(*out.RotationPeriodInDays)
		}
	}
	return direct.Live{Properties: properties, Attributes: map[string]any{"Arn": aws.ToString(k.Arn), "KeyId": c.PhysicalID}}, nil
}

// deleteKey: a key is deleted after a while, in which it can be kept; for the stack it is gone.
func deleteKey(ctx context.Context, c *call) error {
	in := kms.ScheduleKeyDeletionInput{KeyId: &c.PhysicalID}
	if err := direct.Into(c.Previous, &in, nil, "PendingWindowInDays"); err != nil {
		return err
	}
	_, err := c.Client.ScheduleKeyDeletion(ctx, &in)
	return alive(ctx, c, err)
}
