package doctor

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func values(t *testing.T, text string) map[string]any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var out map[string]any
	if err := d.Decode(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestALivePropertyHasToHoldWhatTheTemplateHasSet(t *testing.T) {
	for _, c := range []struct {
		what, typeName     string
		recorded, live     string
		differs, direct    bool // by Cloud Control's route; by a direct provider's
		unsure, unsureThen bool
	}{
		{"the same", "", `{"P":"a"}`, `{"P":"a","Q":"b"}`, false, false, false, false},
		{"another text", "", `{"P":"a"}`, `{"P":"b"}`, true, true, false, false},
		{"another number", "", `{"P":90}`, `{"P":60}`, true, true, false, false},
		{"a number as a text", "", `{"P":90}`, `{"P":"90"}`, false, false, false, false},
		{"a number in another notation", "", `{"P":90}`, `{"P":"90.0"}`, false, false, false, false},
		{"a truth value as a text", "", `{"P":true}`, `{"P":"True"}`, false, false, false, false},
		{"another truth value", "", `{"P":true}`, `{"P":false}`, true, true, false, false},
		{"a secret", "", `{"P":"***","Q":{"R":["***"]}}`, `{"P":"s","Q":{"R":["s"]}}`, false, false, false, false},
		{"a reference to a secret", "", `{"P":"{{resolve:ssm:/a}}"}`, `{"P":"s"}`, false, false, false, false},
		{"what is not read back", "", `{"P":"a"}`, `{}`, false, false, false, false},
		{"what a direct provider would have read", "AWS::SQS::Queue", `{"DelaySeconds":5}`, `{}`, false, false, false, true},
		{"what nobody reads back", "AWS::Lambda::Function", `{"Code":{"S3Bucket":"b"}}`, `{}`, false, false, false, false},
		{"nothing, and nothing is there", "AWS::SQS::Queue", `{"Tags":[],"RedrivePolicy":{}}`, `{}`, false, false, false, false},
		{"an object with what the service adds", "", `{"P":{"A":1,"B":{"C":"x"}}}`, `{"P":{"A":1,"B":{"C":"x","D":"y"},"E":2}}`, false, false, false, false},
		{"an object with another value", "", `{"P":{"A":1,"B":{"C":"x"}}}`, `{"P":{"A":1,"B":{"C":"z"}}}`, true, true, false, false},
		{"an object without a member", "", `{"P":{"A":1,"B":2}}`, `{"P":{"A":1}}`, false, true, true, false},
		{"an object where a text was", "", `{"P":"a"}`, `{"P":{"A":"a"}}`, false, true, true, false},
		{"a longer list", "", `{"P":["a"]}`, `{"P":["a","b"]}`, false, true, true, false},
		{"a list with another item", "", `{"P":["a","b"]}`, `{"P":["a","c"]}`, false, true, true, false},
		{"a list in another order", "", `{"P":["a","b"]}`, `{"P":["b","a"]}`, false, false, true, true},
		{"a list whose order says nothing", "AWS::EC2::Instance", `{"SecurityGroupIds":["a","b"]}`, `{"SecurityGroupIds":["b","a"]}`, false, false, false, false},
		{"tags in another order", "AWS::SQS::Queue", `{"Tags":[{"Key":"a","Value":"1"},{"Key":"b","Value":"2"}]}`,
			`{"Tags":[{"Key":"b","Value":"2"},{"Key":"a","Value":"1"}]}`, false, false, false, false},
		{"another tag", "AWS::SQS::Queue", `{"Tags":[{"Key":"a","Value":"1"}]}`, `{"Tags":[{"Key":"a","Value":"2"}]}`, false, true, true, false},
		{"a document as a text", "", `{"P":{"Version":"1","Statement":[{"Effect":"Allow"}]}}`,
			`{"P":"{\"Statement\":[{\"Effect\":\"Allow\"}],\"Version\":\"1\"}"}`, false, false, false, false},
		{"two texts of one document", "", `{"P":"{\"a\":1,\"b\":2}"}`, `{"P":"{ \"b\": 2, \"a\": 1 }"}`, false, false, false, false},
		{"another document", "", `{"P":"{\"a\":1}"}`, `{"P":"{\"a\":2}"}`, true, true, false, false},
	} {
		for _, whole := range []bool{false, true} {
			differ, unsure := compare(c.typeName, whole, values(t, c.recorded), values(t, c.live))
			wantDiffer, wantUnsure := c.differs, c.unsure
			if whole {
				wantDiffer, wantUnsure = c.direct, c.unsureThen
			}
			if (len(differ) > 0) != wantDiffer || (len(unsure) > 0) != wantUnsure {
				t.Errorf("%s (whole: %t): differ %v, unsure %v", c.what, whole, differ, unsure)
			}
		}
	}
	differ, unsure := compare("", true, values(t, `{"B":1,"A":1,"C":["a","b"],"D":1}`), values(t, `{"A":2,"B":2,"C":["b","a"],"D":1}`))
	if !slices.Equal(differ, []string{"A", "B"}) || !slices.Equal(unsure, []string{"C"}) {
		t.Errorf("differing are %v, unsure %v", differ, unsure)
	}
}
