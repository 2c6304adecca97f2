package secretsmanager

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

// value is what the template gives the secret, or how it says to generate it; nil when it does neither.
func value(ctx context.Context, c *call) (*string, error) {
	if c.Has("SecretString") && c.Has("GenerateSecretString") {
		return nil, direct.Invalid("a secret has either SecretString or GenerateSecretString")
	}
	if c.Has("SecretString") {
		return aws.String(c.Text("SecretString")), nil
	}
	how, ok := c.Properties["GenerateSecretString"].(map[string]any)
	if !ok {
		return nil, nil
	}
	template, key := direct.Text(how["SecretStringTemplate"]), direct.Text(how["GenerateStringKey"])
	if (template == "") != (key == "") {
		return nil, direct.Invalid("SecretStringTemplate and GenerateStringKey go together")
	}
	var in secretsmanager.GetRandomPasswordInput
	if err := direct.Into(how, &in, nil, "ExcludeCharacters", "ExcludeLowercase", "ExcludeNumbers", "ExcludePunctuation", "ExcludeUppercase", "IncludeSpace", "PasswordLength", "RequireEachIncludedType"); err != nil {
		return nil, err
	}
	if template != "" {
		if _, err := complete(template, key, ""); err != nil {
			return nil, err // before anything is asked for
		}
	}
	out, err := c.Client.GetRandomPassword(ctx, &in)
	if err != nil {
		return nil, err
	}
	if template == "" {
		return out.RandomPassword, nil
	}
	text, err := complete(template, key, aws.ToString(out.RandomPassword))
	return &text, err
}

// complete puts the generated text under a key of a template, which is a JSON object. What the template holds keeps its order.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-properties-secretsmanager-secret-generatesecretstring.html
func complete(template, key, password string) (string, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(template), &fields); err != nil || fields == nil {
		return "", direct.Invalid("SecretStringTemplate is no JSON object")
	}
	if _, given := fields[key]; given {
		fields[key] = encoded(password)
		return string(encoded(fields)), nil
	}
	body := strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(template), "}"))
	if len(fields) > 0 {
		body += ","
	}
	return body + string(encoded(key)) + ":" + string(encoded(password)) + "}", nil
}

// encoded is a value as JSON, with every character that JSON allows as it is.
func encoded(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // text, and what was decoded from JSON
	return bytes.TrimSpace(b.Bytes())
}
