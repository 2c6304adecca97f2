package iampolicy

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func parse(t *testing.T, text string) Document {
	t.Helper()
	d, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestPoliciesDecideAsIAMDoes(t *testing.T) {
	d := parse(t, `{"Version":"2012-10-17","Statement":[
		{"Sid":"Own","Effect":"Allow","Action":["s3:GetObject","s3:Put*"],"Resource":"arn:aws:s3:::b/uploads/${aws:userid}/*"},
		{"Sid":"List","Effect":"Allow","Action":"s3:ListBucket","Resource":["arn:aws:s3:::b"],"Condition":{"StringLike":{"s3:prefix":["uploads/${aws:userid}/*","public/*"]}}},
		{"Sid":"Runs","Effect":"Allow","Action":"dynamodb:Query","Resource":"arn:aws:dynamodb:*:*:table/t","Condition":{"ForAllValues:StringLike":{"dynamodb:LeadingKeys":["run#*"]}}},
		{"Sid":"Ours","Effect":"Allow","Action":"sqs:SendMessage","Resource":"*","Condition":{"StringEquals":{"aws:ResourceAccount":"1"},"Bool":{"aws:SecureTransport":true}}},
		{"Sid":"NotTheirs","Effect":"Deny","Action":"s3:*","Resource":"*","Condition":{"StringNotEqualsIfExists":{"aws:ResourceAccount":"1"},"Null":{"aws:ResourceAccount":"false"}}}]}`)
	me := map[string][]string{"aws:userid": {"AIDA1:me"}}
	with := func(more ...string) map[string][]string {
		out := map[string][]string{"aws:userid": me["aws:userid"]}
		for i := 0; i < len(more); i += 2 {
			out[more[i]] = append(out[more[i]], more[i+1])
		}
		return out
	}
	for name, c := range map[string]struct {
		call    Call
		allowed bool
		by      string
	}{
		"own object":                        {Call{"s3:GetObject", "arn:aws:s3:::b/uploads/AIDA1:me/a.zip", me}, true, "Own"},
		"an action by pattern, any case":    {Call{"S3:putobject", "arn:aws:s3:::b/uploads/AIDA1:me/x/y", me}, true, "Own"},
		"another one's object":              {Call{"s3:GetObject", "arn:aws:s3:::b/uploads/AIDA2:you/a.zip", me}, false, ""},
		"the case of resources matters":     {Call{"s3:GetObject", "arn:aws:s3:::B/uploads/AIDA1:me/a.zip", me}, false, ""},
		"a variable that is not there":      {Call{"s3:GetObject", "arn:aws:s3:::b/uploads/${aws:userid}/a", nil}, false, ""},
		"a variable with a wildcard":        {Call{"s3:GetObject", "arn:aws:s3:::b/uploads/AIDA2/a", map[string][]string{"aws:userid": {"*"}}}, false, ""},
		"another action":                    {Call{"s3:DeleteObject", "arn:aws:s3:::b/uploads/AIDA1:me/a.zip", me}, false, ""},
		"one of two prefixes":               {Call{"s3:ListBucket", "arn:aws:s3:::b", with("s3:prefix", "public/x")}, true, "List"},
		"a prefix with a variable":          {Call{"s3:ListBucket", "arn:aws:s3:::b", with("S3:Prefix", "uploads/AIDA1:me/x")}, true, "List"},
		"another prefix":                    {Call{"s3:ListBucket", "arn:aws:s3:::b", with("s3:prefix", "uploads/")}, false, ""},
		"no prefix":                         {Call{"s3:ListBucket", "arn:aws:s3:::b", me}, false, ""},
		"all keys":                          {Call{"dynamodb:Query", "arn:aws:dynamodb:eu-west-1:1:table/t", with("dynamodb:LeadingKeys", "run#1", "dynamodb:LeadingKeys", "run#2")}, true, "Runs"},
		"not all keys":                      {Call{"dynamodb:Query", "arn:aws:dynamodb:eu-west-1:1:table/t", with("dynamodb:LeadingKeys", "run#1", "dynamodb:LeadingKeys", "ops#1")}, false, ""},
		"both conditions":                   {Call{"sqs:SendMessage", "arn:aws:sqs:eu-west-1:1:q", with("aws:ResourceAccount", "1", "aws:SecureTransport", "true")}, true, "Ours"},
		"one of two conditions":             {Call{"sqs:SendMessage", "arn:aws:sqs:eu-west-1:1:q", with("aws:ResourceAccount", "1", "aws:SecureTransport", "false")}, false, ""},
		"a denial wins":                     {Call{"s3:GetObject", "arn:aws:s3:::b/uploads/AIDA1:me/a", with("aws:ResourceAccount", "2")}, false, "NotTheirs"},
		"a denial that does not apply":      {Call{"s3:GetObject", "arn:aws:s3:::b/uploads/AIDA1:me/a", with("aws:ResourceAccount", "1")}, true, "Own"},
		"an action with another's resource": {Call{"s3:ListBucket", "arn:aws:s3:::b/uploads/AIDA1:me/a", me}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Evaluate(c.call, d)
			by := ""
			if got.By != nil {
				by = got.By.Sid
			}
			if err != nil || got.Allowed != c.allowed || by != c.by {
				t.Errorf("allowed %t by %q, %v; want %t by %q", got.Allowed, by, err, c.allowed, c.by)
			}
		})
	}
}

