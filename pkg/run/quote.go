package run

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/schema"
	"github.com/slipway-cdk/slipway/pkg/secret"
)

// shortestQuote is the length from which on a value is looked for in messages: shorter ones are words of any text.
const shortestQuote = 6

// withoutValues masks what a service's message quotes of the properties that it was sent: events, headers and logs
// hold no property value, secret or not. What a message is about stays readable: names and identifiers, which
// events tell anyway, references to other resources, and values that are one of a fixed set.
func withoutValues(perr *provider.Error, typeName string, properties ...map[string]any) *provider.Error {
	message := perr.Message
	if message == "" && perr.Err != nil {
		message = perr.Err.Error()
	}
	t, _ := schema.Lookup(typeName)
	var values []string
	for _, p := range properties {
		values = quotable(values, t, nil, p)
	}
	// The longest first: a shorter one may be a part of it.
	slices.SortFunc(values, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	for _, v := range slices.Compact(values) {
		message = maskWord(message, v)
	}
	masked := *perr
	masked.Message = message
	return &masked
}

// quotable collects the texts in a value that a message must not quote.
func quotable(values []string, t *schema.Type, path []string, v any) []string {
	switch v := v.(type) {
	case map[string]any:
		for key, inner := range v {
			values = quotable(values, t, append(slices.Clip(path), key), inner)
		}
	case []any:
		for _, inner := range v {
			values = quotable(values, t, append(slices.Clip(path), "*"), inner)
		}
	case string:
		if utf8.RuneCountInString(v) >= shortestQuote && !tellable(t, path, v) {
			values = append(values, v)
		}
	}
	return values
}

// tellable reports whether the text at a path may be told.
func tellable(t *schema.Type, path []string, text string) bool {
	if strings.HasPrefix(text, "arn:") {
		return true
	}
	if t == nil {
		return len(path) == 1 && path[0] == "ServiceToken"
	}
	at := strings.Join(path, "/")
	if rule, named := provider.NameRuleOf(t.Name); named && rule.Property == at {
		return true
	}
	if slices.Contains(t.PrimaryIdentifier, at) || slices.Contains(t.RefPaths(), at) ||
		slices.ContainsFunc(t.AdditionalIdentifiers, func(id []string) bool { return slices.Contains(id, at) }) {
		return true
	}
	p := t.At(path).Of(schema.KindString)
	return p != nil && (p.RelationType != "" || slices.Contains(p.Enum, text))
}

// maskWord masks a text in a message where it stands for itself, not inside a longer word.
func maskWord(message, text string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(message, text)
		if !found {
			b.WriteString(message)
			return b.String()
		}
		b.WriteString(before)
		last, _ := utf8.DecodeLastRuneInString(before)
		first, _ := utf8.DecodeRuneInString(after)
		if wordRune(last) || wordRune(first) {
			b.WriteString(text)
		} else {
			b.WriteString(secret.Mask)
		}
		message = after
	}
}

func wordRune(r rune) bool { return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r)) }
