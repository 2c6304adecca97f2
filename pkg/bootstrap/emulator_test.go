//go:build emulators

package bootstrap

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/slipway-cdk/slipway/pkg/direct"
	"github.com/slipway-cdk/slipway/pkg/emulators"
	"github.com/slipway-cdk/slipway/pkg/objectstore"
	store "github.com/slipway-cdk/slipway/pkg/objectstore/s3"
	"github.com/slipway-cdk/slipway/pkg/state"
)

func TestABucketIsMadeOnceAndWhatIsSetOtherwiseStays(t *testing.T) {
	cfg := emulators.Config(t)
	account, err := direct.Account(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	b := StateBucket(fmt.Sprintf("slipway-bootstrap-%d", time.Now().UnixNano()), "us-east-1", account)
	if made, err := b.Make(t.Context(), cfg); err != nil || !made {
		t.Fatalf("%t, %v", made, err)
	}
	client := store.NewClient(cfg, "us-east-1")
	leaveOut := emulators.LeaveOut(t, []emulators.Capability{conditions(client, account)})
	policy, err := client.GetBucketPolicy(t.Context(), &s3.GetBucketPolicyInput{Bucket: &b.Name})
	if err != nil || !strings.Contains(aws.ToString(policy.Policy), "aws:SecureTransport") || !strings.Contains(aws.ToString(policy.Policy), account) {
		t.Errorf("the policy is %v", err)
	}
	versioning, err := client.GetBucketVersioning(t.Context(), &s3.GetBucketVersioningInput{Bucket: &b.Name})
	if err != nil || versioning.Status != "Enabled" {
		t.Errorf("the versioning is %v, %v", versioning, err)
	}
	lifecycle, err := client.GetBucketLifecycleConfiguration(t.Context(), &s3.GetBucketLifecycleConfigurationInput{Bucket: &b.Name})
	if err != nil || len(lifecycle.Rules) != 3 {
		t.Errorf("the lifecycle is %v, %v", lifecycle, err)
	}
	own := `{"Version":"2012-10-17","Statement":[{"Sid":"Own","Effect":"Deny","Principal":"*","Action":"s3:DeleteBucket","Resource":"arn:aws:s3:::` + b.Name + `"}]}`
	if _, err := client.PutBucketPolicy(t.Context(), &s3.PutBucketPolicyInput{Bucket: &b.Name, Policy: &own}); err != nil {
		t.Fatal(err)
	}
	if made, err := b.Make(t.Context(), cfg); err != nil || made {
		t.Fatalf("the second time: %t, %v", made, err)
	}
	if policy, err = client.GetBucketPolicy(t.Context(), &s3.GetBucketPolicyInput{Bucket: &b.Name}); err != nil || !strings.Contains(aws.ToString(policy.Policy), "Own") {
		t.Errorf("a policy of somebody's own is gone: %v", err)
	}
	t.Run("what is in it is removed with it", func(t *testing.T) {
		leaveOut(t)
		assets := AssetBucket(account, "us-east-1")
		assets.Name = b.Name + "-assets"
		if _, err := assets.Make(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
		if _, err := client.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &assets.Name, Key: aws.String("k")}); err != nil {
			t.Fatal(err)
		}
		states := &state.Store{Objects: &store.Store{Client: client, Bucket: b.Name, Owner: account}}
		rec := &state.Record{StackName: StackName("other"), Region: assets.Region, Outputs: map[string]any{}, Resources: map[string]*state.Resource{}}
		etag, err := states.Save(t.Context(), rec, "")
		if err != nil {
			t.Fatal(err)
		}
		if others, err := RemoveAssets(t.Context(), cfg, states, assets, "slipway"); err != nil || !slices.Equal(others, []string{"other"}) {
			t.Errorf("while another control plane stands it is kept for %v, %v", others, err)
		}
		if _, err := client.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: &assets.Name, Key: aws.String("k")}); err != nil {
			t.Errorf("what another control plane has in the bucket: %v", err)
		}
		if err := states.Objects.Delete(t.Context(), states.StateKey(rec.StackName, rec.Region), objectstore.Condition{IfMatch: etag}); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if others, err := RemoveAssets(t.Context(), cfg, states, assets, "slipway"); err != nil || len(others) > 0 {
				t.Fatalf("the last one's is kept for %v, %v", others, err)
			}
		}
		if _, err := client.HeadBucket(t.Context(), &s3.HeadBucketInput{Bucket: &assets.Name}); err == nil {
			t.Error("the last one's bucket is still there")
		}
	})
}

// conditions tries whether a bucket's policy denies only what its condition says.
func conditions(client *s3.Client, account string) emulators.Capability {
	return emulators.Capability{
		Name:  "S3: PutObject looks at the conditions of the bucket's policy",
		Cases: []string{"what is in it is removed with it"},
		Probe: func(ctx context.Context) (string, error) {
			name := fmt.Sprintf("slipway-probe-%d", time.Now().UnixNano())
			others := `{"Version":"2012-10-17","Statement":[{"Effect":"Deny","Principal":"*","Action":"s3:*","Resource":["arn:aws:s3:::` + name + `","arn:aws:s3:::` + name + `/*"],
				"Condition":{"StringNotEquals":{"aws:PrincipalAccount":"` + account + `"}}}]}`
			_, err := client.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: &name})
			if err == nil {
				_, err = client.PutBucketPolicy(ctx, &s3.PutBucketPolicyInput{Bucket: &name, Policy: &others})
			}
			if err != nil {
				return "", err
			}
			_, err = client.PutObject(ctx, &s3.PutObjectInput{Bucket: &name, Key: aws.String("k")})
			return emulators.Unless(err == nil, "what is denied to other accounts is denied to its own: "+code(err)), nil
		},
	}
}
