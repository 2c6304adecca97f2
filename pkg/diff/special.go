package diff

import (
	"strings"

	"github.com/slipway-cdk/slipway/pkg/intrinsic"
	"github.com/slipway-cdk/slipway/pkg/schema"
)

// special decides where the verdict hangs on the values, which the schema can't express (reference §6.6). ok
// is false when the schema's verdict stands.
func special(t *schema.Type, path []string, old, desired map[string]any) (verdict schema.Replacement, ok bool) {
	if t == nil {
		return "", false
	}
	switch t.Name + "/" + path[0] {
	case "AWS::DynamoDB::Table/AttributeDefinitions", "AWS::DynamoDB::GlobalTable/AttributeDefinitions":
		// "Replacement if you edit an existing AttributeDefinition"
		// (https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-dynamodb-table.html).
		return retypedAttribute(old["AttributeDefinitions"], desired["AttributeDefinitions"]), true
	case "AWS::DynamoDB::Table/LocalSecondaryIndexes":
		// "A local secondary index can only be created when its parent table is created"
		// (https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-properties-dynamodb-table-localsecondaryindex.html).
		return schema.ReplaceAlways, true
	case "AWS::EC2::EIP/Domain":
		// "vpc" is the only network there is, so stating it changes nothing; the address would be lost for it
		// (https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_AllocateAddress.html).
		if onlyVPC(old["Domain"]) && onlyVPC(desired["Domain"]) {
			return schema.ReplaceMaybe, true
		}
		return schema.ReplaceAlways, true
	case "AWS::S3::Bucket/ObjectLockEnabled":
		// It can be turned on for a bucket that exists, and never off
		// (https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-lock-configure.html).
		if on, ok := text(desired["ObjectLockEnabled"]); ok && strings.EqualFold(on, "true") {
			return schema.ReplaceNever, true
		}
		return "", false
	case "AWS::Lambda::Function/DurableConfig":
		// "You can only enable durable execution when creating a function"
		// (https://docs.aws.amazon.com/lambda/latest/dg/durable-configuration.html).
		_, was := old["DurableConfig"]
		_, is := desired["DurableConfig"]
		if was != is {
			return schema.ReplaceAlways, true
		}
		return schema.ReplaceNever, true
	}
	return "", false
}

func onlyVPC(domain any) bool {
	name, stated := text(domain)
	return domain == nil || stated && name == "vpc"
}

// retypedAttribute: an attribute that both sides define has another type now.
func retypedAttribute(old, desired any) schema.Replacement {
	if _, unknown := desired.(intrinsic.Unknown); unknown {
		return schema.ReplaceMaybe
	}
	was := attributeTypes(old)
	verdict := schema.ReplaceNever
	for name, typ := range attributeTypes(desired) {
		before, both := was[name]
		if !both {
			continue
		}
		switch typ.(type) {
		case intrinsic.Unknown:
			verdict = harder(verdict, schema.ReplaceMaybe)
		default:
			if typ != before {
				verdict = schema.ReplaceAlways
			}
		}
	}
	return verdict
}

func attributeTypes(v any) map[string]any {
	types := map[string]any{}
	list, _ := v.([]any)
	for _, item := range list {
		m, _ := item.(map[string]any)
		if name, ok := m["AttributeName"].(string); ok {
			switch typ := m["AttributeType"].(type) {
			case string, intrinsic.Unknown:
				types[name] = typ
			}
		}
	}
	return types
}
