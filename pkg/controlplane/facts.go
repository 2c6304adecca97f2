package controlplane

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	ssmtypes "github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/slipway-cdk/slipway/pkg/run"
)

// facts reads from AWS what a plan needs to know.
type facts struct{ aws *Accounts }

var _ run.Facts = facts{}

// Zones implements run.Facts. Local and Wavelength zones are left out, as Fn::GetAZs leaves them out.
func (f facts) Zones(ctx context.Context, account, region string) ([]string, error) {
	out, err := f.aws.ec2(account, region).DescribeAvailabilityZones(ctx, &ec2.DescribeAvailabilityZonesInput{
		Filters: []ec2types.Filter{
			{Name: aws.String("state"), Values: []string{"available"}},
			{Name: aws.String("zone-type"), Values: []string{"availability-zone"}},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("listing the availability zones of %s: %w", region, err)
	}
	zones := make([]string, 0, len(out.AvailabilityZones))
	for _, z := range out.AvailabilityZones {
		zones = append(zones, aws.ToString(z.ZoneName))
	}
	slices.Sort(zones)
	return zones, nil
}

// SSMParameter implements run.Facts. A SecureString is refused, as CloudFormation refuses it for a template's
// parameter (https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cloudformation-supplied-parameter-types.html):
// its value would stand in the plan.
func (f facts) SSMParameter(ctx context.Context, account, region, name string) (string, error) {
	out, err := f.aws.ssm(account, region).GetParameter(ctx, &ssm.GetParameterInput{Name: &name})
	if err != nil {
		return "", fmt.Errorf("reading SSM parameter %s in %s: %w", name, region, err)
	}
	if out.Parameter == nil {
		return "", fmt.Errorf("reading SSM parameter %s in %s: the answer has none", name, region)
	}
	if out.Parameter.Type == ssmtypes.ParameterTypeSecureString {
		return "", errors.New("SSM parameter " + name + " is a SecureString: use a dynamic reference, {{resolve:ssm-secure:…}}, instead")
	}
	return aws.ToString(out.Parameter.Value), nil
}
