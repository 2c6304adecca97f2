package graph

import (
	"container/heap"
	"math/bits"
)

// TopologicalOrder returns all nodes so that each comes after its dependencies. Among nodes that may come
// next, the one added first comes first, so the order does not depend on that of the edges. A cyclic graph
// has no order: *CycleError. O((V+E) log V).
func (g *Graph) TopologicalOrder() ([]string, error) {
	order, ok := g.order()
	if !ok {
		return nil, &CycleError{Cycles: g.Cycles()}
	}
	return g.names(order), nil
}

// order is TopologicalOrder by index; false when there is a cycle.
func (g *Graph) order() ([]int, bool) {
	waiting := make([]int, len(g.nodes))
	free := make(intHeap, 0, len(g.nodes))
	for i := range g.nodes {
		waiting[i] = len(g.in[i])
		if waiting[i] == 0 {
			free = append(free, i) // ascending: a valid heap
		}
	}
	order := make([]int, 0, len(g.nodes))
	for len(free) > 0 {
		n := heap.Pop(&free).(int)
		order = append(order, n)
		for _, d := range g.out[n] {
			if waiting[d]--; waiting[d] == 0 {
				heap.Push(&free, d)
			}
		}
	}
	return order, len(order) == len(g.nodes)
}

// Levels groups the nodes by the length of the longest path that leads to them: level 0 has no dependency,
// and a node's level is one above the highest of its dependencies. Each level is in insertion order. A cyclic
// graph has no levels: *CycleError. O((V+E) log V).
func (g *Graph) Levels() ([][]string, error) {
	order, ok := g.order()
	if !ok {
		return nil, &CycleError{Cycles: g.Cycles()}
	}
	level := make([]int, len(g.nodes))
	deepest := -1
	for _, n := range order {
		for _, d := range g.in[n] {
			level[n] = max(level[n], level[d]+1)
		}
		deepest = max(deepest, level[n])
	}
	levels := make([][]string, deepest+1)
	for i, n := range g.nodes {
		levels[level[i]] = append(levels[level[i]], n)
	}
	return levels, nil
}

// TransitiveDependents counts, for every node, the distinct other nodes that come after it, directly or not.
//
// An acyclic graph takes O(V·E/64) time and at most V²/8 bytes: one set of bits per node, built from the
// last node to the first. A cyclic graph is walked from every node, O(V·(V+E)).
func (g *Graph) TransitiveDependents() map[string]int {
	counts := make(map[string]int, len(g.nodes))
	order, ok := g.order()
	if !ok {
		for i, n := range g.nodes {
			counts[n] = len(g.reach(i, g.out))
		}
		return counts
	}
	// Positions in the order, counted from its end, keep every set as short as what can come after the node.
	position := make([]int, len(g.nodes))
	for i, n := range order {
		position[n] = len(order) - 1 - i
	}
	sets := make([]bitset, len(g.nodes))
	for i := len(order) - 1; i >= 0; i-- {
		n := order[i]
		if len(g.out[n]) == 0 {
			continue
		}
		set := newBitset(position[n])
		for _, d := range g.out[n] {
			set.set(position[d])
			set.add(sets[d])
		}
		sets[n] = set
		counts[g.nodes[n]] = set.count()
	}
	for _, n := range g.nodes {
		if _, ok := counts[n]; !ok {
			counts[n] = 0
		}
	}
	return counts
}

// Descendants returns everything that comes after the node, directly or not, in insertion order. The node
// itself is not in it. O(V+E).
func (g *Graph) Descendants(name string) []string { return g.closure(name, g.out) }

// Ancestors returns everything the node comes after, directly or not, in insertion order. The node itself is
// not in it. O(V+E).
func (g *Graph) Ancestors(name string) []string { return g.closure(name, g.in) }

func (g *Graph) closure(name string, edges [][]int) []string {
	i, ok := g.index[name]
	if !ok {
		return nil
	}
	found := g.reach(i, edges)
	var list []string
	for j, n := range g.nodes {
		if found[j] {
			list = append(list, n)
		}
	}
	return list
}

// reach returns the nodes other than start that can be reached from it.
func (g *Graph) reach(start int, edges [][]int) map[int]bool {
	found := map[int]bool{}
	stack := []int{start}
	for len(stack) > 0 {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, next := range edges[n] {
			if next != start && !found[next] {
				found[next] = true
				stack = append(stack, next)
			}
		}
	}
	return found
}

