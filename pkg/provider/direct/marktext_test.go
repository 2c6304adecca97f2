package direct

import (
	"context"
	"strings"
	"testing"
)

func TestTheMarkInATextIsHidden(t *testing.T) {
	c := &Call[int]{}
	c.Operation, c.LogicalID = "op", "Orders"
	for _, text := range []string{"", "orders", "orders (old)", "orders ("} {
		with := c.Marked(text, 100)
		if with == text || Unmarked(with) != text || MarkOf(with)[MarkKey] != c.Mark() {
			t.Errorf("%q is sent as %q and read as %q", text, with, Unmarked(with))
		}
	}
	for _, text := range []string{"", "orders", "(slipway:operation )", "(slipway:operation " + c.Mark() + ") and more"} {
		if tags := MarkOf(text); tags == nil || tags[MarkKey] != "" || Unmarked(text) != text {
			t.Errorf("%q has the mark %q", text, tags[MarkKey])
		}
	}
}

func TestATextWithoutRoomForTheMarkIsPutAfterTheCreate(t *testing.T) {
	const longest = 100
	for text, want := range map[string]int{"orders": 0, strings.Repeat("x", longest): 1} {
		puts := 0
		facet := Whole("Description", longest, func(_ context.Context, c *Call[int]) error {
			puts++
			return nil
		})
		c := &Call[int]{}
		c.LogicalID, c.Properties = "Orders", map[string]any{"Description": text}
		if len(c.Marked(text, longest)) > longest || MarkOf(c.Marked(text, longest))[MarkKey] == "" {
			t.Errorf("%q is sent as %q", text, c.Marked(text, longest))
		}
		if err := facet.Put(t.Context(), c); err != nil || puts != want {
			t.Errorf("%q is put %d times after the create, %v", text, puts, err)
		}
		c.Previous = map[string]any{"Description": "other"}
		if err := facet.Put(t.Context(), c); err != nil || puts != want {
			t.Errorf("%q is put by an update, %v", text, err)
		}
	}
}
