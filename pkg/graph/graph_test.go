package graph

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// build makes a graph from "a>b" edges and single nodes.
func build(parts ...string) *Graph {
	g := New(0)
	for _, p := range parts {
		if from, to, ok := strings.Cut(p, ">"); ok {
			g.AddEdge(from, to)
		} else {
			g.AddNode(p)
		}
	}
	return g
}

func TestTheZeroGraphWorks(t *testing.T) {
	var g Graph
	if order, err := g.TopologicalOrder(); err != nil || len(order) != 0 {
		t.Errorf("order of nothing = %v, %v", order, err)
	}
	if levels, err := g.Levels(); err != nil || len(levels) != 0 {
		t.Errorf("levels of nothing = %v, %v", levels, err)
	}
	g.AddEdge("a", "b", "why")
	if got := g.Dependents("a"); !slices.Equal(got, []string{"b"}) {
		t.Errorf("dependents of a = %v", got)
	}
	if got := g.Labels("a", "b"); !slices.Equal(got, []string{"why"}) {
		t.Errorf("labels = %v", got)
	}
}

func TestOrderBreaksTiesByInsertion(t *testing.T) {
	for _, tt := range []struct {
		parts []string
		want  string
	}{
		{[]string{"c", "b", "a"}, "c b a"},
		{[]string{"c", "b", "a", "a>b"}, "c a b"},
		{[]string{"z", "y", "x", "x>z"}, "y x z"},
		{[]string{"d", "c", "b", "a", "a>d", "b>d", "c>d"}, "c b a d"},
		{[]string{"a", "b", "a>b", "a>b", "a>b"}, "a b"},
	} {
		order, err := build(tt.parts...).TopologicalOrder()
		if got := strings.Join(order, " "); err != nil || got != tt.want {
			t.Errorf("%v: order %q, %v; want %q", tt.parts, got, err, tt.want)
		}
	}
}

func TestLevelsFollowTheLongestPath(t *testing.T) {
	levels, err := build("vpc>subnet", "vpc>instance", "subnet>instance", "bucket").Levels()
	if got, want := fmt.Sprint(levels), "[[vpc bucket] [subnet] [instance]]"; err != nil || got != want {
		t.Errorf("levels = %s, %v; want %s", got, err, want)
	}
}

func TestReadyNeedsEveryDependency(t *testing.T) {
	g := build("a>c", "b>c", "c>d")
	for _, tt := range []struct{ done, want string }{
		{"", "a b"}, {"a", "b"}, {"a b", "c"}, {"a b c", "d"}, {"a b c d", ""}, {"c", "a b d"},
	} {
		done := map[string]bool{}
		for _, n := range strings.Fields(tt.done) {
			done[n] = true
		}
		if got := strings.Join(g.Ready(done), " "); got != tt.want {
			t.Errorf("ready after %q = %q, want %q", tt.done, got, tt.want)
		}
	}
}

func TestRemoveEdgeForgetsItsLabels(t *testing.T) {
	g := New(2)
	g.AddEdge("a", "b", "x")
	g.RemoveEdge("a", "b")
	g.RemoveEdge("a", "nowhere")
	if g.HasEdge("a", "b") || g.EdgeCount() != 0 || len(g.Dependencies("b")) != 0 {
		t.Error("the edge is still there")
	}
	g.AddEdge("a", "b")
	if got := g.Labels("a", "b"); got != nil {
		t.Errorf("labels came back: %v", got)
	}
}

func TestCyclesNamesTheShortestWithItsLabels(t *testing.T) {
	g := New(0)
	g.AddEdge("a", "b", "b.P")
	g.AddEdge("b", "c", "c.P")
	g.AddEdge("c", "d", "d.P")
	g.AddEdge("d", "a", "a.P")
	g.AddEdge("c", "b", "b.Q")
	g.AddEdge("c", "b", "b.R")
	g.AddEdge("x", "x", "x.Self")
	g.AddNode("alone")
	cycles := g.Cycles()
	if len(cycles) != 2 {
		t.Fatalf("cycles = %v", cycles)
	}
	if got := cycles[0].String(); got != "x → x" {
		t.Errorf("first cycle %q", got)
	}
	if got := cycles[1].String(); got != "b → c → b" {
		t.Errorf("second cycle %q", got)
	}
	if got := cycles[1].Edges[1].Labels; !slices.Equal(got, []string{"b.Q", "b.R"}) {
		t.Errorf("labels of c → b: %v", got)
	}
	_, err := g.TopologicalOrder()
	var cyclic *CycleError
	if !errors.As(err, &cyclic) || err.Error() != "the graph has a cycle: x → x (and 1 more)" {
		t.Errorf("error %v", err)
	}
	if _, err := g.Levels(); !errors.As(err, &cyclic) {
		t.Errorf("levels of a cyclic graph: %v", err)
	}
}

