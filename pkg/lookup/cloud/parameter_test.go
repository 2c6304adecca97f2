package cloud

import (
	"strings"
	"testing"
)

func TestAParameterIsItsText(t *testing.T) {
	w := newWorld(t, map[string]func(call) (string, error){"GetParameter": says(`{"Parameter": {"Type": "StringList", "Value": "a,b"}}`)})
	got, err := w.ask(t, "ssm", `{"parameterName": "/web/zones"}`)
	wants(t, got, err, `"a,b"`)
	if c := w.last(t, "GetParameter"); c.body["Name"] != "/web/zones" || c.body["WithDecryption"] != nil {
		t.Errorf("asked: %v", c.body)
	}
	w.answers["GetParameter"] = says(`{}`)
	got, err = w.ask(t, "ssm", `{"parameterName": "/p"}`)
	refuses(t, got, err, "no value of SSM parameter /p")
}

func TestASecretParameterIsRefusedWithoutItsValue(t *testing.T) {
	w := newWorld(t, map[string]func(call) (string, error){"GetParameter": says(`{"Parameter": {"Type": "SecureString", "Value": "ciphertext"}}`)})
	// Not even a dummy value stands in: the parameter is there.
	got, err := w.ask(t, "ssm", `{"parameterName": "/p", "ignoreErrorOnMissingContext": true, "dummyValue": "d"}`)
	refuses(t, got, err, "/p is a SecureString")
	if strings.Contains(err.Error(), "ciphertext") {
		t.Errorf("it tells the value: %v", err)
	}
}

func TestAMissingParameterIsItsDummyValueOnlyWhereTheQuerySaysSo(t *testing.T) {
	w := newWorld(t, map[string]func(call) (string, error){})
	for _, code := range []string{"ParameterNotFound", "ParameterVersionNotFound"} {
		w.answers["GetParameter"] = fails(code)
		got, err := w.ask(t, "ssm", `{"parameterName": "/p:3", "ignoreErrorOnMissingContext": true, "dummyValue": "d"}`)
		wants(t, got, err, `"d"`)
		for _, without := range []string{`"ignoreErrorOnMissingContext": true`, `"dummyValue": "d"`, `"ignoreErrorOnMissingContext": false, "dummyValue": "d"`} {
			got, err = w.ask(t, "ssm", `{"parameterName": "/p:3", `+without+`}`)
			refuses(t, got, err, "no SSM parameter /p:3", "account "+own, "region "+region)
		}
	}
	w.answers["GetParameter"] = fails("AccessDeniedException")
	got, err := w.ask(t, "ssm", `{"parameterName": "/p", "ignoreErrorOnMissingContext": true, "dummyValue": "d"}`)
	refuses(t, got, err, "ssm:GetParameter is not allowed")
}

func TestAKeyByItsAlias(t *testing.T) {
	pages := map[any]string{
		nil: `{"Aliases": [{"AliasName": "alias/aws/s3"}, {"AliasName": "alias/other", "TargetKeyId": "k-0"}], "Truncated": true, "NextMarker": "m"}`,
		"m": `{"Aliases": [{"AliasName": "alias/data", "TargetKeyId": "k-1"}]}`,
	}
	w := newWorld(t, map[string]func(call) (string, error){"ListAliases": func(c call) (string, error) { return pages[c.body["Marker"]], nil }})
	got, err := w.ask(t, "key-provider", `{"aliasName": "alias/data"}`)
	wants(t, got, err, `{"keyId": "k-1"}`)
	got, err = w.ask(t, "key-provider", `{"aliasName": "alias/aws/s3"}`)
	refuses(t, got, err, "no KMS key with the alias alias/aws/s3")
	got, err = w.ask(t, "key-provider", `{"aliasName": "data"}`)
	refuses(t, got, err, "begin with alias/")
	got, err = w.ask(t, "key-provider", `{"aliasName": "alias/x", "ignoreErrorOnMissingContext": true, "dummyValue": {"keyId": "dummy"}}`)
	wants(t, got, err, `{"keyId": "dummy"}`)
	w.answers["ListAliases"] = fails("AccessDeniedException")
	got, err = w.ask(t, "key-provider", `{"aliasName": "alias/x"}`)
	refuses(t, got, err, "kms:ListAliases is not allowed")
}
