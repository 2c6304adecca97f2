package cloudcontrol

import (
	"slices"
	"strings"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/schema"
)

// TestWhatFnGetAttReadsIsInTheModel: an attribute that GetResource never returns would need another call. There are none
// but these, and Id of types whose handlers do not know it; no documentation describes them.
func TestWhatFnGetAttReadsIsInTheModel(t *testing.T) {
	known := []string{
		"AWS::EC2::TransitGatewayMulticastGroupMember.SourceType", "AWS::EC2::TransitGatewayMulticastGroupSource.MemberType",
		"AWS::IoTWireless::ServiceProfile.LoRaWANResponse", "AWS::Location::Map.DataSource", "AWS::Macie::FindingsFilter.FindingsFilterListItems",
	}
	var missing []string
	types := 0
	for _, name := range schema.Names() {
		typ, ok := schema.Lookup(name)
		// A nested stack is nothing that Cloud Control is asked for.
		if !ok || !typ.Provisionable || name == "AWS::CloudFormation::Stack" {
			continue
		}
		types++
		for attribute := range typ.Attributes {
			if attribute != "Id" && !inModel(typ, attribute) && !slices.Contains(typ.PrimaryIdentifier, attribute) {
				missing = append(missing, name+"."+attribute)
			}
		}
	}
	if slices.Sort(missing); !slices.Equal(missing, known) {
		t.Errorf("the model does not have %v", missing)
	}
	if types < 1500 {
		t.Errorf("there are %d types", types)
	}
}

// inModel reports whether the schema has the attribute among what is read: a read-only path, one above it or below it, or a
// property.
func inModel(typ *schema.Type, attribute string) bool {
	top, _, _ := strings.Cut(attribute, ".")
	return typ.Properties[top] != nil || slices.ContainsFunc(typ.ReadOnly, func(path string) bool {
		return path == top || strings.HasPrefix(path, top+"/")
	})
}
