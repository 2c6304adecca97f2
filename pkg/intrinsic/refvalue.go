package intrinsic

import (
	"strings"

	"github.com/slipway-cdk/slipway/pkg/schema"
)

// Ref returns what Ref of a resource gives: its physical id, or the part or attribute that CloudFormation
// documents for the type (reference §7.2; "Return values" of each type's page in
// https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-template-resource-type-ref.html).
// ok is false when the record does not hold it.
func Ref(scope *Scope, r Resource) (value any, ok bool) {
	v, problem := refValue(scope, r)
	return v, problem == ""
}

// refRule tells how Ref is derived from a physical id.
type refRule int

const (
	refWhole      refRule = iota
	refLast               // the part after the last "|"
	refFirst              // the part before the first "|"
	refAfterFirst         // everything after the first "|": the part may hold a "|" itself
	refMiddle             // the second of exactly three parts
	refRuleARN            // the name in an Events rule's ARN
	refTrailARN           // the name in a trail's ARN
	refWebACLARN          // name|id|scope of a WAFv2 ARN
	refAttribute          // a recorded attribute, refAttributes
	refTable              // the name of an S3 table
)

func refRuleOf(typ string) refRule {
	switch typ {
	case "AWS::ApiGateway::Model", "AWS::ApiGateway::RequestValidator", "AWS::ApiGateway::Stage", "AWS::ApiGateway::Resource",
		"AWS::ApiGateway::Authorizer",
		"AWS::ApiGatewayV2::Stage", "AWS::ApiGatewayV2::Route", "AWS::ApiGatewayV2::Integration", "AWS::ApiGatewayV2::Model",
		"AWS::ApiGatewayV2::Deployment", "AWS::ApiGatewayV2::RouteResponse", "AWS::ApiGatewayV2::IntegrationResponse",
		"AWS::Cognito::UserPoolClient", "AWS::Cognito::UserPoolResourceServer", "AWS::Cognito::UserPoolGroup",
		"AWS::Cognito::UserPoolIdentityProvider", "AWS::Cognito::UserPoolDomain", "AWS::Cognito::UserPoolUser",
		"AWS::AppConfig::Environment", "AWS::AppConfig::ConfigurationProfile", "AWS::AppConfig::HostedConfigurationVersion",
		"AWS::AppConfig::Deployment",
		"AWS::S3Tables::Namespace":
		return refLast
	case "AWS::EC2::EIP", "AWS::EC2::VPCCidrBlock", "AWS::ApiGateway::Deployment", "AWS::ApiGateway::DocumentationPart",
		"AWS::ApiGatewayV2::Authorizer", "AWS::ApiGatewayV2::ApiMapping", "AWS::ECS::Service":
		return refFirst
	case "AWS::Glue::Table":
		return refAfterFirst
	case "AWS::Route53::RecordSet":
		return refMiddle
	case "AWS::Events::Rule":
		return refRuleARN
	case "AWS::CloudTrail::Trail":
		return refTrailARN
	case "AWS::WAFv2::WebACL":
		return refWebACLARN
	case "AWS::S3Tables::Table":
		return refTable
	case "AWS::AppSync::ApiKey", "AWS::AppSync::DataSource", "AWS::AppSync::Resolver", "AWS::Backup::BackupSelection", "AWS::CodeCommit::Repository":
		return refAttribute
	}
	return refWhole
}

func refAttributeOf(typ string) string {
	switch typ {
	case "AWS::AppSync::ApiKey":
		return "Arn"
	case "AWS::AppSync::DataSource":
		return "DataSourceArn"
	case "AWS::AppSync::Resolver":
		return "ResolverArn"
	case "AWS::Backup::BackupSelection":
		return "SelectionId"
	case "AWS::CodeCommit::Repository":
		return "RepositoryId"
	}
	return ""
}