func TestTransitiveDependentsOfACyclicGraphAreStillCounted(t *testing.T) {
	counts := build("a>b", "b>a", "b>c").TransitiveDependents()
	if counts["a"] != 2 || counts["b"] != 2 || counts["c"] != 0 {
		t.Errorf("counts = %v", counts)
	}
}

func TestContractKeepsPathsThroughDroppedNodes(t *testing.T) {
	g := build("a>b", "b>c", "c>d", "x>b", "d>e")
	c := g.Contract(func(n string) bool { return n == "a" || n == "d" || n == "e" })
	if !c.HasEdge("a", "d") || !c.HasEdge("d", "e") || c.HasEdge("a", "e") || c.Has("b") || c.EdgeCount() != 2 {
		t.Errorf("contracted to %v", c.Edges())
	}
}

func TestALongChainDoesNotExhaustTheStack(t *testing.T) {
	g := New(0)
	const n = 100_000
	for i := range n {
		g.AddEdge(fmt.Sprint(i), fmt.Sprint((i+1)%n))
	}
	cycles := g.Cycles()
	if len(cycles) != 1 || len(cycles[0].Nodes) != n {
		t.Errorf("%d cycles", len(cycles))
	}
}

// drawGraph draws a graph of up to 30 nodes; an acyclic one has edges from lower to higher numbers only, in a
// shuffled insertion order.
func drawGraph(t *rapid.T, acyclic bool) *Graph {
	n := rapid.IntRange(0, 30).Draw(t, "nodes")
	g := New(n)
	if n == 0 {
		return g
	}
	names := make([]int, n)
	for i := range names {
		names[i] = i
	}
	for _, i := range rapid.Permutation(names).Draw(t, "insertion") {
		g.AddNode(fmt.Sprint(i))
	}
	for range rapid.IntRange(0, 3*n).Draw(t, "edges") {
		a, b := rapid.IntRange(0, n-1).Draw(t, "from"), rapid.IntRange(0, n-1).Draw(t, "to")
		if acyclic {
			if a == b {
				continue
			}
			a, b = min(a, b), max(a, b)
		}
		g.AddEdge(fmt.Sprint(a), fmt.Sprint(b))
	}
	return g
}

func TestEveryOrderRespectsEveryEdge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGraph(t, true)
		order, err := g.TopologicalOrder()
		if err != nil {
			t.Fatal(err)
		}
		position := map[string]int{}
		for i, n := range order {
			position[n] = i
		}
		if len(position) != g.Len() {
			t.Fatalf("%d of %d nodes are in the order", len(position), g.Len())
		}
		levels, err := g.Levels()
		if err != nil {
			t.Fatal(err)
		}
		level := map[string]int{}
		for i, names := range levels {
			for _, n := range names {
				level[n] = i
			}
		}
		reversed, err := g.Reverse().TopologicalOrder()
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range g.Edges() {
			if position[e.From] >= position[e.To] {
				t.Fatalf("%s comes after %s", e.From, e.To)
			}
			if level[e.From] >= level[e.To] {
				t.Fatalf("%s is not below %s", e.From, e.To)
			}
			if slices.Index(reversed, e.From) <= slices.Index(reversed, e.To) {
				t.Fatalf("reversed: %s comes before %s", e.From, e.To)
			}
		}
	})
}

func TestReadyAlwaysMakesProgressToTheEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGraph(t, true)
		done := map[string]bool{}
		for len(done) < g.Len() {
			ready := g.Ready(done)
			if len(ready) == 0 {
				t.Fatalf("stuck with %d of %d done", len(done), g.Len())
			}
			n := rapid.SampledFrom(ready).Draw(t, "next")
			for _, d := range g.Dependencies(n) {
				if !done[d] {
					t.Fatalf("%s is ready before %s", n, d)
				}
			}
			done[n] = true
		}
	})
}

