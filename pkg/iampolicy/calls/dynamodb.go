package calls

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/iampolicy"
)

// leadingKeys is the condition key with the partition keys that a request names
// (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/specifying-conditions.html).
const leadingKeys = "dynamodb:LeadingKeys"

// partitionOf finds the partition key in a key condition: it is compared by "=", and comes first in the requests that
// are read here.
var partitionOf = regexp.MustCompile(`^\s*#?\w+\s*=\s*(:\w+)`)

// dynamo reads a request to DynamoDB.
func (q request) dynamo(operation string, in map[string]any) ([]iampolicy.Call, error) {
	table := func(of map[string]any) string {
		name, _ := of["TableName"].(string)
		if strings.HasPrefix(name, "arn:") {
			return name
		}
		return q.arn("dynamodb", "table/"+name)
	}
	switch operation {
	case "GetItem", "PutItem", "UpdateItem", "DeleteItem":
		return []iampolicy.Call{keyed("dynamodb:"+operation, table(in), in)}, nil
	case "DescribeTable":
		return call("dynamodb:DescribeTable", table(in)), nil
	case "Query":
		c := iampolicy.Call{Action: "dynamodb:Query", Resource: table(in)}
		if index, ok := in["IndexName"].(string); ok {
			c.Resource += "/index/" + index
		}
		expression, _ := in["KeyConditionExpression"].(string)
		values, _ := in["ExpressionAttributeValues"].(map[string]any)
		found := partitionOf.FindStringSubmatch(expression)
		if found == nil {
			return nil, fmt.Errorf("a query does not begin with its partition key: %q", expression)
		}
		c.Context = map[string][]string{leadingKeys: {stringOf(values[found[1]])}}
		return []iampolicy.Call{c}, nil
	case "BatchGetItem":
		var out []iampolicy.Call
		items, _ := in["RequestItems"].(map[string]any)
		for name, of := range items {
			c := iampolicy.Call{Action: "dynamodb:BatchGetItem", Resource: table(map[string]any{"TableName": name}), Context: map[string][]string{}}
			keys, _ := of.(map[string]any)["Keys"].([]any)
			for _, k := range keys {
				key, _ := k.(map[string]any)
				c.Context[leadingKeys] = append(c.Context[leadingKeys], stringOf(key["pk"]))
			}
			c.Context[leadingKeys] = unique(c.Context[leadingKeys])
			out = append(out, c)
		}
		return out, nil
	case "TransactWriteItems":
		// A transaction needs the permission for each of its parts, and none of its own.
		var out []iampolicy.Call
		items, _ := in["TransactItems"].([]any)
		for _, item := range items {
			parts, _ := item.(map[string]any)
			for kind, part := range parts {
				of, _ := part.(map[string]any)
				action, ok := map[string]string{"ConditionCheck": "ConditionCheckItem", "Put": "PutItem", "Update": "UpdateItem", "Delete": "DeleteItem"}[kind]
				if !ok {
					return nil, fmt.Errorf("a transaction has a part of the kind %s, which is not known", kind)
				}
				out = append(out, keyed("dynamodb:"+action, table(of), of))
			}
		}
		return out, nil
	}
	return nil, fmt.Errorf("the request %s to DynamoDB is not known", operation)
}

// keyed is a call for one item, whose key is in its Key or Item.
func keyed(action, table string, in map[string]any) iampolicy.Call {
	key, ok := in["Key"].(map[string]any)
	if !ok {
		key, _ = in["Item"].(map[string]any)
	}
	return iampolicy.Call{Action: action, Resource: table, Context: map[string][]string{leadingKeys: {stringOf(key["pk"])}}}
}

// stringOf is the text of an attribute value.
func stringOf(v any) string {
	m, _ := v.(map[string]any)
	s, _ := m["S"].(string)
	return s
}

func unique(v []string) []string {
	slices.Sort(v)
	return slices.Compact(v)
}
