// Package doctor looks whether an account is fit for Slipway: whose the credentials are, the state bucket, the control
// plane and its release, what the caller may do, and whether the control plane's own resources are as they were deployed.
// It changes nothing.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"

	"github.com/slipway-cdk/slipway/pkg/bootstrap"
	"github.com/slipway-cdk/slipway/pkg/controlplane"
	"github.com/slipway-cdk/slipway/pkg/diag"
	store "github.com/slipway-cdk/slipway/pkg/objectstore/s3"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/state"
	"github.com/slipway-cdk/slipway/pkg/statebucket"
)

// Verdict is what came of a check.
type Verdict string

// The verdicts. Unknown is what could not be looked at.
const (
	OK      Verdict = "ok"
	Warning Verdict = "warning"
	Failed  Verdict = "failed"
	Unknown Verdict = "unknown"
)

// Check is one thing that was looked at.
type Check struct {
	Name    string  `json:"name"`
	Verdict Verdict `json:"verdict"`
	Detail  string  `json:"detail"`
	// Next is what to do about it.
	Next string `json:"next,omitempty"`
}

// Patient is what is looked at.
type Patient struct {
	Config aws.Config
	Bucket statebucket.Choice
	// Plane is the name of the control plane; Release the release of this program.
	Plane, Release string
	// Providers read the control plane's resources.
	Providers func(account string) *provider.Registry
}

type examination struct {
	Patient
	checks  []Check
	account string
	arn     string
	userID  string // the caller's aws:userid
}

func (x *examination) say(name string, v Verdict, detail, next string) {
	x.checks = append(x.checks, Check{Name: name, Verdict: v, Detail: detail, Next: next})
}

// Examine looks at everything that can be looked at, in order. What depends on something that is not there is left out.
func Examine(ctx context.Context, p Patient) []Check {
	x := &examination{Patient: p}
	if !x.credentials(ctx) {
		return x.checks
	}
	bucket, found := x.stateBucket(ctx)
	plane, has := x.controlPlane(ctx)
	x.permissions(ctx, bucket, found, plane, has)
	if found && has {
		x.drift(ctx, bucket, plane)
	}
	return x.checks
}

func (x *examination) credentials(ctx context.Context) bool {
	if x.Config.Region == "" {
		x.say("region", Failed, "neither the command line nor the AWS configuration names one", "Give --region, or set AWS_REGION.")
		return false
	}
	out, err := sts.NewFromConfig(x.Config).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		x.say("credentials", Failed, err.Error(), "`aws sts get-caller-identity` must work; --profile names others.")
		return false
	}
	x.account, x.arn, x.userID = aws.ToString(out.Account), aws.ToString(out.Arn), aws.ToString(out.UserId)
	x.say("credentials", OK, x.arn+" in account "+x.account+", region "+x.Config.Region, "")
	return true
}

func (x *examination) stateBucket(ctx context.Context) (statebucket.Found, bool) {
	const name = "state bucket"
	found, err := statebucket.Resolve(ctx, x.Config, x.account, x.Config.Region, x.Bucket)
	if err != nil {
		d := diag.From(err)[0]
		detail := d.Summary
		if d.Detail != "" {
			detail += ": " + d.Detail
		}
		x.say(name, Failed, detail, d.Next)
		return found, false
	}
	x.say(name, OK, found.Name+" in "+found.Region+", owned by account "+found.Owner, "")
	for _, w := range found.Warnings {
		x.say(name, Warning, w.Summary, w.Next)
	}
	client := store.NewClient(x.Config, found.Region)
	versioning, err := client.GetBucketVersioning(ctx, &s3.GetBucketVersioningInput{Bucket: &found.Name, ExpectedBucketOwner: &found.Owner})
	x.setting(name+": versioning", err, err == nil && versioning.Status == "Enabled", "what is overwritten is kept", "it is off: a record that is overwritten by mistake is lost")
	encryption, err := client.GetBucketEncryption(ctx, &s3.GetBucketEncryptionInput{Bucket: &found.Name, ExpectedBucketOwner: &found.Owner})
	if code(err) == "ServerSideEncryptionConfigurationNotFoundError" {
		err = nil
	}
	x.setting(name+": encryption", err, encryption != nil && encryption.ServerSideEncryptionConfiguration != nil, "objects are encrypted", "it is not configured")
	public, err := client.GetPublicAccessBlock(ctx, &s3.GetPublicAccessBlockInput{Bucket: &found.Name, ExpectedBucketOwner: &found.Owner})
	if code(err) == "NoSuchPublicAccessBlockConfiguration" {
		err = nil
	}
	blocked := false
	if public != nil && public.PublicAccessBlockConfiguration != nil {
		b := public.PublicAccessBlockConfiguration
		blocked = aws.ToBool(b.BlockPublicAcls) && aws.ToBool(b.BlockPublicPolicy) && aws.ToBool(b.IgnorePublicAcls) && aws.ToBool(b.RestrictPublicBuckets)
	}
	x.setting(name+": public access", err, blocked, "it is blocked", "it is not blocked altogether")
	policy, err := client.GetBucketPolicy(ctx, &s3.GetBucketPolicyInput{Bucket: &found.Name, ExpectedBucketOwner: &found.Owner})
	if code(err) == "NoSuchBucketPolicy" {
		err = nil
	}
	x.setting(name+": TLS", err, policy != nil && strings.Contains(aws.ToString(policy.Policy), "aws:SecureTransport"), "the policy refuses what is not encrypted on its way", "the policy does not refuse what is not encrypted on its way")
	return found, true
}

