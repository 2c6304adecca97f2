package main

import (
	"slices"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/schema"
)

// decided is what the documentation says where the sources differ about a replacement: the property's page in the
// CloudFormation template reference, "Update requires". docs/replacement.md cites the page of each. ok is false
// where the rule of settle stands.
func decided(name, path string) (verdict schema.Replacement, ok bool) {
	switch {
	case slices.Contains(immutable(name), path):
		return schema.ReplaceAlways, true
	case slices.Contains(updatable(name), path):
		return schema.ReplaceNever, true
	case name == "AWS::ECS::Service" && path == "LaunchType":
		return schema.ReplaceMaybe, true
	}
	return "", false
}

// immutable lists the properties that are documented to need a replacement, although the registry is silent or
// milder.
func immutable(name string) []string {
	switch name {
	case "AWS::CertificateManager::Certificate":
		return []string{"ValidationMethod"}
	case "AWS::DynamoDB::Table", "AWS::DynamoDB::GlobalTable":
		return []string{
			"KeySchema", "LocalSecondaryIndexes", "LocalSecondaryIndexes/*/IndexName", "LocalSecondaryIndexes/*/KeySchema",
			"LocalSecondaryIndexes/*/Projection",
		}
	case "AWS::Events::EventBus":
		return []string{"EventSourceName"}
	case "AWS::Lambda::EventSourceMapping":
		return []string{"AmazonManagedKafkaEventSourceConfig/ConsumerGroupId", "SelfManagedKafkaEventSourceConfig/ConsumerGroupId"}
	case "AWS::Glue::Database":
		// The name is how the service finds it: another name is another database.
		return []string{"DatabaseInput/Name"}
	case "AWS::Route53::RecordSet":
		return []string{"Name"}
	}
	return nil
}

// updatable lists the properties that are documented to be updated in place, although the service specification
// still says that a change replaces.
func updatable(name string) []string {
	switch name {
	case "AWS::DataSync::LocationS3":
		return []string{"S3StorageClass", "Subdirectory"}
	case "AWS::EC2::VPNConnection":
		return []string{"CustomerGatewayId"}
	case "AWS::ECS::Service":
		return []string{"DeploymentController", "DeploymentController/Type"}
	case "AWS::EKS::Cluster":
		return []string{"ResourcesVpcConfig/SecurityGroupIds", "ResourcesVpcConfig/SubnetIds"}
	case "AWS::Glue::Database":
		return []string{"CatalogId"}
	case "AWS::RDS::DBInstance":
		return []string{"Port", "StorageType"}
	case "AWS::SageMaker::Domain":
		return []string{"SubnetIds"}
	case "AWS::Transfer::Server":
		return []string{"IdentityProviderType"}
	}
	return nil
}

// settle decides between the registry and the service specification, whose verdicts for older types stem from the
// resource specification and are not kept up to date:
//
//   - the documentation decides, where it has been consulted (decided);
//   - tags that the registry calls updatable (tagging.tagUpdatable) are updated;
//   - what the registry describes, of a type with an update handler, without calling it create-only in any way, is
//     "maybe": planned as an update, and the service has the last word. Replacing what can be updated loses data;
//   - below a property that the registry calls conditional, its "maybe" stands;
//   - else the stricter verdict.
func (m *merger) settle(t *schema.Type, path string, registry, specification schema.Replacement) schema.Replacement {
	if verdict, ok := decided(t.Name, path); ok {
		return verdict
	}
	if specification != schema.ReplaceAlways || m.reg == nil || !m.reg.provisionable() || !m.reg.has("update") {
		return specification
	}
	switch {
	case path == t.TagProperty && m.reg.Tagging.Updatable != nil && *m.reg.Tagging.Updatable:
		return schema.ReplaceNever
	case registry == schema.ReplaceNever && m.reg.describes(strings.Split(path, "/")):
		return schema.ReplaceMaybe
	case registry == schema.ReplaceMaybe && strings.Contains(path, "/"):
		return schema.ReplaceMaybe
	}
	return specification
}

// describes reports whether the schema knows the path.
func (t *regType) describes(path []string) bool {
	at := &t.regSchema
	for _, segment := range path {
		at, _ = t.resolve(at)
		if segment == "*" {
			at = t.element(at)
		} else {
			at = t.child(at, segment)
		}
		if at == nil {
			return false
		}
	}
	return true
}

// documentedInput reports whether a template may set a property although the registry calls it read-only: the
// property's page lists it, and tools write it (SAM).
// https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-appsync-apikey.html
func documentedInput(name, property string) bool {
	return name == "AWS::AppSync::ApiKey" && property == "ApiKeyId"
}
