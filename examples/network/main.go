// Command network is a CDK app of one stack, an example for Slipway: a VPC over two availability zones with
// public and private subnets, one NAT gateway, a security group and two VPC endpoints. Its NAT gateway and
// its interface endpoint take minutes on AWS, so it shows how the rest does not wait for them.
package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsec2"
	"github.com/aws/jsii-runtime-go"
)

func main() {
	defer jsii.Close()
	app := awscdk.NewApp(nil)
	stack := awscdk.NewStack(app, jsii.String("Network"), &awscdk.StackProps{
		Description: jsii.String("A network over two availability zones"),
	})

	vpc := awsec2.NewVpc(stack, jsii.String("Vpc"), &awsec2.VpcProps{
		IpAddresses: awsec2.IpAddresses_Cidr(jsii.String("10.20.0.0/16")),
		MaxAzs:      jsii.Number(2),
		NatGateways: jsii.Number(1),
		SubnetConfiguration: &[]*awsec2.SubnetConfiguration{
			{Name: jsii.String("public"), SubnetType: awsec2.SubnetType_PUBLIC, CidrMask: jsii.Number(24)},
			{Name: jsii.String("private"), SubnetType: awsec2.SubnetType_PRIVATE_WITH_EGRESS, CidrMask: jsii.Number(20)},
		},
		GatewayEndpoints: &map[string]*awsec2.GatewayVpcEndpointOptions{
			"S3": {Service: awsec2.GatewayVpcEndpointAwsService_S3()},
		},
	})

	web := awsec2.NewSecurityGroup(stack, jsii.String("Web"), &awsec2.SecurityGroupProps{
		Vpc:         vpc,
		Description: jsii.String("HTTPS from inside the network"),
	})
	web.AddIngressRule(awsec2.Peer_Ipv4(vpc.VpcCidrBlock()), awsec2.Port_Tcp(jsii.Number(443)), jsii.String("HTTPS"), nil)
	vpc.AddInterfaceEndpoint(jsii.String("Secrets"), &awsec2.InterfaceVpcEndpointOptions{
		Service:        awsec2.InterfaceVpcEndpointAwsService_SECRETS_MANAGER(),
		SecurityGroups: &[]awsec2.ISecurityGroup{web},
		Open:           jsii.Bool(false),
	})

	awscdk.NewCfnOutput(stack, jsii.String("VpcId"), &awscdk.CfnOutputProps{
		Value:      vpc.VpcId(),
		ExportName: jsii.String("network-vpc-id"),
	})
	awscdk.NewCfnOutput(stack, jsii.String("PrivateSubnets"), &awscdk.CfnOutputProps{
		Value: awscdk.Fn_Join(jsii.String(","), vpc.SelectSubnets(&awsec2.SubnetSelection{
			SubnetType: awsec2.SubnetType_PRIVATE_WITH_EGRESS,
		}).SubnetIds),
	})
	app.Synth(nil)
}
