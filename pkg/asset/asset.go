// Package asset publishes the assets of a cloud assembly to where its templates expect them: files and
// zipped directories into buckets. What an assembly holds is read by package assembly; when an asset is
// published, and in which order, is the planner's decision.
package asset

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/diag"
)

// Bucket stores objects. Implementations must be safe for concurrent use.
type Bucket interface {
	// Exists reports whether the object is there. A bucket that does not exist is an error for a store that
	// does not create buckets itself.
	Exists(ctx context.Context, bucket, key string) (bool, error)
	// Put stores body, of size bytes, as a whole or not at all: a crash leaves no partial object. It may
	// read body more than once.
	Put(ctx context.Context, bucket, key string, body io.ReadSeeker, size int64) error
}

// Env is where an asset goes.
type Env struct {
	Account string
	Region  string
	// Partition is "aws", "aws-cn", …; where it is empty the region decides.
	Partition string
}

// MissingSource says what happens to an asset whose source is not on the disk.
type MissingSource string

// The policies.
const (
	// RefuseMissing makes it an error. It is the default.
	RefuseMissing MissingSource = ""
	// SkipMissing skips the asset and says so in the outcome. It suits the sandbox, which reads no body.
	SkipMissing MissingSource = "skip"
)

// Status is what came of publishing an asset.
type Status string

// The outcomes.
const (
	// Published: at least one destination was written.
	Published Status = "published"
	// Present: every destination had the object already. Keys hold the content's hash, so it is the same.
	Present Status = "present"
	// Skipped: the source is missing and the policy allows it; Reason tells more.
	Skipped Status = "skipped"
)

// Location is a destination with its placeholders filled in.
type Location struct {
	Bucket string `json:"bucket"`
	Key    string `json:"key"`
	Region string `json:"region,omitempty"`
}

// Outcome tells what Publish did.
type Outcome struct {
	Status Status `json:"status"`
	Reason string `json:"reason,omitempty"`
	// Bytes is the size of the object, 0 when nothing was written.
	Bytes        int64      `json:"bytes,omitempty"`
	Destinations []Location `json:"destinations,omitempty"`
}

// Publisher publishes assets. Its methods may be called concurrently.
type Publisher struct {
	Bucket  Bucket
	Missing MissingSource
	// Source is where the files of assets are; nil is the disk.
	Source Source
	// TempDir is where directories are zipped; "" is the system's.
	TempDir string
}

// Publish brings one asset to all of its destinations. What is there is left as it is, so that a second call
// does nothing and a call that was cut short can be repeated.
//
// It refuses, as diag.Diagnostics, container images, assets made by an executable, a destination with a
// placeholder it can't fill in, and (see MissingSource) a source that is not there.
func (p *Publisher) Publish(ctx context.Context, a assembly.Asset, env Env) (Outcome, error) {
	if err := supported(a); err != nil {
		return Outcome{}, err
	}
	out := Outcome{Status: Present}
	var todo []Location
	for _, d := range a.Destinations {
		loc, err := Resolve(d, env)
		if err != nil {
			return Outcome{}, fmt.Errorf("asset %s: %w", label(a), err)
		}
		out.Destinations = append(out.Destinations, loc)
		ok, err := p.Bucket.Exists(ctx, loc.Bucket, loc.Key)
		if err != nil {
			return Outcome{}, fmt.Errorf("asset %s: looking for %s in bucket %s: %w", label(a), loc.Key, loc.Bucket, err)
		}
		if !ok {
			todo = append(todo, loc)
		}
	}
	if len(todo) == 0 {
		return out, nil
	}
	body, size, cleanup, err := p.open(ctx, a)
	if errors.Is(err, fs.ErrNotExist) {
		return p.missing(a, out)
	}
	if err != nil {
		return Outcome{}, fmt.Errorf("asset %s: %w", label(a), err)
	}
	defer cleanup()
	for _, loc := range todo {
		if _, err := body.Seek(0, io.SeekStart); err != nil {
			return Outcome{}, fmt.Errorf("asset %s: reading its source: %w", label(a), err)
		}
		if err := p.Bucket.Put(ctx, loc.Bucket, loc.Key, body, size); err != nil {
			return Outcome{}, fmt.Errorf("asset %s: writing %s to bucket %s: %w", label(a), loc.Key, loc.Bucket, err)
		}
	}
	out.Status, out.Bytes = Published, size
	return out, nil
}

