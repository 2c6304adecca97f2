package s3bucket

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

// bucketPolicy is the one policy of a bucket. Its id is the bucket's name.
func bucketPolicy() direct.Kind[*s3.Client] {
	return direct.Kind[*s3.Client]{
		Type: "AWS::S3::BucketPolicy", Identity: direct.ByPut,
		CreateOnly: []string{"Bucket"},
		Create: func(ctx context.Context, c *call) (string, error) {
			return c.Text("Bucket"), putPolicy(ctx, c, c.Text("Bucket"))
		},
		Facets: []direct.Facet[*s3.Client]{{
			Properties: []string{"PolicyDocument"}, Created: true,
			Put: busy(func(ctx context.Context, c *call) error { return putPolicy(ctx, c, c.PhysicalID) }),
		}},
		Read: func(ctx context.Context, c *call) (direct.Live, error) {
			out, err := c.Client.GetBucketPolicy(ctx, &s3.GetBucketPolicyInput{Bucket: &c.PhysicalID})
			if code(err) == "NoSuchBucketPolicy" || err == nil && aws.ToString(out.Policy) == "" {
				return direct.Live{}, direct.NotFound("policy on bucket", c.PhysicalID)
			}
			if err != nil {
				return direct.Live{}, err
			}
			return direct.Live{Properties: map[string]any{"Bucket": c.PhysicalID, "PolicyDocument": direct.ParseDocument(out.Policy)}}, nil
		},
		Delete: busy(func(ctx context.Context, c *call) error {
			_, err := c.Client.DeleteBucketPolicy(ctx, &s3.DeleteBucketPolicyInput{Bucket: &c.PhysicalID})
			return absent(err, "NoSuchBucketPolicy")
		}),
	}
}

func putPolicy(ctx context.Context, c *call, name string) error {
	document, err := direct.Document(c.Properties["PolicyDocument"])
	if err != nil {
		return err
	}
	_, err = c.Client.PutBucketPolicy(ctx, &s3.PutBucketPolicyInput{Bucket: &name, Policy: &document})
	return err
}
