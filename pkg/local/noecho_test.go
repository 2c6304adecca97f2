package local

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/sandbox"
)

// noEchoApp puts the value of a NoEcho parameter where it can go: whole, in text, encoded, split, in lists, into what
// a service echoes and what it never gives back, into outputs and export names.
func noEchoApp(t *testing.T, more object) *assembly.Assembly {
	t.Helper()
	size := ref("Size")
	resources := object{
		"Topic": resource("AWS::SNS::Topic", object{"DisplayName": ref("Other"), "TopicName": ref("Name")}),
		"Text": resource("AWS::SSM::Parameter", object{
			"Type": "String", "Description": size, "Value": object{"Fn::Sub": "user:${Password}@${Topic.TopicName}"},
		}),
		// Cloud Control's: it alone is sent only what has changed.
		"Stream": resource("AWS::Kinesis::Stream", object{
			"RetentionPeriodHours": ref("Timeout"),
			"Tags": []any{
				object{"Fn::If": []any{"Never", object{"Key": "x", "Value": "x"}, object{"Ref": "AWS::NoValue"}}},
				object{"Key": "encoded", "Value": object{"Fn::Base64": object{"Fn::Join": []any{"/", []any{"b", ref("Password")}}}}},
				object{"Key": "part", "Value": object{"Fn::Select": []any{1, object{"Fn::Split": []any{"-", ref("Password")}}}}},
				object{"Key": "size", "Value": "fixed"},
			},
		}),
		"Secret": resource("AWS::SecretsManager::Secret", object{"SecretString": ref("Password"), "Name": "noecho"}),
		"Secure": resource("AWS::SSM::Parameter", object{"Type": "String", "Value": object{"Fn::If": []any{"Given", ref("Password"), "none"}}}),
		"Custom": resource("Custom::Thing", object{"ServiceToken": "arn:aws:lambda:us-east-1:000000000000:function:f", "Password": ref("Password"), "Echo": "e"}),
		"Later":  with(resource("AWS::SNS::Topic", object{"DisplayName": size}), "DependsOn", []any{"Text", "Stream", "Secret", "Secure", "Custom"}),
	}
	for id, r := range more {
		resources[id] = r
	}
	return writeApp(t, map[string]object{"Hidden": {
		"Parameters": object{
			"Password": object{"Type": "String", "NoEcho": true, "MinLength": 8},
			"Size":     object{"Type": "String", "Default": "small"},
			"Other":    object{"Type": "String", "Default": "other"},
			"Name":     object{"Type": "String", "Default": "named"},
			"Timeout":  object{"Type": "Number", "Default": 30},
		},
		"Conditions": object{
			"Given": object{"Fn::Not": []any{object{"Fn::Equals": []any{ref("Password"), ""}}}},
			"Never": object{"Fn::Equals": []any{"a", "b"}},
		},
		"Resources": resources,
		"Outputs": object{
			"Plain":  object{"Value": ref("Password")},
			"Whole":  object{"Value": ref("Size"), "Export": object{"Name": object{"Fn::Join": []any{"", []any{"x", ref("Password")}}}}},
			"Inside": object{"Value": object{"Fn::Sub": "at ${Topic} with ${Password}"}},
		},
	}}, nil)
}

func given(asm *assembly.Assembly, values map[string]string) map[string]map[string]string {
	return map[string]map[string]string{asm.Stacks[0].ID: values}
}

// forms are the texts that would give a value away.
func forms(value string) []string {
	return []string{value, base64.StdEncoding.EncodeToString([]byte("b/" + value)), strings.Split(value, "-")[1]}
}

// concealed fails where a value stands in anything that the plane has stored, but for the simulated AWS itself.
func concealed(t *testing.T, p *Plane, dir, where string, values ...string) {
	t.Helper()
	check := func(what string, content []byte) {
		for _, value := range values {
			for _, form := range forms(value) {
				if strings.Contains(string(content), form) {
					t.Errorf("%s: %q stands in %s", where, form, what)
				}
			}
		}
	}
	// SQLite may have cut a long text across pages, so the tables are read as well as the files.
	for _, table := range column(t, p, `SELECT name FROM sqlite_master WHERE type = 'table'`) {
		rows, err := p.db.Query(`SELECT * FROM "` + table + `"`)
		if err != nil {
			t.Fatal(err)
		}
		names, _ := rows.Columns()
		for rows.Next() {
			cells, into := make([]any, len(names)), make([]any, len(names))
			for i := range cells {
				into[i] = &cells[i]
			}
			if err := rows.Scan(into...); err != nil {
				t.Fatal(err)
			}
			for i, cell := range cells {
				check(fmt.Sprintf("%s.%s of %.80v", table, names[i], cells[0]), []byte(fmt.Sprintf("%s", cell)))
			}
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		_ = rows.Close()
	}
	if _, err := p.db.Exec(`PRAGMA wal_checkpoint(PASSIVE)`); err != nil {
		t.Fatal(err)
	}
	scanned := 0
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(filepath.Base(path), "sandbox.db") {
			return err
		}
		content, err := os.ReadFile(path)
		scanned += len(content)
		check(path, content)
		return err
	})
	if err != nil || scanned == 0 {
		t.Fatalf("%d bytes scanned: %v", scanned, err)
	}
	for _, key := range column(t, p, `SELECT key FROM objects`) {
		if strings.Contains(key, "/vault/") {
			t.Errorf("%s: %s is left in the vault", where, key)
		}
	}
}

