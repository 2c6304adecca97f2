package remote

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	sfntypes "github.com/aws/aws-sdk-go-v2/service/sfn/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/controlplane"
	"github.com/slipway-cdk/slipway/pkg/objectstore/s3"
	"github.com/slipway-cdk/slipway/pkg/runlog/dynamo"
	"github.com/slipway-cdk/slipway/pkg/secret"
	"github.com/slipway-cdk/slipway/pkg/upload"
)

// ErrNowhere is in the chain of the error where the AWS configuration of this machine names no region, so that nothing
// can be looked for.
var ErrNowhere = errors.New("no AWS region is configured here")

// Open finds the control plane with a name in the account and region of a configuration, and connects to it. "" is
// controlplane.DefaultName. The chain of the error has controlplane.ErrNoPlane where there is none.
func Open(ctx context.Context, cfg aws.Config, name string) (*Plane, error) {
	if cfg.Region == "" {
		return nil, ErrNowhere
	}
	d, err := controlplane.ReadDescriptor(ctx, ssm.NewFromConfig(cfg), name)
	if err != nil {
		return nil, err
	}
	who, err := sts.NewFromConfig(cfg).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return nil, fmt.Errorf("asking AWS who the caller is: %w", err)
	}
	return Connect(cfg, d, aws.ToString(who.UserId)), nil
}

// Connect connects to the control plane of a descriptor as a caller. It calls nothing.
func Connect(cfg aws.Config, d controlplane.Descriptor, who string) *Plane {
	region := cfg.Region
	cfg = cfg.Copy()
	cfg.Region = d.Region
	clk := clock.Real{}
	bucket := s3.NewClient(cfg, d.Region)
	p := &Plane{
		Account: d.Account, Region: region, Who: who, Clock: clk, Reports: bucket,
		Uploads: &upload.Client{API: bucket, Bucket: d.UploadsBucket, Owner: d.Account, Notes: notes()},
		Runs:    &dynamo.Store{Client: dynamodb.NewFromConfig(cfg), Table: d.Table, Objects: unreachable{}, Clock: clk},
		Start:   &machine{client: sfn.NewFromConfig(cfg), arn: d.StateMachine},
		Console: func(execution string) string { return consoleLink(d, execution) },
	}
	if d.VaultKey != "" {
		p.Sealer = &secret.KMS{Client: kms.NewFromConfig(cfg), KeyID: d.VaultKey, Objects: unreachable{}}
	}
	return p
}

// notes is where uploads that are not complete are remembered; "" where there is no such place.
func notes() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "slipway", "uploads")
}

// machine is the run state machine.
type machine struct {
	client *sfn.Client
	arn    string
}

// StartExecution implements Starter.
func (m *machine) StartExecution(ctx context.Context, name string, input []byte) error {
	_, err := m.client.StartExecution(ctx, &sfn.StartExecutionInput{
		StateMachineArn: &m.arn, Name: &name, Input: aws.String(string(input)),
	})
	// With the same input, while it runs, Step Functions answers as the first time; this is said of one that has ended
	// (https://docs.aws.amazon.com/step-functions/latest/apireference/API_StartExecution.html).
	var there *sfntypes.ExecutionAlreadyExists
	if err != nil && !errors.As(err, &there) {
		return fmt.Errorf("starting execution %s: %w", name, err)
	}
	return nil
}

// consoleLink is where an execution is in the console of AWS, which has another address in each partition
// (https://docs.aws.amazon.com/general/latest/gr/rande.html). Where the address is not known it is "".
func consoleLink(d controlplane.Descriptor, execution string) string {
	host, ok := map[string]string{
		"aws": "console.aws.amazon.com", "aws-cn": "console.amazonaws.cn", "aws-us-gov": "console.amazonaws-us-gov.com",
	}[d.Partition()]
	if !ok {
		return ""
	}
	return "https://" + d.Region + "." + host + "/states/home?region=" + d.Region + "#/v2/executions/details/" + url.PathEscape(d.Execution(execution))
}
