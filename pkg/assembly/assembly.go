// Package assembly reads a CDK cloud assembly: its manifest, its stacks in dependency order with their
// templates, assets and annotations. It runs nothing (that is synth) and publishes nothing (that is asset).
package assembly

// MissingContext is a value that the app asked for and the manifest lists as missing.
type MissingContext struct {
	Key      string         `json:"key"`
	Provider string         `json:"provider"`
	Props    map[string]any `json:"props"`
}

// Assembly is a cloud assembly, nested ones included.
type Assembly struct {
	// Dir is the directory that holds manifest.json; see ReadFS for an assembly that is in none.
	Dir     string
	Version string
	Stacks  []*Stack // in dependency order; independent stacks in manifest order
	Missing []MissingContext

	files     files
	documents []string
}

// Stack is one deployable stack.
type Stack struct {
	// ID is the artifact id, unique in its assembly; DisplayName the construct path as CDK shows it;
	// Name the physical stack name.
	ID          string
	DisplayName string
	Name        string
	// Account and Region are empty when the stack is environment-agnostic.
	Account string
	Region  string
	// TemplatePath is absolute; Template its bytes.
	TemplatePath          string
	Template              []byte
	Parameters            map[string]string
	Tags                  map[string]string
	TerminationProtection bool
	// DependsOn lists the Names of the stacks this one depends on, by artifact dependency. Where two stacks
	// of different environments share a name, Dependencies tells them apart.
	DependsOn []string
	Assets    []Asset
	Messages  []Message
	// NestedTemplates maps the logical id of each AWS::CloudFormation::Stack resource to the absolute path
	// of its template (Metadata "aws:asset:path").
	NestedTemplates map[string]string

	// deps are the stacks behind DependsOn.
	deps []*Stack
}

// Dependencies returns the stacks that s depends on directly, as Read found them.
func (s *Stack) Dependencies() []*Stack { return append([]*Stack(nil), s.deps...) }

// Env is the environment as the manifest writes it: "aws://unknown-account/eu-west-1".
func (s *Stack) Env() string {
	account, region := s.Account, s.Region
	if account == "" {
		account = "unknown-account"
	}
	if region == "" {
		region = "unknown-region"
	}
	return "aws://" + account + "/" + region
}

// AssetKind tells files from container images.
type AssetKind string

// The kinds of asset.
const (
	AssetFile  AssetKind = "file"
	AssetImage AssetKind = "image"
)

// Asset is one entry of an asset manifest. Template assets (a source ending in .template.json or .template.yaml
// that the engine reads itself) are left out.
type Asset struct {
	// ID is the asset's hash in the manifest.
	ID          string
	Kind        AssetKind
	DisplayName string
	// Path is the absolute path of the source: a file, or a directory to zip.
	Path string
	// Packaging is "file" or "zip".
	Packaging    string
	Executable   []string
	Destinations []Destination
	// Image build settings, as the manifest has them. Image assets only.
	Image map[string]any
}

// Destination is where an asset goes. Placeholders (${AWS::AccountId}, ${AWS::Region}, ${AWS::Partition})
// are still in place.
type Destination struct {
	ID            string
	Bucket        string
	Key           string
	Repository    string
	Tag           string
	Region        string
	AssumeRoleARN string
}

// MessageLevel is how grave an annotation is.
type MessageLevel string

// The levels of annotation.
const (
	LevelInfo    MessageLevel = "info"
	LevelWarning MessageLevel = "warning"
	LevelError   MessageLevel = "error"
)

// Message is an annotation that a construct has left in the manifest.
type Message struct {
	Level MessageLevel
	// Path is the construct path.
	Path string
	Text string
}
