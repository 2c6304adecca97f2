package schema

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/slipway-cdk/slipway/pkg/schema/internal/archive"
)

//go:embed types.bin
var typesFile []byte

// SourceVersions names what the embedded index was generated from.
type SourceVersions struct {
	ServiceSpec string `json:"serviceSpec"` // npm @aws-cdk/aws-service-spec
	CfnLint     string `json:"cfnLint"`     // PyPI cfn-lint
	SchemaDate  string `json:"schemaDate"`  // when cfn-lint took the registry schemas, RFC 3339
	Region      string `json:"region"`      // whose registry schemas
}

// Index answers questions about resource types from one generated file. It decodes a type when it is first
// asked for and keeps it. Safe for concurrent use.
type Index struct {
	file    *archive.Reader
	sources SourceVersions
	types   sync.Map // name → *Type
	// patterns are compiled once for all types: many share one, and a template has many resources of one type.
	patterns patternCache
}

// Open reads the header of a generated index. It keeps data, which must not be modified afterwards.
func Open(data []byte) (*Index, error) {
	file, err := archive.Open(data)
	if err != nil {
		return nil, fmt.Errorf("opening the resource-type index: %w", err)
	}
	index := &Index{file: file}
	if err := json.Unmarshal([]byte(file.Metadata), &index.sources); err != nil {
		return nil, fmt.Errorf("reading the versions of the resource-type index: %w", err)
	}
	return index, nil
}

// embedded opens the embedded file once. It can only fail if the build was tampered with, hence the panic.
var embedded = sync.OnceValue(func() *Index {
	index, err := Open(typesFile)
	if err != nil {
		panic(err)
	}
	return index
})

// Lookup returns what is known of a resource type: "AWS::SQS::Queue". Any Custom:: type is known. The Type is
// shared: it must not be modified. False for a type that no source describes.
func Lookup(name string) (*Type, bool) { return embedded().Lookup(name) }

// Names lists all resource types, sorted. Custom:: types are not among them. The slice must not be modified.
func Names() []string { return embedded().Names() }

// Sources tells what the embedded index was generated from.
func Sources() SourceVersions { return embedded().Sources() }

// Lookup is the function Lookup on this index.
func (x *Index) Lookup(name string) (*Type, bool) {
	if t, special := special(name); special {
		return t, true
	}
	if t, found := x.types.Load(name); found {
		return t.(*Type), true
	}
	raw, found, err := x.file.Read(name)
	if err != nil || !found {
		return nil, false
	}
	t := &Type{}
	if err := json.Unmarshal(raw, t); err != nil {
		return nil, false
	}
	t.patterns = &x.patterns
	kept, _ := x.types.LoadOrStore(strings.Clone(name), t)
	return kept.(*Type), true
}

// Sources is the function Sources on this index.
func (x *Index) Sources() SourceVersions { return x.sources }

// Names is the function Names on this index.
func (x *Index) Names() []string { return x.file.Names() }