func TestWhatIsNotUnderstoodIsNotDecided(t *testing.T) {
	for _, text := range []string{
		`{"Statement":[{"Effect":"Maybe","Action":"a:b","Resource":"*"}]}`,
		`{"Statement":[{"Effect":"Allow","NotAction":"a:b","Resource":"*"}]}`,
		`{"Statement":[{"Effect":"Allow","Action":"a:b","NotResource":"*"}]}`,
		`{"Statement":`,
	} {
		if _, err := Parse([]byte(text)); err == nil {
			t.Errorf("%s is read", text)
		}
	}
	d := parse(t, `{"Statement":{"Effect":"Allow","Action":"a:b","Resource":"*","Condition":{"DateLessThan":{"aws:CurrentTime":"2030-01-01T00:00:00Z"}}}}`)
	if _, err := Evaluate(Call{Action: "a:b", Resource: "*"}, d); err == nil || !strings.Contains(err.Error(), "DateLessThan") {
		t.Errorf("the error is %v", err)
	}
}

func TestAPolicyIsReadAsItWasWritten(t *testing.T) {
	d := New(Allow("A", []string{"s3:GetObject"}, "arn:aws:s3:::b/<&>/*").If("StringEquals", "aws:ResourceAccount", "1").If("StringEquals", "aws:userid", "2").If("Bool", "aws:SecureTransport", "true"))
	b, err := d.JSON()
	if err != nil || !strings.Contains(string(b), "<&>") {
		t.Fatal(string(b), err)
	}
	again, err := parse(t, string(b)).JSON()
	if err != nil || string(again) != string(b) {
		t.Errorf("%s is read as %s: %v", b, again, err)
	}
}

// byRecursion is Matches as its definition says it.
func byRecursion(p, s string) bool {
	switch {
	case p == "":
		return s == ""
	case p[0] == '*':
		return byRecursion(p[1:], s) || s != "" && byRecursion(p, s[1:])
	}
	return s != "" && (p[0] == '?' || p[0] == s[0]) && byRecursion(p[1:], s[1:])
}

func TestPatternsMatchAsDefined(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.StringOfN(rapid.RuneFrom([]rune("ab*?")), 0, 8, -1).Draw(t, "pattern")
		s := rapid.StringOfN(rapid.RuneFrom([]rune("ab")), 0, 8, -1).Draw(t, "text")
		if got := Matches(p, s); got != byRecursion(p, s) {
			t.Fatalf("Matches(%q, %q) = %t", p, s, got)
		}
	})
}
