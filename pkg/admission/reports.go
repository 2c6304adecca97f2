package admission

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/slipway-cdk/slipway/pkg/plan"
	"github.com/slipway-cdk/slipway/pkg/run"
)

// Report is what the control plane tells a caller of a run: see ReportKey.
type Report struct {
	RunID string `json:"runId"`
	// Plans are the redacted plans of a plan run, Outputs those of a stack's run.
	Plans   []plan.StackView `json:"plans,omitempty"`
	Outputs map[string]any   `json:"outputs,omitempty"`
}

// ReportAPI is the part of the S3 client that reports are written with.
type ReportAPI interface {
	PutObject(context.Context, *sdk.PutObjectInput, ...func(*sdk.Options)) (*sdk.PutObjectOutput, error)
}

// Reports writes reports into the caller's own prefix, where it and nobody else reads them. Inboxes get none: whoever
// may put something there may do nothing else.
type Reports struct {
	API     ReportAPI
	Bucket  string
	Account string
}

var _ run.Reports = (*Reports)(nil)

// Planned implements run.Reports.
func (r *Reports) Planned(ctx context.Context, req run.Request, views []plan.StackView) error {
	return r.write(ctx, req, Report{RunID: req.RunID, Plans: views})
}

// Deployed implements run.Reports.
func (r *Reports) Deployed(ctx context.Context, req run.Request, runID string, outputs map[string]any) error {
	return r.write(ctx, req, Report{RunID: runID, Outputs: outputs})
}

func (r *Reports) write(ctx context.Context, req run.Request, report Report) error {
	p, ok := placeOf(req.From)
	if !ok || p.who.Principal == "" {
		return nil
	}
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(report); err != nil {
		return fmt.Errorf("encoding the report of run %s: %w", report.RunID, err)
	}
	key := ReportKey(p.who.Principal, report.RunID)
	_, err := r.API.PutObject(ctx, &sdk.PutObjectInput{
		Bucket: &r.Bucket, Key: &key, ExpectedBucketOwner: &r.Account, ContentType: aws.String("application/json"), Body: bytes.NewReader(body.Bytes()),
	})
	if err != nil {
		return fmt.Errorf("writing the report of run %s: %w", report.RunID, err)
	}
	return nil
}