// supported refuses the kinds of asset that Publish can't publish.
func supported(a assembly.Asset) error {
	d := diag.Diagnostic{Severity: diag.Error, Summary: "the asset " + label(a) + " cannot be published"}
	switch {
	case a.Kind == assembly.AssetImage:
		d.Detail = "it is a container image, and Slipway does not build images yet"
		d.Next = "Push the image to a repository and refer to it with ContainerImage.fromEcrRepository or DockerImageCode.fromEcr."
	case len(a.Executable) > 0:
		d.Detail = "it is made by a command, and Slipway does not run the commands of an assembly"
		d.Next = "Let the app write a file or a directory as asset."
	default:
		return nil
	}
	return diag.Diagnostics{d}
}

// open returns the body to store: the file, or the directory as a zip archive in a temporary file.
func (p *Publisher) open(ctx context.Context, a assembly.Asset) (body io.ReadSeeker, size int64, cleanup func(), err error) {
	if p.Source != nil {
		return p.fetch(ctx, a)
	}
	info, err := os.Stat(a.Path)
	if err != nil {
		return nil, 0, nil, fmt.Errorf("reading its source: %w", err)
	}
	if a.Packaging == "zip" {
		return zipped(ctx, a.Path, p.TempDir)
	}
	if !info.Mode().IsRegular() {
		return nil, 0, nil, notAFile(a)
	}
	f, err := os.Open(a.Path)
	if err != nil {
		return nil, 0, nil, fmt.Errorf("reading its source: %w", err)
	}
	return f, info.Size(), func() { f.Close() }, nil
}

func (p *Publisher) missing(a assembly.Asset, out Outcome) (Outcome, error) {
	reason := "its source " + a.Path + " does not exist"
	if p.Missing == SkipMissing {
		out.Status, out.Reason = Skipped, reason
		return out, nil
	}
	return Outcome{}, diag.Diagnostics{{
		Severity: diag.Error,
		Summary:  "the asset " + label(a) + " cannot be published",
		Detail:   reason,
		Next:     "Synthesize the app again, or copy the whole cloud assembly.",
	}}
}

// Resolve fills in the placeholders of a destination: ${AWS::AccountId}, ${AWS::Region}, ${AWS::Partition}.
func Resolve(d assembly.Destination, env Env) (Location, error) {
	if env.Partition == "" {
		env.Partition = PartitionOf(env.Region)
	}
	var loc Location
	for _, f := range []struct {
		to       *string
		from     string
		what     string
		required bool
	}{
		{&loc.Region, d.Region, "region", false},
		{&loc.Bucket, d.Bucket, "bucket", true},
		{&loc.Key, d.Key, "key", true},
	} {
		v, err := substitute(f.from, env)
		if err != nil {
			return Location{}, fmt.Errorf("the %s of destination %s: %w", f.what, d.ID, err)
		}
		if v == "" && f.required {
			return Location{}, fmt.Errorf("destination %s has no %s", d.ID, f.what)
		}
		*f.to = v
	}
	if loc.Region == "" {
		loc.Region = env.Region
	}
	return loc, nil
}

// substitute replaces placeholders. One that is unknown, or whose value is, is an error: an object under a
// literal "${…}" would never be found again.
func substitute(s string, env Env) (string, error) {
	for _, r := range []struct{ placeholder, value string }{
		{"${AWS::AccountId}", env.Account},
		{"${AWS::Region}", env.Region},
		{"${AWS::Partition}", env.Partition},
	} {
		if !strings.Contains(s, r.placeholder) {
			continue
		}
		if r.value == "" {
			return "", fmt.Errorf("%s has no value here", r.placeholder)
		}
		s = strings.ReplaceAll(s, r.placeholder, r.value)
	}
	if i := strings.Index(s, "${"); i >= 0 {
		return "", fmt.Errorf("unknown placeholder in %q", s)
	}
	return s, nil
}

// PartitionOf returns the partition of a region, by its prefix
// (https://docs.aws.amazon.com/IAM/latest/UserGuide/reference-arns.html and the SDK's partitions file).
func PartitionOf(region string) string {
	for _, p := range []struct{ prefix, partition string }{
		{"cn-", "aws-cn"},
		{"us-gov-", "aws-us-gov"},
		{"us-isob-", "aws-iso-b"},
		{"us-isof-", "aws-iso-f"},
		{"eu-isoe-", "aws-iso-e"},
		{"us-iso-", "aws-iso"},
		{"eusc-", "aws-eusc"},
	} {
		if strings.HasPrefix(region, p.prefix) {
			return p.partition
		}
	}
	return "aws"
}

func label(a assembly.Asset) string {
	if a.DisplayName != "" {
		return a.DisplayName
	}
	return a.ID
}
