package schema

import "strings"

const (
	customResource = "AWS::CloudFormation::CustomResource"
	customPrefix   = "Custom::"
	nestedStack    = "AWS::CloudFormation::Stack"
	cdkMetadata    = "AWS::CDK::Metadata"

	provisionedProduct = "AWS::ServiceCatalog::CloudFormationProvisionedProduct"
)

// special describes the types whose behaviour is CloudFormation's own rather than a service's, so that no source
// describes what a template may write. Custom resources take any property; so does the metadata resource that
// the CDK adds.
func special(name string) (*Type, bool) {
	switch {
	case name == customResource || strings.HasPrefix(name, customPrefix) && len(name) > len(customPrefix):
		return &Type{
			Name: name,
			Definition: Definition{
				Properties: map[string]*Property{
					"ServiceToken":   {Kind: KindString},
					"ServiceTimeout": {Kind: KindInteger},
				},
				Required: []string{"ServiceToken"},
				Open:     true,
			},
			CreateOnly:  []string{"ServiceToken"},
			RefProperty: "Id",
			Updatable:   true,
		}, true
	case name == cdkMetadata:
		return &Type{
			Name:        name,
			Definition:  Definition{Properties: map[string]*Property{"Analytics": {Kind: KindString}}, Open: true},
			RefProperty: "Id",
			Updatable:   true,
		}, true
	}
	return nil, false
}
