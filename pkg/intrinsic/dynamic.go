package intrinsic

import (
	"fmt"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/diag"
)

// DynamicReference is one {{resolve:…}} in a value. It is text to the resolver; a later step, inside the
// provisioner, replaces it
// (https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/dynamic-references.html).
type DynamicReference struct {
	// Text is the whole reference, "{{resolve:…}}".
	Text string
	// Path is where the string stands that holds it.
	Path string
	// Service is ssm, ssm-secure or secretsmanager.
	Service string
	// Name is the name of an SSM parameter, or the name or ARN of a secret.
	Name string
	// Version is the version of an SSM parameter, or the version id of a secret; "" for the latest.
	Version string
	// JSONKey and Stage belong to secrets: the key in the secret's JSON ("" for the whole text) and the staging
	// label ("" for AWSCURRENT).
	JSONKey, Stage string
}

const (
	dynamicOpen  = "{{resolve:"
	dynamicClose = "}}"
)

// DynamicReferences finds and parses every dynamic reference in a value, keys of objects sorted. A malformed
// one is an error with its path; the text is not quoted.
func DynamicReferences(v any, path string) ([]DynamicReference, diag.Diagnostics) {
	var out []DynamicReference
	var ds diag.Diagnostics
	var walk func(v any, path string)
	walk = func(v any, path string) {
		switch v := v.(type) {
		case string:
			refs, problems := dynamicIn(v, path)
			out, ds = append(out, refs...), append(ds, problems...)
		case map[string]any:
			for _, k := range sortedKeys(v) {
				walk(v[k], child(path, k))
			}
		case []any:
			for i, x := range v {
				walk(x, item(path, i))
			}
		}
	}
	walk(v, path)
	return out, ds
}

func dynamicIn(s, path string) (out []DynamicReference, ds diag.Diagnostics) {
	for {
		start := strings.Index(s, dynamicOpen)
		if start < 0 {
			return out, ds
		}
		length := strings.Index(s[start:], dynamicClose)
		if length < 0 {
			return out, append(ds, diag.Diagnostic{Severity: diag.Error, Summary: "malformed dynamic reference", Detail: "it is not closed by }}", Path: path})
		}
		whole := s[start : start+length+len(dynamicClose)]
		s = s[start+len(whole):]
		ref, err := ParseDynamicReference(whole)
		if err != nil {
			ds = append(ds, diag.Diagnostic{Severity: diag.Error, Summary: "malformed dynamic reference", Detail: err.Error(), Path: path})
			continue
		}
		ref.Path = path
		out = append(out, ref)
	}
}

// ParseDynamicReference parses one whole "{{resolve:service:…}}".
func ParseDynamicReference(text string) (DynamicReference, error) {
	ref := DynamicReference{Text: text}
	body, opened := strings.CutPrefix(text, dynamicOpen)
	body, closed := strings.CutSuffix(body, dynamicClose)
	if !opened || !closed {
		return ref, fmt.Errorf("a dynamic reference is {{resolve:service:…}}")
	}
	service, rest, _ := strings.Cut(body, ":")
	ref.Service = service
	switch service {
	case "ssm", "ssm-secure":
		return ref, ref.parameter(rest)
	case "secretsmanager":
		return ref, ref.secret(rest)
	}
	return ref, fmt.Errorf("unknown service of a dynamic reference: ssm, ssm-secure and secretsmanager are known")
}

// parameter reads name[:version]. A name may be an ARN, for a parameter that another account shares.
func (ref *DynamicReference) parameter(rest string) error {
	ref.Name = rest
	if i := strings.LastIndexByte(rest, ':'); i >= 0 && isDigits(rest[i+1:]) && !(strings.HasPrefix(rest, "arn:") && strings.Count(rest, ":") == 4) {
		ref.Name, ref.Version = rest[:i], rest[i+1:]
	} else if !strings.HasPrefix(rest, "arn:") && strings.Contains(rest, ":") {
		return fmt.Errorf("the version of an SSM parameter is a whole number")
	}
	if ref.Name == "" {
		return fmt.Errorf("the name of the SSM parameter is empty")
	}
	return nil
}

func isDigits(s string) bool {
	for _, c := range s {
		if c < '0' || c > '9' {
			return false
		}
	}
	return s != ""
}

// secret reads id[:SecretString[:json-key[:version-stage[:version-id]]]]. The id may be an ARN, which itself
// has six colons.
func (ref *DynamicReference) secret(rest string) error {
	var parts []string
	if strings.HasPrefix(rest, "arn:") {
		fields := strings.SplitN(rest, ":", 8)
		if len(fields) < 7 {
			return fmt.Errorf("the secret's ARN is incomplete")
		}
		ref.Name = strings.Join(fields[:7], ":")
		if len(fields) == 8 {
			parts = strings.Split(fields[7], ":")
		}
	} else {
		fields := strings.Split(rest, ":")
		ref.Name, parts = fields[0], fields[1:]
	}
	if ref.Name == "" {
		return fmt.Errorf("the secret's name is empty")
	}
	if len(parts) > 4 {
		return fmt.Errorf("a secret takes at most SecretString, a JSON key, a version stage and a version id")
	}
	for i, p := range parts {
		switch i {
		case 0:
			if p != "SecretString" && p != "" {
				return fmt.Errorf("only the SecretString of a secret can be read")
			}
		case 1:
			ref.JSONKey = p
		case 2:
			ref.Stage = p
		case 3:
			ref.Version = p
		}
	}
	if ref.Stage != "" && ref.Version != "" {
		return fmt.Errorf("a version stage and a version id exclude each other")
	}
	return nil
}
