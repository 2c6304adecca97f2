package cloud

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/slipway-cdk/slipway/pkg/lookup"
)

// zones answers availability-zones (Stack.availabilityZones): the names of the zones that the account has in the region
// and that are available, sorted. Like the CDK CLI it leaves in the Local and Wavelength Zones that the account has
// opted in to.
func zones(ctx context.Context, in *place, _ lookup.Query) (any, error) {
	out, err := ec2.NewFromConfig(in.cfg).DescribeAvailabilityZones(ctx, &ec2.DescribeAvailabilityZonesInput{})
	if err != nil {
		return nil, called("ec2:DescribeAvailabilityZones", err)
	}
	var names []string
	for _, z := range out.AvailabilityZones {
		if z.State == types.AvailabilityZoneStateAvailable && z.ZoneName != nil {
			names = append(names, *z.ZoneName)
		}
	}
	if len(names) == 0 {
		return nil, &NotFoundError{What: "availability zone that is available"}
	}
	slices.Sort(names)
	return list(names), nil
}

type endpointServiceQuery struct {
	ServiceName string `json:"serviceName"`
}

// endpointServiceZones answers endpoint-service-availability-zones (InterfaceVpcEndpoint with
// lookupSupportedAzs): the zones that a service of PrivateLink can be reached in.
func endpointServiceZones(ctx context.Context, in *place, q lookup.Query) (any, error) {
	var ask endpointServiceQuery
	if err := decode(q, &ask); err != nil {
		return nil, err
	}
	none := &NotFoundError{What: "VPC endpoint service " + ask.ServiceName}
	out, err := ec2.NewFromConfig(in.cfg).DescribeVpcEndpointServices(ctx, &ec2.DescribeVpcEndpointServicesInput{ServiceNames: []string{ask.ServiceName}})
	switch {
	case code(err) == "InvalidServiceName":
		return nil, none
	case err != nil:
		return nil, called("ec2:DescribeVpcEndpointServices", err)
	}
	// Every page is of the one service that was asked for.
	for _, s := range out.ServiceDetails {
		if aws.ToString(s.ServiceName) == ask.ServiceName {
			return list(s.AvailabilityZones), nil
		}
	}
	return nil, none
}
