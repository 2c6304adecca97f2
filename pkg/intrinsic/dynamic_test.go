package intrinsic_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/intrinsic"
)

func TestDynamicReferencesAreParsed(t *testing.T) {
	const arn = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:db-AbCdEf"
	cases := []struct {
		name, text string
		want       intrinsic.DynamicReference
		fails      string
	}{
		{"an SSM parameter", "{{resolve:ssm:/app/key}}", intrinsic.DynamicReference{Service: "ssm", Name: "/app/key"}, ""},
		{"an SSM parameter with a version", "{{resolve:ssm:/app/key:3}}", intrinsic.DynamicReference{Service: "ssm", Name: "/app/key", Version: "3"}, ""},
		{"a shared SSM parameter", "{{resolve:ssm:arn:aws:ssm:eu-west-1:123456789012:parameter/x}}", intrinsic.DynamicReference{Service: "ssm", Name: "arn:aws:ssm:eu-west-1:123456789012:parameter/x"}, ""},
		{"a shared SSM parameter with a version", "{{resolve:ssm:arn:aws:ssm:eu-west-1:123456789012:parameter/x:2}}", intrinsic.DynamicReference{Service: "ssm", Name: "arn:aws:ssm:eu-west-1:123456789012:parameter/x", Version: "2"}, ""},
		{"a secure SSM parameter", "{{resolve:ssm-secure:pw:1}}", intrinsic.DynamicReference{Service: "ssm-secure", Name: "pw", Version: "1"}, ""},
		{"a secret", "{{resolve:secretsmanager:db}}", intrinsic.DynamicReference{Service: "secretsmanager", Name: "db"}, ""},
		{"a secret's key", "{{resolve:secretsmanager:db:SecretString:password}}", intrinsic.DynamicReference{Service: "secretsmanager", Name: "db", JSONKey: "password"}, ""},
		{"a secret's stage", "{{resolve:secretsmanager:db:SecretString:password:AWSPREVIOUS}}", intrinsic.DynamicReference{Service: "secretsmanager", Name: "db", JSONKey: "password", Stage: "AWSPREVIOUS"}, ""},
		{"a secret's version", "{{resolve:secretsmanager:db:SecretString:password::v1}}", intrinsic.DynamicReference{Service: "secretsmanager", Name: "db", JSONKey: "password", Version: "v1"}, ""},
		{"a secret's whole text by CDK's form", "{{resolve:secretsmanager:db:SecretString:::}}", intrinsic.DynamicReference{Service: "secretsmanager", Name: "db"}, ""},
		{"a secret by its ARN", "{{resolve:secretsmanager:" + arn + "}}", intrinsic.DynamicReference{Service: "secretsmanager", Name: arn}, ""},
		{"a secret's key by its ARN", "{{resolve:secretsmanager:" + arn + ":SecretString:password::}}", intrinsic.DynamicReference{Service: "secretsmanager", Name: arn, JSONKey: "password"}, ""},
		{"an unknown service", "{{resolve:vault:x}}", intrinsic.DynamicReference{}, "unknown service"},
		{"no name", "{{resolve:ssm:}}", intrinsic.DynamicReference{}, "the name of the SSM parameter is empty"},
		{"no secret", "{{resolve:secretsmanager:}}", intrinsic.DynamicReference{}, "the secret's name is empty"},
		{"a version that is no number", "{{resolve:ssm:name:latest}}", intrinsic.DynamicReference{}, "the version of an SSM parameter is a whole number"},
		{"a binary secret", "{{resolve:secretsmanager:db:SecretBinary}}", intrinsic.DynamicReference{}, "only the SecretString of a secret can be read"},
		{"stage and version together", "{{resolve:secretsmanager:db:SecretString:k:AWSCURRENT:v1}}", intrinsic.DynamicReference{}, "exclude each other"},
		{"too many parts", "{{resolve:secretsmanager:db:SecretString:k:::x}}", intrinsic.DynamicReference{}, "at most"},
		{"an incomplete ARN", "{{resolve:secretsmanager:arn:aws:x}}", intrinsic.DynamicReference{}, "the secret's ARN is incomplete"},
		{"no end", "{{resolve:ssm:x", intrinsic.DynamicReference{}, "not closed"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			refs, ds := intrinsic.DynamicReferences(map[string]any{"A": []any{"before " + c.text + " after"}}, "Properties")
			if c.fails != "" {
				if err := ds.Err(); err == nil || !strings.Contains(err.Error(), c.fails) || !strings.HasPrefix(err.Error(), "Properties.A.0") {
					t.Fatalf("the problem is %v, want %q", err, c.fails)
				}
				return
			}
			c.want.Text, c.want.Path = c.text, "Properties.A.0"
			if diff := cmp.Diff([]intrinsic.DynamicReference{c.want}, refs); diff != "" || ds.HasErrors() {
				t.Fatalf("%v (-want +got):\n%s", ds, diff)
			}
		})
	}
}

func TestEveryDynamicReferenceOfAStringIsFound(t *testing.T) {
	refs, ds := intrinsic.DynamicReferences("{{resolve:ssm:a}}-{{resolve:nope:b}}{{resolve:secretsmanager:c}} {{not one}}", "P")
	if len(refs) != 2 || refs[0].Name != "a" || refs[1].Name != "c" || len(ds) != 1 {
		t.Fatalf("found %v, problems %v", refs, ds)
	}
}
