package run_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/localdb"
	"github.com/slipway-cdk/slipway/pkg/objectstore"
	objects "github.com/slipway-cdk/slipway/pkg/objectstore/local"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	logs "github.com/slipway-cdk/slipway/pkg/runlog/local"
	"github.com/slipway-cdk/slipway/pkg/state"
)

// layers is a stack of n resources in ten layers: each reads one of the layer before.
func layers(n int) object {
	r := object{}
	width := max(n/10, 1)
	for i := range n {
		id := fmt.Sprintf("R%04d", i)
		if i < width {
			r[id] = topic(object{"DisplayName": fmt.Sprint("topic ", i)})
			continue
		}
		r[id] = queue(object{
			"KmsMasterKeyId": ref(fmt.Sprintf("R%04d", i-width)), "VisibilityTimeout": i % 100,
			"Tags": []any{object{"Key": "stack", "Value": object{"Fn::Sub": "${AWS::StackName}-${AWS::Region}"}}},
		})
	}
	return resources(r)
}

// snapshot copies the stores, restore puts the copy back.
func (w *world) snapshot() (restore func()) {
	objs, headers, heads := maps.Clone(w.objects.objs), maps.Clone(w.log.headers), maps.Clone(w.log.heads)
	ops, events := map[string]map[string]versioned{}, map[string]map[string][]byte{}
	for id, m := range w.log.ops {
		ops[id] = maps.Clone(m)
	}
	for id, m := range w.log.events {
		events[id] = maps.Clone(m)
	}
	return func() {
		w.objects.objs, w.log.headers, w.log.heads = maps.Clone(objs), maps.Clone(headers), maps.Clone(heads)
		w.log.ops, w.log.events = map[string]map[string]versioned{}, map[string]map[string][]byte{}
		for id, m := range ops {
			w.log.ops[id] = maps.Clone(m)
		}
		for id, m := range events {
			w.log.events[id] = maps.Clone(m)
		}
	}
}

// BenchmarkNext measures one decision: the first, which starts what it can, and one in the middle, which folds a
// wave and starts the next.
func BenchmarkNext(b *testing.B) {
	for _, n := range []int{200, 2000} {
		w := newWorld(b)
		m := w.submitDeploy(layers(n))
		measure := func(b *testing.B) {
			restore := w.snapshot()
			items := 0
			b.ReportAllocs()
			b.ResetTimer()
			for b.Loop() {
				step, err := m.ask(w.engine, m.next.Decision)
				if err != nil {
					b.Fatal(err)
				}
				items = len(step.Items)
				b.StopTimer()
				restore()
				b.StartTimer()
			}
			b.ReportMetric(float64(items), "items")
		}
		m.step()
		b.Run(fmt.Sprintf("%d, first", n), measure)
		m.until(func() bool { return m.atNext() && len(w.cloud.live) >= n/2 })
		b.Run(fmt.Sprintf("%d, middle", n), measure)
	}
}

// BenchmarkRun measures a whole deploy and how much of it is one operation's, over the stores of --local.
func BenchmarkRun(b *testing.B) {
	for _, n := range []int{200, 2000} {
		for _, store := range []string{"memory", "sqlite"} {
			b.Run(fmt.Sprintf("%d, %s", n, store), func(b *testing.B) {
				for b.Loop() {
					w := newWorld(b)
					m := w.submitDeploy(layers(n))
					if store == "sqlite" {
						w.moveToSQLite(m.runID)
					}
					for !m.ended {
						m.step()
					}
					if m.result != string(runlog.ResultSucceeded) {
						b.Fatalf("%s %v", m.result, m.failed)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(n), "µs/resource")
			})
		}
	}
}

// moveToSQLite replaces the stores of the engine by those of --local, with one run that was submitted.
func (w *world) moveToSQLite(runID string) {
	w.Helper()
	db, err := localdb.Open(filepath.Join(w.TempDir(), "slipway.db"))
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = db.Close() })
	store, err := objects.New(db, w.clk)
	if err != nil {
		w.Fatal(err)
	}
	log, err := logs.New(db)
	if err != nil {
		w.Fatal(err)
	}
	for key, o := range w.objects.objs {
		if _, err := store.Put(w.Context(), key, o.Body, objectstore.Condition{}); err != nil {
			w.Fatal(err)
		}
	}
	h := w.header(runID)
	if _, err := log.CreateRun(w.Context(), h); err != nil {
		w.Fatal(err)
	}
	w.engine = &run.Engine{
		Objects: store, Log: log, States: &state.Store{Objects: store, Clock: w.clk}, Clock: w.clk,
		Providers: w.cloud, Assets: w, Facts: w, Executions: w, Holder: "process-1",
	}
}
