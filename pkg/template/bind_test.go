package template_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/template"
)

// The rules are those of
// https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/parameters-section-structure.html and
// https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cloudformation-supplied-parameter-types.html.
func TestParametersAreBoundByTheirType(t *testing.T) {
	number := func(s string) json.Number { return json.Number(s) }
	cases := []struct {
		name      string
		parameter string
		supplied  string // "-" for none
		want      any
		fails     string
	}{
		{"a supplied string", `"Type": "String"`, "x", "x", ""},
		{"a supplied value wins over the Default", `"Type": "String", "Default": "d"`, "x", "x", ""},
		{"a supplied empty string wins over the Default", `"Type": "String", "Default": "d"`, "", "", ""},
		{"the Default", `"Type": "String", "Default": "d"`, "-", "d", ""},
		{"an empty Default", `"Type": "String", "Default": ""`, "-", "", ""},
		{"a boolean Default of a String is text", `"Type": "String", "Default": true`, "-", "true", ""},
		{"a number Default of a String is text as it was written", `"Type": "String", "Default": 1.50`, "-", "1.50", ""},
		{"neither value nor Default", `"Type": "String"`, "-", nil, "parameter P: the parameter has no value"},
		{"white space of a String stays", `"Type": "String"`, " x ", " x ", ""},
		{"a Number", `"Type": "Number"`, "8080", number("8080"), ""},
		{"a Number with a fraction stays as it was written", `"Type": "Number"`, "1.50", number("1.50"), ""},
		{"a Number that JSON can't write stays text", `"Type": "Number"`, "007", "007", ""},
		{"a Default of a Number", `"Type": "Number", "Default": "3"`, "-", number("3"), ""},
		{"a Number that is none", `"Type": "Number"`, "eight", nil, "the value is not a number: its type is Number"},
		{"a Number that is infinite", `"Type": "Number"`, "Inf", nil, "the value is not a number"},
		{"a hexadecimal Number", `"Type": "Number"`, "0x10", nil, "the value is not a number"},
		{"a list of numbers", `"Type": "List<Number>"`, "80, 443", []any{number("80"), number("443")}, ""},
		{"the Default of a list of numbers is split too", `"Type": "List<Number>", "Default": "1,2"`, "-", []any{number("1"), number("2")}, ""},
		{"a list of numbers with a word", `"Type": "List<Number>"`, "80,http", nil, "the value is not a number"},
		{"a CommaDelimitedList is trimmed", `"Type": "CommaDelimitedList"`, "a, b ,c", []any{"a", "b", "c"}, ""},
		{"the Default of a CommaDelimitedList is split too", `"Type": "CommaDelimitedList", "Default": "a,b"`, "-", []any{"a", "b"}, ""},
		{"an empty CommaDelimitedList holds one empty string", `"Type": "CommaDelimitedList"`, "", []any{""}, ""},
		{"an AWS type is text", `"Type": "AWS::EC2::VPC::Id"`, "vpc-1", "vpc-1", ""},
		{"a list of an AWS type", `"Type": "List<AWS::EC2::Subnet::Id>"`, "subnet-1, subnet-2", []any{"subnet-1", "subnet-2"}, ""},
		{"an SSM parameter's value", `"Type": "AWS::SSM::Parameter::Value<String>"`, "/one", "value one", ""},
		{"the Default names the SSM parameter", `"Type": "AWS::SSM::Parameter::Value<AWS::EC2::Image::Id>", "Default": "/one"`, "-", "value one", ""},
		{"an SSM list is split", `"Type": "AWS::SSM::Parameter::Value<List<String>>"`, "/list", []any{"a", "b"}, ""},
		{"an SSM list that comes as a list", `"Type": "AWS::SSM::Parameter::Value<CommaDelimitedList>"`, "/slice", []any{"c", "d"}, ""},
		{"an SSM list of an AWS type", `"Type": "AWS::SSM::Parameter::Value<List<AWS::EC2::Subnet::Id>>"`, "/any", []any{"e", "f"}, ""},
		{"an SSM StringList as a String is joined", `"Type": "AWS::SSM::Parameter::Value<String>"`, "/slice", "c,d", ""},
		{"an SSM parameter that was not found", `"Type": "AWS::SSM::Parameter::Value<String>"`, "/none", nil, "the SSM parameter that it names was not found: SSM parameter /none"},
		{"an SSM fact of another kind", `"Type": "AWS::SSM::Parameter::Value<String>"`, "/odd", nil, "the SSM parameter's value does not fit"},
		{"an allowed value", `"Type": "String", "AllowedValues": ["a", "b"]`, "b", "b", ""},
		{"an allowed number", `"Type": "Number", "AllowedValues": [1, 2]`, "2", number("2"), ""},
		{"an allowed boolean", `"Type": "String", "AllowedValues": [true, false]`, "true", "true", ""},
		{"a value that is not allowed", `"Type": "String", "AllowedValues": ["a", "b"]`, "c", nil, "the value does not satisfy a constraint: AllowedValues: a, b"},
		{"a Default that is not allowed", `"Type": "String", "AllowedValues": ["a"], "Default": "c"`, "-", nil, "AllowedValues: a"},
		{"an item of a list that is not allowed", `"Type": "CommaDelimitedList", "AllowedValues": ["a", "b"]`, "a,c", nil, "AllowedValues: a, b"},
		{"a secret's allowed values are not told", `"Type": "String", "NoEcho": true, "AllowedValues": ["hush"]`, "c", nil, "the value does not satisfy a constraint: AllowedValues"},
		{"a pattern matches", `"Type": "String", "AllowedPattern": "[a-z]+"`, "abc", "abc", ""},
		{"a pattern has to match the whole value", `"Type": "String", "AllowedPattern": "[a-z]+"`, "abc1", nil, "AllowedPattern: [a-z]+"},
		{"a pattern is matched by every item of a list", `"Type": "CommaDelimitedList", "AllowedPattern": "[a-z]+"`, "a,B", nil, "AllowedPattern"},
		{"a pattern with look-ahead", `"Type": "String", "AllowedPattern": "^(?=.*[0-9])(?=.*[a-z]).{4,}$"`, "abc1", "abc1", ""},
		{"a pattern with look-ahead that does not match", `"Type": "String", "AllowedPattern": "^(?=.*[0-9])(?=.*[a-z]).{4,}$"`, "abcd", nil, "AllowedPattern"},
		{"the pattern of an SSM type is for the name", `"Type": "AWS::SSM::Parameter::Value<String>", "AllowedPattern": "/[a-z]+"`, "/one", "value one", ""},
		{"the ConstraintDescription is told", `"Type": "String", "AllowedPattern": "[a-z]+", "ConstraintDescription": "lower case only"`, "A", nil, "lower case only"},
		{"too short", `"Type": "String", "MinLength": 3`, "ab", nil, "MinLength: 3"},
		{"too long", `"Type": "String", "MaxLength": "3"`, "abcd", nil, "MaxLength: 3"},
		{"length counts characters, not bytes", `"Type": "String", "MaxLength": 3`, "äöü", "äöü", ""},
		{"too small", `"Type": "Number", "MinValue": 5`, "4.99", nil, "MinValue: 5"},
		{"too large", `"Type": "Number", "MaxValue": "5"`, "5.01", nil, "MaxValue: 5"},
		{"just right", `"Type": "Number", "MinValue": 5, "MaxValue": 5`, "5", number("5"), ""},
		{"an item too large", `"Type": "List<Number>", "MaxValue": 5`, "1,6", nil, "MaxValue: 5"},
	}
	facts := map[string]any{
		template.SSMFact("/one"): "value one", template.SSMFact("/list"): "a, b", template.SSMFact("/slice"): []string{"c", "d"},
		template.SSMFact("/any"): []any{"e", "f"}, template.SSMFact("/odd"): 1,
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			tmpl := mustParse(t, `{"Parameters": {"P": {`+c.parameter+`}}, "Resources": {"R": {"Type": "X", "Properties": {"A": {"Ref": "P"}}}}}`)
			supplied := map[string]string{}
			if c.supplied != "-" {
				supplied["P"] = c.supplied
			}
			got, ds := tmpl.BindParameters(supplied, facts)
			err := ds.Err()
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) {
					t.Fatalf("the problem is %v, want %q", err, c.fails)
				}
				if c.supplied != "-" && len(c.supplied) > 3 && strings.Contains(err.Error(), c.supplied) && c.supplied != "/none" {
					t.Fatalf("the value is told: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(map[string]any{"P": c.want}, got); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnknownParametersAreRefused(t *testing.T) {
	tmpl := mustParse(t, `{"Parameters": {"Environment": {"Type": "String", "Default": "x"}}, "Resources": {`+topic+`}}`)
	_, ds := tmpl.BindParameters(map[string]string{"Enviroment": "prod"}, nil)
	if err := ds.Err(); err == nil || !strings.Contains(err.Error(), "unknown parameter Enviroment: did you mean Environment?") {
		t.Fatalf("the problem is %v", err)
	}
}

func TestAllParametersWithoutValueAreReportedAtOnce(t *testing.T) {
	tmpl := mustParse(t, `{"Parameters": {"A": {"Type": "String"}, "B": {"Type": "Number"}}, "Resources": {`+topic+`}}`)
	_, ds := tmpl.BindParameters(nil, nil)
	if len(ds) != 2 {
		t.Fatalf("the problems are %v", ds)
	}
}

func TestOnlySSMParametersThatAreUsedAreRead(t *testing.T) {
	const ssm = `{"Type": "AWS::SSM::Parameter::Value<String>", "Default": "/%"}`
	param := func(name string) string {
		return `"` + name + `": ` + strings.ReplaceAll(ssm, "%", strings.ToLower(name))
	}
	tmpl := mustParse(t, `{"Parameters": {`+param("BootstrapVersion")+`, `+param("InResource")+`, `+param("InSub")+`, `+param("InOutput")+`, `+param("InCondition")+`, "Plain": {"Type": "String", "Default": "x"}},
	 "Conditions": {"C": {"Fn::Equals": [{"Ref": "InCondition"}, "x"]}},
	 "Rules": {"CheckBootstrapVersion": {"Assertions": [{"Assert": {"Fn::Not": [{"Fn::Contains": [["1"], {"Ref": "BootstrapVersion"}]}]}}]}},
	 "Resources": {"R": {"Type": "X", "Properties": {"A": {"Ref": "InResource"}, "B": {"Fn::Sub": "${InSub}"}, "C": {"Ref": "Plain"}}}},
	 "Outputs": {"O": {"Value": {"Ref": "InOutput"}}}}`)
	got := template.SSMParameters(tmpl, map[string]string{"InSub": "/other"})
	if diff := cmp.Diff([]string{"/incondition", "/inoutput", "/inresource", "/other"}, got); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	facts := map[string]any{}
	for _, name := range got {
		facts[template.SSMFact(name)] = "v"
	}
	params, ds := tmpl.BindParameters(map[string]string{"InSub": "/other"}, facts)
	if err := ds.Err(); err != nil {
		t.Fatal(err)
	}
	if _, bound := params["BootstrapVersion"]; bound || len(params) != 5 {
		t.Fatalf("bound are %v", params)
	}
}

func TestAPatternThatNeverEndsIsCutOff(t *testing.T) {
	tmpl := mustParse(t, `{"Parameters": {"P": {"Type": "String", "AllowedPattern": "(?=a)(a+)+$"}}, "Resources": {`+topic+`}}`)
	start := time.Now()
	_, ds := tmpl.BindParameters(map[string]string{"P": strings.Repeat("a", 40) + "!"}, nil)
	if err := ds.Err(); err == nil || !strings.Contains(err.Error(), "AllowedPattern") {
		t.Fatalf("the problem is %v", err)
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Fatalf("it took %s", took)
	}
}
