package cloud

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudcontrol"
	"github.com/aws/aws-sdk-go-v2/service/cloudcontrol/types"

	"github.com/slipway-cdk/slipway/pkg/lookup"
)

type resourceQuery struct {
	TypeName           string         `json:"typeName"`
	ExactIdentifier    string         `json:"exactIdentifier"`
	ResourceModel      map[string]any `json:"resourceModel"`
	PropertyMatch      map[string]any `json:"propertyMatch"`
	PropertiesToReturn []string       `json:"propertiesToReturn"`
	ExpectedMatchCount string         `json:"expectedMatchCount"`
}

// The values of expectedMatchCount; "any", and none, ask for no number.
const (
	exactlyOne = "exactly-one"
	atMostOne  = "at-most-one"
	atLeastOne = "at-least-one"
)

// String names what is asked for, with the names of properties and without their values.
func (q resourceQuery) String() string {
	if q.ExactIdentifier != "" {
		return q.TypeName + " " + q.ExactIdentifier
	}
	return q.TypeName + " that matches by " + strings.Join(slices.Sorted(maps.Keys(q.PropertyMatch)), ", ")
}

// found is a resource as Cloud Control describes it.
type found struct {
	identifier string
	properties map[string]any
}

// resources answers cc-api-provider (Role.fromLookup, DatabaseInstance.fromLookup, PrefixList.fromLookup, …): a list
// of the resources found, each with the properties that are asked for, by their dotted paths, and its Identifier.
func resources(ctx context.Context, in *place, q lookup.Query) (any, error) {
	var ask resourceQuery
	if err := decode(q, &ask); err != nil {
		return nil, err
	}
	if (ask.ExactIdentifier == "") == (ask.PropertyMatch == nil) {
		return nil, errors.New("the query must have one of exactIdentifier and propertyMatch")
	}
	if q.Props["ignoreErrorOnMissingContext"] == true && !isObjects(q.Props["dummyValue"]) {
		return nil, errors.New("with ignoreErrorOnMissingContext, the query's dummyValue must be a list of objects")
	}
	client := cloudcontrol.NewFromConfig(in.cfg)
	var all []found
	var err error
	if ask.ExactIdentifier != "" {
		all, err = getResource(ctx, client, ask)
	} else {
		all, err = listResources(ctx, client, ask)
	}
	if err != nil {
		return nil, err
	}
	out := []any{}
	for _, r := range all {
		one := map[string]any{}
		for _, path := range ask.PropertiesToReturn {
			v, ok := at(r.properties, path)
			if !ok {
				return nil, fmt.Errorf("%s %s has no property %s, which the app wants to know", ask.TypeName, r.identifier, path)
			}
			one[path] = v
		}
		one["Identifier"] = r.identifier
		out = append(out, one)
	}
	return out, nil
}

func getResource(ctx context.Context, client *cloudcontrol.Client, ask resourceQuery) ([]found, error) {
	out, err := client.GetResource(ctx, &cloudcontrol.GetResourceInput{TypeName: &ask.TypeName, Identifier: &ask.ExactIdentifier})
	var none *types.ResourceNotFoundException
	switch {
	case errors.As(err, &none), err == nil && out.ResourceDescription == nil:
		return nil, &NotFoundError{What: ask.String()}
	case err != nil:
		return nil, called("cloudformation:GetResource", err)
	}
	one, err := read(ask.TypeName, *out.ResourceDescription)
	return []found{one}, err
}

func listResources(ctx context.Context, client *cloudcontrol.Client, ask resourceQuery) ([]found, error) {
	input := &cloudcontrol.ListResourcesInput{TypeName: &ask.TypeName, MaxResults: aws.Int32(100)}
	if ask.ResourceModel != nil {
		model, err := json.Marshal(ask.ResourceModel)
		if err != nil {
			return nil, fmt.Errorf("writing the query's resourceModel: %w", err)
		}
		input.ResourceModel = aws.String(string(model))
	}
	var matching []found
	pages := cloudcontrol.NewListResourcesPaginator(client, input)
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, called("cloudformation:ListResources", err)
		}
		for _, d := range page.ResourceDescriptions {
			r, err := read(ask.TypeName, d)
			if err != nil {
				return nil, err
			}
			if matches(r.properties, ask.PropertyMatch) {
				matching = append(matching, r)
			}
		}
		if len(matching) > 1 && (ask.ExpectedMatchCount == exactlyOne || ask.ExpectedMatchCount == atMostOne) {
			return nil, &AmbiguousError{What: ask.String(), Count: len(matching), More: pages.HasMorePages()}
		}
	}
	if len(matching) == 0 && (ask.ExpectedMatchCount == exactlyOne || ask.ExpectedMatchCount == atLeastOne) {
		return nil, &NotFoundError{What: ask.String()}
	}
	return matching, nil
}

func read(typeName string, d types.ResourceDescription) (found, error) {
	r := found{identifier: aws.ToString(d.Identifier)}
	if d.Properties == nil {
		return r, nil
	}
	in := json.NewDecoder(strings.NewReader(*d.Properties))
	in.UseNumber()
	if err := in.Decode(&r.properties); err != nil {
		return r, fmt.Errorf("reading the properties of %s %s: they are not a JSON object", typeName, r.identifier)
	}
	return r, nil
}

// matches reports whether a resource has all of the values. One that lacks a property does not match; the CDK CLI
// gives up the lookup there.
func matches(properties, want map[string]any) bool {
	for path, value := range want {
		if got, ok := at(properties, path); !ok || !reflect.DeepEqual(got, value) {
			return false
		}
	}
	return true
}

// at is the value at a dotted path.
func at(properties map[string]any, path string) (any, bool) {
	var v any = properties
	for _, name := range strings.Split(path, ".") {
		object, ok := v.(map[string]any)
		if !ok {
			return nil, false
		}
		if v, ok = object[name]; !ok {
			return nil, false
		}
	}
	return v, true
}

func isObjects(v any) bool {
	all, ok := v.([]any)
	return ok && !slices.ContainsFunc(all, func(one any) bool {
		_, object := one.(map[string]any)
		return !object
	})
}
