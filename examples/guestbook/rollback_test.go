package main

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/local"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/sandbox"
	"github.com/slipway-cdk/slipway/pkg/state"
)

const (
	account = "111122223333"
	region  = "eu-west-1"
	webName = "GuestbookWeb"
)

// taken is the name of a queue that somebody else has already made.
const taken = "inbox"

// newPlane is a simulated AWS in which the name of a queue is taken.
func newPlane(t *testing.T) *local.Plane {
	t.Helper()
	p, err := local.Open(t.Context(), local.Options{Dir: t.TempDir(), Account: account, Region: region})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	dir := t.TempDir()
	for name, body := range map[string]string{
		"manifest.json": `{"version":"38.0.0","artifacts":{"Other":{"type":"aws:cloudformation:stack","environment":"aws://` + account + "/" + region +
			`","properties":{"templateFile":"other.json"}}}}`,
		"other.json": `{"Resources":{"Queue":{"Type":"AWS::SQS::Queue","Properties":{"QueueName":"` + taken + `"}}}}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	other, err := assembly.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if h := deploy(t, p, other, run.Options{}); h.Result != runlog.ResultSucceeded {
		t.Fatalf("%s %+v", h.Result, h.Failure)
	}
	return p
}

func deploy(t *testing.T, p *local.Plane, asm *assembly.Assembly, opts run.Options) runlog.Header {
	t.Helper()
	ctx := context.Background()
	id, err := p.Submit(ctx, asm, asm.Stacks, run.Submission{Command: runlog.CommandDeploy, Options: opts, Caller: "test@host"})
	if err != nil {
		t.Fatal(err)
	}
	h, err := p.Wait(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// record is the record of the web stack, nil where there is none.
func record(t *testing.T, p *local.Plane) *state.Record {
	t.Helper()
	rec, _, err := p.States().Load(context.Background(), webName, region)
	if state.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	rec.LastModified = 0
	return rec
}

// live is everything that exists, by type and identifier.
func live(t *testing.T, p *local.Plane) map[string]map[string]any {
	t.Helper()
	list, err := p.Sandbox().List(context.Background(), sandbox.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]map[string]any{}
	for _, r := range list {
		out[r.Type+" "+r.Identifier] = r.Properties
	}
	return out
}

// files are what stands beside the web stack's record.
func files(t *testing.T, p *local.Plane) []string {
	t.Helper()
	infos, err := p.States().Objects.List(context.Background(), "")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, i := range infos {
		if strings.Contains(i.Key, "/"+webName+"/") && !strings.Contains(i.Key, "/deployments/") {
			out = append(out, i.Key)
		}
	}
	return out
}

// creations counts the requests that have made something.
func creations(p *local.Plane) int {
	n := 0
	for name, calls := range p.Sandbox().Calls() {
		if strings.HasSuffix(name, "CreateResource") || strings.HasSuffix(name, "Sandbox.Create") {
			n += calls
		}
	}
	return n
}

// settings differ from the defaults in the middle of the web stack: its queue gets a name, a dead-letter queue, and
// the function and its routes change with it.
func settings(queue string) []string {
	return []string{"message=Hello", "visibility=90", "route=/notes", "archive=true", "queue=" + queue}
}

func mustSynthesize(t *testing.T, context ...string) *assembly.Assembly {
	t.Helper()
	asm, err := synthesize(t, context...)
	if err != nil {
		t.Fatal(err)
	}
	return asm
}

func TestAFailingResourceInTheMiddle(t *testing.T) {
	good, bad, fixed := mustSynthesize(t), mustSynthesize(t, settings(taken)...), mustSynthesize(t, settings("letters")...)
	t.Run("is rolled back to what was before", func(t *testing.T) { testRolledBack(t, good, bad) })
	t.Run("of a first deploy leaves nothing", func(t *testing.T) { testFirstDeploy(t, bad) })
	t.Run("without rollback is gone on with", func(t *testing.T) { testGoneOn(t, bad, fixed) })
}

func testRolledBack(t *testing.T, good, bad *assembly.Assembly) {
	p := newPlane(t)
	if h := deploy(t, p, good, run.Options{}); h.Result != runlog.ResultSucceeded {
		t.Fatalf("%s %+v", h.Result, h.Failure)
	}
	was, lived := record(t, p), live(t, p)
	h := deploy(t, p, bad, run.Options{})
	if h.Result != runlog.ResultFailed || h.Failure == nil || !strings.HasPrefix(h.Failure.LogicalID, "Inbox") {
		t.Fatalf("%s %+v", h.Result, h.Failure)
	}
	if d := gocmp.Diff(was, record(t, p)); d != "" {
		t.Errorf("the record (-before +after):\n%s", d)
	}
	if d := gocmp.Diff(lived, live(t, p)); d != "" {
		t.Errorf("what exists (-before +after):\n%s", d)
	}
	if h := deploy(t, p, good, run.Options{}); h.Result != runlog.ResultSucceeded || h.Counts.Created+h.Counts.Updated+h.Counts.Replaced+h.Counts.Deleted != 0 {
		t.Errorf("the version before is not what stands: %+v", h.Counts)
	}
}

func testFirstDeploy(t *testing.T, bad *assembly.Assembly) {
	p := newPlane(t)
	data := *bad
	data.Stacks = bad.Stacks[:1]
	if h := deploy(t, p, &data, run.Options{}); h.Result != runlog.ResultSucceeded {
		t.Fatalf("%s %+v", h.Result, h.Failure)
	}
	lived := live(t, p)
	if h := deploy(t, p, bad, run.Options{}); h.Result != runlog.ResultFailed {
		t.Fatalf("%s %+v", h.Result, h.Failure)
	}
	if d := gocmp.Diff(lived, live(t, p)); d != "" {
		t.Errorf("what exists (-before +after):\n%s", d)
	}
	if left := files(t, p); len(left) > 0 {
		t.Errorf("files are left: %v", left)
	}
}

func testGoneOn(t *testing.T, bad, fixed *assembly.Assembly) {
	p := newPlane(t)
	if h := deploy(t, p, bad, run.Options{NoRollback: true}); h.Result != runlog.ResultFailed {
		t.Fatalf("%s %+v", h.Result, h.Failure)
	}
	kept := record(t, p)
	if kept == nil || len(kept.Resources) == 0 {
		t.Fatal("nothing is kept")
	}
	before := creations(p)
	h := deploy(t, p, fixed, run.Options{})
	if h.Result != runlog.ResultSucceeded {
		t.Fatalf("%s %+v", h.Result, h.Failure)
	}
	is := record(t, p)
	if made, missing := creations(p)-before, len(is.Resources)-len(kept.Resources); made != missing {
		t.Errorf("%d requests to create, %d resources were missing", made, missing)
	}
	for id, r := range kept.Resources {
		if now := is.Resources[id]; now == nil || now.PhysicalID != r.PhysicalID {
			t.Errorf("%s was made again", id)
		}
	}
	if left := files(t, p); slices.ContainsFunc(left, func(key string) bool { return strings.HasSuffix(key, "rollback-journal.json") }) {
		t.Errorf("the journal is left: %v", left)
	}
	clean := newPlane(t)
	if h := deploy(t, clean, fixed, run.Options{}); h.Result != runlog.ResultSucceeded {
		t.Fatalf("%s %+v", h.Result, h.Failure)
	}
	if d := gocmp.Diff(anonymous(t, record(t, clean)), anonymous(t, is)); d != "" {
		t.Errorf("the record (-clean deploy +resumed one):\n%s", d)
	}
}

// anonymous is a record with the names that AWS has made up replaced by what they are the names of.
func anonymous(t *testing.T, rec *state.Record) map[string]any {
	t.Helper()
	body, err := rec.Encode()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{}
	call := func(name, what string) {
		if _, known := names[name]; !known && len(name) > 3 {
			names[name] = what
		}
	}
	for _, id := range slices.Sorted(maps.Keys(rec.Resources)) {
		r := rec.Resources[id]
		call(r.PhysicalID, id)
		for _, attribute := range slices.Sorted(maps.Keys(r.Attributes)) {
			if s, ok := r.Attributes[attribute].(string); ok {
				call(s, id+"."+attribute)
			}
		}
	}
	text := string(body)
	// Longer ones first: a name can be part of an ARN.
	order := slices.SortedFunc(maps.Keys(names), func(a, b string) int {
		return cmp.Or(len(b)-len(a), strings.Compare(names[a], names[b]))
	})
	for _, name := range order {
		quoted, err := json.Marshal(name)
		if err != nil {
			t.Fatal(err)
		}
		text = strings.ReplaceAll(text, strings.Trim(string(quoted), `"`), "<"+names[name]+">")
	}
	var out map[string]any
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}
