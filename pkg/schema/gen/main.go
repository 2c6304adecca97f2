// Command gen builds the embedded resource-type index of package schema from two published archives: npm
// @aws-cdk/aws-service-spec (a .tgz) and PyPI cfn-lint (a .whl). fetch.sh downloads them.
//
//	go run ./pkg/schema/gen -from DIR -out pkg/schema/types.bin
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/slipway-cdk/slipway/pkg/schema"
	"github.com/slipway-cdk/slipway/pkg/schema/internal/archive"
)

func main() {
	from := flag.String("from", ".", "directory with aws-cdk-aws-service-spec-*.tgz and cfn_lint-*.whl")
	out := flag.String("out", "types.bin", "file to write")
	region := flag.String("region", "us-east-1", "region whose registry schemas are used")
	flag.Parse()
	if err := run(*from, *region, *out); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(from, region, out string) error {
	specFile, err := only(from, "aws-cdk-aws-service-spec-*.tgz")
	if err != nil {
		return err
	}
	lintFile, err := only(from, "cfn_lint-*.whl")
	if err != nil {
		return err
	}
	spec, err := readSpec(specFile)
	if err != nil {
		return fmt.Errorf("reading %s: %w", specFile, err)
	}
	registry, err := readRegistry(lintFile, region)
	if err != nil {
		return fmt.Errorf("reading %s: %w", lintFile, err)
	}
	docs := map[string][]byte{}
	var raw int
	stats := &statistics{}
	for _, name := range union(spec.resources, registry.types) {
		t := mergeType(name, spec, registry, stats)
		doc, err := json.Marshal(t)
		if err != nil {
			return fmt.Errorf("encoding %s: %w", name, err)
		}
		docs[name] = doc
		raw += len(doc)
	}
	metadata, err := json.Marshal(schema.SourceVersions{
		ServiceSpec: spec.version, CfnLint: registry.version, SchemaDate: registry.date, Region: region,
	})
	if err != nil {
		return fmt.Errorf("encoding the source versions: %w", err)
	}
	packed, err := archive.Pack(string(metadata), docs)
	if err != nil {
		return err
	}
	fmt.Printf("%s\n%d types, %d KiB of JSON, %d KiB packed\n%s", metadata, len(docs), raw>>10, len(packed)>>10, stats)
	return os.WriteFile(out, packed, 0o644)
}

func only(dir, pattern string) (string, error) {
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		return "", fmt.Errorf("looking for %s: %w", pattern, err)
	}
	if len(found) != 1 {
		return "", fmt.Errorf("want one %s in %s, found %d: run fetch.sh first", pattern, dir, len(found))
	}
	return found[0], nil
}

func union[A, B any](a map[string]A, b map[string]B) []string {
	var names []string
	for name := range a {
		names = append(names, name)
	}
	for name := range b {
		if _, both := a[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
