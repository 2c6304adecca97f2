package submit

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/localdb"
	"github.com/slipway-cdk/slipway/pkg/objectstore/local"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func desk(t *testing.T) Desk {
	t.Helper()
	db, err := localdb.Open(filepath.Join(t.TempDir(), "slipway.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	clk := clock.NewFake(now)
	objects, err := local.New(db, clk)
	if err != nil {
		t.Fatal(err)
	}
	return Desk{Engine: &run.Engine{Objects: objects, Clock: clk}, Account: "111111111111", Region: "eu-west-1", Holder: "process-1"}
}

func (d Desk) stored(t *testing.T, key string) string {
	t.Helper()
	o, err := d.Engine.Objects.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(o.Body)
}

const parameterized = `{"Parameters":{"P":{"Type":"String"},"Q":{"Type":"String"}},"Resources":{"T":{"Type":"AWS::SNS::Topic"}}}`

func twoStacks() []*assembly.Stack {
	code, site := assembly.Asset{ID: "code", Kind: "file"}, assembly.Asset{ID: "site", Kind: "file"}
	return []*assembly.Stack{
		{
			ID: "A", Name: "A", DisplayName: "App/A", Template: []byte(parameterized), Assets: []assembly.Asset{code, code, site},
			Parameters: map[string]string{"P": "app", "Q": "app"}, Tags: map[string]string{"team": "x"}, TerminationProtection: true,
		},
		{
			ID: "B", Name: "B", DisplayName: "App/B", Account: "222222222222", Region: "us-east-1", DependsOn: []string{"A"},
			Template: []byte(`{"Resources":{}}`), Assets: []assembly.Asset{code},
		},
	}
}

func TestARequestNamesPlacesAndKeepsTemplatesUnderTheirDigests(t *testing.T) {
	d := desk(t)
	stacks := twoStacks()
	got, err := d.Prepare(t.Context(), nil, stacks, run.Submission{
		Command: runlog.CommandDeploy, Caller: "me", Parameters: map[string]map[string]string{"A": {"Q": "line"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	key := func(s *assembly.Stack) string {
		sum := sha256.Sum256(s.Template)
		return run.TemplateKey(hex.EncodeToString(sum[:]))
	}
	want := run.Request{
		Version: run.RequestVersion, RunID: got.RunID, Command: runlog.CommandDeploy, Caller: "me", Region: "eu-west-1", Holder: "process-1", CreatedAt: now,
		Stacks: []run.StackRequest{
			{
				StackRef: runlog.StackRef{Account: "111111111111", Region: "eu-west-1", Name: "A"}, DisplayName: "App/A", TemplateKey: key(stacks[0]),
				Parameters: map[string]string{"P": "app", "Q": "line"}, Tags: map[string]string{"team": "x"}, TerminationProtection: true,
				Assets: []string{"code", "code", "site"},
			},
			{
				StackRef: runlog.StackRef{Account: "222222222222", Region: "us-east-1", Name: "B"}, DisplayName: "App/B", TemplateKey: key(stacks[1]),
				DependsOn: []string{"A"}, Parameters: map[string]string{}, Assets: []string{"code.222222222222.us-east-1"},
			},
		},
		Assets: []run.AssetRequest{
			{ID: "code", Asset: stacks[0].Assets[0]}, {ID: "site", Asset: stacks[0].Assets[2]},
			{ID: "code.222222222222.us-east-1", Asset: stacks[1].Assets[0]},
		},
	}
	if diff := cmp.Diff(asJSON(t, want), asJSON(t, got)); diff != "" {
		t.Errorf("it asks for something else (-want +got):\n%s", diff)
	}
	if !strings.HasPrefix(got.RunID, "20261130T120000000Z-") {
		t.Errorf("the id of the run is %s", got.RunID)
	}
	for _, s := range stacks {
		if body := d.stored(t, key(s)); body != string(s.Template) {
			t.Errorf("the template of %s is kept as %s", s.Name, body)
		}
	}
	if stacks[0].Parameters["Q"] != "app" {
		t.Error("the app's own values have been changed")
	}
}

func TestARequestMayBeMadeAgain(t *testing.T) {
	d := desk(t)
	d.RunID, d.CreatedAt = "20261130T110000000Z-01234567", now.Add(-time.Hour)
	sub := run.Submission{Command: runlog.CommandPlan, Of: runlog.CommandDeploy}
	one, err := d.Prepare(t.Context(), nil, twoStacks(), sub)
	if err != nil {
		t.Fatal(err)
	}
	two, err := d.Prepare(t.Context(), nil, twoStacks(), sub)
	if err != nil {
		t.Fatal(err)
	}
	if one.RunID != d.RunID || !one.CreatedAt.Equal(d.CreatedAt) || one.Of != runlog.CommandDeploy || one.Stacks[0].TemplateKey == "" {
		t.Errorf("it asks for %s", asJSON(t, one))
	}
	if diff := cmp.Diff(asJSON(t, one), asJSON(t, two)); diff != "" {
		t.Error(diff)
	}
}

// TestADestroyNeedsNoTemplate: nor the values of parameters, which may be secrets.
func TestADestroyNeedsNoTemplate(t *testing.T) {
	d := desk(t)
	got, err := d.Prepare(t.Context(), nil, twoStacks(), run.Submission{Command: runlog.CommandDestroy})
	if err != nil || got.Stacks[0].TemplateKey != "" || got.Stacks[0].Parameters != nil {
		t.Errorf("%v: %s", err, asJSON(t, got))
	}
	if kept, err := d.Engine.Objects.List(t.Context(), "slipway/"); err != nil || len(kept) > 0 {
		t.Errorf("kept are %v, %v", kept, err)
	}
}

func TestParametersThatNobodyMayReadNeedAVault(t *testing.T) {
	d := desk(t)
	stacks := twoStacks()[:1]
	stacks[0].Template = []byte(strings.Replace(parameterized, `"P":{`, `"P":{"NoEcho":true,`, 1))
	_, err := d.Prepare(t.Context(), nil, stacks, run.Submission{Command: runlog.CommandDeploy})
	if err == nil || !strings.Contains(err.Error(), "the parameters of stack A") {
		t.Errorf("it says %v", err)
	}
	if kept, err := d.Engine.Objects.List(t.Context(), "slipway/"); err != nil || len(kept) > 0 {
		t.Errorf("kept are %v, %v", kept, err)
	}
}

// nesting is an app whose stack holds the given nested template, which holds another one.
func nesting(t *testing.T, deepest string) *assembly.Assembly {
	t.Helper()
	nested := func(template string) string {
		return `{"Resources":{"Kid":{"Type":"AWS::CloudFormation::Stack","Properties":{"TemplateURL":"x"},"Metadata":{"aws:asset:path":"` + template + `"}}}}`
	}
	asm, err := assembly.ReadFS(fstest.MapFS{
		"manifest.json": {Data: []byte(`{"version":"48.0.0","artifacts":{"Top":{"type":"aws:cloudformation:stack",
			"environment":"aws://unknown-account/unknown-region","properties":{"templateFile":"top.json"}}}}`)},
		"top.json":    {Data: []byte(nested("middle.json"))},
		"middle.json": {Data: []byte(nested("deep.json"))},
		"deep.json":   {Data: []byte(strings.ReplaceAll(deepest, "MIDDLE", nested("middle.json")))},
	})
	if err != nil {
		t.Fatal(err)
	}
	return asm
}

func TestNestedTemplatesAreKeptInAllDepths(t *testing.T) {
	d := desk(t)
	asm := nesting(t, `{"Resources":{}}`)
	got, err := d.Prepare(t.Context(), asm, asm.Stacks, run.Submission{Command: runlog.CommandPlan, Of: runlog.CommandDeploy, Options: run.Options{Recursive: true}})
	if err != nil {
		t.Fatal(err)
	}
	middle := got.Stacks[0].Nested["Kid"]
	deep := middle.Nested["Kid"]
	if !strings.Contains(d.stored(t, middle.TemplateKey), "deep.json") || d.stored(t, deep.TemplateKey) != `{"Resources":{}}` || deep.Nested != nil {
		t.Errorf("kept are %s", asJSON(t, got.Stacks))
	}
	if got, err = d.Prepare(t.Context(), asm, asm.Stacks, run.Submission{Command: runlog.CommandPlan, Of: runlog.CommandDeploy}); err != nil || got.Stacks[0].Nested != nil {
		t.Errorf("nobody has asked for nested stacks: %v, %s", err, asJSON(t, got.Stacks))
	}
}

func TestANestedStackThatContainsItselfIsRefused(t *testing.T) {
	d := desk(t)
	asm := nesting(t, "MIDDLE")
	_, err := d.Prepare(t.Context(), asm, asm.Stacks, run.Submission{Command: runlog.CommandPlan, Of: runlog.CommandDeploy, Options: run.Options{Recursive: true}})
	if err == nil || !strings.Contains(err.Error(), "a nested stack contains itself") || !strings.Contains(err.Error(), "Top") {
		t.Errorf("it says %v", err)
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	body, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}
