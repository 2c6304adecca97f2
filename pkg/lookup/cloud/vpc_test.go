package cloud

import (
	"strings"
	"testing"
)

// subnetXML is a subnet as EC2 describes it; tags are KEY=VALUE.
func subnetXML(id, zone string, mapsPublic bool, tags ...string) string {
	s := `<item><subnetId>` + id + `</subnetId><availabilityZone>` + zone + `</availabilityZone><cidrBlock>10.0.0.0/24</cidrBlock>`
	if mapsPublic {
		s += `<mapPublicIpOnLaunch>true</mapPublicIpOnLaunch>`
	}
	s += "<tagSet>"
	for _, tag := range tags {
		k, v, _ := strings.Cut(tag, "=")
		s += `<item><key>` + k + `</key><value>` + v + `</value></item>`
	}
	return s + "</tagSet></item>"
}

// tableXML is a route table: for subnets, or the main one without.
func tableXML(id, route string, subnets ...string) string {
	s := `<item><routeTableId>` + id + `</routeTableId><routeSet><item>` + route + `</item></routeSet><associationSet>`
	if len(subnets) == 0 {
		s += `<item><main>true</main></item>`
	}
	for _, subnet := range subnets {
		s += `<item><subnetId>` + subnet + `</subnetId></item>`
	}
	return s + `</associationSet></item>`
}

const (
	toInternet = `<destinationCidrBlock>0.0.0.0/0</destinationCidrBlock><gatewayId>igw-1</gatewayId>`
	toNAT      = `<destinationCidrBlock>0.0.0.0/0</destinationCidrBlock><natGatewayId>nat-1</natGatewayId>`
	toNATPart  = `<destinationCidrBlock>10.1.0.0/16</destinationCidrBlock><natGatewayId>nat-1</natGatewayId>`
	toTransit  = `<destinationCidrBlock>0.0.0.0/0</destinationCidrBlock><transitGatewayId>tgw-1</transitGatewayId>`
	toSelf     = `<destinationCidrBlock>10.0.0.0/16</destinationCidrBlock><gatewayId>local</gatewayId>`
	oneVPC     = `<DescribeVpcsResponse><vpcSet><item><vpcId>vpc-1</vpcId><cidrBlock>10.0.0.0/16</cidrBlock><ownerId>` + own + `</ownerId></item></vpcSet></DescribeVpcsResponse>`
)

// inPages answers a list in pages of one item, under the name of its set.
func inPages(response, set string, items ...string) func(call) (string, error) {
	return func(c call) (string, error) {
		at := len(c.form.Get("NextToken"))
		s := "<" + response + "><" + set + ">" + items[at] + "</" + set + ">"
		if at+1 < len(items) {
			s += "<nextToken>" + strings.Repeat("n", at+1) + "</nextToken>"
		}
		return s + "</" + response + ">", nil
	}
}

func vpcWorld(t *testing.T, subnets, tables []string) *world {
	return newWorld(t, map[string]func(call) (string, error){
		"DescribeVpcs":        says(oneVPC),
		"DescribeSubnets":     inPages("DescribeSubnetsResponse", "subnetSet", subnets...),
		"DescribeRouteTables": inPages("DescribeRouteTablesResponse", "routeTableSet", tables...),
		"DescribeVpnGateways": says(`<DescribeVpnGatewaysResponse><vpnGatewaySet><item><vpnGatewayId>vgw-1</vpnGatewayId></item></vpnGatewaySet></DescribeVpnGatewaysResponse>`),
	})
}

