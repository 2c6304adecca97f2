// Package schema knows every CloudFormation resource type: its properties and their types, what is required,
// what can't be changed in place, which attributes it has, how it is identified and whether Cloud Control
// can provision it. What to do about it (plan, refuse, call) is the callers' business. The data is one embedded, compressed file that `make schema` regenerates from npm
// @aws-cdk/aws-service-spec (properties, attributes, replacement, statefulness) and from the registry
// schemas that PyPI cfn-lint ships (createOnly, readOnly, writeOnly, handlers, enums, identifiers). A type is
// decoded only when it is asked for.
package schema

// Replacement says what changing a property does to the resource.
type Replacement string

// The verdicts.
const (
	ReplaceNever  Replacement = ""       // updated in place
	ReplaceAlways Replacement = "always" // create-only: the resource is replaced
	ReplaceMaybe  Replacement = "maybe"  // conditional: the service decides
)

// PropertyKind is the JSON shape of a property.
type PropertyKind string

// The kinds.
const (
	KindString  PropertyKind = "string"
	KindInteger PropertyKind = "integer"
	KindNumber  PropertyKind = "number"
	KindBoolean PropertyKind = "boolean"
	KindJSON    PropertyKind = "json" // any JSON value
	KindList    PropertyKind = "list" // Elem describes the items
	KindMap     PropertyKind = "map"  // string keys; Elem describes the values
	KindObject  PropertyKind = "object"
	KindUnion   PropertyKind = "union" // any of Alternatives
)

// Property describes one property or nested value.
type Property struct {
	Kind PropertyKind `json:"k"`
	// Ref names the definition (Type.Definitions) of an object.
	Ref          string      `json:"r,omitempty"`
	Elem         *Property   `json:"e,omitempty"`
	Alternatives []*Property `json:"a,omitempty"`
	Enum         []string    `json:"n,omitempty"`
	Pattern      string      `json:"p,omitempty"`
	MinLength    *int        `json:"ml,omitempty"`
	MaxLength    *int        `json:"xl,omitempty"`
	Minimum      *float64    `json:"mn,omitempty"`
	Maximum      *float64    `json:"mx,omitempty"`
	MinItems     *int        `json:"mi,omitempty"`
	MaxItems     *int        `json:"xi,omitempty"`
	// Unordered: the order of a list's items has no meaning (insertionOrder false).
	Unordered bool `json:"u,omitempty"`
	// RelationType and RelationProperty say what the value refers to, where the registry knows:
	// "AWS::KMS::Key", "Arn".
	RelationType     string `json:"rt,omitempty"`
	RelationProperty string `json:"rp,omitempty"`
}

// Definition is a named object type: its properties and which of them must be given.
type Definition struct {
	Properties map[string]*Property `json:"p"`
	Required   []string             `json:"q,omitempty"`
	// Open: unknown properties are allowed.
	Open bool `json:"o,omitempty"`
}

// Type describes one resource type. Paths are slash-separated without a leading slash and with "*" for list
// items and map values: "Code/S3Bucket", "Tags/*/Key".
type Type struct {
	Name string `json:"t"`
	// Definition holds the properties a template may set.
	Definition
	Definitions map[string]*Definition `json:"d,omitempty"`
	// Attributes are what Fn::GetAtt can read: dotted names.
	Attributes map[string]*Property `json:"at,omitempty"`
	// PropertiesReadable: Fn::GetAtt can read every property, too.
	PropertiesReadable bool `json:"pr,omitempty"`
	// PrimaryIdentifier lists the paths whose values, joined with "|", are Cloud Control's identifier.
	PrimaryIdentifier []string `json:"pi,omitempty"`
	// AdditionalIdentifiers are other paths that identify a resource.
	AdditionalIdentifiers [][]string `json:"ai,omitempty"`
	// RefProperty is the property or attribute whose value Ref returns. "Id" of a type that has no such attribute
	// stands for the physical id. Empty when Ref returns several values: see RefIdentifier.
	RefProperty string `json:"rf,omitempty"`
	// RefIdentifier lists the properties whose values, joined with "|", Ref returns, when there are several.
	RefIdentifier []string `json:"ri,omitempty"`
	ReadOnly      []string `json:"ro,omitempty"`
	WriteOnly     []string `json:"wo,omitempty"`
	CreateOnly    []string `json:"co,omitempty"`
	// ConditionalCreateOnly: the service decides whether a change replaces.
	ConditionalCreateOnly []string `json:"cc,omitempty"`
	// Replacements are the verdicts, by path, that add to those of the registry: the service specification's, as far as
	// the registry and the documentation leave them standing.
	Replacements map[string]Replacement `json:"rs,omitempty"`
	// Provisionable: Cloud Control can create, read and delete it. Updatable: it has an update handler.
	Provisionable bool `json:"cp,omitempty"`
	Updatable     bool `json:"up,omitempty"`
	Listable      bool `json:"ls,omitempty"`
	// DeleteBeforeCreate: a replacement deletes the old resource first (replacementStrategy delete_then_create),
	// as the two can't coexist.
	DeleteBeforeCreate bool `json:"db,omitempty"`
	// Stateful: deleting it loses data.
	Stateful bool `json:"st,omitempty"`
	// ARN is the service specification's template of the resource's ARN:
	// "arn:${Partition}:sqs:${Region}:${Account}:${QueueName}".
	ARN string `json:"arn,omitempty"`
	// Transform is the macro that replaces the type before anything is deployed: "AWS::Serverless-2016-10-31". Such a
	// type is open and has any attribute.
	Transform string `json:"tf,omitempty"`
	// TagProperty is the property that holds the tags, "" when the type can't be tagged.
	TagProperty string `json:"tg,omitempty"`
	// patterns are the index's; nil for a type that is made by hand.
	patterns *patternCache
}
