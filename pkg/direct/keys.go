package direct

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/slipway-cdk/slipway/pkg/controlplane"
	"github.com/slipway-cdk/slipway/pkg/secret"
)

// KeysParameter is the SSM parameter with the keys for a state bucket, in the bucket's region.
func KeysParameter(bucket string) string { return "/slipway/direct/" + bucket }

// sealer chooses the key that secrets are sealed with. A control plane that works on the same state bucket has one
// already, and by using it both see the same NoEcho values as unchanged. Without a control plane the keys are in an SSM
// parameter.
func (p *Plane) sealer(ctx context.Context) (secret.Sealer, error) {
	found, err := p.bucket.Found(ctx)
	if err != nil {
		return nil, err
	}
	d, err := controlplane.ReadDescriptor(ctx, ssm.NewFromConfig(p.cfg), p.plane)
	switch {
	case errors.Is(err, controlplane.ErrNoPlane):
	case err != nil:
		return nil, err
	case d.StateBucket == found.Name && d.VaultKey != "":
		cfg := p.cfg.Copy()
		cfg.Region = d.Region
		return &secret.KMS{Client: kms.NewFromConfig(cfg), KeyID: d.VaultKey, Objects: p.bucket}, nil
	}
	cfg := p.cfg.Copy()
	cfg.Region = found.Region
	return &secret.SSMKeys{Client: ssm.NewFromConfig(cfg), Name: KeysParameter(found.Name)}, nil
}