func TestTransitiveDependentsEqualTheDescendants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGraph(t, rapid.Bool().Draw(t, "acyclic"))
		counts := g.TransitiveDependents()
		for _, n := range g.Nodes() {
			if want := len(g.Descendants(n)); counts[n] != want {
				t.Fatalf("%s has %d dependents, counted %d", n, want, counts[n])
			}
			for _, d := range g.Descendants(n) {
				if !slices.Contains(g.Ancestors(d), n) {
					t.Fatalf("%s descends from %s, but not the other way round", d, n)
				}
			}
		}
	})
}

func TestACycleIsARealOneAndNoShorterOneExists(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGraph(t, false)
		cycles := g.Cycles()
		_, err := g.TopologicalOrder()
		if (err != nil) != (len(cycles) > 0) {
			t.Fatalf("order says %v, cycles are %v", err, cycles)
		}
		for _, c := range cycles {
			for i, n := range c.Nodes {
				if next := c.Nodes[(i+1)%len(c.Nodes)]; !g.HasEdge(n, next) {
					t.Fatalf("%s: there is no edge %s → %s", c, n, next)
				}
			}
		}
		// The shortest closed walk by the powers of the adjacency relation.
		for length := 1; len(cycles) > 0 && length < len(cycles[0].Nodes); length++ {
			for _, n := range g.Nodes() {
				at := map[string]bool{n: true}
				for range length {
					next := map[string]bool{}
					for m := range at {
						for _, d := range g.Dependents(m) {
							next[d] = true
						}
					}
					at = next
				}
				if at[n] {
					t.Fatalf("%s is on a cycle of %d, found %s", n, length, cycles[0])
				}
			}
		}
	})
}

func TestContractionKeepsExactlyTheOrderOfTheKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		acyclic := rapid.Bool().Draw(t, "acyclic")
		g := drawGraph(t, acyclic)
		kept := map[string]bool{}
		for _, n := range g.Nodes() {
			kept[n] = rapid.Bool().Draw(t, n)
		}
		c := g.Contract(func(n string) bool { return kept[n] })
		for _, n := range c.Nodes() {
			var want []string
			for _, d := range g.Descendants(n) {
				if kept[d] {
					want = append(want, d)
				}
			}
			if got := c.Descendants(n); !slices.Equal(got, want) {
				t.Fatalf("after %s come %v, want %v", n, got, want)
			}
			for _, d := range c.Dependents(n) {
				if !acyclic || g.HasEdge(n, d) {
					continue
				}
				for _, other := range c.Dependents(n) {
					if slices.Contains(c.Ancestors(d), other) {
						t.Fatalf("the edge %s → %s says no more than that by way of %s", n, d, other)
					}
				}
			}
		}
	})
}

func TestReverseTwiceIsTheSameGraph(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGraph(t, false)
		back := g.Reverse().Reverse()
		if !slices.Equal(back.Nodes(), g.Nodes()) || back.EdgeCount() != g.EdgeCount() {
			t.Fatal("nodes or edges differ")
		}
		for _, e := range g.Edges() {
			if !back.HasEdge(e.From, e.To) {
				t.Fatalf("%s → %s is lost", e.From, e.To)
			}
		}
	})
}

// layered makes n nodes with three dependencies each, in the manner of a large stack.
func layered(n int) *Graph {
	g := New(n)
	for i := range n {
		g.AddNode(fmt.Sprint(i))
		for _, back := range []int{1, 7, 50} {
			if i >= back && i%10 != 0 {
				g.AddEdge(fmt.Sprint(i-back), fmt.Sprint(i))
			}
		}
	}
	return g
}

func BenchmarkTransitiveDependents(b *testing.B) {
	for _, n := range []int{500, 10_000} {
		g := layered(n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				g.TransitiveDependents()
			}
		})
	}
}

func BenchmarkContract(b *testing.B) {
	for _, n := range []int{500, 10_000} {
		g := layered(n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				g.Contract(func(name string) bool { return (name[len(name)-1]-'0')%2 == 0 })
			}
		})
	}
}

func BenchmarkTopologicalOrder(b *testing.B) {
	for _, n := range []int{500, 10_000} {
		g := layered(n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				if _, err := g.TopologicalOrder(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCyclesOfALargeComponent(b *testing.B) {
	g := layered(10_000)
	g.AddEdge("9999", "0")
	for b.Loop() {
		if len(g.Cycles()) == 0 {
			b.Fatal("no cycle")
		}
	}
}
