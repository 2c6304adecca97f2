package cloud

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/slipway-cdk/slipway/pkg/lookup"
)

type imageQuery struct {
	Owners  []string            `json:"owners"`
	Filters map[string][]string `json:"filters"`
}

// image answers ami (MachineImage.lookup): the id of the newest image that matches. EC2 leaves out deprecated images of
// other owners.
func image(ctx context.Context, in *place, q lookup.Query) (any, error) {
	var ask imageQuery
	if err := decode(q, &ask); err != nil {
		return nil, err
	}
	// Without a page size EC2 answers all at once, or, of many images, with a time-out:
	// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeImages.html
	pages := ec2.NewDescribeImagesPaginator(ec2.NewFromConfig(in.cfg), &ec2.DescribeImagesInput{
		Owners: ask.Owners, Filters: filters(ask.Filters), MaxResults: aws.Int32(1000),
	})
	var newest string
	var made time.Time
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, called("ec2:DescribeImages", err)
		}
		for _, i := range page.Images {
			id := aws.ToString(i.ImageId)
			// A date that can't be read is older than any other. Of two images of one moment the answer is always the same.
			when, _ := time.Parse(time.RFC3339, aws.ToString(i.CreationDate))
			if id != "" && (newest == "" || cmp.Or(when.Compare(made), strings.Compare(newest, id)) > 0) {
				newest, made = id, when
			}
		}
	}
	if newest == "" {
		what := "machine image (AMI) with " + asked(ask.Filters)
		if len(ask.Owners) > 0 {
			what += " of " + strings.Join(ask.Owners, ", ")
		}
		return nil, &NotFoundError{What: what}
	}
	return newest, nil
}
