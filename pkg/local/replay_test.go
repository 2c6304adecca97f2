package local

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/objectstore"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/sandbox"
	"github.com/slipway-cdk/slipway/pkg/state"
)

// The account and region of the files that cdkd has written.
const (
	sampleAccount = "000000000000"
	sampleRegion  = "us-east-1"
)

// sampleFile reads a file of a stack as cdkd has left it after a step, nil where there is none.
func sampleFile(t *testing.T, step, stack, name string) []byte {
	t.Helper()
	root := filepath.FromSlash("../../../shared/reference/cdkd-samples")
	if _, err := os.Stat(root); err != nil {
		t.Skip("the files that cdkd has written are not here: " + root)
	}
	body, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(step), "s3", "cdkd", stack, sampleRegion, name))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// identifiers are the properties by which the resources that are changed here are known.
var identifiers = map[string]string{
	"AWS::SQS::Queue": "QueueUrl", "AWS::SNS::Topic": "TopicArn", "AWS::SSM::Parameter": "Name", "AWS::Logs::LogGroup": "LogGroupName",
	"AWS::S3::Bucket": "BucketName",
}

// bring puts the files of a stack and its resources where the plane finds them, as if it had made them itself.
func bring(t *testing.T, p *Plane, dir, stack string, record, journal []byte) {
	t.Helper()
	ctx := context.Background()
	put := func(key string, body []byte) {
		if body == nil {
			return
		}
		if _, err := p.engine.Objects.Put(ctx, key, body, objectstore.Condition{}); err != nil {
			t.Fatal(err)
		}
	}
	put(p.States().StateKey(stack, sampleRegion), record)
	put(p.States().JournalKey(stack, sampleRegion), journal)
	db, err := sql.Open("sqlite", filepath.Join(dir, sandbox.DatabaseName))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // what it wrote is read below
	rec, err := state.Decode(record)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rec.Resources {
		model, filled := map[string]any{}, "[]"
		for k, v := range r.Properties {
			model[k] = v
		}
		if key, known := identifiers[r.ResourceType]; known {
			model[key], filled = r.PhysicalID, `["`+key+`"]`
		}
		body, err := json.Marshal(model)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec(`INSERT INTO resources (account, region, type, identifier, route, direct, model, filled, born) VALUES (?, ?, ?, ?, 'sdk', ?, ?, ?, 0)`,
			sampleAccount, sampleRegion, r.ResourceType, r.PhysicalID, r.PhysicalID, string(body), filled); err != nil {
			t.Fatal(err)
		}
	}
}

// rollBack rolls one stack back and waits for the end.
func rollBack(t *testing.T, p *Plane, stack string, opts run.Options) runlog.Header {
	t.Helper()
	stacks := []*assembly.Stack{{ID: stack, Name: stack, DisplayName: stack, Account: p.account, Region: p.region}}
	runID, err := p.Submit(context.Background(), nil, stacks, run.Submission{Command: runlog.CommandRollback, Options: opts, Caller: "test"})
	if err != nil {
		t.Fatal(err)
	}
	h, err := p.Wait(context.Background(), runID)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// comparable is a record without what differs from one deploying tool to the other: the time, what the service was
// seen to have, and the attributes that a service reports.
func comparable(t *testing.T, body []byte) object {
	t.Helper()
	if body == nil {
		return nil
	}
	var rec object
	if err := json.Unmarshal(body, &rec); err != nil {
		t.Fatal(err)
	}
	delete(rec, "lastModified")
	for _, r := range rec["resources"].(object) {
		delete(r.(object), "observedProperties")
		delete(r.(object), "attributes")
	}
	return rec
}

// TestTheJournalsThatCdkdHasWrittenAreReplayed: from the files that a failed deploy of cdkd's has left, to those that its
// own rollback leaves where there are such.
func TestTheJournalsThatCdkdHasWrittenAreReplayed(t *testing.T) {
	for _, c := range []struct{ from, to, stack string }{
		{"06-failures/04-state-show", "06-failures/05-rollback", "Fail"},
		{"06-failures/06-no-rollback-again", "06-failures/05-rollback", "Fail"},
		{"06-failures/10-first-deploy-no-rollback", "06-failures/11-first-rollback", "First"},
		{"06-failures/12-first-auto-rollback-partially-fails", "06-failures/13-first-rollback-after", "First"},
		// The rest has nothing left to undo, and cdkd was not asked to: the record stays.
		{"06-failures/02-update-fails-auto-rollback", "06-failures/02-update-fails-auto-rollback", "Fail"},
		{"01-basic/06-replace-reversed-by-rollback", "01-basic/06-replace-reversed-by-rollback", "Basic"},
		{"01-basic/05-replace-refused", "01-basic/05-replace-refused", "Basic"},
		// A first deploy: nothing remains.
		{"06-failures/00-initial-deploy-fails-auto-rollback-intr", "", "Intr"},
		{"06-failures/20-commadelimitedlist-default-not-coerced", "", "Intr"},
		{"09-lock-interrupt/07-state-after-interrupt", "", "Intrp"},
	} {
		t.Run(c.from, func(t *testing.T) {
			record, journal := sampleFile(t, c.from, c.stack, "state.json"), sampleFile(t, c.from, c.stack, "rollback-journal.json")
			if record == nil || journal == nil {
				t.Fatal("the sample has no record or no journal")
			}
			dir := t.TempDir()
			p := openPlane(t, Options{Dir: dir, Account: sampleAccount, Region: sampleRegion})
			bring(t, p, dir, c.stack, record, journal)
			h := rollBack(t, p, c.stack, run.Options{})
			if h.Result != runlog.ResultSucceeded {
				t.Fatal(story(t, p, h))
			}
			var want []byte
			if c.to != "" {
				want = sampleFile(t, c.to, c.stack, "state.json")
			}
			var got []byte
			if obj, err := p.engine.Objects.Get(context.Background(), p.States().StateKey(c.stack, sampleRegion)); err == nil {
				got = obj.Body
			}
			if d := cmp.Diff(comparable(t, want), comparable(t, got)); d != "" {
				t.Errorf("the record (-cdkd's +ours):\n%s\n%s", d, story(t, p, h))
			}
			if _, _, err := p.States().LoadJournal(context.Background(), c.stack, sampleRegion); !state.IsNotFound(err) {
				t.Errorf("the journal: %v", err)
			}
			named := map[string]map[string]any{}
			if got != nil {
				rec, err := state.Decode(got)
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range rec.Resources {
					named[r.ResourceType+" "+r.PhysicalID] = r.Properties
				}
			}
			live, err := p.Sandbox().List(context.Background(), sandbox.Filter{})
			if err != nil {
				t.Fatal(err)
			}
			if len(live) != len(named) {
				t.Errorf("%d resources exist, %d are recorded", len(live), len(named))
			}
			for _, r := range live {
				for name, value := range named[r.Type+" "+r.Identifier] {
					if d := cmp.Diff(jsonText(t, value), jsonText(t, r.Properties[name])); d != "" {
						t.Errorf("%s of %s (-record +sandbox):\n%s", name, r.Identifier, d)
					}
				}
			}
		})
	}
}

func jsonText(t *testing.T, v any) string {
	t.Helper()
	body, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}
