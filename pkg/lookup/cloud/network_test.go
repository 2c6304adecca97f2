package cloud

import (
	"strings"
	"testing"
)

func TestTheNewestImageIsTaken(t *testing.T) {
	pages := map[string]string{
		"": `<imagesSet><item><imageId>ami-old</imageId><creationDate>2024-01-01T00:00:00.000Z</creationDate></item>` +
			`<item><imageId>ami-new2</imageId><creationDate>2025-06-01T00:00:00.000Z</creationDate></item></imagesSet><nextToken>more</nextToken>`,
		"more": `<imagesSet><item><imageId>ami-new1</imageId><creationDate>2025-06-01T00:00:00.000Z</creationDate></item><item><imageId>ami-undated</imageId></item></imagesSet>`,
	}
	w := newWorld(t, map[string]func(call) (string, error){"DescribeImages": func(c call) (string, error) {
		return "<DescribeImagesResponse>" + pages[c.form.Get("NextToken")] + "</DescribeImagesResponse>", nil
	}})
	got, err := w.ask(t, "ami", `{"owners": ["amazon"], "filters": {"name": ["al2023-*"], "architecture": ["arm64", "x86_64"]}}`)
	wants(t, got, err, `"ami-new1"`)
	c := w.last(t, "DescribeImages")
	for name, want := range map[string]string{"Owner.1": "amazon", "Filter.1.Name": "architecture", "Filter.1.Value.2": "x86_64", "Filter.2.Name": "name"} {
		if got := c.form.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	pages[""] = ""
	got, err = w.ask(t, "ami", `{"owners": ["self"], "filters": {"name": ["x"]}}`)
	refuses(t, got, err, "no machine image (AMI) with name=x of self")
}

func TestARegionWithoutZonesIsNoAnswer(t *testing.T) {
	w := newWorld(t, map[string]func(call) (string, error){"DescribeAvailabilityZones": says("<DescribeAvailabilityZonesResponse/>")})
	got, err := w.ask(t, "availability-zones", `{}`)
	refuses(t, got, err, "no availability zone")
}

func TestTheZonesOfAnEndpointService(t *testing.T) {
	const service = "com.amazonaws.vpce.eu-west-1.vpce-svc-1"
	w := newWorld(t, map[string]func(call) (string, error){"DescribeVpcEndpointServices": says(
		`<DescribeVpcEndpointServicesResponse><serviceDetailSet><item><serviceName>` + service + `</serviceName>` +
			`<availabilityZoneSet><item>eu-west-1a</item><item>eu-west-1c</item></availabilityZoneSet></item></serviceDetailSet></DescribeVpcEndpointServicesResponse>`)})
	got, err := w.ask(t, "endpoint-service-availability-zones", `{"serviceName": "`+service+`"}`)
	wants(t, got, err, `["eu-west-1a", "eu-west-1c"]`)
	w.answers["DescribeVpcEndpointServices"] = fails("InvalidServiceName")
	got, err = w.ask(t, "endpoint-service-availability-zones", `{"serviceName": "`+service+`"}`)
	refuses(t, got, err, "no VPC endpoint service "+service)
}

func groupXML(id, egress string) string {
	return `<DescribeSecurityGroupsResponse><securityGroupInfo><item><groupId>` + id + `</groupId><ipPermissionsEgress>` + egress + `</ipPermissionsEgress></item></securityGroupInfo></DescribeSecurityGroupsResponse>`
}

func TestASecurityGroup(t *testing.T) {
	const (
		four  = `<item><ipProtocol>-1</ipProtocol><ipRanges><item><cidrIp>0.0.0.0/0</cidrIp></item></ipRanges></item>`
		six   = `<item><ipProtocol>-1</ipProtocol><ipv6Ranges><item><cidrIpv6>::/0</cidrIpv6></item></ipv6Ranges></item>`
		https = `<item><ipProtocol>tcp</ipProtocol><ipRanges><item><cidrIp>0.0.0.0/0</cidrIp></item></ipRanges><ipv6Ranges><item><cidrIpv6>::/0</cidrIpv6></item></ipv6Ranges></item>`
	)
	w := newWorld(t, map[string]func(call) (string, error){})
	for egress, all := range map[string]string{four + six: "true", four: "false", six: "false", https: "false", "": "false"} {
		w.answers["DescribeSecurityGroups"] = says(groupXML("sg-1", egress))
		got, err := w.ask(t, "security-group", `{"securityGroupId": "sg-1"}`)
		wants(t, got, err, `{"securityGroupId": "sg-1", "allowAllOutbound": `+all+`}`)
	}
	if c := w.last(t, "DescribeSecurityGroups"); c.form.Get("GroupId.1") != "sg-1" || c.form.Has("Filter.1.Name") {
		t.Errorf("asked: %v", c.form)
	}
	if _, err := w.ask(t, "security-group", `{"securityGroupName": "web", "vpcId": "vpc-1"}`); err != nil {
		t.Error(err)
	}
	c := w.last(t, "DescribeSecurityGroups")
	if c.form.Get("Filter.1.Name") != "group-name" || c.form.Get("Filter.1.Value.1") != "web" || c.form.Get("Filter.2.Name") != "vpc-id" || c.form.Has("GroupId.1") {
		t.Errorf("asked: %v", c.form)
	}

	w.answers["DescribeSecurityGroups"] = fails("InvalidGroup.NotFound")
	got, err := w.ask(t, "security-group", `{"securityGroupId": "sg-9"}`)
	refuses(t, got, err, "no security group sg-9")
	w.answers["DescribeSecurityGroups"] = says("<DescribeSecurityGroupsResponse/>")
	got, err = w.ask(t, "security-group", `{"securityGroupName": "web", "vpcId": "vpc-1"}`)
	refuses(t, got, err, "no security group web in vpc-1")
	pages := map[string]string{"": strings.Replace(groupXML("sg-1", ""), "</DescribeS", "<nextToken>2</nextToken></DescribeS", 1), "2": groupXML("sg-2", "")}
	w.answers["DescribeSecurityGroups"] = func(c call) (string, error) { return pages[c.form.Get("NextToken")], nil }
	got, err = w.ask(t, "security-group", `{"securityGroupName": "web"}`)
	refuses(t, got, err, "2 match where one is wanted: security group web")
	for _, props := range []string{`{}`, `{"securityGroupId": "a", "securityGroupName": "b"}`} {
		if _, err := w.ask(t, "security-group", props); err == nil || !strings.Contains(err.Error(), "one of securityGroupId") {
			t.Errorf("%v", err)
		}
	}
}

func TestHostedZones(t *testing.T) {
	zone := func(id, name, private string) string {
		return `<HostedZone><Id>/hostedzone/` + id + `</Id><Name>` + name + `</Name><Config><PrivateZone>` + private + `</PrivateZone></Config></HostedZone>`
	}
	// More zones of one name than a page holds, and others behind them.
	pages := map[string]string{
		"example.com/": zone("Z1", "example.com.", "true") + `</HostedZones><IsTruncated>true</IsTruncated><NextDNSName>example.com.</NextDNSName><NextHostedZoneId>Z2</NextHostedZoneId>`,
		"example.com./Z2": zone("Z2", "example.com.", "false") + zone("Z3", "example.com.", "true") + zone("Z4", "www.example.com.", "false") +
			`</HostedZones><IsTruncated>true</IsTruncated><NextDNSName>x.example.com.</NextDNSName><NextHostedZoneId>Z5</NextHostedZoneId>`,
	}
	w := newWorld(t, map[string]func(call) (string, error){
		"ListHostedZonesByName": func(c call) (string, error) {
			page, ok := pages[c.form.Get("dnsname")+"/"+c.form.Get("hostedzoneid")]
			if !ok {
				page = "</HostedZones><IsTruncated>false</IsTruncated>"
			}
			return "<ListHostedZonesByNameResponse><HostedZones>" + page + "</ListHostedZonesByNameResponse>", nil
		},
		"GetHostedZone": func(c call) (string, error) {
			vpc := map[string]string{"Z1": "vpc-1", "Z3": "vpc-3"}[c.form.Get("id")]
			return "<GetHostedZoneResponse><VPCs><VPC><VPCId>vpc-0</VPCId></VPC><VPC><VPCId>" + vpc + "</VPCId></VPC></VPCs></GetHostedZoneResponse>", nil
		},
	})
	got, err := w.ask(t, "hosted-zone", `{"domainName": "example.com"}`)
	wants(t, got, err, `{"Id": "/hostedzone/Z2", "Name": "example.com."}`)
	got, err = w.ask(t, "hosted-zone", `{"domainName": "example.com", "privateZone": true, "vpcId": "vpc-3"}`)
	wants(t, got, err, `{"Id": "/hostedzone/Z3", "Name": "example.com."}`)
	got, err = w.ask(t, "hosted-zone", `{"domainName": "example.com", "privateZone": true}`)
	refuses(t, got, err, "2 match where one is wanted: private hosted zone of example.com")
	got, err = w.ask(t, "hosted-zone", `{"domainName": "example.com", "privateZone": true, "vpcId": "vpc-9"}`)
	refuses(t, got, err, "no private hosted zone of example.com associated with vpc-9")
	got, err = w.ask(t, "hosted-zone", `{"domainName": "example.org"}`)
	refuses(t, got, err, "no public hosted zone of example.org")
	w.answers["GetHostedZone"] = fails("AccessDenied")
	got, err = w.ask(t, "hosted-zone", `{"domainName": "example.com", "privateZone": true, "vpcId": "vpc-3"}`)
	refuses(t, got, err, "hosted zone /hostedzone/Z1", "route53:GetHostedZone is not allowed")
}
