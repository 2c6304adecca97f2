package bootstrap

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/controlplane"
	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/objectstore"
)

// stackName is the name that the assembly gives the control plane's stack.
const stackName = "SlipwayControlPlane"

// StackName is the name of the stack of a control plane: several can stand beside each other in a region.
func StackName(plane string) string { return named(stackName, plane) }

func named(stack, plane string) string {
	if plane == "" || plane == controlplane.DefaultName {
		return stack
	}
	return stack + "-" + plane
}

// FindAssembly finds the assembly of the control plane: the directory that is named, else "control-plane" beside the
// program, where a release has it, else infra/cdk.out of a source tree, where `make synth` writes it.
func FindAssembly(named, program, workDir string) (*assembly.Assembly, error) {
	candidates := []string{named}
	if named == "" {
		candidates = []string{filepath.Join(filepath.Dir(program), "control-plane"), filepath.Join(workDir, "infra", "cdk.out")}
	}
	for _, dir := range candidates {
		if _, err := os.Stat(filepath.Join(dir, "manifest.json")); errors.Is(err, os.ErrNotExist) && named == "" {
			continue
		}
		asm, err := assembly.Read(dir)
		if err != nil {
			return nil, fmt.Errorf("reading the assembly of the control plane in %s: %w", dir, err)
		}
		if len(asm.Stacks) != 1 || asm.Stacks[0].Name != stackName {
			return nil, diag.Diagnostics{{
				Severity: diag.Error, Summary: dir + " is not the assembly of the control plane",
				Detail: "it does not have the one stack " + stackName, Next: "`make synth` makes it from the sources, in infra/cdk.out.",
			}}
		}
		return asm, nil
	}
	return nil, diag.Diagnostics{{
		Severity: diag.Error, Summary: "the assembly of the control plane is not here",
		Detail: fmt.Sprintf("it is neither in %s nor in %s", candidates[0], candidates[1]),
		Next:   "Name it with --assembly; `make synth` makes it from the sources, in infra/cdk.out.",
	}}
}

// Redirect makes the stack take its functions from a bucket, in place of the one of CDK's bootstrap.
func Redirect(s *assembly.Stack, bucket string) {
	for i := range s.Assets {
		for j, d := range s.Assets[i].Destinations {
			if d.Bucket == "" {
				continue
			}
			s.Template = bytes.ReplaceAll(s.Template, []byte(`"`+d.Bucket+`"`), []byte(`"`+bucket+`"`))
			s.Assets[i].Destinations[j].Bucket, s.Assets[i].Destinations[j].AssumeRoleARN = bucket, ""
		}
	}
}

// marker is what cdkd's bootstrap leaves in the state bucket (reference §1.6).
type marker struct {
	AssetBucket         string `json:"assetBucket"`
	ContainerRepo       string `json:"containerRepo"`
	AssetSupportVersion int    `json:"assetSupportVersion"`
}

// MarkedBucket returns the bucket for assets that cdkd's bootstrap has recorded for a region, or "" where there is no
// such record. None is written: it would promise a container repository too.
func MarkedBucket(ctx context.Context, objects objectstore.Store, region string) (string, error) {
	key := "cdkd-bootstrap/" + region + ".json"
	obj, err := objects.Get(ctx, key)
	if errors.Is(err, objectstore.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading cdkd's bootstrap marker: %w", err)
	}
	var m marker
	if err := json.Unmarshal(obj.Body, &m); err != nil || m.AssetBucket == "" || m.ContainerRepo == "" || m.AssetSupportVersion != 1 {
		return "", diag.Errorf("cdkd's bootstrap marker can't be used", "the object "+key+" of the state bucket is not a marker of version 1")
	}
	return m.AssetBucket, nil
}
