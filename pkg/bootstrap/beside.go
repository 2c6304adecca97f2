package bootstrap

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/slipway-cdk/slipway/pkg/controlplane"
	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/state"
)

// planeOf is the control plane that a stack is the stack of, by StackName.
func planeOf(stack string) (plane string, ok bool) {
	if stack == stackName {
		return controlplane.DefaultName, true
	}
	plane, ok = strings.CutPrefix(stack, stackName+"-")
	return plane, ok && plane != ""
}

// Others names the other control planes of a region whose stacks the state bucket has records of, in order.
func Others(ctx context.Context, states *state.Store, plane, region string) ([]string, error) {
	refs, err := states.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("looking for other control planes: %w", err)
	}
	var others []string
	for _, r := range refs {
		if other, ok := planeOf(r.Stack); ok && r.Region == region && r.Stack != StackName(plane) {
			others = append(others, other)
		}
	}
	return others, nil
}

// RemoveAssets deletes the bucket for the functions of control planes, unless another control plane of the region has its
// functions there as well: it returns the names of those. It is called when the control plane itself is gone, and may be
// repeated. Control planes over another state bucket are not seen: the next bootstrap of such a one makes the bucket again.
func RemoveAssets(ctx context.Context, cfg aws.Config, states *state.Store, assets Bucket, plane string) (others []string, err error) {
	others, err = Others(ctx, states, plane, assets.Region)
	if err != nil || len(others) > 0 {
		return others, err
	}
	return nil, assets.Remove(ctx, cfg)
}

// CheckRegion refuses a control plane whose name another region has already: the functions' roles are named by the stack,
// and the names of roles are one for all regions of an account. One that stands in the region is never refused.
func CheckRegion(ctx context.Context, states *state.Store, plane, region string) error {
	refs, err := states.List(ctx)
	if err != nil {
		return fmt.Errorf("looking for control planes of this name: %w", err)
	}
	elsewhere := ""
	for _, r := range refs {
		switch {
		case r.Stack != StackName(plane):
		case r.Region == region:
			return nil
		default:
			elsewhere = r.Region
		}
	}
	if elsewhere == "" {
		return nil
	}
	return diag.Diagnostics{{
		Severity: diag.Error, Summary: "there is a control plane named " + plane + " in " + elsewhere,
		Detail: "the IAM roles of both would have the same names, which are one for all regions of an account",
		Next:   "Give the one in " + region + " another name: --plane NAME.",
	}}
}
