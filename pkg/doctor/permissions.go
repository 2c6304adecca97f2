package doctor

import (
	"cmp"
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/slipway-cdk/slipway/pkg/controlplane"
	"github.com/slipway-cdk/slipway/pkg/iampolicy"
	store "github.com/slipway-cdk/slipway/pkg/objectstore/s3"
	"github.com/slipway-cdk/slipway/pkg/statebucket"
)

// permissions asks IAM whether the caller may do what a deploy through the control plane needs; where there is none, what
// --direct needs of the state bucket. A caller who may not ask is tried out by reading.
func (x *examination) permissions(ctx context.Context, bucket statebucket.Found, found bool, plane controlplane.Descriptor, has bool) {
	const name = "permissions"
	var needed []iampolicy.Statement
	switch {
	case has:
		needed = controlplane.CallerPolicy(plane.Scope(x.Plane)).Statement
	case found:
		arn := "arn:" + partition(x.arn) + ":s3:::" + bucket.Name
		needed = []iampolicy.Statement{
			iampolicy.Allow("Objects", []string{"s3:GetObject", "s3:PutObject", "s3:DeleteObject"}, arn+"/"+cmp.Or(x.Bucket.Prefix, "cdkd")+"/*", arn+"/slipway/*"),
			iampolicy.Allow("List", []string{"s3:ListBucket"}, arn),
		}
	default:
		return
	}
	if source, ok := principal(x.arn); ok {
		answer, err := x.simulate(ctx, source, needed)
		switch {
		case err == nil && len(answer.denied) > 0:
			x.say(name, Failed, source+" may not "+strings.Join(answer.denied, ", "), x.whatIsNeeded(has))
			return
		case err == nil && len(answer.depends) > 0:
			x.say(name, Unknown, "what "+source+" may do depends on "+strings.Join(answer.depends, ", ")+", of which IAM is not told here", x.whatIsNeeded(has))
			return
		case err == nil:
			x.say(name, OK, source+" may do what a deploy needs, as IAM says", "")
			return
		}
	}
	if !found {
		x.say(name, Unknown, "IAM does not tell (iam:SimulatePrincipalPolicy)", "")
		return
	}
	_, err := store.NewClient(x.Config, bucket.Region).ListObjectsV2(ctx, &s3.ListObjectsV2Input{
		Bucket: &bucket.Name, ExpectedBucketOwner: &bucket.Owner, Prefix: aws.String("cdkd/"), MaxKeys: aws.Int32(1),
	})
	switch {
	case has && err != nil:
		x.say(name, Unknown, "IAM does not tell (iam:SimulatePrincipalPolicy); the state bucket can't be read, which callers of a control plane need not", "")
	case err != nil:
		x.say(name, Failed, "the state bucket can't be listed: "+err.Error(), "Ask for s3:ListBucket, GetObject, PutObject and DeleteObject on it.")
	default:
		x.say(name, OK, "the state bucket can be listed; IAM does not tell of the rest (iam:SimulatePrincipalPolicy)", "")
	}
}

// whatIsNeeded says where the permissions stand.
func (x *examination) whatIsNeeded(has bool) string {
	if has {
		return "`slipway doctor --print-caller-policy` prints what is needed."
	}
	return "docs/direct.md says what --direct needs of the bucket."
}

// principal is the ARN of the user or role behind a caller's ARN; a role's path is not in the ARN of its session, so a
// role with a path is not found by it and is tried out instead.
func principal(caller string) (string, bool) {
	parts := strings.SplitN(caller, ":", 6)
	if len(parts) != 6 {
		return "", false
	}
	kind, rest, _ := strings.Cut(parts[5], "/")
	switch kind {
	case "user":
		return caller, true
	case "assumed-role":
		role, _, _ := strings.Cut(rest, "/")
		return "arn:" + parts[1] + ":iam::" + parts[4] + ":role/" + role, true
	}
	return "", false
}

func partition(arn string) string {
	if parts := strings.SplitN(arn, ":", 3); len(parts) == 3 && parts[1] != "" {
		return parts[1]
	}
	return "aws"
}
