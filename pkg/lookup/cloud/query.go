package cloud

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/slipway-cdk/slipway/pkg/lookup"
)

// decode reads the properties of a query into a struct with their names as tags. Others are left alone: apps of a newer
// aws-cdk-lib may send more.
func decode(q lookup.Query, into any) error {
	b, err := json.Marshal(q.Props)
	if err != nil {
		return fmt.Errorf("reading the query's properties: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	err = d.Decode(into)
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return fmt.Errorf("the query's %s is not of type %s", wrong.Field, wrong.Type)
	}
	if err != nil {
		return fmt.Errorf("reading the query's properties: %w", err)
	}
	return nil
}

// filters are EC2's, sorted by name.
func filters(of map[string][]string) []ec2types.Filter {
	var out []ec2types.Filter
	for _, name := range slices.Sorted(maps.Keys(of)) {
		out = append(out, ec2types.Filter{Name: aws.String(name), Values: of[name]})
	}
	return out
}

// asked writes filters for people: "tag:Name=web, vpc-id=vpc-1".
func asked(of map[string][]string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		parts = append(parts, name+"="+strings.Join(of[name], "|"))
	}
	return strings.Join(parts, ", ")
}

// list is texts as JSON.
func list(texts []string) []any {
	out := make([]any, len(texts))
	for i, t := range texts {
		out[i] = t
	}
	return out
}

// tag is the value of a tag of an EC2 resource, "" without the tag.
func tag(of []ec2types.Tag, key string) string {
	for _, t := range of {
		if aws.ToString(t.Key) == key {
			return aws.ToString(t.Value)
		}
	}
	return ""
}

// only is the one element of found.
func only[T any](found []T, what string) (one T, err error) {
	switch len(found) {
	case 0:
		return one, &NotFoundError{What: what}
	case 1:
		return found[0], nil
	}
	return one, &AmbiguousError{What: what, Count: len(found)}
}
