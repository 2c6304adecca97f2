// Package graph is a small directed graph of named nodes. An edge leads from a dependency to its dependent:
// "after" edges, so that following them forward is the order of creation and backward that of deletion.
//
// Nodes keep the order in which they were added; every answer is deterministic and breaks ties by that order.
// The graph may hold cycles; the questions that have no answer then return a *CycleError, and Cycles names
// the shortest ones. A Graph is not safe for concurrent writes; concurrent reads are fine.
//
// The package knows nothing of stacks or resources.
package graph

import (
	"slices"
)

// Graph is a directed graph. The zero value is empty and ready for use.
//
// Invariants: a node has one index, its position in nodes; out[i] and in[i] mirror each other; there is at
// most one edge between two nodes in one direction, which carries any number of distinct labels.
type Graph struct {
	nodes  []string
	index  map[string]int
	out    [][]int // dependents of each node, in the order the edges were added
	in     [][]int // dependencies of each node, likewise
	labels map[[2]int][]string
	edges  map[[2]int]struct{}
}

// Edge is one edge with its labels.
type Edge struct {
	// From is the dependency, To the dependent.
	From, To string
	// Labels say what makes the edge, in the order they were given.
	Labels []string
}

// New returns an empty graph with room for n nodes.
func New(n int) *Graph {
	return &Graph{
		nodes: make([]string, 0, n),
		index: make(map[string]int, n),
		out:   make([][]int, 0, n),
		in:    make([][]int, 0, n),
		edges: make(map[[2]int]struct{}, n),
	}
}

// AddNode adds a node; one that is there already keeps its place. O(1).
func (g *Graph) AddNode(name string) { g.node(name) }

// AddEdge says that dependent comes after dependency, and optionally why. Nodes that are not there yet are
// added, the dependency first. A second edge between the same nodes only adds its label. An edge from a node
// to itself is a cycle of one. O(1), O(labels) for a repeated edge.
func (g *Graph) AddEdge(dependency, dependent string, label ...string) {
	from, to := g.node(dependency), g.node(dependent)
	key := [2]int{from, to}
	if _, ok := g.edges[key]; !ok {
		if g.edges == nil {
			g.edges = map[[2]int]struct{}{}
		}
		g.edges[key] = struct{}{}
		g.out[from] = append(g.out[from], to)
		g.in[to] = append(g.in[to], from)
	}
	for _, l := range label {
		if l == "" || slices.Contains(g.labels[key], l) {
			continue
		}
		if g.labels == nil {
			g.labels = map[[2]int][]string{}
		}
		g.labels[key] = append(g.labels[key], l)
	}
}

// RemoveEdge removes the edge and its labels, if it is there. O(degree).
func (g *Graph) RemoveEdge(dependency, dependent string) {
	from, ok := g.index[dependency]
	to, ok2 := g.index[dependent]
	key := [2]int{from, to}
	if _, there := g.edges[key]; !ok || !ok2 || !there {
		return
	}
	delete(g.edges, key)
	delete(g.labels, key)
	g.out[from] = without(g.out[from], to)
	g.in[to] = without(g.in[to], from)
}

func without(list []int, n int) []int {
	return slices.DeleteFunc(list, func(m int) bool { return m == n })
}

func (g *Graph) node(name string) int {
	if i, ok := g.index[name]; ok {
		return i
	}
	if g.index == nil {
		g.index = map[string]int{}
	}
	i := len(g.nodes)
	g.index[name] = i
	g.nodes = append(g.nodes, name)
	g.out = append(g.out, nil)
	g.in = append(g.in, nil)
	return i
}

// Len is the number of nodes. O(1).
func (g *Graph) Len() int { return len(g.nodes) }

// EdgeCount is the number of edges. O(1).
func (g *Graph) EdgeCount() int { return len(g.edges) }

// Has reports whether the node is there. O(1).
func (g *Graph) Has(name string) bool {
	_, ok := g.index[name]
	return ok
}

// HasEdge reports whether the edge is there. O(1).
func (g *Graph) HasEdge(dependency, dependent string) bool {
	from, ok := g.index[dependency]
	to, ok2 := g.index[dependent]
	if !ok || !ok2 {
		return false
	}
	_, ok = g.edges[[2]int{from, to}]
	return ok
}

// Nodes returns all nodes in insertion order. O(V).
func (g *Graph) Nodes() []string { return slices.Clone(g.nodes) }

// Edges returns all edges, by dependency in insertion order. O(V+E).
func (g *Graph) Edges() []Edge {
	list := make([]Edge, 0, len(g.edges))
	for from, dependents := range g.out {
		for _, to := range dependents {
			list = append(list, g.edge(from, to))
		}
	}
	return list
}

func (g *Graph) edge(from, to int) Edge {
	return Edge{From: g.nodes[from], To: g.nodes[to], Labels: slices.Clone(g.labels[[2]int{from, to}])}
}

// Labels returns the labels of an edge. O(labels).
func (g *Graph) Labels(dependency, dependent string) []string {
	from, ok := g.index[dependency]
	to, ok2 := g.index[dependent]
	if !ok || !ok2 {
		return nil
	}
	return slices.Clone(g.labels[[2]int{from, to}])
}

// Dependencies returns what the node directly comes after, in the order the edges were added. O(degree).
func (g *Graph) Dependencies(name string) []string { return g.adjacent(name, g.in) }

// Dependents returns what directly comes after the node, in the order the edges were added. O(degree).
func (g *Graph) Dependents(name string) []string { return g.adjacent(name, g.out) }

func (g *Graph) adjacent(name string, edges [][]int) []string {
	i, ok := g.index[name]
	if !ok || len(edges[i]) == 0 {
		return nil
	}
	return g.names(edges[i])
}

func (g *Graph) names(list []int) []string {
	out := make([]string, len(list))
	for i, n := range list {
		out[i] = g.nodes[n]
	}
	return out
}

// Reverse returns a new graph with the same nodes in the same order and every edge turned around. O(V+E).
func (g *Graph) Reverse() *Graph {
	r := New(len(g.nodes))
	for _, n := range g.nodes {
		r.node(n)
	}
	for from, dependents := range g.out {
		for _, to := range dependents {
			r.AddEdge(g.nodes[to], g.nodes[from], g.labels[[2]int{from, to}]...)
		}
	}
	return r
}

// Ready returns, in insertion order, the nodes that are not in done and whose dependencies all are. O(V+E).
func (g *Graph) Ready(done map[string]bool) []string {
	var ready []string
	for i, n := range g.nodes {
		if done[n] {
			continue
		}
		free := true
		for _, d := range g.in[i] {
			if !done[g.nodes[d]] {
				free = false
				break
			}
		}
		if free {
			ready = append(ready, n)
		}
	}
	return ready
}
