package cloud

import (
	"encoding/json"
	"strings"
	"testing"
)

// described is a resource as Cloud Control describes it: its properties are JSON within JSON.
func described(id, properties string) string {
	text, _ := json.Marshal(properties)
	return `{"Identifier": "` + id + `", "Properties": ` + string(text) + `}`
}

func TestAResourceByIdentifier(t *testing.T) {
	w := newWorld(t, map[string]func(call) (string, error){"GetResource": says(
		`{"ResourceDescription": ` + described("db", `{"Endpoint": {"Address": "db.example", "Port": 5432}, "Groups": []}`) + `}`)})
	got, err := w.ask(t, "cc-api-provider", `{"typeName": "AWS::RDS::DBInstance", "exactIdentifier": "db", "propertiesToReturn": ["Endpoint.Port", "Groups"]}`)
	wants(t, got, err, `[{"Identifier": "db", "Endpoint.Port": 5432, "Groups": []}]`)
	if c := w.last(t, "GetResource"); c.body["TypeName"] != "AWS::RDS::DBInstance" || c.body["Identifier"] != "db" {
		t.Errorf("asked: %v", c.body)
	}
	_, err = w.ask(t, "cc-api-provider", `{"typeName": "AWS::RDS::DBInstance", "exactIdentifier": "db", "propertiesToReturn": ["Endpoint.Name"]}`)
	if err == nil || !strings.Contains(err.Error(), "AWS::RDS::DBInstance db has no property Endpoint.Name") {
		t.Errorf("%v", err)
	}

	w.answers["GetResource"] = fails("ResourceNotFoundException")
	const missing = `"typeName": "AWS::IAM::Role", "exactIdentifier": "r", "propertiesToReturn": ["Arn"], "dummyValue": [{"Arn": "arn:dummy"}]`
	got, err = w.ask(t, "cc-api-provider", `{`+missing+`}`)
	refuses(t, got, err, "no AWS::IAM::Role r")
	got, err = w.ask(t, "cc-api-provider", `{`+missing+`, "ignoreErrorOnMissingContext": true}`)
	wants(t, got, err, `[{"Arn": "arn:dummy"}]`)
	w.answers["GetResource"] = fails("AccessDeniedException")
	got, err = w.ask(t, "cc-api-provider", `{`+missing+`, "ignoreErrorOnMissingContext": true}`)
	refuses(t, got, err, "cloudformation:GetResource is not allowed")
}

func TestResourcesByTheirProperties(t *testing.T) {
	pages := map[any]string{
		nil: `{"ResourceDescriptions": [` + described("pl-1", `{"Name": "s3", "Family": {"Ip": 4}}`) + `, ` + described("pl-2", `{"Name": "s3"}`) + `], "NextToken": "2"}`,
		"2": `{"ResourceDescriptions": [` + described("pl-3", `{"Name": "s3", "Family": {"Ip": 6}}`) + `]}`,
	}
	w := newWorld(t, map[string]func(call) (string, error){"ListResources": func(c call) (string, error) { return pages[c.body["NextToken"]], nil }})
	const query = `"typeName": "AWS::EC2::PrefixList", "propertiesToReturn": ["Name"], `
	got, err := w.ask(t, "cc-api-provider", `{`+query+`"propertyMatch": {"Name": "s3", "Family.Ip": 6}, "expectedMatchCount": "exactly-one", "resourceModel": {"Parent": "p"}}`)
	wants(t, got, err, `[{"Identifier": "pl-3", "Name": "s3"}]`)
	if c := w.last(t, "ListResources"); c.body["ResourceModel"] != `{"Parent":"p"}` || c.body["NextToken"] != "2" {
		t.Errorf("asked: %v", c.body)
	}
	for count, want := range map[string]string{"any": "ok", "at-least-one": "ok", "": "ok", "exactly-one": "at least 2 match", "at-most-one": "at least 2 match"} {
		got, err = w.ask(t, "cc-api-provider", `{`+query+`"propertyMatch": {"Name": "s3"}, "expectedMatchCount": "`+count+`"}`)
		if want != "ok" {
			refuses(t, got, err, want, "AWS::EC2::PrefixList that matches by Name")
			continue
		}
		wants(t, got, err, `[{"Identifier": "pl-1", "Name": "s3"}, {"Identifier": "pl-2", "Name": "s3"}, {"Identifier": "pl-3", "Name": "s3"}]`)
	}
	for count, want := range map[string]string{"any": "[]", "at-most-one": "[]", "at-least-one": "", "exactly-one": ""} {
		none := `{` + query + `"propertyMatch": {"Name": "hidden"}, "expectedMatchCount": "` + count + `", "dummyValue": [{"Name": "d"}]`
		got, err = w.ask(t, "cc-api-provider", none+`}`)
		if want != "" {
			wants(t, got, err, want)
			continue
		}
		refuses(t, got, err, "no AWS::EC2::PrefixList that matches by Name")
		if strings.Contains(err.Error(), "hidden") {
			t.Errorf("it tells the value: %v", err)
		}
		got, err = w.ask(t, "cc-api-provider", none+`, "ignoreErrorOnMissingContext": true}`)
		wants(t, got, err, `[{"Name": "d"}]`)
	}
	w.answers["ListResources"] = says(`{"ResourceDescriptions": [{"Identifier": "x", "Properties": "[secret"}]}`)
	_, err = w.ask(t, "cc-api-provider", `{`+query+`"propertyMatch": {}}`)
	if err == nil || !strings.Contains(err.Error(), "PrefixList x") || strings.Contains(err.Error(), "secret") {
		t.Errorf("%v", err)
	}
	w.answers["ListResources"] = says(`{"ResourceDescriptions": [{"Identifier": "x"}]}`)
	got, err = w.ask(t, "cc-api-provider", `{"typeName": "A::B::C", "propertyMatch": {}, "propertiesToReturn": []}`)
	wants(t, got, err, `[{"Identifier": "x"}]`)
}

func TestResourceQueriesThatMeanNothing(t *testing.T) {
	w := newWorld(t, map[string]func(call) (string, error){})
	for props, want := range map[string]string{
		`{"typeName": "A::B::C"}`: "one of exactIdentifier and propertyMatch",
		`{"typeName": "A::B::C", "exactIdentifier": "x", "propertyMatch": {}}`:                                         "one of exactIdentifier and propertyMatch",
		`{"typeName": "A::B::C", "exactIdentifier": "x", "ignoreErrorOnMissingContext": true}`:                         "dummyValue must be a list",
		`{"typeName": "A::B::C", "exactIdentifier": "x", "ignoreErrorOnMissingContext": true, "dummyValue": ["text"]}`: "dummyValue must be a list",
	} {
		if _, err := w.ask(t, "cc-api-provider", props); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", props, err)
		}
	}
}
