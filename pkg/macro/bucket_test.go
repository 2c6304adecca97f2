package macro_test

import (
	"context"
	"net/url"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/slipway-cdk/slipway/pkg/macro"
)

func TestATemplateCanBeReadByWhoeverHasItsAddress(t *testing.T) {
	// The token of a function's session has about 1,000 characters.
	client := s3.New(s3.Options{Region: "cn-north-1", Credentials: credentials.NewStaticCredentialsProvider("AKID", "secret", strings.Repeat("t/+", 400))})
	address, err := macro.Bucket{Client: client, Name: "state.bucket"}.URL(context.Background(), "slipway/templates/x.json")
	if err != nil {
		t.Fatal(err)
	}
	// CloudFormation's bound on TemplateURL.
	if len(address) > 5120 {
		t.Errorf("it has %d characters", len(address))
	}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	// Path style: a bucket's name may hold dots, which no certificate covers. The region is the bucket's own.
	if got := u.Scheme + "://" + u.Host + u.Path; got != "https://s3.cn-north-1.amazonaws.com.cn/state.bucket/slipway/templates/x.json" {
		t.Errorf("it is %s", got)
	}
	q := u.Query()
	if got := q.Get("X-Amz-SignedHeaders"); got != "host" {
		t.Errorf("it demands the headers %s", got)
	}
	if q.Get("X-Amz-Expires") != "900" || q.Get("X-Amz-Signature") == "" || q.Get("x-amz-checksum-mode") != "" {
		t.Errorf("its query is %v", q)
	}
}
