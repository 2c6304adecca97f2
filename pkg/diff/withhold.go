package diff

import (
	"strings"
)

// withholding decides which recorded outputs are not shown, because an older tool may have written a secret in
// clear: it did not know that what an expression resolves to is not to be stored.
type withholding struct {
	record map[string]any
	// all: the record was written by such a tool, so no value in it is to be trusted.
	all bool
	// declared are the keys that the template still declares; nil when a key that is not declared may be shown.
	declared map[string]bool
}

// withhold looks for signs of it:
//
//   - an output whose template value is a secret's expression, conditions aside, is recorded as something else:
//     the whole record is suspect;
//   - the template refers to a secret somewhere, and no recorded output is an expression: a key that the
//     template does not declare any more may have been one, and nothing can tell.
func (o *outputs) withhold() withholding {
	w := withholding{}
	if o.in.Record == nil {
		return w
	}
	w.record = o.in.Record.Outputs
	declared := map[string]bool{}
	secrets := false
	for name, out := range o.in.Template.Outputs {
		keys := []string{name}
		if alias, literal := out.ExportName.(string); literal {
			keys = append(keys, alias)
		}
		secret := secretExpression(out.Value)
		secrets = secrets || secret
		for _, key := range keys {
			declared[key] = true
			if was, had := w.record[key]; had && (secret || secretExpression(o.set.Values[key])) && inClear(was) {
				w.all = true
			}
		}
	}
	if !secrets {
		for _, r := range o.in.Template.Resources {
			if secretExpression(r.Properties) {
				secrets = true
				break
			}
		}
	}
	for _, was := range w.record {
		secrets = secrets && !secretExpression(was)
	}
	if secrets {
		for key := range o.set.Values {
			declared[key] = true
		}
		w.declared = declared
	}
	return w
}

// hides reports whether the recorded value of a key is not shown.
func (w withholding) hides(key string) bool {
	return inClear(w.record[key]) && (w.all || w.declared != nil && !w.declared[key])
}

func inClear(recorded any) bool { return recorded != Mask && !secretExpression(recorded) }

// secretExpression reports whether a value holds a dynamic reference to a secret anywhere. A plain {{resolve:ssm:…}}
// is none: what it names is public unless it is a SecureString, and that one is written ssm-secure
// (https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/dynamic-references.html).
func secretExpression(v any) bool {
	switch v := v.(type) {
	case string:
		return strings.Contains(v, dynamicReference+"secretsmanager:") || strings.Contains(v, dynamicReference+"ssm-secure:")
	case map[string]any:
		for _, member := range v {
			if secretExpression(member) {
				return true
			}
		}
	case []any:
		for _, item := range v {
			if secretExpression(item) {
				return true
			}
		}
	}
	return false
}