func TestSubnetsAreClassifiedByTagAndByWhereTheirRoutesLead(t *testing.T) {
	w := vpcWorld(t, []string{
		subnetXML("s-tag", "eu-west-1b", true, "aws-cdk:subnet-type=Private", "aws-cdk:subnet-name=App"),
		subnetXML("s-tag-a", "eu-west-1a", false, "aws-cdk:subnet-type=Private", "aws-cdk:subnet-name=App"),
		subnetXML("s-maps", "eu-west-1a", true),
		subnetXML("s-igw", "eu-west-1b", false),
		subnetXML("s-nat", "eu-west-1a", false),
		subnetXML("s-transit", "eu-west-1b", false),
		subnetXML("s-part", "eu-west-1a", false, "aws-cdk:subnet-name=Data"),
		subnetXML("s-main", "eu-west-1c", false),
	}, []string{
		tableXML("rtb-main", toSelf), tableXML("rtb-igw", toInternet, "s-igw"), tableXML("rtb-nat", toNAT, "s-nat", "s-tag"),
		tableXML("rtb-transit", toTransit, "s-transit"), tableXML("rtb-part", toNATPart, "s-part"),
	})
	got, err := w.ask(t, "vpc-provider", `{"filter": {"vpc-id": "vpc-1", "isDefault": "false"}, "returnAsymmetricSubnets": true}`)
	wants(t, got, err, `{"vpcId": "vpc-1", "vpcCidrBlock": "10.0.0.0/16", "ownerAccountId": "`+own+`", "availabilityZones": [], "vpnGatewayId": "vgw-1", "subnetGroups": [
		{"name": "App", "type": "Private", "subnets": [
			{"subnetId": "s-tag-a", "availabilityZone": "eu-west-1a", "cidr": "10.0.0.0/24", "routeTableId": "rtb-main"},
			{"subnetId": "s-tag", "availabilityZone": "eu-west-1b", "cidr": "10.0.0.0/24", "routeTableId": "rtb-nat"}]},
		{"name": "Public", "type": "Public", "subnets": [
			{"subnetId": "s-maps", "availabilityZone": "eu-west-1a", "cidr": "10.0.0.0/24", "routeTableId": "rtb-main"},
			{"subnetId": "s-igw", "availabilityZone": "eu-west-1b", "cidr": "10.0.0.0/24", "routeTableId": "rtb-igw"}]},
		{"name": "Private", "type": "Private", "subnets": [
			{"subnetId": "s-nat", "availabilityZone": "eu-west-1a", "cidr": "10.0.0.0/24", "routeTableId": "rtb-nat"},
			{"subnetId": "s-transit", "availabilityZone": "eu-west-1b", "cidr": "10.0.0.0/24", "routeTableId": "rtb-transit"}]},
		{"name": "Data", "type": "Isolated", "subnets": [
			{"subnetId": "s-part", "availabilityZone": "eu-west-1a", "cidr": "10.0.0.0/24", "routeTableId": "rtb-part"}]},
		{"name": "Isolated", "type": "Isolated", "subnets": [
			{"subnetId": "s-main", "availabilityZone": "eu-west-1c", "cidr": "10.0.0.0/24", "routeTableId": "rtb-main"}]}]}`)
	c := w.last(t, "DescribeVpcs")
	if c.form.Get("Filter.1.Name") != "isDefault" || c.form.Get("Filter.1.Value.1") != "false" || c.form.Get("Filter.2.Value.1") != "vpc-1" {
		t.Errorf("asked: %v", c.form)
	}
}

