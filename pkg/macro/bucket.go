package macro

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// urlValidity is how long CloudFormation may read a template. It reads it when the change set is asked for.
const urlValidity = 15 * time.Minute

// Bucket is the bucket in which the templates are stored already. The client must be of the bucket's own region, which
// need not be the stack's: CloudFormation follows a regional address anywhere
// (https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cfn-using-console-create-stack-template.html).
//
// CloudFormation reads a template with the permissions of whoever asks it to, and that is the stack's role. It must not
// be able to read a bucket that has the records of all stacks, and one of another account could not. So the address is
// signed with the credentials of the client, for one object and some minutes.
type Bucket struct {
	Client *s3.Client
	Name   string
}

var _ Templates = Bucket{}

// URL implements Templates. With a session's token it has about 1,500 characters; CloudFormation takes 5,120.
func (b Bucket) URL(ctx context.Context, key string) (string, error) {
	presign := s3.NewPresignClient(b.Client, s3.WithPresignExpires(urlValidity), func(o *s3.PresignOptions) {
		o.ClientOptions = append(o.ClientOptions, func(o *s3.Options) {
			// Else the address demands a header that CloudFormation does not send.
			o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
		})
	})
	out, err := presign.PresignGetObject(ctx, &s3.GetObjectInput{Bucket: aws.String(b.Name), Key: aws.String(key)})
	if err != nil {
		return "", fmt.Errorf("signing the address of %s: %w", key, err)
	}
	return out.URL, nil
}
