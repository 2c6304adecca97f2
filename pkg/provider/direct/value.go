package direct

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// Text is a scalar as the services' text fields have it, a document as JSON, "" for nothing.
func Text(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case map[string]any, []any:
		text, err := Document(v)
		if err != nil {
			return ""
		}
		return text
	}
	return fmt.Sprint(v) // bool and json.Number
}

// Texts is a list of scalars.
func Texts(v any) []string {
	list, ok := v.([]any)
	if !ok {
		if text := Text(v); text != "" {
			return []string{text}
		}
		return nil
	}
	out := make([]string, 0, len(list))
	for _, e := range list {
		out = append(out, Text(e))
	}
	return out
}

// Models is a list of texts as a model has it; nil when it is empty.
func Models(list []string) any {
	if len(list) == 0 {
		return nil
	}
	out := make([]any, len(list))
	for i, e := range list {
		out[i] = e
	}
	return out
}

// Document is a JSON property, written as an object or as text, in the form that services take.
func Document(v any) (string, error) {
	if text, ok := v.(string); ok {
		return text, nil
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "", Invalid("a document can't be written as JSON")
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

// ParseDocument is a document that a service returns, as an object; IAM's are URL-encoded.
func ParseDocument(text *string) any {
	if text == nil || *text == "" {
		return nil
	}
	s := *text
	if strings.HasPrefix(s, "%7B") || strings.HasPrefix(s, "%7b") {
		if plain, err := url.QueryUnescape(s); err == nil {
			s = plain
		}
	}
	return Parsed(s)
}

// Parsed is JSON text as what it says, anything else as it is.
func Parsed(v any) any {
	text, ok := v.(string)
	if !ok || !strings.HasPrefix(strings.TrimSpace(text), "{") && !strings.HasPrefix(strings.TrimSpace(text), "[") {
		return v
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var out any
	if d.Decode(&out) != nil {
		return v
	}
	return out
}

// Without is the texts of a list that another one does not have.
func Without(list, other []string) []string {
	var out []string
	for _, e := range list {
		if !slices.Contains(other, e) {
			out = append(out, e)
		}
	}
	return out
}

// Partition is the partition of a region, as ARNs name it.
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference-arns.html
func Partition(region string) string {
	for prefix, partition := range map[string]string{
		"cn-": "aws-cn", "us-gov-": "aws-us-gov", "us-isob-": "aws-iso-b", "us-isof-": "aws-iso-f", "us-iso-": "aws-iso", "eu-isoe-": "aws-iso-e", "eusc-": "aws-eusc",
	} {
		if strings.HasPrefix(region, prefix) {
			return partition
		}
	}
	return "aws"
}