// setting tells of one setting of the state bucket.
func (x *examination) setting(name string, err error, ok bool, good, bad string) {
	switch {
	case err != nil:
		x.say(name, Unknown, "it can't be read: "+err.Error(), "")
	case ok:
		x.say(name, OK, good, "")
	default:
		x.say(name, Warning, bad, "`slipway bootstrap` completes what the bucket lacks; a policy of yours it leaves as it is.")
	}
}

func (x *examination) controlPlane(ctx context.Context) (controlplane.Descriptor, bool) {
	const name = "control plane"
	d, err := controlplane.ReadDescriptor(ctx, ssm.NewFromConfig(x.Config), x.Plane)
	switch {
	case errors.Is(err, controlplane.ErrNoPlane):
		x.say(name, Warning, "there is none named "+x.Plane+" in this account and region", "Install it with `slipway bootstrap`, or deploy with --direct.")
		return d, false
	case err != nil:
		x.say(name, Failed, err.Error(), "")
		return d, false
	}
	x.say(name, OK, d.StateMachine, "")
	if d.Account != x.account {
		x.say(name, Failed, "it says that it is of account "+d.Account, "Use credentials of that account.")
	}
	if d.Release == x.Release {
		x.say("release", OK, "control plane and command line are "+x.Release, "")
	} else {
		x.say("release", Warning, "the control plane is "+d.Release+", the command line "+x.Release, "`slipway bootstrap` deploys the control plane of this release.")
	}
	return d, true
}

// drift reads every resource of the control plane's own stack, and compares it with its record.
func (x *examination) drift(ctx context.Context, bucket statebucket.Found, d controlplane.Descriptor) {
	const name = "control plane: resources"
	objects := &store.Store{Client: store.NewClient(x.Config, bucket.Region), Bucket: bucket.Name, Owner: bucket.Owner}
	states := &state.Store{Objects: objects, Prefix: x.Bucket.Prefix}
	rec, _, err := states.Load(ctx, bootstrap.StackName(x.Plane), d.Region)
	switch {
	case state.IsNotFound(err):
		x.say(name, Unknown, "its stack was not deployed with Slipway, or the state bucket is another one", "")
		return
	case err != nil:
		x.say(name, Unknown, "its record can't be read: "+err.Error(), "")
		return
	}
	providers := x.Providers(x.account)
	drifted := 0
	var unread, unsure []string
	for _, id := range slices.Sorted(maps.Keys(rec.Resources)) {
		r := rec.Resources[id]
		p, route, err := providers.For(r.ResourceType, provider.Route(r.ProvisionedBy), nil)
		if err != nil {
			unread = append(unread, id+": "+err.Error())
			continue
		}
		live, err := p.Read(ctx, provider.Request{
			Account: x.account, Region: d.Region, Stack: bootstrap.StackName(x.Plane), LogicalID: id, Type: r.ResourceType,
			PhysicalID: r.PhysicalID, Previous: r.Properties, Attributes: r.Attributes,
		})
		if provider.IsNotFound(err) {
			x.say(name, Failed, id+" ("+r.ResourceType+") is gone", "`slipway bootstrap` does not see that yet: make it again under its name, or remove and install the control plane.")
			drifted++
			continue
		}
		if err != nil {
			unread = append(unread, id+": "+err.Error())
			continue
		}
		differ, doubtful := compare(r.ResourceType, route == provider.RouteSDK, r.Properties, live.Properties)
		for _, property := range doubtful {
			unsure = append(unsure, id+"."+property)
		}
		for _, property := range differ {
			x.say(name, Warning, id+" ("+r.ResourceType+"): "+property+" is not what was deployed", "Set it back, or deploy a change of it.")
			drifted++
		}
	}
	if len(unread) > 0 {
		x.say(name, Unknown, fmt.Sprintf("%d of %d could not be read: %s", len(unread), len(rec.Resources), strings.Join(unread, "; ")), "")
	}
	switch {
	case len(unsure) > 0:
		x.say(name, Unknown, "whether these are as they were deployed can't be told, because they are not read back, or in another shape: "+strings.Join(unsure, ", "), "Look at them by hand.")
	case drifted == 0 && len(unread) == 0:
		x.say(name, OK, fmt.Sprintf("all %d are as they were deployed", len(rec.Resources)), "")
	}
}

func code(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return ""
}
