package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/objectstore"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/state"
)

// findRecord finds the record of a stack by its physical name. region narrows the search; without it a name
// that has records in several regions is refused.
func findRecord(ctx context.Context, states *state.Store, stack, region string) (state.Ref, error) {
	refs, err := states.List(ctx)
	if err != nil {
		return state.Ref{}, err
	}
	var found []state.Ref
	for _, r := range refs {
		if r.Stack == stack && (region == "" || r.Region == "" || r.Region == state.Region(region)) {
			found = append(found, r)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		d := diag.Diagnostic{
			Severity: diag.Error,
			Summary:  fmt.Sprintf("no record of stack %q", stack),
			Detail:   "it has not been deployed here" + inRegion(region),
			Next:     "`slipway state list` shows the stacks that have been deployed.",
		}
		return state.Ref{}, diag.Diagnostics{d}
	default:
		return state.Ref{}, severalRegions(stack, regionsOf(found))
	}
}

func inRegion(region string) string {
	if region == "" {
		return ""
	}
	return " in " + region
}

func regionsOf(refs []state.Ref) []string {
	var list []string
	for _, r := range refs {
		list = append(list, r.Region)
	}
	return list
}

func severalRegions(stack string, regions []string) error {
	return diag.Diagnostics{{
		Severity: diag.Error,
		Summary:  fmt.Sprintf("stack %q is in several regions", stack),
		Detail:   strings.Join(regions, ", "),
		Next:     "Say which with --region.",
	}}
}

// storedRecord reads a record's bytes as they stand, also those of a version 1 record, whose key has no
// region (reference §1.1).
func storedRecord(ctx context.Context, states *state.Store, ref state.Ref) ([]byte, error) {
	keys := []string{strings.TrimSuffix(states.StateKey(ref.Stack, "x"), "/x/state.json") + "/state.json"}
	if ref.Region != "" {
		keys = []string{states.StateKey(ref.Stack, ref.Region), keys[0]}
	}
	for _, key := range keys {
		obj, err := states.Objects.Get(ctx, key)
		if err == nil {
			return obj.Body, nil
		}
		if !errors.Is(err, objectstore.ErrNotFound) {
			return nil, fmt.Errorf("reading the state of stack %s: %w", ref.Stack, err)
		}
	}
	return nil, fmt.Errorf("state of stack %s%s: %w", ref.Stack, inRegion(ref.Region), state.ErrNotFound)
}

// stackOutputs reads a stack's outputs from its record. The record also holds the export names (reference
// §1.2); only what the template declares as an output is returned.
func stackOutputs(ctx context.Context, states *state.Store, ref runlog.StackRef, template []byte) (map[string]any, error) {
	rec, _, err := states.Load(ctx, ref.Name, ref.Region)
	if errors.Is(err, state.ErrNotFound) {
		return nil, nil // a stack whose every resource is conditioned away may have none
	}
	if err != nil {
		return nil, err
	}
	var declared struct {
		Outputs map[string]json.RawMessage
	}
	if json.Unmarshal(template, &declared) != nil {
		return rec.Outputs, nil // not JSON: better too much than nothing
	}
	outputs := map[string]any{}
	for name, v := range rec.Outputs {
		if _, ok := declared.Outputs[name]; ok {
			outputs[name] = v
		}
	}
	return outputs, nil
}

// lockedRegion finds the region in which a stack's lock stands, which may be one without a record.
func lockedRegion(ctx context.Context, states *state.Store, stack, region string) (string, error) {
	if region != "" {
		return region, nil
	}
	regions, err := states.LockedRegions(ctx, stack)
	if err != nil {
		return "", err
	}
	slices.Sort(regions)
	switch len(regions) {
	case 0:
		return "", nil
	case 1:
		return regions[0], nil
	default:
		return "", severalRegions(stack, regions)
	}
}
