package assembly

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/diag"
)

// assetManifest is {stack}.assets.json. It has the same version as the manifest.
type assetManifest struct {
	Version      string              `json:"version"`
	Files        ordered[fileAsset]  `json:"files"`
	DockerImages ordered[imageAsset] `json:"dockerImages"`
}

type fileAsset struct {
	DisplayName string `json:"displayName"`
	Source      struct {
		Path       string   `json:"path"`
		Packaging  string   `json:"packaging"`
		Executable []string `json:"executable"`
	} `json:"source"`
	Destinations ordered[destination] `json:"destinations"`
}

type imageAsset struct {
	DisplayName  string               `json:"displayName"`
	Source       map[string]any       `json:"source"`
	Destinations ordered[destination] `json:"destinations"`
}

type destination struct {
	BucketName     string `json:"bucketName"`
	ObjectKey      string `json:"objectKey"`
	RepositoryName string `json:"repositoryName"`
	ImageTag       string `json:"imageTag"`
	Region         string `json:"region"`
	AssumeRoleARN  string `json:"assumeRoleArn"`
}

// assets reads one asset manifest. Templates in it are left out: the engine reads them itself
// (reference § 5).
func (r *reader) assets(dir, file string) ([]Asset, error) {
	path, err := resolve(r.root, dir, file, "the asset manifest")
	if err != nil {
		return nil, err
	}
	var m assetManifest
	if err := r.readJSON(path, &m); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, diag.Diagnostics{{
				Severity: diag.Error,
				Summary:  "the asset manifest is missing",
				Detail:   path + " does not exist",
				Next:     "Synthesize the app again, or copy the whole cloud assembly.",
			}}
		}
		return nil, err
	}
	if err := checkVersion(path, m.Version, ""); err != nil {
		return nil, err
	}
	var out []Asset
	for _, f := range m.Files {
		if isTemplate(f.Value.Source.Path) {
			continue
		}
		a, err := r.fileAsset(filepath.Dir(path), f.Key, f.Value)
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	for _, i := range m.DockerImages {
		a, err := r.imageAsset(filepath.Dir(path), i.Key, i.Value)
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}

func isTemplate(path string) bool {
	return strings.HasSuffix(path, ".template.json") || strings.HasSuffix(path, ".template.yaml")
}

func (r *reader) fileAsset(dir, id string, f fileAsset) (Asset, error) {
	a := Asset{
		ID:           id,
		Kind:         AssetFile,
		DisplayName:  f.DisplayName,
		Packaging:    f.Source.Packaging,
		Executable:   f.Source.Executable,
		Destinations: destinations(f.Destinations),
	}
	switch a.Packaging {
	case "":
		a.Packaging = "file"
	case "file", "zip":
	default:
		return a, badAsset(id, fmt.Sprintf("its packaging %q is neither file nor zip", a.Packaging))
	}
	if len(a.Executable) == 0 {
		var err error
		if a.Path, err = resolve(r.root, dir, f.Source.Path, "the source of asset "+label(a)); err != nil {
			return a, err
		}
	}
	for _, d := range a.Destinations {
		if d.Bucket == "" || d.Key == "" {
			return a, badAsset(id, fmt.Sprintf("its destination %q names no bucket or no key", d.ID))
		}
	}
	return a, nil
}

func (r *reader) imageAsset(dir, id string, i imageAsset) (Asset, error) {
	a := Asset{
		ID:           id,
		Kind:         AssetImage,
		DisplayName:  i.DisplayName,
		Destinations: destinations(i.Destinations),
		Image:        i.Source,
	}
	if list, ok := i.Source["executable"].([]any); ok {
		for _, v := range list {
			s, ok := v.(string)
			if !ok {
				return a, badAsset(id, "its executable is not a list of strings")
			}
			a.Executable = append(a.Executable, s)
		}
	}
	if source, ok := i.Source["directory"].(string); ok && len(a.Executable) == 0 {
		var err error
		if a.Path, err = resolve(r.root, dir, source, "the source of image asset "+label(a)); err != nil {
			return a, err
		}
	}
	return a, nil
}

func destinations(in ordered[destination]) []Destination {
	out := make([]Destination, 0, len(in))
	for _, d := range in {
		out = append(out, Destination{
			ID:            d.Key,
			Bucket:        d.Value.BucketName,
			Key:           d.Value.ObjectKey,
			Repository:    d.Value.RepositoryName,
			Tag:           d.Value.ImageTag,
			Region:        d.Value.Region,
			AssumeRoleARN: d.Value.AssumeRoleARN,
		})
	}
	return out
}

func badAsset(id, why string) error {
	return diag.Diagnostics{{
		Severity: diag.Error,
		Summary:  "the asset " + id + " cannot be used",
		Detail:   why,
		Next:     "Synthesize the app again.",
	}}
}

// label is how messages call an asset.
func label(a Asset) string {
	if a.DisplayName != "" {
		return a.DisplayName
	}
	return a.ID
}

// annotations collects the messages that constructs left (Annotations.of(…).addWarning and its like), the
// stack's tags where only the metadata has them, and what asks for the legacy asset parameters.
func (r *reader) annotations(dir string, s *Stack, a *artifact) error {
	metadata := a.Metadata
	if a.AdditionalMetadata != "" {
		path, err := resolve(r.root, dir, a.AdditionalMetadata, "the metadata file")
		if err != nil {
			return err
		}
		var more ordered[[]metadataEntry]
		switch err := r.readJSON(path, &more); {
		case errors.Is(err, fs.ErrNotExist):
			// Nothing that is deployed is in there, but an error annotation could be: say so.
			s.Messages = append(s.Messages, Message{
				Level: LevelWarning,
				Path:  "/" + s.DisplayName,
				Text:  a.AdditionalMetadata + " is missing from the cloud assembly: annotations of this stack may be incomplete",
			})
		case err != nil:
			return err
		}
		metadata = append(metadata[:len(metadata):len(metadata)], more...)
	}
	for _, at := range metadata {
		for _, e := range at.Value {
			switch e.Type {
			case "aws:cdk:info":
				s.Messages = append(s.Messages, Message{Level: LevelInfo, Path: at.Key, Text: text(e.Data)})
			case "aws:cdk:warning":
				s.Messages = append(s.Messages, Message{Level: LevelWarning, Path: at.Key, Text: text(e.Data)})
			case "aws:cdk:error":
				s.Messages = append(s.Messages, Message{Level: LevelError, Path: at.Key, Text: text(e.Data)})
			case "aws:cdk:asset":
				s.Messages = append(s.Messages, Message{Level: LevelError, Path: at.Key,
					Text: "the stack passes assets by parameters, as the legacy stack synthesizer does; use the DefaultStackSynthesizer"})
			case "aws:cdk:stack-tags":
				s.addTags(e.Data)
			}
		}
	}
	return nil
}

// text is the message of an annotation: a string, or the JSON of what the app put there instead.
func text(data json.RawMessage) string {
	var s string
	if json.Unmarshal(data, &s) == nil {
		return s
	}
	return string(data)
}

// addTags adds tags from metadata, where older versions of CDK put them (with upper-case members in the
// oldest). The stack's own properties win.
func (s *Stack) addTags(data json.RawMessage) {
	var tags []struct {
		Key, Value string // encoding/json matches "key" and "Key" alike
	}
	if json.Unmarshal(data, &tags) != nil {
		return
	}
	for _, t := range tags {
		if _, ok := s.Tags[t.Key]; ok {
			continue
		}
		if s.Tags == nil {
			s.Tags = map[string]string{}
		}
		s.Tags[t.Key] = t.Value
	}
}
