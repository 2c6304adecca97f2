package admission

import (
	"context"

	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/asset"
	"github.com/slipway-cdk/slipway/pkg/run"
)

// Publisher publishes assets out of admitted archives, reading no more of them than the assets that are not there yet.
type Publisher struct {
	Desk   *Desk
	Bucket asset.Bucket
	// TempDir is where an asset is put together; "" is the system's.
	TempDir string
}

var _ run.UploadPublisher = (*Publisher)(nil)

// PublishUpload implements run.UploadPublisher.
func (p *Publisher) PublishUpload(ctx context.Context, req run.Request, a assembly.Asset, env asset.Env) (asset.Outcome, error) {
	out, err := (&asset.Publisher{Bucket: p.Bucket, Source: p.Desk.Source(req), TempDir: p.TempDir}).Publish(ctx, a, env)
	return out, asRefusal(err)
}
