package template_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/template"
)

func network(prefix string) map[string]template.Deployed {
	vpc, subnet, igw := prefix+"vpc-1", prefix+"subnet-1", prefix+"igw-1"
	return map[string]template.Deployed{
		prefix + "Vpc":        {Type: "AWS::EC2::VPC", PhysicalID: vpc},
		prefix + "Subnet":     {Type: "AWS::EC2::Subnet", PhysicalID: subnet, Properties: map[string]any{"VpcId": vpc}},
		prefix + "Gateway":    {Type: "AWS::EC2::InternetGateway", PhysicalID: igw},
		prefix + "Attachment": {Type: "AWS::EC2::VPCGatewayAttachment", PhysicalID: igw + "|" + vpc, Properties: map[string]any{"VpcId": vpc, "InternetGatewayId": igw}},
		prefix + "Nat":        {Type: "AWS::EC2::NatGateway", PhysicalID: prefix + "nat-1", Properties: map[string]any{"SubnetId": subnet}},
	}
}

func TestDeleteEdgesTieWhatIsRelated(t *testing.T) {
	want := []template.DeleteEdge{
		{First: "Nat", Then: "Attachment"},
		{First: "Attachment", Then: "Gateway"}, {First: "Nat", Then: "Gateway"},
		{First: "Subnet", Then: "Vpc"}, {First: "Gateway", Then: "Vpc"}, {First: "Attachment", Then: "Vpc"},
	}
	if diff := cmp.Diff(want, template.DeleteEdges(network(""))); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
}

func TestDeleteEdgesDoNotTieTwoNetworks(t *testing.T) {
	both := network("A")
	for id, r := range network("B") {
		both[id] = r
	}
	edges := template.DeleteEdges(both)
	if len(edges) != 2*len(template.DeleteEdges(network("A"))) {
		t.Errorf("%d edges", len(edges))
	}
	for _, e := range edges {
		if e.First[0] != e.Then[0] {
			t.Errorf("%s is tied to %s of the other network", e.First, e.Then)
		}
	}
}

func TestDeleteEdgesByType(t *testing.T) {
	type records = map[string]template.Deployed
	cases := []struct {
		name    string
		records records
		want    []template.DeleteEdge
	}{
		{"a bus goes after its rules", records{"Bus": {Type: "AWS::Events::EventBus", PhysicalID: "b"}, "Rule": {Type: "AWS::Events::Rule", PhysicalID: "arn:r", Properties: map[string]any{"EventBusName": "b"}}},
			[]template.DeleteEdge{{First: "Rule", Then: "Bus"}}},
		{"a rule of another bus does not matter", records{"Bus": {Type: "AWS::Events::EventBus", PhysicalID: "b"}, "Rule": {Type: "AWS::Events::Rule", PhysicalID: "arn:r", Properties: map[string]any{"EventBusName": "other"}}}, nil},
		{"a recorded dependency ties too", records{"Bus": {Type: "AWS::Events::EventBus", PhysicalID: "b"}, "Rule": {Type: "AWS::Events::Rule", PhysicalID: "arn:r", Dependencies: []string{"Bus"}}},
			[]template.DeleteEdge{{First: "Rule", Then: "Bus"}}},
		{"a workgroup goes after its queries", records{"W": {Type: "AWS::Athena::WorkGroup", PhysicalID: "w"}, "Q": {Type: "AWS::Athena::NamedQuery", PhysicalID: "q", Properties: map[string]any{"WorkGroup": "w"}}},
			[]template.DeleteEdge{{First: "Q", Then: "W"}}},
		{"a cache policy goes after the distribution that uses it", records{"P": {Type: "AWS::CloudFront::CachePolicy", PhysicalID: "p"}, "Free": {Type: "AWS::CloudFront::CachePolicy", PhysicalID: "f"},
			"D": {Type: "AWS::CloudFront::Distribution", PhysicalID: "d", Properties: map[string]any{"DistributionConfig": map[string]any{"CacheBehaviors": []any{map[string]any{"CachePolicyId": "p"}}}}}},
			[]template.DeleteEdge{{First: "D", Then: "P"}}},
		{"a security group goes after the function that uses it", records{"G": {Type: "AWS::EC2::SecurityGroup", PhysicalID: "sg-1"}, "F": {Type: "AWS::Lambda::Function", PhysicalID: "f", Properties: map[string]any{"VpcConfig": map[string]any{"SecurityGroupIds": []any{"sg-1"}}}},
			"Other": {Type: "AWS::Lambda::Function", PhysicalID: "o"}}, []template.DeleteEdge{{First: "F", Then: "G"}}},
		{"a group is known by its recorded GroupId", records{"G": {Type: "AWS::EC2::SecurityGroup", PhysicalID: "name", Attributes: map[string]any{"GroupId": "sg-1"}},
			"In": {Type: "AWS::EC2::SecurityGroupIngress", PhysicalID: "i", Properties: map[string]any{"GroupId": "sg-1"}}}, []template.DeleteEdge{{First: "In", Then: "G"}}},
		{"a route table goes after its routes and associations", records{"T": {Type: "AWS::EC2::RouteTable", PhysicalID: "rtb-1"}, "R": {Type: "AWS::EC2::Route", PhysicalID: "rtb-1|0.0.0.0/0", Properties: map[string]any{"RouteTableId": "rtb-1"}},
			"A": {Type: "AWS::EC2::SubnetRouteTableAssociation", PhysicalID: "a", Properties: map[string]any{"RouteTableId": "rtb-1"}}}, []template.DeleteEdge{{First: "R", Then: "T"}, {First: "A", Then: "T"}}},
		{"a composite alarm goes before the alarms that it names", records{
			"C":  {Type: "AWS::CloudWatch::CompositeAlarm", PhysicalID: "c", Properties: map[string]any{"AlarmRule": `ALARM("one") AND (OK(two) OR NOT INSUFFICIENT_DATA('arn:aws:cloudwatch:eu-west-1:1:alarm:three')) AND TRUE`}},
			"A1": {Type: "AWS::CloudWatch::Alarm", PhysicalID: "one"}, "A2": {Type: "AWS::CloudWatch::Alarm", PhysicalID: "two"}, "A3": {Type: "AWS::CloudWatch::Alarm", PhysicalID: "three"}, "A4": {Type: "AWS::CloudWatch::Alarm", PhysicalID: "four"}},
			[]template.DeleteEdge{{First: "C", Then: "A1"}, {First: "C", Then: "A2"}, {First: "C", Then: "A3"}}},
		{"a composite alarm goes before another that it names", records{
			"Outer": {Type: "AWS::CloudWatch::CompositeAlarm", PhysicalID: "outer", Properties: map[string]any{"AlarmRule": `ALARM(inner)`}},
			"Inner": {Type: "AWS::CloudWatch::CompositeAlarm", PhysicalID: "inner", Properties: map[string]any{"AlarmRule": `FALSE`}}},
			[]template.DeleteEdge{{First: "Outer", Then: "Inner"}}},
		{"nothing is related", records{"B": {Type: "AWS::S3::Bucket", PhysicalID: "b"}, "V": {Type: "AWS::EC2::VPC", PhysicalID: "vpc-1"}, "S": {Type: "AWS::EC2::Subnet", PhysicalID: "s", Properties: map[string]any{"VpcId": "vpc-2"}}}, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, template.DeleteEdges(c.records)); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
		})
	}
}
