package local

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/objectstore"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// object is a JSON object of a template that a test writes itself.
type object = map[string]any

func ref(id string) object            { return object{"Ref": id} }
func att(id, attribute string) object { return object{"Fn::GetAtt": []any{id, attribute}} }
func resource(typ string, properties object) object {
	return object{"Type": typ, "Properties": properties}
}

// with adds a member to a resource: DependsOn, DeletionPolicy, Condition.
func with(r object, key string, value any) object {
	r[key] = value
	return r
}

// writeApp writes a cloud assembly of the given templates, by stack name, and reads it. Every stack depends on
// the ones that dependsOn lists for it.
func writeApp(t *testing.T, templates map[string]object, dependsOn map[string][]string) *assembly.Assembly {
	t.Helper()
	dir := t.TempDir()
	artifacts := object{}
	for name, template := range templates {
		write(t, filepath.Join(dir, name+".template.json"), template)
		artifacts[name] = object{
			"type": "aws:cloudformation:stack", "environment": "aws://unknown-account/unknown-region", "displayName": name,
			"dependencies": dependsOn[name], "properties": object{"templateFile": name + ".template.json"},
		}
	}
	write(t, filepath.Join(dir, assembly.ManifestFile), object{"version": fmt.Sprintf("%d.0.0", assembly.SchemaVersion), "artifacts": artifacts})
	return readAssembly(t, dir)
}

func write(t *testing.T, file string, v any) {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// intercept stands between the engine and a provider. call makes the step: "create", "update", "delete",
// "poll" or "read".
type intercept func(step string, req provider.Request, call func() (provider.Progress, error)) (provider.Progress, error)

// through is the decorator for Options.WrapProvider.
func through(f intercept) func(provider.Provider) provider.Provider {
	return func(p provider.Provider) provider.Provider { return &intercepted{p, f} }
}

type intercepted struct {
	provider.Provider
	f intercept
}

func (i *intercepted) Create(ctx context.Context, req provider.Request) (provider.Progress, error) {
	return i.f("create", req, func() (provider.Progress, error) { return i.Provider.Create(ctx, req) })
}

func (i *intercepted) Update(ctx context.Context, req provider.Request) (provider.Progress, error) {
	return i.f("update", req, func() (provider.Progress, error) { return i.Provider.Update(ctx, req) })
}

func (i *intercepted) Delete(ctx context.Context, req provider.Request) (provider.Progress, error) {
	return i.f("delete", req, func() (provider.Progress, error) { return i.Provider.Delete(ctx, req) })
}

func (i *intercepted) Poll(ctx context.Context, req provider.Request, h provider.Handle) (provider.Progress, error) {
	return i.f("poll", req, func() (provider.Progress, error) { return i.Provider.Poll(ctx, req, h) })
}

// tracer sees every step by which a run touches the world: the calls of providers ("before create Queue",
// "after create Queue") and the writes of the engine ("put state.json", "header stack OPEN").
type tracer struct {
	mu   sync.Mutex
	seen map[string]int
	list []string
	// hit, when set, is called at every step, with how often it has been seen.
	hit func(step string, nth int)
}

func (t *tracer) at(step string) {
	t.mu.Lock()
	if t.seen == nil {
		t.seen = map[string]int{}
	}
	t.seen[step]++
	nth := t.seen[step]
	t.list = append(t.list, step)
	t.mu.Unlock()
	if t.hit != nil {
		t.hit(step, nth)
	}
}

// steps returns the steps so far, each once, in the order in which they were first seen.
func (t *tracer) steps() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := map[string]bool{}
	var out []string
	for _, s := range t.list {
		if !known[s] {
			known[s] = true
			out = append(out, s)
		}
	}
	return out
}

func (t *tracer) provider(step string, req provider.Request, call func() (provider.Progress, error)) (provider.Progress, error) {
	t.at("before " + step + " " + req.LogicalID)
	progress, err := call()
	if err == nil {
		t.at("after " + step + " " + req.LogicalID)
	}
	return progress, err
}

// failing is a decorator under which one step of one resource ("create Queue") fails for good. Nothing fails for "".
func failing(step string) func(provider.Provider) provider.Provider {
	return through(func(s string, req provider.Request, call func() (provider.Progress, error)) (provider.Progress, error) {
		if s+" "+req.LogicalID == step {
			return provider.Progress{}, &provider.Error{Kind: provider.KindInvalid, Code: "InvalidRequest", Message: "refused by the test"}
		}
		return call()
	})
}

// trace opens a plane whose steps tr sees. A decorator in opts stays the inner one.
func trace(ctx context.Context, opts Options, tr *tracer) (*Plane, error) {
	inner, outer := opts.WrapProvider, through(tr.provider)
	opts.WrapProvider = func(p provider.Provider) provider.Provider {
		if inner != nil {
			p = inner(p)
		}
		return outer(p)
	}
	p, err := Open(ctx, opts)
	if err != nil {
		return nil, err
	}
	objects := &tracedObjects{p.engine.Objects, tr}
	p.engine.Objects, p.engine.States.Objects = objects, objects
	p.engine.Log = &tracedLog{p.engine.Log, tr}
	return p, nil
}

type tracedObjects struct {
	objectstore.Store
	tr *tracer
}

func objectLabel(key string) string {
	if strings.Contains(key, "/decisions/") {
		return "decision"
	}
	if strings.Contains(key, "/waves/") {
		return "wave"
	}
	if path.Ext(key) == ".jsonl" {
		return "story of a run" // its name holds the run's id
	}
	return path.Base(key)
}

func (s *tracedObjects) Put(ctx context.Context, key string, body []byte, c objectstore.Condition) (string, error) {
	etag, err := s.Store.Put(ctx, key, body, c)
	if err == nil {
		s.tr.at("put " + objectLabel(key))
	}
	return etag, err
}

func (s *tracedObjects) Delete(ctx context.Context, key string, c objectstore.Condition) error {
	err := s.Store.Delete(ctx, key, c)
	if err == nil {
		s.tr.at("remove " + objectLabel(key))
	}
	return err
}

type tracedLog struct {
	runlog.Store
	tr *tracer
}

func (s *tracedLog) CreateRun(ctx context.Context, h runlog.Header) (runlog.Header, error) {
	out, err := s.Store.CreateRun(ctx, h)
	if err == nil {
		s.tr.at("header " + string(h.Kind) + " NEW")
	}
	return out, err
}

func (s *tracedLog) UpdateHeader(ctx context.Context, h runlog.Header) (runlog.Header, error) {
	out, err := s.Store.UpdateHeader(ctx, h)
	if err == nil {
		label := fmt.Sprintf("header %s %s", h.Kind, h.Status)
		if h.Kind == runlog.KindStack && h.Status == runlog.StatusOpen {
			label += fmt.Sprintf(" %d", h.Decision) // a deployment's decisions depend on how long its stacks take
		}
		s.tr.at(label)
	}
	return out, err
}

func (s *tracedLog) PutOp(ctx context.Context, runID string, in runlog.Status, op runlog.Op) (runlog.Op, error) {
	out, err := s.Store.PutOp(ctx, runID, in, op)
	if err == nil {
		s.tr.at("op " + op.OpID + " " + string(op.Status))
	}
	return out, err
}

func (s *tracedLog) Append(ctx context.Context, events ...runlog.Event) error {
	err := s.Store.Append(ctx, events...)
	if err == nil && len(events) > 0 {
		kind := "stack"
		if events[0].RunID == events[0].Root {
			kind = "deployment"
		}
		s.tr.at("event " + kind + " " + string(events[0].Type))
	}
	return err
}
