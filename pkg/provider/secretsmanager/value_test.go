package secretsmanager

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/provider"
)

func TestTheGeneratedTextJoinsItsTemplate(t *testing.T) {
	const password = `a"b<c>&\d`
	for _, c := range []struct{ template, key, want string }{
		{`{"username":"admin"}`, "password", `{"username":"admin","password":"a\"b<c>&\\d"}`},
		{" {\n  \"z\": 1,\n  \"a\": {\"b\": []}\n} ", "password", "{\n  \"z\": 1,\n  \"a\": {\"b\": []},\"password\":\"a\\\"b<c>&\\\\d\"}"},
		{`{}`, "p", `{"p":"a\"b<c>&\\d"}`},
		{`{ }`, "p", `{"p":"a\"b<c>&\\d"}`},
		{`{"p":"old","a":"<"}`, "p", `{"a":"<","p":"a\"b<c>&\\d"}`},
	} {
		got, err := complete(c.template, c.key, password)
		if err != nil || got != c.want {
			t.Errorf("%s: %s, %v", c.template, got, err)
		}
		var fields map[string]any
		if err := json.Unmarshal([]byte(got), &fields); err != nil || fields[c.key] != password {
			t.Errorf("%s: it can't be read back: %v", c.template, err)
		}
	}
	for _, template := range []string{``, `[]`, `null`, `"text"`, `{"a":`} {
		if _, err := complete(template, "p", password); provider.KindOf(err) != provider.KindInvalid || strings.Contains(err.Error(), password) {
			t.Errorf("%q: %v", template, err)
		}
	}
}
