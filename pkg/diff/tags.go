package diff

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/intrinsic"
	"github.com/slipway-cdk/slipway/pkg/schema"
)

// WithStackTags gives a resource's properties with the tags of its stack, as CloudFormation propagates them to every
// type that has tags (https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-properties-resource-tags.html).
// A tag of the resource's own stands. The result is what is compared, sent and recorded; properties is not
// modified, and is returned itself when there is nothing to add.
//
//   - The tags take the shape that the type wants: a list of keys and values, a map, or the list of an Auto Scaling group,
//     whose stack tags always propagate to its instances. Stack tags follow the resource's own, sorted by key.
//   - Tags that are not known yet are left alone: the caller calls again when they are.
//   - A type whose tags can't be changed in place gets none, unlike in CloudFormation: no stack tag is worth a replacement.
//   - Keys that AWS reserves are left out: CheckStackTags refuses them.
func WithStackTags(t *schema.Type, properties map[string]any, tags map[string]string) map[string]any {
	if len(tags) == 0 || t == nil || t.TagProperty == "" || t.Properties[t.TagProperty] == nil ||
		t.Replacement([]string{t.TagProperty}) != schema.ReplaceNever || t.Provisionable && !t.Updatable {
		return properties
	}
	merged, changed := mergedTags(t, properties[t.TagProperty], tags)
	if !changed {
		return properties
	}
	out := maps.Clone(properties)
	if out == nil {
		out = map[string]any{}
	}
	out[t.TagProperty] = merged
	return out
}

// mergedTags adds tags to a resource's own. changed is false when there is nothing to add.
func mergedTags(t *schema.Type, own any, tags map[string]string) (merged any, changed bool) {
	property := t.Properties[t.TagProperty]
	list, isList := own.([]any)
	table, isMap := own.(map[string]any)
	switch {
	case own == nil:
		isList = property.Of(schema.KindList) != nil
		isMap = !isList && (property.Of(schema.KindMap) != nil || property.Of(schema.KindJSON) != nil)
	case intrinsic.IsIntrinsic(own):
		return nil, false
	}
	switch {
	case isMap:
		table = maps.Clone(table)
		if table == nil {
			table = map[string]any{}
		}
		for key, value := range tags {
			if _, there := table[key]; !there && !reserved(key) {
				table[key], changed = value, true
			}
		}
		return table, changed
	case isList:
		keyName, valueName := tagMembers(t, list)
		given := map[string]bool{}
		for _, item := range list {
			if m, ok := item.(map[string]any); ok {
				if key, ok := text(m[keyName]); ok {
					given[key] = true
				}
			}
		}
		list = slices.Clone(list)
		for _, key := range slices.Sorted(maps.Keys(tags)) {
			if given[key] || reserved(key) {
				continue
			}
			tag := map[string]any{keyName: key, valueName: tags[key]}
			if t.At([]string{t.TagProperty, "*", "PropagateAtLaunch"}) != nil {
				tag["PropagateAtLaunch"] = true
			}
			list, changed = append(list, tag), true
		}
		return list, changed
	}
	return nil, false
}

// tagMembers are the names of a tag's members: those that the resource's own tags use, else those of the schema.
func tagMembers(t *schema.Type, own []any) (key, value string) {
	for _, pair := range [][2]string{{"Key", "Value"}, {"TagKey", "TagValue"}, {"key", "value"}} {
		for _, item := range own {
			if m, ok := item.(map[string]any); ok && m[pair[0]] != nil {
				return pair[0], pair[1]
			}
		}
	}
	if t.At([]string{t.TagProperty, "*", "Key"}) == nil && t.At([]string{t.TagProperty, "*", "TagKey"}) != nil {
		return "TagKey", "TagValue"
	}
	return "Key", "Value"
}

// reserved: the prefix is AWS's, in any case.
func reserved(key string) bool { return len(key) >= 4 && strings.EqualFold(key[:4], "aws:") }

// CheckStackTags refuses stack tags that AWS refuses
// (https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_Tag.html).
func CheckStackTags(tags map[string]string) diag.Diagnostics {
	var diags diag.Diagnostics
	refuse := func(summary, next string) {
		diags = append(diags, diag.Diagnostic{Severity: diag.Error, Path: "Tags", Summary: summary, Next: next})
	}
	const most, longestKey, longestValue = 50, 128, 256
	if len(tags) > most {
		refuse(fmt.Sprintf("the stack has %d tags, and %d are allowed", len(tags), most), "Remove some of the stack's tags.")
	}
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		switch {
		case reserved(key):
			refuse("the stack tag "+key+" has the prefix aws:, which AWS reserves", "Rename the tag.")
		case key == "" || utf8.RuneCountInString(key) > longestKey:
			refuse(fmt.Sprintf("a stack tag's key needs 1 to %d characters, %.20q has %d", longestKey, key, utf8.RuneCountInString(key)), "Rename the tag.")
		case utf8.RuneCountInString(tags[key]) > longestValue:
			refuse(fmt.Sprintf("the value of the stack tag %s has more than %d characters", key, longestValue), "Shorten the value.")
		}
	}
	return diags
}