func TestSymmetricSubnetsAreListedByType(t *testing.T) {
	w := vpcWorld(t, []string{
		subnetXML("p-b", "eu-west-1b", true), subnetXML("p-a", "eu-west-1a", true),
		subnetXML("i-a", "eu-west-1a", false, "team=Data"), subnetXML("i-b", "eu-west-1b", false, "team=Data"),
	}, []string{tableXML("rtb-main", toSelf)})
	got, err := w.ask(t, "vpc-provider", `{"filter": {}, "returnVpnGateways": false}`)
	wants(t, got, err, `{"vpcId": "vpc-1", "vpcCidrBlock": "10.0.0.0/16", "ownerAccountId": "`+own+`", "availabilityZones": ["eu-west-1a", "eu-west-1b"],
		"publicSubnetIds": ["p-a", "p-b"], "publicSubnetNames": ["Public"], "publicSubnetRouteTableIds": ["rtb-main", "rtb-main"],
		"isolatedSubnetIds": ["i-a", "i-b"], "isolatedSubnetNames": ["Isolated"], "isolatedSubnetRouteTableIds": ["rtb-main", "rtb-main"]}`)
	for _, a := range w.actions() {
		if a == "DescribeVpnGateways" {
			t.Error("gateways were asked for")
		}
	}
	got, err = w.ask(t, "vpc-provider", `{"filter": {}, "subnetGroupNameTag": "team"}`)
	if err == nil || !strings.Contains(err.Error(), "p-b of vpc-1 has no tag team") {
		t.Errorf("%v, %v", got, err)
	}

	w = vpcWorld(t, []string{subnetXML("p-b", "eu-west-1b", true), subnetXML("i-a", "eu-west-1a", false)}, []string{tableXML("rtb-main", toSelf)})
	got, err = w.ask(t, "vpc-provider", `{"filter": {}}`)
	refuses(t, got, err, "vpc-1 are not in the same zones: eu-west-1b and eu-west-1a")
}

func TestAVPCWithoutSubnets(t *testing.T) {
	w := vpcWorld(t, []string{""}, []string{""})
	w.answers["DescribeVpnGateways"] = says(`<DescribeVpnGatewaysResponse/>`)
	got, err := w.ask(t, "vpc-provider", `{"filter": {}}`)
	wants(t, got, err, `{"vpcId": "vpc-1", "vpcCidrBlock": "10.0.0.0/16", "ownerAccountId": "`+own+`", "availabilityZones": []}`)
}

func TestSubnetsThatCannotBeClassified(t *testing.T) {
	for want, c := range map[string][2]string{
		"the tag aws-cdk:subnet-type of subnet s-1 is Odd": {subnetXML("s-1", "a", false, "aws-cdk:subnet-type=Odd"), tableXML("rtb", toSelf)},
		"subnet s-1 of vpc-1 has no route table":           {subnetXML("s-1", "a", false), tableXML("rtb", toSelf, "s-2")},
	} {
		_, err := vpcWorld(t, []string{c[0]}, []string{c[1]}).ask(t, "vpc-provider", `{"filter": {}}`)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}

func TestOneVPCIsWanted(t *testing.T) {
	w := newWorld(t, map[string]func(call) (string, error){"DescribeVpcs": says("<DescribeVpcsResponse/>")})
	got, err := w.ask(t, "vpc-provider", `{"filter": {"tag:Name": "web", "isDefault": "true"}}`)
	refuses(t, got, err, "no VPC with isDefault=true, tag:Name=web", "account "+own, "region "+region)
	one := `<item><vpcId>vpc-1</vpcId></item>`
	w.answers["DescribeVpcs"] = inPages("DescribeVpcsResponse", "vpcSet", one, one)
	got, err = w.ask(t, "vpc-provider", `{"filter": {"tag:Name": "web"}}`)
	refuses(t, got, err, "2 match where one is wanted: VPC with tag:Name=web")
	w.answers["DescribeVpcs"] = says(oneVPC)
	for _, action := range []string{"DescribeSubnets", "DescribeRouteTables", "DescribeVpnGateways"} {
		w.answers[action] = fails("UnauthorizedOperation")
		got, err = w.ask(t, "vpc-provider", `{"filter": {}}`)
		refuses(t, got, err, "ec2:"+action+" is not allowed")
		w.answers[action] = says("<" + action + "Response/>")
	}
}

func TestAPropertyOfTheWrongTypeIsNamedWithoutItsValue(t *testing.T) {
	w := newWorld(t, map[string]func(call) (string, error){})
	_, err := w.ask(t, "vpc-provider", `{"filter": {"vpc-id": "vpc-1"}, "subnetGroupNameTag": {"very": "odd"}}`)
	if err == nil || !strings.Contains(err.Error(), "subnetGroupNameTag") || strings.Contains(err.Error(), "odd") {
		t.Errorf("%v", err)
	}
}
