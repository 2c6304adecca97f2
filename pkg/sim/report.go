package sim

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// History tells everything that has happened: one numbered line a step, with the virtual time, who, what and how it
// has come out.
func (r Result) History() string {
	var b strings.Builder
	for i, s := range r.history {
		fmt.Fprintf(&b, "%5d %10.3fs  %-28s %s %s", i, s.at.Sub(r.start).Seconds(), s.who, s.method, s.detail)
		if s.fault != None {
			fmt.Fprintf(&b, "  !! %s", strings.ToUpper(s.fault.String()))
		}
		if s.outcome != "" {
			fmt.Fprintf(&b, "  -> %s", s.outcome)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Report adds up histories.
type Report struct {
	Seeds, Steps int
	Elapsed      time.Duration
	Counts       [numFaults]int
	Scenarios    map[string]int
}

// Add counts a history.
func (r *Report) Add(h Result) {
	r.Seeds++
	r.Steps += h.Steps
	r.Elapsed += h.Elapsed
	for i, n := range h.Counts {
		r.Counts[i] += n
	}
	if r.Scenarios == nil {
		r.Scenarios = map[string]int{}
	}
	for name := range h.Scenarios {
		r.Scenarios[name]++
	}
}

// Write prints what was played, and where the calls came from.
func (r *Report) Write(w io.Writer, sites []Site) {
	fmt.Fprintf(w, "seeds         %d\nsteps         %d\nvirtual time  %s\n\nfaults\n", r.Seeds, r.Steps, r.Elapsed.Round(time.Hour))
	for f := None + 1; f < numFaults; f++ {
		fmt.Fprintf(w, "  %-20s %9d\n", f, r.Counts[f])
	}
	fmt.Fprintln(w, "\nhistories with")
	for _, name := range sorted(r.Scenarios) {
		fmt.Fprintf(w, "  %-28s %9d\n", name, r.Scenarios[name])
	}
	slices.SortFunc(sites, func(a, b Site) int { return strings.Compare(a.Name, b.Name) })
	fmt.Fprintln(w, "\ncall sites                                                                      hits    faults")
	for _, s := range sites {
		fmt.Fprintf(w, "  %-72s %9d %9d\n", s.Name, s.Hits, s.Faults)
	}
}

// thorough is how many histories make a simulation that must have come to everything, often how often.
const (
	thorough = 20000
	often    = 100
)

// Shortfalls says what a thorough simulation has not come to often enough.
func (r *Report) Shortfalls(sites []Site) []string {
	if r.Seeds < thorough {
		return nil
	}
	var out []string
	for _, name := range []string{ZombieAfterAbort, DuplicateNext, OtherTool, StaleIndex, LostLock} {
		if r.Scenarios[name] < often {
			out = append(out, fmt.Sprintf("only %d histories with: %s", r.Scenarios[name], name))
		}
	}
	for _, s := range sites {
		if s.Hits < often {
			out = append(out, fmt.Sprintf("only %d calls of %s", s.Hits, s.Name))
		}
	}
	return out
}