// refValue applies the rules; problem says why there is no value.
func refValue(scope *Scope, r Resource) (v any, problem string) {
	id := r.PhysicalID
	if id == "" {
		return nil, "no physical ID is recorded"
	}
	switch refRuleOf(r.Type) {
	case refLast:
		return id[strings.LastIndexByte(id, '|')+1:], ""
	case refFirst:
		first, _, _ := strings.Cut(id, "|")
		return first, ""
	case refAfterFirst:
		return afterFirst(id), ""
	case refMiddle:
		if parts := strings.Split(id, "|"); len(parts) == 3 {
			return parts[1], ""
		}
	case refRuleARN:
		// arn:…:rule/name, and arn:…:rule/bus/name, whose Ref is bus|name.
		if _, name, ok := strings.Cut(id, ":rule/"); ok {
			return strings.Replace(name, "/", "|", 1), ""
		}
		return id, ""
	case refTrailARN:
		if _, name, ok := strings.Cut(id, ":trail/"); ok {
			return name, ""
		}
		return id, ""
	case refWebACLARN:
		return webACLRef(id), ""
	case refTable:
		if strings.Contains(id, "|") {
			return id[strings.LastIndexByte(id, '|')+1:], ""
		}
		return recorded(r, id, "TableName", "Name"), ""
	case refAttribute:
		return refFromAttribute(r, refAttributeOf(r.Type))
	}
	return schemaRef(scope, r), ""
}

// refFromAttribute reads the attribute that Ref of the type gives. Without it the physical id will do only
// when it has the shape of one: an id in several parts is never a Ref.
func refFromAttribute(r Resource, attribute string) (any, string) {
	if v, ok := r.Attributes[attribute]; ok && v != nil {
		return v, ""
	}
	if strings.Contains(r.PhysicalID, "|") {
		if !strings.HasSuffix(attribute, "Arn") {
			return r.PhysicalID[:strings.IndexByte(r.PhysicalID, '|')], ""
		}
		return nil, "the attribute " + attribute + " is not recorded"
	}
	return r.PhysicalID, ""
}

func afterFirst(id string) string {
	if _, rest, ok := strings.Cut(id, "|"); ok {
		return rest
	}
	return id
}

// webACLRef turns arn:aws:wafv2:region:account:regional/webacl/name/id into name|id|REGIONAL.
func webACLRef(id string) string {
	parts := strings.Split(id, "/")
	if len(parts) != 4 || !strings.HasPrefix(id, "arn:") || parts[1] != "webacl" {
		return id
	}
	scope := "REGIONAL"
	if strings.HasSuffix(parts[0], ":global") {
		scope = "CLOUDFRONT"
	}
	return parts[2] + "|" + parts[3] + "|" + scope
}

// recorded is the first of the names that is recorded as text, else the fallback.
func recorded(r Resource, fallback string, names ...string) string {
	for _, name := range names {
		for _, from := range []map[string]any{r.Attributes, r.Properties} {
			if s, ok := from[name].(string); ok && s != "" {
				return s
			}
		}
	}
	return fallback
}

// schemaRef uses the type's schema: the parts of a Cloud Control identifier that Ref consists of, or their
// recorded values, joined by "|"; else the whole id.
func schemaRef(scope *Scope, r Resource) any {
	t, ok := scope.lookupSchema(r.Type)
	if !ok {
		return r.PhysicalID
	}
	var parts []string
	for _, path := range t.RefPaths() {
		part, ok := identifierPart(t, r.PhysicalID, path)
		if !ok {
			// A recorded attribute counts; a property of the template would only be what was asked for.
			part, _ = r.Attributes[path].(string)
		}
		if part == "" && strings.Contains(r.PhysicalID, "|") {
			part = recorded(r, "", path)
		}
		if part == "" {
			return r.PhysicalID
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		return r.PhysicalID
	}
	return strings.Join(parts, "|")
}

// identifierPart is the part of a Cloud Control identifier that holds a property or attribute. It only
// applies to an id with as many parts as the type's primary identifier.
func identifierPart(t *schema.Type, id, name string) (string, bool) {
	parts := strings.Split(id, "|")
	if len(parts) != len(t.PrimaryIdentifier) {
		return "", false
	}
	for i, path := range t.PrimaryIdentifier {
		if path == name || strings.ReplaceAll(path, "/", ".") == name {
			return parts[i], true
		}
	}
	return "", false
}

func (s *Scope) lookupSchema(typ string) (*schema.Type, bool) {
	if s == nil || s.Schema == nil {
		return nil, false
	}
	return s.Schema(typ)
}
