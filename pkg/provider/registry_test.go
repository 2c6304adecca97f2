package provider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/diag"
)

// labelled is a provider that only has a name.
type labelled struct {
	Provider
	name string
}

func TestTheRegistryChoosesTheProvider(t *testing.T) {
	custom, direct, fallback, cloud := &labelled{name: "custom"}, &labelled{name: "direct"}, &labelled{name: "fallback"}, &labelled{name: "cloud control"}
	full := &Registry{
		Custom: custom, Direct: map[string]Provider{"AWS::IAM::Role": direct, "AWS::Only::Direct": direct}, Fallback: fallback, CloudControl: cloud,
		Provisionable: func(name string) bool { return name == "AWS::IAM::Role" || name == "AWS::SQS::Queue" },
		Unhandled: func(_ string, properties []string) []string {
			return slices.DeleteFunc(slices.Clone(properties), func(p string) bool { return p != "Odd" })
		},
	}
	bare := &Registry{CloudControl: cloud, Provisionable: full.Provisionable}
	cases := []struct {
		name     string
		registry *Registry
		typ      string
		recorded Route
		want     *labelled
		route    Route
		uses     []string
	}{
		{"a custom resource", full, "Custom::Thing", "", custom, RouteSDK, nil},
		{"a custom resource of the general type", full, "AWS::CloudFormation::CustomResource", "", custom, RouteSDK, nil},
		{"a custom resource, whatever is recorded", full, "Custom::Thing", RouteCloudControl, custom, RouteSDK, nil},
		{"a direct provider comes first", full, "AWS::IAM::Role", "", direct, RouteSDK, nil},
		{"a direct provider keeps what it made", full, "AWS::IAM::Role", RouteSDK, direct, RouteSDK, nil},
		{"Cloud Control keeps what it made, though there is a direct provider", full, "AWS::IAM::Role", RouteCloudControl, cloud, RouteCloudControl, nil},
		{"a direct provider for what Cloud Control can't", full, "AWS::Only::Direct", "", direct, RouteSDK, nil},
		{"Cloud Control for the rest", full, "AWS::SQS::Queue", "", cloud, RouteCloudControl, nil},
		{"Cloud Control for what a direct provider made that is not there", full, "AWS::SQS::Queue", RouteSDK, cloud, RouteCloudControl, nil},
		{"the fallback for what nobody can", full, "AWS::Neither::Nor", "", fallback, RouteSDK, nil},
		{"the fallback keeps what it made", full, "AWS::Neither::Nor", RouteSDK, fallback, RouteSDK, nil},
		{"without direct providers", bare, "AWS::IAM::Role", "", cloud, RouteCloudControl, nil},
		{"recorded as Cloud Control's, though it can no longer create it", bare, "AWS::Neither::Nor", RouteCloudControl, cloud, RouteCloudControl, nil},
		{"a property that a direct provider has", full, "AWS::IAM::Role", "", direct, RouteSDK, []string{"Plain"}},
		{"a new resource with a property that its direct provider lacks", full, "AWS::IAM::Role", "", cloud, RouteCloudControl, []string{"Odd", "Plain"}},
		{"what Cloud Control made may have it", full, "AWS::IAM::Role", RouteCloudControl, cloud, RouteCloudControl, []string{"Odd"}},
		{"what a direct provider made may not get it", full, "AWS::IAM::Role", RouteSDK, nil, "", []string{"Odd"}},
		{"a property that nobody has", full, "AWS::Only::Direct", "", nil, "", []string{"Odd"}},
		{"nobody", bare, "AWS::Neither::Nor", "", nil, "", nil},
		{"nobody for a custom resource", bare, "Custom::Thing", "", nil, "", nil},
		{"an empty registry", &Registry{}, "AWS::SQS::Queue", "", nil, "", nil},
		{"an empty registry and a record", &Registry{}, "AWS::SQS::Queue", RouteCloudControl, nil, "", nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, route, err := c.registry.For(c.typ, c.recorded, c.uses)
			if c.want == nil {
				var d diag.Diagnostic
				if !errors.As(err, &d) || !strings.Contains(d.Summary, c.typ) || d.Next == "" || got != nil || route != "" {
					t.Errorf("%v, %q, %v", got, route, err)
				}
				return
			}
			if err != nil || got != Provider(c.want) || route != c.route {
				t.Errorf("%v, %q, %v", got, route, err)
			}
		})
	}
}

func TestCustomResourcesAreKnownByTheirType(t *testing.T) {
	for name, want := range map[string]bool{
		"Custom::A": true, "Custom::A::B": true, "AWS::CloudFormation::CustomResource": true,
		"AWS::CloudFormation::Stack": false, "custom::A": false, "AWS::Custom::A": false, "": false,
	} {
		if IsCustom(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
}

func TestKindsAreFoundInWrappedErrors(t *testing.T) {
	checks := map[Kind]func(error) bool{
		KindNotFound: IsNotFound, KindAlreadyExists: IsAlreadyExists, KindThrottled: IsThrottled, KindUnavailable: IsUnavailable,
		KindAccessDenied: IsAccessDenied, KindImmutable: IsImmutable, KindDependencyViolation: IsDependencyViolation,
		KindConflict: IsConflict, KindUnsupported: IsUnsupported, KindProtected: IsProtected,
	}
	all := []Kind{KindFailed, KindNotFound, KindAlreadyExists, KindThrottled, KindUnavailable, KindAccessDenied, KindImmutable,
		KindDependencyViolation, KindConflict, KindInvalid, KindUnsupported, KindTimeout, KindTokenConflict, KindProtected}
	retryable := map[Kind]bool{KindThrottled: true, KindUnavailable: true, KindConflict: true}
	for _, kind := range all {
		cause := errors.New("cause")
		err := fmt.Errorf("creating X: %w", &Error{Kind: kind, Code: "C", Message: "m", Err: cause})
		if KindOf(err) != kind || !errors.Is(err, cause) || err.Error() != "creating X: C: m" {
			t.Errorf("%s: %s, %v", kind, KindOf(err), err)
		}
		if Retryable(err) != retryable[kind] {
			t.Errorf("%s: retryable is %v", kind, !retryable[kind])
		}
		for k, is := range checks {
			if is(err) != (k == kind) {
				t.Errorf("%s counts as %s: %v", kind, k, is(err))
			}
		}
	}
	if KindOf(nil) != "" || KindOf(context.Canceled) != KindFailed || Retryable(nil) {
		t.Error("no error, or another one, has a kind")
	}
	if got := (&Error{Kind: KindTimeout, Err: errors.New("cause")}).Error(); got != "Timeout: cause" {
		t.Errorf("%q", got)
	}
}
