package sandbox

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/cloudcontrol"
	cctypes "github.com/aws/aws-sdk-go-v2/service/cloudcontrol/types"
	"github.com/aws/smithy-go"

	"github.com/slipway-cdk/slipway/pkg/clock"
)

// start is when the fake clocks of these tests begin.
var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// bench is a sandbox with its server and the real Cloud Control client.
type bench struct {
	t     testing.TB
	s     *Sandbox
	url   string
	clock *clock.Fake
	cc    *cloudcontrol.Client
}

func newBench(t testing.TB, opts Options) *bench {
	t.Helper()
	return openBench(t, t.TempDir(), opts)
}

func openBench(t testing.TB, dir string, opts Options) *bench {
	t.Helper()
	b := &bench{t: t, clock: clock.NewFake(start)}
	if opts.Clock == nil {
		opts.Clock = b.clock
	} else if fake, ok := opts.Clock.(*clock.Fake); ok {
		b.clock = fake
	}
	if opts.Seed == 0 {
		opts.Seed = 7
	}
	s, err := Open(context.Background(), dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	url, err := s.Serve()
	if err != nil {
		t.Fatal(err)
	}
	b.s, b.url = s, url
	b.cc = b.client("AKIAIOSFODNN7EXAMPLE", "us-east-1")
	return b
}

// client is the real Cloud Control client as a caller.
func (b *bench) client(accessKey, region string) *cloudcontrol.Client {
	return cloudcontrol.New(cloudcontrol.Options{
		Region: region, BaseEndpoint: aws.String(b.url),
		Credentials: credentials.NewStaticCredentialsProvider(accessKey, "secret", ""),
		Retryer:     aws.NopRetryer{},
	})
}

// direct is the direct API's client.
func (b *bench) direct() *Client { return &Client{Endpoint: b.url, Region: "us-east-1"} }

// codeOf is the API error code of an error.
func codeOf(err error) string {
	var api smithy.APIError
	var r *Refusal
	switch {
	case err == nil:
		return ""
	case errors.As(err, &api):
		return api.ErrorCode()
	case errors.As(err, &r):
		return r.Code
	}
	return err.Error()
}

func (b *bench) wait(token *string) *cctypes.ProgressEvent {
	b.t.Helper()
	out, err := b.cc.GetResourceRequestStatus(context.Background(), &cloudcontrol.GetResourceRequestStatusInput{RequestToken: token})
	if err != nil {
		b.t.Fatal(err)
	}
	return out.ProgressEvent
}

// create makes a resource through Cloud Control and returns its final event.
func (b *bench) create(typeName, model string) *cctypes.ProgressEvent {
	b.t.Helper()
	out, err := b.cc.CreateResource(context.Background(), &cloudcontrol.CreateResourceInput{TypeName: &typeName, DesiredState: &model})
	if err != nil {
		b.t.Fatalf("creating %s: %v", typeName, err)
	}
	return b.wait(out.ProgressEvent.RequestToken)
}

// mustCreate is create that has to succeed; it returns identifier and model.
func (b *bench) mustCreate(typeName, model string) (string, map[string]any) {
	b.t.Helper()
	e := b.create(typeName, model)
	if e.OperationStatus != cctypes.OperationStatusSuccess {
		b.t.Fatalf("creating %s: %s %s", typeName, e.ErrorCode, aws.ToString(e.StatusMessage))
	}
	m, err := decodeObject(aws.ToString(e.ResourceModel))
	if err != nil {
		b.t.Fatal(err)
	}
	return *e.Identifier, m
}

func (b *bench) get(typeName, identifier string) (map[string]any, error) {
	out, err := b.cc.GetResource(context.Background(), &cloudcontrol.GetResourceInput{TypeName: &typeName, Identifier: &identifier})
	if err != nil {
		return nil, err
	}
	return decodeObject(*out.ResourceDescription.Properties)
}

func (b *bench) delete(typeName, identifier string) *cctypes.ProgressEvent {
	b.t.Helper()
	out, err := b.cc.DeleteResource(context.Background(), &cloudcontrol.DeleteResourceInput{TypeName: &typeName, Identifier: &identifier})
	if err != nil {
		b.t.Fatalf("deleting %s: %v", typeName, err)
	}
	return b.wait(out.ProgressEvent.RequestToken)
}

func (b *bench) update(typeName, identifier, patch string) (*cctypes.ProgressEvent, error) {
	b.t.Helper()
	out, err := b.cc.UpdateResource(context.Background(), &cloudcontrol.UpdateResourceInput{TypeName: &typeName, Identifier: &identifier, PatchDocument: &patch})
	if err != nil {
		return nil, err
	}
	return b.wait(out.ProgressEvent.RequestToken), nil
}
