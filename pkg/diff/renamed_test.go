package diff

import (
	"strings"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/diag"
)

func TestARenamedResourceIsPointedOut(t *testing.T) {
	const role = `{"Type":"AWS::IAM::Role","Properties":{"AssumeRolePolicyDocument":{"Version":"2012-10-17"}}}`
	fn := func(role string) string {
		return `{"Type":"AWS::Lambda::Function","Properties":{"Code":{"ZipFile":"x"},"Role":{"Fn::GetAtt":["` + role + `","Arn"]}}}`
	}
	for _, tt := range []struct{ name, from, to, want string }{
		{"another logical ID", `{"Q":{"Type":"AWS::SQS::Queue","Properties":{"DelaySeconds":5}}}`,
			`{"Qb":{"Type":"AWS::SQS::Queue","Properties":{"DelaySeconds":"5"}}}`, "Qb looks like Q"},
		{"data is lost", `{"B":{"Type":"AWS::S3::Bucket","Properties":{"Tags":[{"Key":"a","Value":"b"}]}}}`,
			`{"Bb":{"Type":"AWS::S3::Bucket","Properties":{"Tags":[{"Key":"a","Value":"b"}]}}}`, "with its data"},
		{"everything moves together", `{"R":` + role + `,"F":` + fn("R") + `}`, `{"Ra":` + role + `,"Fa":` + fn("Ra") + `}`,
			"Ra looks like R\nFa looks like F"},
		{"each old one once", `{"Q":{"Type":"AWS::SQS::Queue","Properties":{"DelaySeconds":5}}}`,
			`{"A":{"Type":"AWS::SQS::Queue","Properties":{"DelaySeconds":5}},"B":{"Type":"AWS::SQS::Queue","Properties":{"DelaySeconds":5}}}`, "A looks like Q"},
		{"other properties", `{"Q":{"Type":"AWS::SQS::Queue","Properties":{"DelaySeconds":5}}}`,
			`{"Qb":{"Type":"AWS::SQS::Queue","Properties":{"DelaySeconds":6}}}`, ""},
		{"another type", `{"Q":{"Type":"AWS::SQS::Queue","Properties":{"Tags":[]}}}`, `{"T":{"Type":"AWS::SNS::Topic","Properties":{"Tags":[]}}}`, ""},
		{"nothing tells them apart or together", `{"Q":{"Type":"AWS::SQS::Queue"}}`, `{"Qb":{"Type":"AWS::SQS::Queue"}}`, ""},
		{"one that stays is no other's past", `{"Q":{"Type":"AWS::SQS::Queue","Properties":{"DelaySeconds":5}}}`,
			`{"Q":{"Type":"AWS::SQS::Queue","Properties":{"DelaySeconds":5}},"Qb":{"Type":"AWS::SQS::Queue","Properties":{"DelaySeconds":5}}}`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, diags := change(t, tt.from, tt.to)
			var got []string
			for _, d := range diags {
				if d.Severity != diag.Warning {
					t.Errorf("%v", d)
				}
				got = append(got, d.Summary+" "+d.Detail)
			}
			want := strings.Split(tt.want, "\n")
			if tt.want == "" {
				want = nil
			}
			if len(got) != len(want) {
				t.Fatalf("got %q, want %q", got, want)
			}
			for i := range got {
				if !strings.Contains(got[i], want[i]) {
					t.Errorf("got %q, want %q", got[i], want[i])
				}
			}
		})
	}
}

func TestARenameThatIsRefusedIsNotPointedOutAsWell(t *testing.T) {
	_, diags := change(t, `{"Q":{"Type":"AWS::SQS::Queue","Properties":{"QueueName":"q"}}}`, `{"Qb":{"Type":"AWS::SQS::Queue","Properties":{"QueueName":"q"}}}`)
	if len(diags) != 1 || diags[0].Severity != diag.Error {
		t.Errorf("%v", diags)
	}
}
