package secretsmanager

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

func secret() direct.Kind[*secretsmanager.Client] {
	return direct.Kind[*secretsmanager.Client]{
		Type: "AWS::SecretsManager::Secret", Identity: direct.ByName,
		CreateOnly: []string{"Name"},
		Create:     createSecret, Find: findSecret,
		Facets: []direct.Facet[*secretsmanager.Client]{
			{
				Properties: []string{"Description", "GenerateSecretString", "KmsKeyId", "SecretString"}, Created: true, Put: putSecret,
				// Without a key of its own a secret has AWS's, which an empty one stands for.
				// https://docs.aws.amazon.com/secretsmanager/latest/apireference/API_UpdateSecret.html
				Defaults: map[string]any{"Description": "", "KmsKeyId": ""},
			},
			{Properties: []string{"ReplicaRegions"}, Created: true, Put: putReplicas},
			direct.Tags("Tags",
				func(ctx context.Context, c *call, tags map[string]string) error {
					_, err := c.Client.TagResource(ctx, &secretsmanager.TagResourceInput{SecretId: &c.PhysicalID, Tags: direct.TagList(tags, tag)})
					return err
				},
				func(ctx context.Context, c *call, keys []string) error {
					_, err := c.Client.UntagResource(ctx, &secretsmanager.UntagResourceInput{SecretId: &c.PhysicalID, TagKeys: keys})
					return err
				}),
		},
		Unhandled: map[string]string{"Type": "for secrets that partners hold"},
		Read:      readSecret, Prepare: withdraw,
		// As CloudFormation does: at once, so that the name can be taken again.
		Delete: func(ctx context.Context, c *call) error {
			_, err := c.Client.DeleteSecret(ctx, &secretsmanager.DeleteSecretInput{SecretId: &c.PhysicalID, ForceDeleteWithoutRecovery: aws.Bool(true)})
			return err
		},
		// The service deletes in the background, and keeps the name until it has.
		// https://docs.aws.amazon.com/secretsmanager/latest/apireference/API_DeleteSecret.html
		Gone: func(ctx context.Context, c *call) (bool, error) {
			_, err := c.Client.DescribeSecret(ctx, &secretsmanager.DescribeSecretInput{SecretId: &c.PhysicalID})
			return false, err
		},
	}
}

func tag(k, v *string) types.Tag      { return types.Tag{Key: k, Value: v} }
func pair(t types.Tag) (k, v *string) { return t.Key, t.Value }

// createSecret names the secret's first version after the operation. A value that is generated is another one whenever the call is
// made again: the first one that has arrived stands, as the name is taken from then on.
func createSecret(ctx context.Context, c *call) (string, error) {
	value, err := value(ctx, c)
	if err != nil {
		return "", err
	}
	in := secretsmanager.CreateSecretInput{ClientRequestToken: aws.String(c.Mark()), SecretString: value, Tags: direct.TagList(c.Tags(), tag)}
	if err := direct.Into(c.Properties, &in, direct.Renames{"ReplicaRegions": "AddReplicaRegions"}, "Name", "Description", "KmsKeyId", "ReplicaRegions"); err != nil {
		return "", err
	}
	out, err := c.Client.CreateSecret(ctx, &in)
	if err != nil {
		return "", err
	}
	return aws.ToString(out.ARN), nil
}

func findSecret(ctx context.Context, c *call) (direct.Found, error) {
	out, err := describe(ctx, c, c.Text("Name"))
	if err != nil {
		return direct.Found{}, err
	}
	return direct.Found{ID: aws.ToString(out.ARN), Tags: direct.TagMap(out.Tags, pair)}, nil
}

// describe reads what is known of a secret. One that waits for its deletion is gone.
func describe(ctx context.Context, c *call, id string) (*secretsmanager.DescribeSecretOutput, error) {
	out, err := c.Client.DescribeSecret(ctx, &secretsmanager.DescribeSecretInput{SecretId: &id})
	if err != nil {
		return nil, err
	}
	if out.DeletedDate != nil {
		return nil, direct.NotFound("secret", id)
	}
	return out, nil
}

