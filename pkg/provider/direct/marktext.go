package direct

import (
	"context"
	"regexp"
	"strings"
)

// markText is the mark at the end of a text.
var markText = regexp.MustCompile(` ?\(` + regexp.QuoteMeta(markKey) + ` ([0-9a-f]{32})\)$`)

// Marked is a text to create a resource with that has no tags: it ends with the mark, by which what an earlier call has made is
// told from anybody else's. longest is what the service allows; where the text and the mark are longer, the mark stands alone
// and Whole puts the text.
func (c *Call[C]) Marked(text string, longest int) string {
	mark := "(" + markKey + " " + c.Mark() + ")"
	if with := strings.TrimPrefix(text+" "+mark, " "); len(with) <= longest {
		return with
	}
	return mark
}

// Unmarked is a text without the mark.
func Unmarked(text string) string { return markText.ReplaceAllString(text, "") }

// MarkOf returns the mark of a text as Found.Tags has it: without one there is none, but there are tags to be asked.
func MarkOf(text string) map[string]string {
	tags := map[string]string{}
	if m := markText.FindStringSubmatch(text); m != nil {
		tags[markKey] = m[1]
	}
	return tags
}

// Whole is the facet of a text that Create has sent Marked: it puts the text that had no room beside the mark. Should nobody learn
// that it was put, the resource has no mark any more, and a later attempt refuses it like a foreign one. Changes
// are another facet's.
func Whole[C any](property string, longest int, put func(ctx context.Context, c *Call[C]) error) Facet[C] {
	return Facet[C]{Properties: []string{property}, Put: func(ctx context.Context, c *Call[C]) error {
		if c.Previous != nil || Unmarked(c.Marked(c.Text(property), longest)) != "" {
			return nil
		}
		return put(ctx, c)
	}}
}
