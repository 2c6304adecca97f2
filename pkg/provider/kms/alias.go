package kms

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kms"

	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

// alias has no tags: its key tells whether it is this operation's.
func alias() direct.Kind[*kms.Client] {
	return direct.Kind[*kms.Client]{
		Type: "AWS::KMS::Alias", Identity: direct.ByName,
		CreateOnly: []string{"AliasName"},
		Create: func(ctx context.Context, c *call) (string, error) {
			name := c.Text("AliasName")
			_, err := c.Client.CreateAlias(ctx, &kms.CreateAliasInput{AliasName: &name, TargetKeyId: aws.String(c.Text("TargetKeyId"))})
			return name, err
		},
		Find: func(ctx context.Context, c *call) (direct.Found, error) {
			model, err := aliasModel(ctx, c, c.Text("AliasName"))
			if err != nil {
				return direct.Found{}, err
			}
			return direct.Found{ID: c.Text("AliasName"), Properties: model}, nil
		},
		Facets: []direct.Facet[*kms.Client]{{
			Properties: []string{"TargetKeyId"}, Created: true,
			Put: func(ctx context.Context, c *call) error {
				_, err := c.Client.UpdateAlias(ctx, &kms.UpdateAliasInput{AliasName: &c.PhysicalID, TargetKeyId: aws.String(c.Text("TargetKeyId"))})
				return err
			},
		}},
		Read: func(ctx context.Context, c *call) (direct.Live, error) {
			model, err := aliasModel(ctx, c, c.PhysicalID)
			return direct.Live{Properties: model}, err
		},
		Delete: func(ctx context.Context, c *call) error {
			_, err := c.Client.DeleteAlias(ctx, &kms.DeleteAliasInput{AliasName: &c.PhysicalID})
			return err
		},
	}
}

// aliasModel names the key as it is known: by its id or by its ARN.
func aliasModel(ctx context.Context, c *call, name string) (map[string]any, error) {
	out, err := c.Client.DescribeKey(ctx, &kms.DescribeKeyInput{KeyId: &name})
	if err != nil {
		return nil, err
	}
	target := aws.ToString(out.KeyMetadata.KeyId)
	if direct.Text(c.Known("TargetKeyId")) == aws.ToString(out.KeyMetadata.Arn) {
		target = aws.ToString(out.KeyMetadata.Arn)
	}
	return map[string]any{"AliasName": name, "TargetKeyId": target}, nil
}
