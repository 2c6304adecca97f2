package intrinsic_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/intrinsic"
	"github.com/slipway-cdk/slipway/pkg/schema"
)

// The tables here were written from each type's documentation; the embedded schema comes from the registry and
// the service specification. On Cloud Control's identifiers of several parts the two have to agree.
func TestTheTablesOfRefAgreeWithTheRegistry(t *testing.T) {
	pseudo := intrinsic.PseudoFor("123456789012", "eu-west-1", "S")
	checked, tabled := 0, 0
	for _, name := range schema.Names() {
		typ, _ := schema.Lookup(name)
		position := -1
		var parts []string
		for i, path := range typ.PrimaryIdentifier {
			if path == typ.RefProperty {
				position = i
			}
			parts = append(parts, fmt.Sprintf("part%d", i))
		}
		if len(parts) < 2 || position < 0 {
			continue
		}
		checked++
		r := intrinsic.Resource{Type: name, PhysicalID: strings.Join(parts, "|")}
		got, _ := intrinsic.Ref(&intrinsic.Scope{Pseudo: pseudo}, r)
		if got != r.PhysicalID {
			tabled++
			if got != parts[position] {
				t.Errorf("the table gives %v for %s, whose identifier is %v and whose Ref is %s", got, name, typ.PrimaryIdentifier, typ.RefProperty)
			}
		}
		got, _ = intrinsic.Ref(&intrinsic.Scope{Pseudo: pseudo, Schema: schema.Lookup}, r)
		if got != parts[position] {
			t.Errorf("with the schema Ref of %s is %v, want %s of %v", name, got, typ.RefProperty, typ.PrimaryIdentifier)
		}
	}
	if checked < 25 || tabled < 20 {
		t.Errorf("%d types checked, %d of them in the tables: is the schema complete?", checked, tabled)
	}
	t.Logf("%d types with several identifiers, %d of them in the tables", checked, tabled)
}

// What the tables derive has to be an attribute of the type.
func TestDerivedAttributesExist(t *testing.T) {
	scope := &intrinsic.Scope{Pseudo: intrinsic.PseudoFor("123456789012", "eu-west-1", "S")}
	derived := 0
	names := []string{"Arn", "Id", "Name", "KeyId", "GroupId", "VpcId", "SubnetId", "TopicArn", "TopicName", "QueueUrl", "QueueName", "DBInstanceArn", "DBClusterArn", "DomainName",
		"RegionalDomainName", "DualStackDomainName", "WebsiteURL", "RepositoryUri", "AllocationId", "PublicIp", "BackupVaultArn", "ProviderName", "ProviderURL", "UserPoolId", "ApiId", "RestApiId",
		"DeploymentId", "AuthorizerId", "FileSystemId", "AccessPointId", "InstanceId", "VolumeId", "RouteTableId", "InternetGatewayId", "NatGatewayId", "LaunchTemplateId", "LoadBalancerArn",
		"TargetGroupArn", "ListenerArn", "RuleArn", "PolicyArn", "ServiceArn", "TaskDefinitionArn", "FunctionArn", "LayerVersionArn"}
	for _, name := range schema.Names() {
		typ, _ := schema.Lookup(name)
		if len(typ.Attributes) == 0 {
			continue
		}
		for _, attribute := range names {
			r := intrinsic.Resource{Type: name, PhysicalID: "thing"}
			if _, ok := intrinsic.Attribute(scope, r, attribute); !ok {
				continue
			}
			derived++
			if !typ.IsAttribute(attribute) && !identifies(typ, attribute) {
				t.Errorf("%s has no attribute %s", name, attribute)
			}
		}
	}
	t.Logf("%d attributes are derived", derived)
}

// identifies reports whether a name is part of the identifier, which Fn::GetAtt reads for some types too.
func identifies(typ *schema.Type, name string) bool {
	for _, path := range typ.PrimaryIdentifier {
		if path == name {
			return true
		}
	}
	return false
}

func TestAttributesThatTheCorpusReadsAreAccepted(t *testing.T) {
	read := 0
	for _, file := range corpusFiles(t) {
		tmpl := parseFile(t, file)
		if tmpl == nil {
			continue
		}
		for _, id := range tmpl.Order {
			for _, ref := range tmpl.References(id) {
				if ref.Attribute != "" {
					read++
				}
			}
		}
		if err := intrinsic.CheckAttributes(tmpl, schema.Lookup).Err(); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	t.Logf("%d attributes are read", read)
}

func TestAttributesThatATypeDoesNotHaveAreReported(t *testing.T) {
	tmpl := mustParse(t, `{"Resources": {"Bucket": {"Type": "AWS::S3::Bucket"}, "Thing": {"Type": "Custom::Thing", "Properties": {"ServiceToken": "x"}},
	 "Topic": {"Type": "AWS::SNS::Topic", "Properties": {"DisplayName": {"Fn::GetAtt": ["Bucket", "Arm"]}, "TopicName": {"Fn::GetAtt": "Thing.Anything"}, "X": {"Fn::Sub": "${Bucket.Arn}"}}}},
	 "Outputs": {"O": {"Value": {"Fn::Sub": "${Topic.Arn}"}}}}`)
	got := intrinsic.CheckAttributes(tmpl, schema.Lookup).Error()
	want := "Topic Properties.DisplayName.Fn::GetAtt: AWS::S3::Bucket has no attribute Arm: did you mean Arn?\n" +
		"Outputs.O.Value.Fn::Sub: AWS::SNS::Topic has no attribute Arn"
	if !strings.HasPrefix(got, want) {
		t.Fatalf("got\n%s\nwant\n%s", got, want)
	}
}