// putSecret makes a new version when what the secret holds, or how it is generated, has changed. The version is named
// after the operation: where it is there already, an earlier call has made it, and its value, which may be another generated one, stands.
func putSecret(ctx context.Context, c *call) error {
	in := secretsmanager.UpdateSecretInput{SecretId: &c.PhysicalID}
	if c.Changed("Description") {
		in.Description = aws.String(c.Text("Description"))
	}
	if c.Changed("KmsKeyId") {
		in.KmsKeyId = aws.String(c.Text("KmsKeyId"))
	}
	about := in.Description != nil || in.KmsKeyId != nil
	if c.Changed("SecretString") || c.Changed("GenerateSecretString") {
		var err error
		if in.SecretString, err = value(ctx, c); err != nil {
			return err
		}
	}
	if in.SecretString == nil && !about {
		return nil // it no longer says what the secret holds, which stays
	}
	if in.SecretString != nil {
		in.ClientRequestToken = aws.String(c.Mark())
	}
	_, err := c.Client.UpdateSecret(ctx, &in)
	if in.SecretString == nil || !errorKinds.IsKind(err, provider.KindAlreadyExists) {
		return err
	}
	if !about {
		return nil
	}
	in.SecretString, in.ClientRequestToken = nil, nil
	_, err = c.Client.UpdateSecret(ctx, &in)
	return err
}

// replicas are the keys of the regions of a property; "" for AWS's.
func replicas(v any) map[string]string {
	out := map[string]string{}
	list, _ := v.([]any)
	for _, e := range list {
		if r, ok := e.(map[string]any); ok {
			out[direct.Text(r["Region"])] = direct.Text(r["KmsKeyId"])
		}
	}
	return out
}

// putReplicas goes by what is there: the service refuses to make a replica twice, and to remove one that is gone.
func putReplicas(ctx context.Context, c *call) error {
	before, now := replicas(c.Previous["ReplicaRegions"]), replicas(c.Properties["ReplicaRegions"])
	there, err := replicated(ctx, c)
	if err != nil {
		return err
	}
	var gone []string
	for region := range before {
		if _, ok := now[region]; !ok && there[region] != nil {
			gone = append(gone, region)
		}
	}
	var added []types.ReplicaRegionType
	for region, key := range now {
		was, known := before[region]
		if live := there[region]; live != nil {
			if !known || was == key || *live == key || key == "" && *live == standardKey {
				continue
			}
			gone = append(gone, region) // the key of a replica can't be changed
		}
		r := types.ReplicaRegionType{Region: &region}
		if key != "" {
			r.KmsKeyId = &key
		}
		added = append(added, r)
	}
	if err := removeReplicas(ctx, c, gone); err != nil || len(added) == 0 {
		return err
	}
	_, err = c.Client.ReplicateSecretToRegions(ctx, &secretsmanager.ReplicateSecretToRegionsInput{SecretId: &c.PhysicalID, AddReplicaRegions: added})
	return err
}

// standardKey is the key of a replica for which the template names none.
const standardKey = "alias/aws/secretsmanager"

// replicated are the keys of the replicas that are there.
func replicated(ctx context.Context, c *call) (map[string]*string, error) {
	out, err := describe(ctx, c, c.PhysicalID)
	if err != nil {
		return nil, err
	}
	there := map[string]*string{}
	for _, r := range out.ReplicationStatus {
		there[aws.ToString(r.Region)] = aws.String(aws.ToString(r.KmsKeyId))
	}
	return there, nil
}

func removeReplicas(ctx context.Context, c *call, regions []string) error {
	if len(regions) == 0 {
		return nil
	}
	_, err := c.Client.RemoveRegionsFromReplication(ctx, &secretsmanager.RemoveRegionsFromReplicationInput{SecretId: &c.PhysicalID, RemoveReplicaRegions: regions})
	return err
}

// withdraw takes the replicas away, which a deletion does not.
func withdraw(ctx context.Context, c *call) error {
	recorded := replicas(c.Known("ReplicaRegions"))
	if len(recorded) == 0 {
		return nil
	}
	there, err := replicated(ctx, c)
	if err != nil {
		return err
	}
	var regions []string
	for region := range recorded {
		if there[region] != nil {
			regions = append(regions, region)
		}
	}
	return removeReplicas(ctx, c, regions)
}

func readSecret(ctx context.Context, c *call) (direct.Live, error) {
	out, err := describe(ctx, c, c.PhysicalID)
	if err != nil {
		return direct.Live{}, err
	}
	properties := direct.From(c.Type, out, nil)
	delete(properties, "Type")
	properties["Tags"] = direct.TagModel(direct.TagMap(out.Tags, pair))
	var regions []any
	for _, r := range out.ReplicationStatus {
		region := map[string]any{"Region": aws.ToString(r.Region)}
		if key := aws.ToString(r.KmsKeyId); key != "" {
			region["KmsKeyId"] = key
		}
		regions = append(regions, region)
	}
	if len(regions) > 0 {
		properties["ReplicaRegions"] = regions
	}
	return direct.Live{Properties: properties, Attributes: map[string]any{"Id": c.PhysicalID}}, nil
}
