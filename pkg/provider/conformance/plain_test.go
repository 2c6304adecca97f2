//go:build emulators

package conformance

import (
	"archive/zip"
	"bytes"
	"maps"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

// plain makes resources that cases need and that have no direct provider.
func plain(t *testing.T, cfg aws.Config) map[string]func(map[string]any) (string, func() error, error) {
	cfg = cfg.Copy()
	cfg.APIOptions = nil // these calls are not the provider's
	client := iam.NewFromConfig(cfg)
	made := map[string]func(map[string]any) (string, func() error, error){
		"AWS::IAM::User": func(properties map[string]any) (string, func() error, error) {
			name := direct.Text(properties["UserName"])
			_, err := client.CreateUser(t.Context(), &iam.CreateUserInput{UserName: &name})
			return name, func() error {
				_, err := client.DeleteUser(t.Context(), &iam.DeleteUserInput{UserName: &name})
				return present(err)
			}, err
		},
		"AWS::IAM::Group": func(properties map[string]any) (string, func() error, error) {
			name := direct.Text(properties["GroupName"])
			_, err := client.CreateGroup(t.Context(), &iam.CreateGroupInput{GroupName: &name})
			return name, func() error {
				_, err := client.DeleteGroup(t.Context(), &iam.DeleteGroupInput{GroupName: &name})
				return present(err)
			}, err
		},
	}
	// An object in a bucket of its own, of which the id is the name: "code.zip" with one file.
	made["Archive"] = func(properties map[string]any) (string, func() error, error) {
		client, bucket := pathStyle(cfg), direct.Text(properties["BucketName"])
		if _, err := client.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &bucket}); err != nil {
			return "", nil, err
		}
		var body bytes.Buffer
		archive := zip.NewWriter(&body)
		file, err := archive.Create(direct.Text(properties["File"]))
		if err == nil {
			_, err = file.Write([]byte(direct.Text(properties["Text"])))
		}
		if err == nil {
			err = archive.Close()
		}
		if err == nil {
			_, err = client.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &bucket, Key: aws.String("code.zip"), Body: bytes.NewReader(body.Bytes())})
		}
		return bucket, func() error {
			_, err := client.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: &bucket, Key: aws.String("code.zip")})
			if err == nil {
				_, err = client.DeleteBucket(t.Context(), &s3.DeleteBucketInput{Bucket: &bucket})
			}
			return err
		}, err
	}
	maps.Copy(made, plainNetwork(t, cfg))
	maps.Copy(made, plainLambda(t, cfg))
	return made
}

// present is err unless it says that there is nothing to be deleted: the client's own retry may have met its first call's work.
func present(err error) error { return direct.Errors{}.Unless(err, provider.KindNotFound) }
