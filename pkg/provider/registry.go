package provider

import (
	"fmt"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/diag"
)

// Registry chooses the provider of a resource (reference §10.1): custom resources have one of their own; a
// resource that is already there stays with the layer that made it; otherwise a direct provider comes first
// and Cloud Control takes the rest. What a direct provider made that this release does not have goes to Cloud Control,
// too, where that can provision the type: most physical ids are the same for both.
type Registry struct {
	// Custom serves Custom::* and AWS::CloudFormation::CustomResource.
	Custom Provider
	// Direct serves the types that it has, by type name.
	Direct map[string]Provider
	// Fallback serves types that neither Direct nor Cloud Control has; nil where there is none. The sandbox
	// sets it: its direct API stands in for the services' own.
	Fallback Provider
	// CloudControl serves every type that Provisionable says Cloud Control can.
	CloudControl  Provider
	Provisionable func(typeName string) bool
	// Unhandled returns which of the properties the direct provider of a type can't set; nil: it can set all.
	Unhandled func(typeName string, properties []string) []string
}

// IsCustom reports whether a type is a custom resource.
func IsCustom(typeName string) bool {
	return strings.HasPrefix(typeName, "Custom::") || typeName == "AWS::CloudFormation::CustomResource"
}

// For returns the provider of a type and its route. recorded is the route in the resource's state record, ""
// for a new one; properties are the names of those that its template gives, nil for a deletion. A new resource with a
// property that its direct provider can't set goes to Cloud Control. A type that nobody can provision, or
// a property that nobody can set, is a diagnostic.
func (r *Registry) For(typeName string, recorded Route, properties []string) (Provider, Route, error) {
	var unhandled []string
	if r.Direct[typeName] != nil && r.Unhandled != nil && recorded != RouteCloudControl {
		unhandled = r.Unhandled(typeName, properties)
	}
	elsewhere := r.CloudControl != nil && r.Provisionable != nil && r.Provisionable(typeName)
	switch {
	case IsCustom(typeName):
		if r.Custom != nil {
			return r.Custom, RouteSDK, nil
		}
	case recorded == RouteCloudControl && r.CloudControl != nil:
		return r.CloudControl, RouteCloudControl, nil
	case len(unhandled) > 0 && recorded == "" && elsewhere:
		return r.CloudControl, RouteCloudControl, nil
	case len(unhandled) > 0:
		return nil, "", unsettable(typeName, recorded, unhandled)
	case r.Direct[typeName] != nil:
		return r.Direct[typeName], RouteSDK, nil
	case elsewhere:
		return r.CloudControl, RouteCloudControl, nil
	case r.Fallback != nil:
		return r.Fallback, RouteSDK, nil
	}
	return nil, "", diag.Diagnostic{
		Severity: diag.Error,
		Summary:  fmt.Sprintf("no provider for resource type %s", typeName),
		Detail:   "Cloud Control cannot provision this type and Slipway has no direct provider for it",
		Next:     "Remove the resource from the stack, or manage it with another tool and import its id.",
	}
}

// unsettable says that a resource needs a property that its direct provider can't set.
func unsettable(typeName string, recorded Route, properties []string) error {
	d := diag.Diagnostic{
		Severity: diag.Error,
		Summary:  fmt.Sprintf("Slipway can't set %s of %s", strings.Join(properties, ", "), typeName),
		Detail:   "its direct provider does not have the property, and Cloud Control cannot provision this type",
		Next:     "Remove the property, or manage the resource with another tool and import its id.",
	}
	if recorded == RouteSDK {
		d.Detail = "its direct provider, which has made the resource, does not have the property"
		d.Next = "Remove the property, or give the resource another logical id: as a new one it is made through Cloud Control, where that can provision it."
	}
	return d
}
