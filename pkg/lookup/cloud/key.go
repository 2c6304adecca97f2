package cloud

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kms"

	"github.com/slipway-cdk/slipway/pkg/lookup"
)

type keyQuery struct {
	AliasName string `json:"aliasName"`
}

// key answers key-provider (Key.fromLookup): {keyId} of the key that an alias points to.
func key(ctx context.Context, in *place, q lookup.Query) (any, error) {
	var ask keyQuery
	if err := decode(q, &ask); err != nil {
		return nil, err
	}
	what := "KMS key with the alias " + ask.AliasName
	if !strings.HasPrefix(ask.AliasName, "alias/") {
		what += " (names of aliases begin with alias/)"
	}
	pages := kms.NewListAliasesPaginator(kms.NewFromConfig(in.cfg), &kms.ListAliasesInput{})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, called("kms:ListAliases", err)
		}
		for _, a := range page.Aliases {
			// AWS's own aliases exist before they have a key.
			if aws.ToString(a.AliasName) == ask.AliasName && aws.ToString(a.TargetKeyId) != "" {
				return map[string]any{"keyId": *a.TargetKeyId}, nil
			}
		}
	}
	return nil, &NotFoundError{What: what}
}
