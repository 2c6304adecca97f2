package main

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
)

// serviceSpec is what we read of @aws-cdk/aws-service-spec: a dump of entity tables, where a reference is an
// object {"$ref": id}. The types are declared in npm @aws-cdk/service-spec-types, lib/types/resource.d.ts.
type serviceSpec struct {
	version   string
	resources map[string]*specResource
	defs      map[string]*specDefinition
}

type specResource struct {
	CloudFormationType string                   `json:"cloudFormationType"`
	PrimaryIdentifier  []string                 `json:"primaryIdentifier"`
	RefIdentifier      []string                 `json:"cfnRefIdentifier"`
	Properties         map[string]*specProperty `json:"properties"`
	Attributes         map[string]*specProperty `json:"attributes"`
	ARNTemplate        string                   `json:"arnTemplate"`
	Stateful           bool                     `json:"isStateful"`
	Transform          string                   `json:"cloudFormationTransform"`
	Tags               struct {
		Property string `json:"tagPropertyName"`
	} `json:"tagInformation"`
	AdditionalReplacement [][]string `json:"additionalReplacementProperties"`
}

type specDefinition struct {
	ID         string                   `json:"$id"`
	Name       string                   `json:"name"`
	Properties map[string]*specProperty `json:"properties"`
}

type specProperty struct {
	Type     *specType `json:"type"`
	Required bool      `json:"required"`
	Replaces string    `json:"causesReplacement"`
	Refs     []struct {
		Type     string `json:"cloudFormationType"`
		Property string `json:"propertyName"`
	} `json:"relationshipRefs"`
	// Older types stay accepted: templates written for them still deploy.
	Previous []*specType `json:"previousTypes"`
}

type specType struct {
	Type    string      `json:"type"`
	Element *specType   `json:"element"`
	Types   []*specType `json:"types"`
	Allowed []any       `json:"allowedValues"`
	Ref     struct {
		ID string `json:"$ref"`
	} `json:"reference"`
}

func readSpec(file string) (*serviceSpec, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	zipped, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("opening the package: %w", err)
	}
	spec := &serviceSpec{resources: map[string]*specResource{}, defs: map[string]*specDefinition{}}
	for entries := tar.NewReader(zipped); ; {
		entry, err := entries.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("reading the package: %w", err)
		}
		switch path.Base(entry.Name) {
		case "package.json":
			var manifest struct{ Version string }
			if err := json.NewDecoder(entries).Decode(&manifest); err != nil {
				return nil, fmt.Errorf("reading package.json: %w", err)
			}
			spec.version = manifest.Version
		case "db.json.gz":
			if err := spec.load(entries); err != nil {
				return nil, fmt.Errorf("reading db.json.gz: %w", err)
			}
		}
	}
	if spec.version == "" || len(spec.resources) == 0 {
		return nil, errors.New("the package holds no version or no resources: has its layout changed?")
	}
	return spec, nil
}

func (s *serviceSpec) load(zipped io.Reader) error {
	plain, err := gzip.NewReader(zipped)
	if err != nil {
		return err
	}
	var db struct {
		Schema struct {
			Resource struct {
				Entities []*specResource `json:"entities"`
			} `json:"resource"`
			TypeDefinition struct {
				Entities []*specDefinition `json:"entities"`
			} `json:"typeDefinition"`
		} `json:"schema"`
	}
	if err := json.NewDecoder(plain).Decode(&db); err != nil {
		return err
	}
	for _, r := range db.Schema.Resource.Entities {
		s.resources[r.CloudFormationType] = r
	}
	for _, d := range db.Schema.TypeDefinition.Entities {
		s.defs[d.ID] = d
	}
	return nil
}
