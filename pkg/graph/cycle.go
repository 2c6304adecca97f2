package graph

import (
	"fmt"
	"slices"
	"strings"
)

// Cycle is a closed path. Nodes[i] is the dependency of Nodes[i+1], and the last one that of the first;
// Edges[i] leads from Nodes[i] to the next. It starts at its node that was added first.
type Cycle struct {
	Nodes []string
	Edges []Edge
}

// String renders the cycle as "A → B → A", in the direction of the edges.
func (c Cycle) String() string {
	if len(c.Nodes) == 0 {
		return ""
	}
	return strings.Join(append(slices.Clone(c.Nodes), c.Nodes[0]), " → ")
}

// CycleError says that a graph that must not have cycles has some.
type CycleError struct {
	// Cycles holds one shortest cycle of every group of nodes that reach each other, the shortest first.
	Cycles []Cycle
}

// Error names the shortest cycle.
func (e *CycleError) Error() string {
	if len(e.Cycles) == 0 {
		return "the graph has a cycle"
	}
	more := ""
	if n := len(e.Cycles) - 1; n > 0 {
		more = fmt.Sprintf(" (and %d more)", n)
	}
	return fmt.Sprintf("the graph has a cycle: %s%s", e.Cycles[0], more)
}

// Cycles returns one shortest cycle of every strongly connected component, the shortest first, ties in
// insertion order: breaking all of them may uncover others. nil when the graph is acyclic.
//
// O(V+E) for an acyclic graph. A component of n nodes and m edges adds O(n·m) at worst; the search gives up
// a start as soon as it can't beat the best cycle yet, which makes short cycles cheap to find.
func (g *Graph) Cycles() []Cycle {
	var cycles []Cycle
	s := &search{inside: make([]bool, len(g.nodes)), met: make([]int, len(g.nodes)), came: make([]int, len(g.nodes))}
	for _, component := range g.components() {
		path := g.shortestCycle(component, s)
		if path == nil {
			continue
		}
		var c Cycle
		for i, n := range path {
			c.Nodes = append(c.Nodes, g.nodes[n])
			c.Edges = append(c.Edges, g.edge(n, path[(i+1)%len(path)]))
		}
		cycles = append(cycles, c)
	}
	slices.SortStableFunc(cycles, func(a, b Cycle) int {
		if len(a.Nodes) != len(b.Nodes) {
			return len(a.Nodes) - len(b.Nodes)
		}
		return g.index[a.Nodes[0]] - g.index[b.Nodes[0]]
	})
	return cycles
}

// shortestCycle searches breadth first from the nodes of a component, staying inside it. nil when the
// component is a single node without an edge to itself.
//
// Every cycle but one that is the whole component has a node with a second way on, or it could not reach the
// rest: only such nodes are starts. A start that has been searched is left out of the later searches.
func (g *Graph) shortestCycle(component []int, s *search) []int {
	if len(component) == 1 && !g.HasEdge(g.nodes[component[0]], g.nodes[component[0]]) {
		return nil
	}
	for _, n := range component {
		s.inside[n] = true
	}
	var starts []int
	for _, n := range component {
		ways := 0
		for _, d := range g.out[n] {
			if s.inside[d] {
				ways++
			}
		}
		if ways > 1 {
			starts = append(starts, n)
		}
	}
	if len(starts) == 0 {
		starts = component[:1]
	}
	var best []int
	for _, start := range starts {
		if path := g.cycleFrom(start, s, len(best)); path != nil {
			best = path
			if len(best) == 1 {
				break
			}
		}
		s.inside[start] = false
	}
	for _, n := range component {
		s.inside[n] = false
	}
	first := slices.Index(best, slices.Min(best))
	return append(slices.Clone(best[first:]), best[:first]...)
}

// search is the working memory of cycleFrom, by node: whether it may be walked, in which round it was last
// met, and from where.
type search struct {
	inside []bool
	met    []int
	came   []int
	round  int
}

// cycleFrom returns a shortest cycle through start if it is shorter than limit (0: no limit).
func (g *Graph) cycleFrom(start int, s *search, limit int) []int {
	s.round++
	frontier := []int{start}
	for length := 1; len(frontier) > 0 && (limit == 0 || length < limit); length++ {
		var next []int
		for _, n := range frontier {
			for _, d := range g.out[n] {
				if d == start {
					path := []int{n}
					for n != start {
						n = s.came[n]
						path = append(path, n)
					}
					slices.Reverse(path)
					return path
				}
				if s.inside[d] && s.met[d] != s.round {
					s.met[d], s.came[d] = s.round, n
					next = append(next, d)
				}
			}
		}
		frontier = next
	}
	return nil
}

// components returns the strongly connected components (Tarjan's algorithm, without recursion so that a long
// chain can't exhaust the stack), each in insertion order. O(V+E) apart from that sort.
func (g *Graph) components() [][]int {
	const unseen = -1
	number := make([]int, len(g.nodes))
	low := make([]int, len(g.nodes))
	onStack := make([]bool, len(g.nodes))
	for i := range number {
		number[i] = unseen
	}
	type frame struct{ node, next int }
	var (
		components [][]int
		stack      []int
		calls      []frame
		count      int
	)
	enter := func(n int) {
		number[n], low[n] = count, count
		count++
		stack = append(stack, n)
		onStack[n] = true
		calls = append(calls, frame{node: n})
	}
	for root := range g.nodes {
		if number[root] != unseen {
			continue
		}
		enter(root)
		for len(calls) > 0 {
			top := &calls[len(calls)-1]
			n := top.node
			if top.next < len(g.out[n]) {
				d := g.out[n][top.next]
				top.next++
				if number[d] == unseen {
					enter(d)
				} else if onStack[d] {
					low[n] = min(low[n], number[d])
				}
				continue
			}
			calls = calls[:len(calls)-1]
			if len(calls) > 0 {
				parent := calls[len(calls)-1].node
				low[parent] = min(low[parent], low[n])
			}
			if low[n] != number[n] {
				continue
			}
			var component []int
			for {
				m := stack[len(stack)-1]
				stack = stack[:len(stack)-1]
				onStack[m] = false
				component = append(component, m)
				if m == n {
					break
				}
			}
			slices.Sort(component)
			components = append(components, component)
		}
	}
	return components
}
