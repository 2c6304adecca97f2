//go:build emulators

package conformance

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/apigatewayv2"
	apitypes "github.com/aws/aws-sdk-go-v2/service/apigatewayv2/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"

	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

type maker = func(map[string]any) (string, func() error, error)

// plainNetwork makes what routes lead to, addresses are put on and state machines are read from. The calls go to an emulator that ends with the run: what nothing
// depends on is left there.
func plainNetwork(t *testing.T, cfg aws.Config) map[string]maker {
	client := ec2.NewFromConfig(cfg)
	ctx := t.Context()
	left := func() error { return nil }
	text := func(properties map[string]any, name string) *string {
		v := direct.Text(properties[name])
		return &v
	}
	return map[string]maker{
		"Definition": func(properties map[string]any) (string, func() error, error) {
			return definition(t, cfg, properties)
		},
		"AWS::Scheduler::ScheduleGroup": func(properties map[string]any) (string, func() error, error) {
			groups := scheduler.NewFromConfig(cfg)
			name := direct.Text(properties["Name"])
			_, err := groups.CreateScheduleGroup(ctx, &scheduler.CreateScheduleGroupInput{Name: &name})
			return name, func() error {
				_, err := groups.DeleteScheduleGroup(t.Context(), &scheduler.DeleteScheduleGroupInput{Name: &name})
				return err
			}, err
		},
		"AWS::ApiGatewayV2::Authorizer": func(properties map[string]any) (string, func() error, error) {
			out, err := apigatewayv2.NewFromConfig(cfg).CreateAuthorizer(ctx, &apigatewayv2.CreateAuthorizerInput{
				ApiId: text(properties, "ApiId"), Name: aws.String("tokens"), AuthorizerType: apitypes.AuthorizerTypeJwt,
				IdentitySource:   []string{"$request.header.Authorization"},
				JwtConfiguration: &apitypes.JWTConfiguration{Issuer: aws.String("https://shop.example"), Audience: []string{"shop"}},
			})
			if err != nil {
				return "", nil, err
			}
			return *out.AuthorizerId, left, nil
		},
		"AWS::EC2::VPNGateway": func(map[string]any) (string, func() error, error) {
			out, err := client.CreateVpnGateway(ctx, &ec2.CreateVpnGatewayInput{Type: types.GatewayTypeIpsec1})
			if err != nil {
				return "", nil, err
			}
			return *out.VpnGateway.VpnGatewayId, left, nil
		},
		"AWS::EC2::Instance": func(properties map[string]any) (string, func() error, error) {
			out, err := client.RunInstances(ctx, &ec2.RunInstancesInput{
				ImageId: aws.String("ami-12c6146b"), InstanceType: types.InstanceTypeT3Micro, MinCount: aws.Int32(1), MaxCount: aws.Int32(1),
				SubnetId: text(properties, "SubnetId"),
			})
			if err != nil {
				return "", nil, err
			}
			id := *out.Instances[0].InstanceId
			return id, func() error {
				_, err := client.TerminateInstances(t.Context(), &ec2.TerminateInstancesInput{InstanceIds: []string{id}})
				return err
			}, nil
		},
		"AWS::EC2::NetworkInterface": func(properties map[string]any) (string, func() error, error) {
			out, err := client.CreateNetworkInterface(ctx, &ec2.CreateNetworkInterfaceInput{SubnetId: text(properties, "SubnetId")})
			if err != nil {
				return "", nil, err
			}
			id := *out.NetworkInterface.NetworkInterfaceId
			return id, func() error {
				_, err := client.DeleteNetworkInterface(t.Context(), &ec2.DeleteNetworkInterfaceInput{NetworkInterfaceId: &id})
				return err
			}, nil
		},
		"AWS::EC2::VPCPeeringConnection": func(properties map[string]any) (string, func() error, error) {
			out, err := client.CreateVpcPeeringConnection(ctx, &ec2.CreateVpcPeeringConnectionInput{
				VpcId: text(properties, "VpcId"), PeerVpcId: text(properties, "PeerVpcId"),
			})
			if err != nil {
				return "", nil, err
			}
			return *out.VpcPeeringConnection.VpcPeeringConnectionId, left, nil
		},
		"AWS::EC2::TransitGateway": func(map[string]any) (string, func() error, error) {
			out, err := client.CreateTransitGateway(ctx, &ec2.CreateTransitGatewayInput{})
			if err != nil {
				return "", nil, err
			}
			return *out.TransitGateway.TransitGatewayId, left, nil
		},
		"AWS::EC2::EgressOnlyInternetGateway": func(properties map[string]any) (string, func() error, error) {
			out, err := client.CreateEgressOnlyInternetGateway(ctx, &ec2.CreateEgressOnlyInternetGatewayInput{VpcId: text(properties, "VpcId")})
			if err != nil {
				return "", nil, err
			}
			return *out.EgressOnlyInternetGateway.EgressOnlyInternetGatewayId, left, nil
		},
		"AWS::EC2::PrefixList": func(map[string]any) (string, func() error, error) {
			out, err := client.CreateManagedPrefixList(ctx, &ec2.CreateManagedPrefixListInput{
				PrefixListName: aws.String("ranges"), AddressFamily: aws.String("IPv4"), MaxEntries: aws.Int32(5),
			})
			if err != nil {
				return "", nil, err
			}
			return *out.PrefixList.PrefixListId, left, nil
		},
		"AWS::EC2::VPCEndpoint": func(properties map[string]any) (string, func() error, error) {
			out, err := client.CreateVpcEndpoint(ctx, &ec2.CreateVpcEndpointInput{
				VpcId: text(properties, "VpcId"), ServiceName: text(properties, "ServiceName"), VpcEndpointType: types.VpcEndpointTypeGatewayLoadBalancer,
			})
			if err != nil {
				return "", nil, err
			}
			return *out.VpcEndpoint.VpcEndpointId, left, nil
		},
	}
}

// definition puts an object with the text of a state machine into a bucket.
func definition(t *testing.T, cfg aws.Config, properties map[string]any) (string, func() error, error) {
	objects := s3.NewFromConfig(cfg)
	bucket, key := direct.Text(properties["Bucket"]), direct.Text(properties["Key"])
	if _, err := objects.HeadBucket(t.Context(), &s3.HeadBucketInput{Bucket: &bucket}); err != nil {
		if _, err := objects.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &bucket}); err != nil {
			return "", nil, err
		}
	}
	_, err := objects.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &bucket, Key: &key, Body: strings.NewReader(direct.Text(properties["Text"]))})
	return key, func() error { return nil }, err
}