// Contract returns the graph of the nodes that keep accepts, in their order. A path between two of them that
// leads only through dropped nodes becomes an edge, so that nothing is reordered by leaving nodes out; where
// other edges of the result already say as much, it does not. Direct edges stay, with their labels. A cycle
// among dropped nodes alone disappears.
//
// An acyclic graph takes O(V·E/64) time and at most V²/8 bytes, like TransitiveDependents, and the result
// stays as sparse as it can be. A cyclic one takes O(V·(V+E)).
func (g *Graph) Contract(keep func(name string) bool) *Graph {
	kept := make([]bool, len(g.nodes))
	all := true
	c := New(len(g.nodes))
	for i, n := range g.nodes {
		kept[i] = keep(n)
		all = all && kept[i]
		if kept[i] {
			c.node(n)
		}
	}
	for from, dependents := range g.out {
		for _, to := range dependents {
			if kept[from] && kept[to] {
				c.AddEdge(g.nodes[from], g.nodes[to], g.labels[[2]int{from, to}]...)
			}
		}
	}
	if all {
		return c
	}
	if order, ok := g.order(); ok {
		g.contractInOrder(c, kept, order)
	} else {
		g.contractWalking(c, kept)
	}
	return c
}

// contractInOrder adds the indirect edges, the nearest first, and leaves out those that lead to what is
// reached already.
func (g *Graph) contractInOrder(c *Graph, kept []bool, order []int) {
	position := make([]int, len(g.nodes))
	for i, n := range order {
		position[n] = i
	}
	// before holds, for each node, the positions of the kept nodes that it comes after.
	before := make([]bitset, len(g.nodes))
	queued := make([]int, len(g.nodes)) // the round in which a node was last queued
	for round, n := range order {
		all := newBitset(round)
		for _, d := range g.in[n] {
			all.add(before[d])
			if kept[d] {
				all.set(position[d])
			}
		}
		before[n] = all
		if !kept[n] {
			continue
		}
		covered := newBitset(round)
		var queue intHeap // of negated positions: the nearest first
		push := func(nodes []int) {
			for _, d := range nodes {
				if queued[d] != round+1 {
					queued[d] = round + 1
					heap.Push(&queue, -position[d])
				}
			}
		}
		for _, d := range g.in[n] {
			if kept[d] {
				covered.add(before[d])
				covered.set(position[d])
			}
		}
		push(g.in[n])
		for len(queue) > 0 {
			at := -heap.Pop(&queue).(int)
			d := order[at]
			switch {
			case !kept[d]:
				if !covered.holds(before[d]) {
					push(g.in[d])
				}
			case !covered.has(at):
				c.AddEdge(g.nodes[d], g.nodes[n])
				covered.add(before[d])
				covered.set(at)
			}
		}
	}
}

// contractWalking adds the indirect edges of a cyclic graph.
func (g *Graph) contractWalking(c *Graph, kept []bool) {
	for i, n := range g.nodes {
		if !kept[i] {
			continue
		}
		seen := map[int]bool{}
		stack := []int{i}
		for len(stack) > 0 {
			m := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			for _, d := range g.in[m] {
				switch {
				case kept[d]:
					c.AddEdge(g.nodes[d], n)
				case !seen[d]:
					seen[d] = true
					stack = append(stack, d)
				}
			}
		}
	}
}

// bitset is a set of small numbers.
type bitset []uint64

func newBitset(n int) bitset { return make(bitset, n/64+1) }

func (b bitset) set(i int)      { b[i/64] |= 1 << (i % 64) }
func (b bitset) has(i int) bool { return i/64 < len(b) && b[i/64]&(1<<(i%64)) != 0 }

// add unites b with a set that is not longer.
func (b bitset) add(other bitset) {
	for w, word := range other {
		b[w] |= word
	}
}

// holds reports whether b has everything that other, which is not longer, has.
func (b bitset) holds(other bitset) bool {
	for w, word := range other {
		if word&^b[w] != 0 {
			return false
		}
	}
	return true
}

func (b bitset) count() int {
	count := 0
	for _, word := range b {
		count += bits.OnesCount64(word)
	}
	return count
}

type intHeap []int

func (h intHeap) Len() int           { return len(h) }
func (h intHeap) Less(i, j int) bool { return h[i] < h[j] }
func (h intHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *intHeap) Push(x any)        { *h = append(*h, x.(int)) }
func (h *intHeap) Pop() any {
	old := *h
	n := old[len(old)-1]
	*h = old[:len(old)-1]
	return n
}
