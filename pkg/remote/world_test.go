package remote_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/admission"
	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/asset"
	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/local"
	"github.com/slipway-cdk/slipway/pkg/objectstore"
	"github.com/slipway-cdk/slipway/pkg/remote"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/sandbox"
	"github.com/slipway-cdk/slipway/pkg/secret"
	"github.com/slipway-cdk/slipway/pkg/upload"
	"github.com/slipway-cdk/slipway/pkg/upload/uploadtest"
)

const (
	ann     = "AROAWEB:ann"
	mallory = "AIDAMALLORY"
	// password is what must not be readable anywhere.
	password = "correct-horse-battery"
)

// world is a control plane without AWS: the state machines, handlers and stores of --local, with a bucket for uploads.
type world struct {
	*testing.T
	ctx    context.Context
	plane  *local.Plane
	bucket *uploadtest.Bucket
	dir    string
	// inputs are those of all executions that were started from outside, by name.
	inputs map[string]string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, ctx: context.Background(), dir: t.TempDir(), bucket: &uploadtest.Bucket{Owner: sandbox.DefaultAccount}, inputs: map[string]string{}}
	var err error
	if w.plane, err = local.Open(w.ctx, local.Options{Dir: w.dir}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.plane.Close(); err != nil {
			t.Error(err)
		}
	})
	e := w.plane.Engine
	desk := &admission.Desk{Engine: e, Bucket: w.bucket, Name: "uploads", Account: sandbox.DefaultAccount, Region: sandbox.DefaultRegion}
	e.Admission = desk
	e.Uploads = &admission.Publisher{Desk: desk, Bucket: asset.LocalBucket{Dir: filepath.Join(w.dir, "assets")}, TempDir: t.TempDir()}
	e.Reports = &admission.Reports{API: w.bucket, Bucket: "uploads", Account: sandbox.DefaultAccount}
	return w
}

// StartExecution implements remote.Starter. It returns when the execution has ended, so that nobody waits by the clock.
func (w *world) StartExecution(ctx context.Context, name string, input []byte) error {
	w.inputs[name] = string(input)
	if err := w.plane.StartExecution(ctx, name, input); err != nil {
		return err
	}
	return w.plane.WaitExecution(ctx, name)
}

// as is the control plane as somebody sees it.
func (w *world) as(who string) *remote.Plane {
	return &remote.Plane{
		Account: sandbox.DefaultAccount, Region: sandbox.DefaultRegion, Who: who, Clock: clock.Real{}, Runs: w.plane.Log(), Start: w, Reports: w.bucket,
		Uploads: &upload.Client{API: w.bucket, Bucket: "uploads", Owner: sandbox.DefaultAccount, TempDir: w.TempDir()},
		Sealer:  &secret.KeyFile{Path: filepath.Join(w.dir, "vault.key")},
	}
}

func (w *world) policy(text string) {
	w.Helper()
	if _, err := w.plane.Engine.Objects.Put(w.ctx, admission.PolicyKey, []byte(text), objectstore.Condition{}); err != nil {
		w.Fatal(err)
	}
}

// header is that of a run, which must be closed.
func (w *world) header(runID string) runlog.Header {
	w.Helper()
	h, err := w.plane.Log().Header(w.ctx, runID)
	if err != nil {
		w.Fatal(err)
	}
	if h.Status != runlog.StatusClosed {
		w.Fatalf("run %s is %s", runID, h.Status)
	}
	return h
}

// failed checks that a run has failed for a reason.
func (w *world) failed(runID, reason string) {
	w.Helper()
	h := w.header(runID)
	if h.Result != runlog.ResultFailed || !strings.Contains(h.Diagnostics.Error(), reason) {
		w.Errorf("run %s ended as %s: %v, want %q", runID, h.Result, h.Diagnostics, reason)
	}
	if h.Failure == nil {
		w.Errorf("run %s has no failure", runID)
	}
	if last := w.events(runID); len(last) == 0 || last[len(last)-1].Type != runlog.RunFinished {
		w.Errorf("run %s has no terminal event", runID)
	}
}

func (w *world) events(runID string) []runlog.Event {
	w.Helper()
	events, err := w.plane.Log().Events(w.ctx, runID, "")
	if err != nil {
		w.Fatal(err)
	}
	return events
}

// records are the keys of the stacks' records.
func (w *world) records() []string {
	w.Helper()
	infos, err := w.plane.Engine.Objects.List(w.ctx, "cdkd/")
	if err != nil {
		w.Fatal(err)
	}
	var keys []string
	for _, i := range infos {
		if strings.HasSuffix(i.Key, "/state.json") {
			keys = append(keys, i.Key)
		}
	}
	return keys
}

// webApp is an app with one stack: a topic, a queue that a NoEcho parameter names, a function's code as asset, an output.
func webApp() map[string]string {
	return map[string]string{
		"manifest.json": `{"version": "48.0.0", "artifacts": {
			"web.assets": {"type": "cdk:asset-manifest", "properties": {"file": "web.assets.json"}},
			"web": {"type": "aws:cloudformation:stack", "displayName": "web", "dependencies": ["web.assets"],
				"properties": {"templateFile": "web.template.json", "stackName": "web-app"}}}}`,
		"web.template.json": `{"Parameters": {"Secret": {"Type": "String", "NoEcho": true, "Default": "none"}, "Shown": {"Type": "String", "Default": "one"}},
			"Resources": {
				"Topic": {"Type": "AWS::SNS::Topic", "Properties": {"DisplayName": {"Ref": "Shown"}}},
				"Value": {"Type": "AWS::SSM::Parameter", "Properties": {"Type": "String", "Value": {"Ref": "Secret"}}}},
			"Outputs": {"Name": {"Value": {"Ref": "Shown"}}}}`,
		"web.assets.json": `{"version": "48.0.0", "files": {
			"code": {"source": {"path": "asset.code", "packaging": "zip"}, "destinations": {"d": {"bucketName": "assets", "objectKey": "code.zip"}}},
			"page": {"source": {"path": "asset.page.html", "packaging": "file"}, "destinations": {"d": {"bucketName": "assets", "objectKey": "page.html"}}}}}`,
		"asset.code/index.js":  "exports.handler = 1",
		"asset.code/lib/a.js":  "a",
		"asset.page.html":      "<html>",
		"asset.code2/other.js": "not of this asset",
	}
}

// synthesized writes an app to a directory and reads it.
func (w *world) synthesized(files map[string]string) *assembly.Assembly {
	w.Helper()
	dir := w.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			w.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			w.Fatal(err)
		}
	}
	asm, err := assembly.Read(dir)
	if err != nil {
		w.Fatal(err)
	}
	return asm
}

// zipped is a plain archive, as any tool makes one of a cdk.out.
func zipped(t testing.TB, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, text := range files {
		f, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(f, text); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// published is an asset as it was published.
func (w *world) published(key string) []byte {
	w.Helper()
	body, err := os.ReadFile(filepath.Join(w.dir, "assets", "assets", key))
	if err != nil {
		w.Fatal(err)
	}
	return body
}

func (w *world) quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func toJSON(t testing.TB, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
