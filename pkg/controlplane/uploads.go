package controlplane

import (
	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/slipway-cdk/slipway/pkg/admission"
	"github.com/slipway-cdk/slipway/pkg/objectstore/s3"
)

// admitUploads lets the engine make runs of what is uploaded, publish assets out of it, and report to callers. The
// bucket is in the control plane's own account and region.
func (p *Plane) admitUploads(cfg aws.Config, accounts *Accounts) {
	if p.env.UploadsBucket == "" {
		return
	}
	bucket := s3.NewClient(cfg, "")
	desk := &admission.Desk{Engine: p.Engine, Bucket: bucket, Name: p.env.UploadsBucket, Account: p.env.Account(), Region: cfg.Region}
	p.Engine.Admission = desk
	p.Engine.Uploads = &admission.Publisher{Desk: desk, Bucket: accounts.AssetBuckets()}
	p.Engine.Reports = &admission.Reports{API: bucket, Bucket: p.env.UploadsBucket, Account: p.env.Account()}
}
