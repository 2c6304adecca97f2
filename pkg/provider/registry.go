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
}

// IsCustom reports whether a type is a custom resource.
func IsCustom(typeName string) bool {
	return strings.HasPrefix(typeName, "Custom::") || typeName == "AWS::CloudFormation::CustomResource"
}

// For returns the provider of a type and its route. recorded is the route in the resource's state record, ""
// for a new one. A type that nobody can provision is a diagnostic.
func (r *Registry) For(typeName string, recorded Route) (Provider, Route, error) {
	switch {
	case IsCustom(typeName):
		if r.Custom != nil {
			return r.Custom, RouteSDK, nil
		}
	case recorded == RouteCloudControl && r.CloudControl != nil:
		return r.CloudControl, RouteCloudControl, nil
	case r.Direct[typeName] != nil:
		return r.Direct[typeName], RouteSDK, nil
	case r.Provisionable != nil && r.Provisionable(typeName) && r.CloudControl != nil:
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
