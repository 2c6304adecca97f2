//go:build emulators

package cloud

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	elbtypes "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/route53"
	r53types "github.com/aws/aws-sdk-go-v2/service/route53/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	ssmtypes "github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/slipway-cdk/slipway/pkg/emulators"
	"github.com/slipway-cdk/slipway/pkg/lookup"
)

// account is an account of an emulator with lookups on it.
type account struct {
	*Lookups
	cfg aws.Config
	id  string
	// name is new in every run: emulators are not emptied in between.
	name string
}

func emulated(t *testing.T) *account {
	t.Helper()
	a := &account{cfg: emulators.Config(t), name: fmt.Sprintf("lookup-%d", time.Now().UnixNano())}
	a.Lookups = New(Options{Config: func(context.Context) (aws.Config, error) { return a.cfg, nil }})
	id, _, err := a.Identity(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	a.id = id
	return a
}

func (a *account) look(t *testing.T, kind string, props map[string]any) (map[string]any, error) {
	t.Helper()
	v, err := a.any(t, kind, props)
	object, _ := v.(map[string]any)
	return object, err
}

func (a *account) any(t *testing.T, kind string, props map[string]any) (any, error) {
	t.Helper()
	return a.Lookup(t.Context(), lookup.Query{Kind: kind, Account: a.id, Region: a.cfg.Region, Props: props})
}

// must is the answer of a call that makes something.
func must[T any](t *testing.T) func(T, error) T {
	t.Helper()
	return func(out T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
}

// network is a VPC with a public and an isolated subnet.
type network struct{ vpc, public, isolated, main, routed, group string }

func (a *account) network(t *testing.T) network {
	t.Helper()
	client, ctx := ec2.NewFromConfig(a.cfg), t.Context()
	tags := func(of ec2types.ResourceType, name string) []ec2types.TagSpecification {
		return []ec2types.TagSpecification{{ResourceType: of, Tags: []ec2types.Tag{{Key: aws.String("Name"), Value: &name}}}}
	}
	var n network
	n.vpc = *must[*ec2.CreateVpcOutput](t)(client.CreateVpc(ctx, &ec2.CreateVpcInput{
		CidrBlock: aws.String("10.7.0.0/16"), TagSpecifications: tags(ec2types.ResourceTypeVpc, a.name),
	})).Vpc.VpcId
	subnet := func(cidr, zone string) string {
		return *must[*ec2.CreateSubnetOutput](t)(client.CreateSubnet(ctx, &ec2.CreateSubnetInput{VpcId: &n.vpc, CidrBlock: &cidr, AvailabilityZone: &zone})).Subnet.SubnetId
	}
	n.public, n.isolated = subnet("10.7.0.0/24", "us-east-1a"), subnet("10.7.1.0/24", "us-east-1b")
	gateway := *must[*ec2.CreateInternetGatewayOutput](t)(client.CreateInternetGateway(ctx, &ec2.CreateInternetGatewayInput{})).InternetGateway.InternetGatewayId
	must[*ec2.AttachInternetGatewayOutput](t)(client.AttachInternetGateway(ctx, &ec2.AttachInternetGatewayInput{InternetGatewayId: &gateway, VpcId: &n.vpc}))
	n.routed = *must[*ec2.CreateRouteTableOutput](t)(client.CreateRouteTable(ctx, &ec2.CreateRouteTableInput{VpcId: &n.vpc})).RouteTable.RouteTableId
	must[*ec2.CreateRouteOutput](t)(client.CreateRoute(ctx, &ec2.CreateRouteInput{RouteTableId: &n.routed, GatewayId: &gateway, DestinationCidrBlock: aws.String("0.0.0.0/0")}))
	must[*ec2.AssociateRouteTableOutput](t)(client.AssociateRouteTable(ctx, &ec2.AssociateRouteTableInput{RouteTableId: &n.routed, SubnetId: &n.public}))
	for _, table := range must[*ec2.DescribeRouteTablesOutput](t)(client.DescribeRouteTables(ctx, &ec2.DescribeRouteTablesInput{
		Filters: filters(map[string][]string{"vpc-id": {n.vpc}, "association.main": {"true"}}),
	})).RouteTables {
		n.main = *table.RouteTableId
	}
	n.group = *must[*ec2.CreateSecurityGroupOutput](t)(client.CreateSecurityGroup(ctx, &ec2.CreateSecurityGroupInput{
		GroupName: &a.name, Description: aws.String("looked up"), VpcId: &n.vpc,
	})).GroupId
	return n
}

func TestEmulatorVPCsAndWhatIsInThem(t *testing.T) {
	a := emulated(t)
	n := a.network(t)
	got, err := a.any(t, "vpc-provider", map[string]any{"filter": map[string]any{"tag:Name": a.name}, "returnAsymmetricSubnets": true})
	wants(t, got, err, fmt.Sprintf(`{"vpcId": %q, "vpcCidrBlock": "10.7.0.0/16", "ownerAccountId": %q, "availabilityZones": [], "subnetGroups": [
		{"name": "Public", "type": "Public", "subnets": [{"subnetId": %q, "availabilityZone": "us-east-1a", "cidr": "10.7.0.0/24", "routeTableId": %q}]},
		{"name": "Isolated", "type": "Isolated", "subnets": [{"subnetId": %q, "availabilityZone": "us-east-1b", "cidr": "10.7.1.0/24", "routeTableId": %q}]}]}`,
		n.vpc, a.id, n.public, n.routed, n.isolated, n.main))
	got, err = a.any(t, "vpc-provider", map[string]any{"filter": map[string]any{"tag:Name": a.name + "-other"}})
	refuses(t, got, err, "no VPC with tag:Name="+a.name)

	for _, by := range []map[string]any{{"securityGroupId": n.group}, {"securityGroupName": a.name, "vpcId": n.vpc}} {
		got, err = a.any(t, "security-group", by)
		wants(t, got, err, fmt.Sprintf(`{"securityGroupId": %q, "allowAllOutbound": false}`, n.group))
	}
	must[*ec2.AuthorizeSecurityGroupEgressOutput](t)(ec2.NewFromConfig(a.cfg).AuthorizeSecurityGroupEgress(t.Context(), &ec2.AuthorizeSecurityGroupEgressInput{
		GroupId:       &n.group,
		IpPermissions: []ec2types.IpPermission{{IpProtocol: aws.String("-1"), Ipv6Ranges: []ec2types.Ipv6Range{{CidrIpv6: aws.String("::/0")}}}},
	}))
	got, err = a.any(t, "security-group", map[string]any{"securityGroupId": n.group})
	wants(t, got, err, fmt.Sprintf(`{"securityGroupId": %q, "allowAllOutbound": true}`, n.group))
	got, err = a.any(t, "security-group", map[string]any{"securityGroupId": "sg-0123456789abcdef0"})
	refuses(t, got, err, "no security group sg-0123456789abcdef0")
}

func TestEmulatorZonesAndImages(t *testing.T) {
	a := emulated(t)
	got, err := a.any(t, "availability-zones", nil)
	if err != nil || len(got.([]any)) < 2 || got.([]any)[0] != "us-east-1a" {
		t.Errorf("the zones are %v, %v", got, err)
	}
	client := ec2.NewFromConfig(a.cfg)
	images := must[*ec2.DescribeImagesOutput](t)(client.DescribeImages(t.Context(), &ec2.DescribeImagesInput{})).Images
	if len(images) == 0 {
		t.Fatal("the emulator has no images")
	}
	got, err = a.any(t, "ami", map[string]any{"filters": map[string]any{"name": []any{aws.ToString(images[0].Name)}}})
	if id, _ := got.(string); err != nil || !strings.HasPrefix(id, "ami-") {
		t.Errorf("the image is %v, %v", got, err)
	}
	got, err = a.any(t, "ami", map[string]any{"filters": map[string]any{"name": []any{a.name}}})
	refuses(t, got, err, "no machine image (AMI) with name="+a.name)
}

func TestEmulatorParametersAndKeys(t *testing.T) {
	a := emulated(t)
	parameters := ssm.NewFromConfig(a.cfg)
	for name, kind := range map[string]ssmtypes.ParameterType{"plain": ssmtypes.ParameterTypeString, "secret": ssmtypes.ParameterTypeSecureString} {
		must[*ssm.PutParameterOutput](t)(parameters.PutParameter(t.Context(), &ssm.PutParameterInput{
			Name: aws.String("/" + a.name + "/" + name), Type: kind, Value: aws.String("the-value"),
		}))
	}
	got, err := a.any(t, "ssm", map[string]any{"parameterName": "/" + a.name + "/plain"})
	wants(t, got, err, `"the-value"`)
	got, err = a.any(t, "ssm", map[string]any{"parameterName": "/" + a.name + "/secret"})
	refuses(t, got, err, "is a SecureString")
	if strings.Contains(err.Error(), "the-value") {
		t.Errorf("it tells the value: %v", err)
	}
	got, err = a.any(t, "ssm", map[string]any{"parameterName": "/" + a.name + "/none", "ignoreErrorOnMissingContext": true, "dummyValue": "d"})
	wants(t, got, err, `"d"`)

	keys := kms.NewFromConfig(a.cfg)
	id := *must[*kms.CreateKeyOutput](t)(keys.CreateKey(t.Context(), &kms.CreateKeyInput{})).KeyMetadata.KeyId
	must[*kms.CreateAliasOutput](t)(keys.CreateAlias(t.Context(), &kms.CreateAliasInput{AliasName: aws.String("alias/" + a.name), TargetKeyId: &id}))
	got, err = a.any(t, "key-provider", map[string]any{"aliasName": "alias/" + a.name})
	wants(t, got, err, `{"keyId": "`+id+`"}`)
	got, err = a.any(t, "key-provider", map[string]any{"aliasName": "alias/" + a.name + "-other"})
	refuses(t, got, err, "no KMS key")
}

func TestEmulatorHostedZones(t *testing.T) {
	a := emulated(t)
	n := a.network(t)
	client := route53.NewFromConfig(a.cfg)
	domain := a.name + ".example"
	made := map[bool]string{}
	for _, private := range []bool{false, true} {
		in := &route53.CreateHostedZoneInput{
			Name: &domain, CallerReference: aws.String(fmt.Sprint(a.name, private)),
			HostedZoneConfig: &r53types.HostedZoneConfig{PrivateZone: private},
		}
		if private {
			in.VPC = &r53types.VPC{VPCId: &n.vpc, VPCRegion: r53types.VPCRegion(a.cfg.Region)}
		}
		made[private] = *must[*route53.CreateHostedZoneOutput](t)(client.CreateHostedZone(t.Context(), in)).HostedZone.Id
	}
	got, err := a.any(t, "hosted-zone", map[string]any{"domainName": domain})
	wants(t, got, err, fmt.Sprintf(`{"Id": %q, "Name": %q}`, made[false], domain+"."))
	got, err = a.any(t, "hosted-zone", map[string]any{"domainName": domain, "privateZone": true, "vpcId": n.vpc})
	wants(t, got, err, fmt.Sprintf(`{"Id": %q, "Name": %q}`, made[true], domain+"."))
	got, err = a.any(t, "hosted-zone", map[string]any{"domainName": domain, "privateZone": true, "vpcId": "vpc-0"})
	refuses(t, got, err, "associated with vpc-0")
}

func TestEmulatorLoadBalancers(t *testing.T) {
	a := emulated(t)
	n := a.network(t)
	client := elb.NewFromConfig(a.cfg)
	name := a.name[:20] // a load balancer's name has 32 characters at most
	lb := must[*elb.CreateLoadBalancerOutput](t)(client.CreateLoadBalancer(t.Context(), &elb.CreateLoadBalancerInput{
		Name: &name, Subnets: []string{n.public, n.isolated}, SecurityGroups: []string{n.group}, Scheme: elbtypes.LoadBalancerSchemeEnumInternal,
		Tags: []elbtypes.Tag{{Key: aws.String("Name"), Value: &a.name}, {Key: aws.String("env"), Value: aws.String("test")}},
	})).LoadBalancers[0]
	answered := elbtypes.Action{Type: elbtypes.ActionTypeEnumFixedResponse, FixedResponseConfig: &elbtypes.FixedResponseActionConfig{StatusCode: aws.String("200")}}
	made := map[int32]string{}
	for _, port := range []int32{80, 8080} {
		made[port] = *must[*elb.CreateListenerOutput](t)(client.CreateListener(t.Context(), &elb.CreateListenerInput{
			LoadBalancerArn: lb.LoadBalancerArn, Port: &port, Protocol: elbtypes.ProtocolEnumHttp, DefaultActions: []elbtypes.Action{answered},
		})).Listeners[0].ListenerArn
	}
	tagged := map[string]any{"loadBalancerType": "application", "loadBalancerTags": []any{
		map[string]any{"key": "env", "value": "test"}, map[string]any{"key": "Name", "value": a.name},
	}}
	for _, by := range []map[string]any{tagged, {"loadBalancerArn": *lb.LoadBalancerArn, "loadBalancerType": "application"}} {
		got, err := a.look(t, "load-balancer", by)
		if err != nil {
			t.Fatal(err)
		}
		groups, _ := got["securityGroupIds"].([]any)
		if got["loadBalancerArn"] != *lb.LoadBalancerArn || got["loadBalancerDnsName"] != *lb.DNSName || got["vpcId"] != *lb.VpcId || len(groups) != 1 || groups[0] != n.group {
			t.Errorf("the load balancer is %v", got)
		}
	}
	tagged["listenerPort"] = 8080
	for _, by := range []map[string]any{tagged, {"listenerArn": made[8080], "loadBalancerType": "application"}} {
		got, err := a.any(t, "load-balancer-listener", by)
		wants(t, got, err, fmt.Sprintf(`{"listenerArn": %q, "listenerPort": 8080, "securityGroupIds": [%q]}`, made[8080], n.group))
	}
	delete(tagged, "listenerPort")
	got, err := a.any(t, "load-balancer-listener", tagged)
	refuses(t, got, err, "2 match where one is wanted")
	got, err = a.any(t, "load-balancer", map[string]any{"loadBalancerArn": *lb.LoadBalancerArn, "loadBalancerType": "network"})
	refuses(t, got, err, "no network load balancer")
	got, err = a.any(t, "load-balancer", map[string]any{"loadBalancerArn": *lb.LoadBalancerArn + "0", "loadBalancerType": "application"})
	refuses(t, got, err, "no application load balancer")
}

func TestEmulatorALookupRole(t *testing.T) {
	a := emulated(t)
	role := fmt.Sprintf("arn:${AWS::Partition}:iam::%s:role/lookup-${AWS::Region}", a.id)
	got, err := a.any(t, "availability-zones", map[string]any{"lookupRoleArn": role, "lookupRoleExternalId": "xid"})
	if err != nil || len(got.([]any)) == 0 {
		t.Errorf("the zones are %v, %v", got, err)
	}
}
