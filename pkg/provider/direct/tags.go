package direct

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/schema"
)

const (
	// markKey is the tag that tells which operation has made a resource. It is hidden from what is read.
	markKey = "slipway:operation"
	// maxTags is how many tags a resource can have.
	// https://docs.aws.amazon.com/tag-editor/latest/userguide/best-practices-and-strats.html
	maxTags = 50
	// awsPrefix begins the tags that AWS sets and nobody else can.
	awsPrefix = "aws:"
)

// MarkKey is the key of the tag that Find looks for; its value is Call.Mark.
const MarkKey = markKey

// Mark is the value of the mark: the same for all attempts of the operation, different for any other.
func (c *Call[C]) Mark() string {
	sum := sha256.Sum256([]byte(c.operation() + "\x00" + c.LogicalID))
	return hex.EncodeToString(sum[:16])
}

// Tags are those to create the resource with: the template's and the mark. Where there is no room for one more, the template's.
func (c *Call[C]) Tags() map[string]string {
	tags := TagsOf(c.Properties[tagProperty(c.Type)])
	if len(tags) < maxTags {
		tags[markKey] = c.Mark()
	}
	return tags
}

func tagProperty(typeName string) string {
	if t, ok := schema.Lookup(typeName); ok && t.TagProperty != "" {
		return t.TagProperty
	}
	return "Tags"
}

// Tags is the facet of the tags that the type's create call takes: set puts tags, drop removes some, and both are called only
// for what differs. Where the create call takes no tags, Created is to be set to false.
func Tags[C any](property string, set func(ctx context.Context, c *Call[C], tags map[string]string) error, drop func(ctx context.Context, c *Call[C], keys []string) error) Facet[C] {
	return Facet[C]{
		Properties: []string{property}, Created: true,
		Put: func(ctx context.Context, c *Call[C]) error {
			add, gone := tagDiff(TagsOf(c.Previous[property]), TagsOf(c.Properties[property]))
			if len(gone) > 0 {
				if err := drop(ctx, c, gone); err != nil {
					return err
				}
			}
			if len(add) > 0 {
				return set(ctx, c, add)
			}
			return nil
		},
	}
}

// tagDiff is what has to be put and, sorted, what has to go. AWS's own tags are left alone.
func tagDiff(before, after map[string]string) (add map[string]string, gone []string) {
	add = map[string]string{}
	for k, v := range after {
		if was, ok := before[k]; (!ok || was != v) && !strings.HasPrefix(k, awsPrefix) {
			add[k] = v
		}
	}
	for k := range before {
		if _, ok := after[k]; !ok && !strings.HasPrefix(k, awsPrefix) {
			gone = append(gone, k)
		}
	}
	slices.Sort(gone)
	return add, gone
}

// TagsOf reads a tag property: a list of Key and Value, or a map.
func TagsOf(v any) map[string]string {
	tags := map[string]string{}
	switch v := v.(type) {
	case map[string]any:
		for k, value := range v {
			tags[k] = Text(value)
		}
	case []any:
		for _, item := range v {
			if tag, ok := item.(map[string]any); ok {
				tags[Text(tag["Key"])] = Text(tag["Value"])
			}
		}
	}
	return tags
}

// TagList makes a service's own list of tags, sorted by key: TagList(c.Tags(), func(k, v *string) types.Tag { … }).
func TagList[T any](tags map[string]string, tag func(k, v *string) T) []T {
	list := make([]T, 0, len(tags))
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		v := tags[k]
		list = append(list, tag(&k, &v))
	}
	return list
}

// TagMap reads a service's own list of tags.
func TagMap[T any](list []T, pair func(T) (k, v *string)) map[string]string {
	tags := map[string]string{}
	for _, t := range list {
		if k, v := pair(t); k != nil {
			if tags[*k] = ""; v != nil {
				tags[*k] = *v
			}
		}
	}
	return tags
}

// TagModel is a tag property as CloudFormation lists it, for Read: nil when there is no tag.
func TagModel(tags map[string]string) any {
	if len(tags) == 0 {
		return nil
	}
	list := make([]any, 0, len(tags))
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		list = append(list, map[string]any{"Key": k, "Value": tags[k]})
	}
	return list
}

// withoutMark hides the mark and AWS's own tags.
func withoutMark(typeName string, model map[string]any) map[string]any {
	property := tagProperty(typeName)
	hidden := func(k string) bool { return k == markKey || strings.HasPrefix(k, awsPrefix) }
	left := 0
	switch tags := model[property].(type) {
	case []any:
		shown := slices.DeleteFunc(slices.Clone(tags), func(item any) bool {
			tag, ok := item.(map[string]any)
			return ok && hidden(Text(tag["Key"]))
		})
		model[property], left = shown, len(shown)
	case map[string]any:
		shown := maps.Clone(tags)
		maps.DeleteFunc(shown, func(k string, _ any) bool { return hidden(k) })
		model[property], left = shown, len(shown)
	case nil:
	default:
		return model
	}
	if left == 0 {
		delete(model, property)
	}
	return model
}
