package diff

import (
	"slices"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/template"
)

// anythingMayChange: what an update of the type returns is up to its handler or its child stack, physical id
// included, so everything that is read of it is uncertain
// (https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/crpg-ref-responses.html).
func anythingMayChange(typ string) bool {
	return template.IsCustomResource(typ) || typ == "AWS::CloudFormation::Stack"
}

// readers lists, once and sorted, who refers to a resource.
func (d *differ) readers(id string) []string {
	if d.readersOf == nil {
		d.readersOf = map[string][]string{}
		for reader, refs := range d.in.Dependencies {
			for _, ref := range refs {
				d.readersOf[ref.Target] = append(d.readersOf[ref.Target], reader)
			}
		}
	}
	list := d.readersOf[id]
	slices.Sort(list)
	return slices.Compact(list)
}

// changedAttributes lists the attributes, among those that somebody reads, that an update of these
// properties may change (reference §6.5 B): the ones named after a changed property, and the ones that a
// type is known to derive from one.
func changedAttributes(deps map[string][]template.Reference, readers []string, id, typ string, changes []PropertyChange) []string {
	changed := map[string]bool{}
	for _, c := range changes {
		top, _, _ := strings.Cut(c.Path, ".")
		changed[top] = true
	}
	var out []string
	for _, reader := range readers {
		for _, ref := range deps[reader] {
			if ref.Target != id || ref.Attribute == "" || slices.Contains(out, ref.Attribute) {
				continue
			}
			if attributeMayChange(typ, ref.Attribute, changed) {
				out = append(out, ref.Attribute)
			}
		}
	}
	return out
}

func attributeMayChange(typ, attribute string, changed map[string]bool) bool {
	top, _, _ := strings.Cut(attribute, ".")
	if changed[top] {
		return true
	}
	for _, property := range derivedFrom(typ, attribute) {
		if property == "*" || changed[property] {
			return true
		}
	}
	return false
}

// derivedFrom lists the properties whose update changes an attribute of another name: "*" for any of them.
// The source is the description of the return values on each type's page
// (https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-template-resource-type-ref.html).
func derivedFrom(typ, attribute string) []string {
	switch typ {
	case "AWS::EC2::LaunchTemplate":
		if attribute == "LatestVersionNumber" || attribute == "DefaultVersionNumber" {
			return []string{"*"}
		}
	case "AWS::DynamoDB::Table", "AWS::DynamoDB::GlobalTable":
		if attribute == "StreamArn" {
			return []string{"StreamSpecification"}
		}
	case "AWS::EC2::Instance":
		// A change of these stops and starts the instance.
		switch attribute {
		case "PublicIp", "PublicDnsName":
			return []string{"InstanceType", "EbsOptimized", "UserData", "KernelId", "RamdiskId", "CpuOptions"}
		}
	case "AWS::RDS::DBInstance", "AWS::RDS::DBCluster", "AWS::DocDB::DBCluster", "AWS::Neptune::DBCluster":
		switch attribute {
		case "Endpoint.Port", "ReadEndpoint.Port", "Port":
			return []string{"Port", "DBPort"}
		case "MasterUserSecret.SecretArn":
			return []string{"ManageMasterUserPassword", "MasterUserSecret"}
		}
	}
	return nil
}
