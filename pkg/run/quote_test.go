package run

import (
	"errors"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/provider"
)

func TestMessagesDoNotQuoteProperties(t *testing.T) {
	properties := map[string]any{
		"FunctionName": "orders-worker", "RecursiveLoop": "Terminate", "Role": "arn:aws:iam::123456789012:role/worker",
		"Handler": "index.handler", "Description": "order", "PackageType": "Zip",
		"Environment": map[string]any{"Variables": map[string]any{"TOKEN": "open sesame", "LONG": "open sesame, please"}},
		"Layers":      []any{"layer-of-mine"},
	}
	for name, c := range map[string]struct{ message, want string }{
		"a value is masked, the longest first":  {"'open sesame, please' and 'open sesame' are refused", "'***' and '***' are refused"},
		"an item of a list is masked":           {"no such layer: layer-of-mine", "no such layer: ***"},
		"a name may be told":                    {"Function already exists: orders-worker", "Function already exists: orders-worker"},
		"a reference may be told":               {"arn:aws:iam::123456789012:role/worker can't be assumed", "arn:aws:iam::123456789012:role/worker can't be assumed"},
		"a value of a fixed set may be told":    {"Terminate is not supported", "Terminate is not supported"},
		"a short value is a word like another":  {"the order of events", "the order of events"},
		"a part of a longer word is not masked": {"reopen sesames", "reopen sesames"},
		"a value at either end is masked":       {"open sesame", "***"},
	} {
		t.Run(name, func(t *testing.T) {
			got := withoutValues(&provider.Error{Kind: provider.KindInvalid, Message: c.message}, "AWS::Lambda::Function", properties)
			if got.Message != c.want || got.Kind != provider.KindInvalid {
				t.Errorf("got %q, want %q", got.Message, c.want)
			}
		})
	}
	got := withoutValues(&provider.Error{Err: errors.New("bad: secret text")}, "Custom::Thing", map[string]any{"Text": "secret text"})
	if got.Message != "bad: ***" {
		t.Errorf("the text of a wrapped error is %q", got.Message)
	}
	got = withoutValues(&provider.Error{Message: "the-token-1, the-token-2, the-token-3"}, "My::Own::Type", map[string]any{
		"ServiceToken": "the-token-1", "Other": "the-token-2", "In": map[string]any{"ServiceToken": "the-token-3"},
	})
	if got.Message != "the-token-1, ***, ***" {
		t.Errorf("of a type that nobody knows all but its handler is masked: %q", got.Message)
	}
}
