package sim

import (
	"runtime"
	"strings"
	"sync"
)

// Coverage counts which call sites of stores and providers the histories have reached, and how often something went
// wrong there. A call site is the method that is called and the function that calls it.
type Coverage struct {
	mu    sync.Mutex
	ids   map[string]int
	byPC  map[uintptr]int
	names []string
	hits  []int
	fails []int
}

// NewCoverage makes an empty Coverage. It may be used by several histories at once.
func NewCoverage() *Coverage {
	return &Coverage{ids: map[string]int{}, byPC: map[uintptr]int{}}
}

// Site is a call site with its counts.
type Site struct {
	Name         string
	Hits, Faults int
}

// Sites lists the call sites by name.
func (c *Coverage) Sites() []Site {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []Site
	for name, id := range c.ids {
		out = append(out, Site{name, c.hits[id], c.fails[id]})
	}
	return out
}

// site finds the call site on the stack of the goroutine that has come to a gate.
func (c *Coverage) site(method string) int {
	// Most callers are a few frames up; to look further costs more than the call that is counted.
	for skip, depth := 4, 4; depth <= 8; skip, depth = skip+depth, depth*2 {
		var pcs [8]uintptr
		n := runtime.Callers(skip, pcs[:depth])
		if id, ok := c.among(pcs[:n], method); ok {
			return id
		}
	}
	return -1
}

// among finds the first of some frames that is the product's.
func (c *Coverage) among(frames []uintptr, method string) (int, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, pc := range frames {
		if id, ok := c.byPC[pc]; ok {
			if id >= 0 {
				return id, true
			}
			continue
		}
		frame, _ := runtime.CallersFrames([]uintptr{pc}).Next()
		name, ours := callerOf(frame.Function)
		if !ours {
			c.byPC[pc] = -1
			continue
		}
		if strings.HasPrefix(name, "run.") {
			// The engine calls the interface, whichever provider is behind it.
			method = strings.Replace(strings.Replace(method, "direct.", "provider.", 1), "custom.", "provider.", 1)
		}
		key := method + " <- " + name
		id, ok := c.ids[key]
		if !ok {
			id = len(c.names)
			c.ids[key] = id
			c.names, c.hits, c.fails = append(c.names, key), append(c.hits, 0), append(c.fails, 0)
		}
		c.byPC[pc] = id
		return id, true
	}
	return 0, false
}

// callerOf shortens the name of a function of the product; helpers that only pass a call on do not count.
func callerOf(function string) (string, bool) {
	_, name, ok := strings.Cut(function, "/slipway/pkg/")
	if !ok || strings.HasPrefix(name, "sim.") || strings.HasPrefix(name, "asl.") {
		return "", false
	}
	for _, helper := range []string{"run.getJSON", "run.putOnce", "run.(*Engine).append", "provider.Named", "state.(*Store).put"} {
		if strings.HasPrefix(name, helper) {
			return "", false
		}
	}
	return strings.NewReplacer("[...]", "", "(*", "", ")", "").Replace(name), true
}

func (c *Coverage) hit(g *gate, fault Fault) {
	if g.site < 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hits[g.site]++
	if fault != None {
		c.fails[g.site]++
	}
}