func column(t *testing.T, p *Plane, query string) []string {
	t.Helper()
	rows, err := p.db.Query(query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close() //nolint:errcheck // a test
	var out []string
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			t.Fatal(err)
		}
		out = append(out, s)
	}
	return out
}

// quoting fails the creation of the resource Bad, with a message that quotes what it was sent.
type quoting struct{ provider.Provider }

func (q quoting) Create(ctx context.Context, req provider.Request) (provider.Progress, error) {
	if req.LogicalID == "Bad" {
		body, _ := json.Marshal(req.Properties)
		return provider.Progress{}, &provider.Error{Kind: provider.KindInvalid, Code: "Quoted", Message: "this is bad: " + string(body)}
	}
	return q.Provider.Create(ctx, req)
}

func TestANoEchoValueIsStoredNowhere(t *testing.T) {
	const first, second, third = "marker-alpha-1111", "marker-beta-2222", "marker-gamma-3333"
	dir := t.TempDir()
	p := openPlane(t, Options{Dir: dir, WrapProvider: func(p provider.Provider) provider.Provider { return quoting{p} }})
	all := []string{first, second, third}
	deploy := func(where string, asm *assembly.Assembly, values map[string]string, want runlog.Result) runlog.Header {
		t.Helper()
		planned := submit(t, p, asm, run.Submission{Command: runlog.CommandPlan, Of: runlog.CommandDeploy, Parameters: given(asm, values)})
		concealed(t, p, dir, where+", planned", all...)
		sub := run.Submission{Command: runlog.CommandDeploy, Parameters: given(asm, values)}
		if planned.Result == runlog.ResultSucceeded {
			sub.PlanRun = planned.RunID
		}
		h := submit(t, p, asm, sub)
		if h.Result != want {
			t.Fatalf("%s: %s", where, story(t, p, h))
		}
		concealed(t, p, dir, where, all...)
		return h
	}
	inAWS := func(where, password string) {
		t.Helper()
		secret, err := p.Sandbox().SecretString(context.Background(), sandbox.Caller{Account: p.account, Region: p.region}, "noecho")
		if err != nil || secret != password {
			t.Errorf("%s: the secret in AWS is %q (%v)", where, secret, err)
		}
		texts := 0
		list, err := p.Sandbox().List(context.Background(), sandbox.Filter{})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list {
			body, _ := json.Marshal(r.Properties)
			if strings.Contains(string(body), "***") || strings.Contains(string(body), "slipway:vault") {
				t.Errorf("%s: AWS was sent a mask: %s", where, body)
			}
			for _, form := range forms(password) {
				texts += strings.Count(string(body), form)
			}
		}
		if texts < 4 {
			t.Errorf("%s: the value stands in %d places in AWS", where, texts)
		}
	}
	app := noEchoApp(t, nil)

	h := deploy("the first deploy", app, map[string]string{"Password": first}, runlog.ResultSucceeded)
	if h.Counts.Created != 7 {
		t.Errorf("%+v", h.Counts)
	}
	inAWS("the first deploy", first)
	rec, _, err := p.States().Load(context.Background(), "Hidden", p.region)
	if err != nil {
		t.Fatal(err)
	}
	if got := rec.Resources["Text"].Properties["Value"]; got != "***" {
		t.Errorf("recorded as %v", got)
	}
	if got := rec.Outputs; got["Plain"] != "***" || got["Inside"] != "***" || got["Whole"] != "small" || len(got) != 3 {
		t.Errorf("outputs %v", got)
	}

	// The same again, with the value and without.
	h = deploy("the same value", app, map[string]string{"Password": first}, runlog.ResultSucceeded)
	if h.Counts.Unchanged != 7 {
		t.Errorf("the same value: %+v", h.Counts)
	}
	h = deploy("no value", app, nil, runlog.ResultSucceeded)
	if h.Counts.Unchanged != 7 {
		t.Errorf("no value: %+v\n%s", h.Counts, story(t, p, h))
	}

	// Another property, where nothing secret has to be written for it.
	h = deploy("another property, no value", app, map[string]string{"Other": "another"}, runlog.ResultSucceeded)
	if h.Counts.Updated != 1 || h.Counts.Unchanged != 6 {
		t.Errorf("another property, no value: %+v\n%s", h.Counts, story(t, p, h))
	}
	// A resource that holds a secret, where the secret itself need not be written.
	h = deploy("another property beside a secret, no value", app, map[string]string{"Timeout": "60"}, runlog.ResultSucceeded)
	if h.Counts.Updated != 1 || h.Counts.Unchanged != 6 {
		t.Errorf("another property beside a secret: %+v\n%s", h.Counts, story(t, p, h))
	}
	inAWS("another property beside a secret", first)
	// A secret beside the name of a topic that is replaced has to be written again.
	h = deploy("a reference beside the secret changes, no value", app, map[string]string{"Name": "renamed"}, runlog.ResultFailed)
	if text := story(t, p, h); !strings.Contains(text, "Hidden/Text: parameter Password is needed") {
		t.Errorf("the refusal: %s", text)
	}
	h = deploy("a reference beside the secret changes", app, map[string]string{"Name": "renamed", "Password": first}, runlog.ResultSucceeded)
	if h.Counts.Replaced != 1 || h.Counts.Updated != 1 || h.Counts.Unchanged != 5 {
		t.Errorf("a reference beside the secret changes: %+v\n%s", h.Counts, story(t, p, h))
	}
	inAWS("a reference beside the secret changes", first)
	// A previous value that is no secret is kept.
	h = deploy("nothing given", app, nil, runlog.ResultSucceeded)
	if h.Counts.Unchanged != 7 {
		t.Errorf("nothing given: %+v\n%s", h.Counts, story(t, p, h))
	}
	inAWS("another property", first)

	// Where a secret has to be written the parameter is named, and nothing is touched.
	before := liveDiffers(t, p)
	app2 := noEchoApp(t, object{"New": resource("AWS::SSM::Parameter", object{"Type": "String", "Value": ref("Password")})})
	h = deploy("a new place, no value", app2, nil, runlog.ResultFailed)
	if text := story(t, p, h); !strings.Contains(text, "parameter Password is needed") {
		t.Errorf("the refusal: %s", text)
	}
	if after := liveDiffers(t, p); after != before {
		t.Errorf("it was refused and has changed something")
	}

	// Rotation.
	h = deploy("rotated", app, map[string]string{"Password": second, "Size": "medium"}, runlog.ResultSucceeded)
	if h.Counts.Updated != 6 {
		t.Errorf("rotated: %+v\n%s", h.Counts, story(t, p, h))
	}
	inAWS("rotated", second)
	h = deploy("rotated, no value", app, nil, runlog.ResultSucceeded)
	if h.Counts.Unchanged != 7 {
		t.Errorf("rotated, no value: %+v\n%s", h.Counts, story(t, p, h))
	}

	// A deploy that fails with a message that quotes the value, and is rolled back.
	bad := noEchoApp(t, object{"Bad": with(resource("AWS::SSM::Parameter", object{
		"Type": "String", "Value": object{"Fn::Sub": "bad ${Password}"}}), "DependsOn", []any{"Later"})})
	h = deploy("failing", bad, map[string]string{"Password": third, "Size": "large"}, runlog.ResultFailed)
	if text := story(t, p, h); !strings.Contains(text, "this is bad") || !strings.Contains(text, "***") {
		t.Errorf("the failure: %s", text)
	}
	inAWS("failing", third) // nobody knows the value before, so it can't be restored
	// What AWS has now is not what the last good deploy was given: without the value nothing may be assumed.
	h = deploy("after the failure, no value", app, nil, runlog.ResultFailed)
	if text := story(t, p, h); !strings.Contains(text, "parameter Password is needed") {
		t.Errorf("the refusal: %s", text)
	}
	deploy("after the failure", app, map[string]string{"Password": second}, runlog.ResultSucceeded)
	inAWS("after the failure", second)

	if h := submit(t, p, app, run.Submission{Command: runlog.CommandDestroy}); h.Result != runlog.ResultSucceeded {
		t.Fatalf("destroy: %s", story(t, p, h))
	}
	concealed(t, p, dir, "destroyed", all...)
}

// refuseBad fails the creation of the resource Bad.
func refuseBad(step string, req provider.Request, call func() (provider.Progress, error)) (provider.Progress, error) {
	if step == "create" && req.LogicalID == "Bad" {
		return provider.Progress{}, &provider.Error{Kind: provider.KindInvalid, Code: "Bad", Message: "it is bad"}
	}
	return call()
}
