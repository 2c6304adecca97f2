// Package template is the model of a CloudFormation template: parsing, parameters, and where values refer to
// other values. It resolves nothing (that is intrinsic) and does no I/O.
package template

// Template is a parsed template. Values are JSON values with json.Number for numbers.
type Template struct {
	FormatVersion string
	Description   string
	Transform     []string
	Parameters    map[string]*Parameter
	Mappings      map[string]any
	// Conditions are the unevaluated condition expressions, by name.
	Conditions map[string]any
	Rules      map[string]any
	Resources  map[string]*Resource
	Outputs    map[string]*Output
	Metadata   map[string]any
	// Order lists the logical ids of Resources in template order: ties are broken by it.
	Order []string
	// ParameterOrder and OutputOrder list the names of Parameters and Outputs in template order.
	ParameterOrder, OutputOrder []string
	// Document is the whole decoded template, for what the model has no member for (macros). It shares its
	// values with the model: nobody may change it.
	Document map[string]any
	// Unexpanded: it comes from Parse and declares AWS::LanguageExtensions, so that it may still hold what
	// intrinsic.Expand evaluates. SectionOrder then lists the names in Parameters, Conditions, Resources and
	// Outputs as they stand in the template, loops among them.
	Unexpanded   bool
	SectionOrder map[string][]string
}

// Parameter is a declared parameter.
type Parameter struct {
	Name                  string
	Type                  string
	Default               any // nil when there is none
	AllowedValues         []any
	AllowedPattern        string
	ConstraintDescription string
	MinLength, MaxLength  *int
	MinValue, MaxValue    *float64
	NoEcho                bool
	Description           string
}

// Resource is a declared resource.
type Resource struct {
	LogicalID  string
	Type       string
	Properties map[string]any // nil when absent
	DependsOn  []string
	Condition  string
	// DeletionPolicy and UpdateReplacePolicy are strings, or intrinsics under AWS::LanguageExtensions.
	DeletionPolicy      any
	UpdateReplacePolicy any
	UpdatePolicy        any
	CreationPolicy      any
	Metadata            map[string]any
	// Extra holds the attributes that CloudFormation does not define; Validate refuses them.
	Extra map[string]any
}

// Output is a declared output.
type Output struct {
	Name        string
	Value       any
	ExportName  any // nil when it is not exported
	Condition   string
	Description string
}

// RefKind says how a value refers to another.
type RefKind string

// The kinds of reference.
const (
	RefRef       RefKind = "Ref"
	RefGetAtt    RefKind = "Fn::GetAtt"
	RefSub       RefKind = "Fn::Sub"
	RefDependsOn RefKind = "DependsOn"
	RefImplicit  RefKind = "implicit" // an edge that the template does not state
)

// Reference is one place where a resource refers to another resource or a parameter.
type Reference struct {
	Target    string // logical id or parameter name; never a pseudo parameter
	Attribute string // GetAtt and Sub with a dot: everything after the first dot
	Kind      RefKind
	// Path is where it stands: "Properties.Role", "Metadata.X", "DependsOn".
	Path string
}
