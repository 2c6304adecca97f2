package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/emulators/faultproxy"
)

// faultColumn is one column of the fault report.
type faultColumn struct {
	name  string
	fault faultproxy.Fault
	// again is what the next call meets as well.
	again faultproxy.Fault
	says  string
}

// faultColumns are what is done to each call, in the order of the report.
var faultColumns = []faultColumn{
	{"throttled", faultproxy.Throttled, faultproxy.None, "the service refuses the call for its rate, with its own code in its own wire protocol"},
	{"5xx", faultproxy.Failing, faultproxy.Unavailable, "the service answers 500, and its repetition meets a 503 from something in front of the service"},
	{"lost answer", faultproxy.Lost, faultproxy.None, "the call has its effect, and the connection is closed instead of an answer"},
	{"timeout", faultproxy.Held, faultproxy.None, "there is no answer until the caller gives up"},
	{"late", faultproxy.Late, faultproxy.None, "the connection is closed, and the call has its effect after the next one has been answered"},
	{"twice", faultproxy.Twice, faultproxy.None, "the call is answered, and has its effect once more after the next one has been answered"},
	{"half answer", faultproxy.Cut, faultproxy.None, "the call has its effect, and the connection is closed in the middle of the answer"},
}

// faultResults are what the last fault run of a case has measured.
type faultResults struct {
	Type     string `json:"type"`
	Emulator string `json:"emulator"`
	// Without are the properties that were left out, because the emulator has them wrong.
	Without []string `json:"without,omitempty"`
	// Listed is the call that tells how many resources there are.
	Listed string `json:"listed"`
	// Cells are by the name of the fault.
	Cells map[string]faultCell `json:"cells"`
}

type faultCell struct {
	// Create, Update and Delete are how many calls of each step have been hit.
	Create int `json:"create"`
	Update int `json:"update"`
	Delete int `json:"delete"`
	// Result is pass, or what is wrong.
	Result string `json:"result"`
}

func (c faultCell) calls() int { return c.Create + c.Update + c.Delete }

// agrees reports whether two runs have found the same. How many calls there are to be hit depends on how often an emulator that
// takes its time has to be asked; the matrix has the golden counts.
func (r faultResults) agrees(with faultResults) bool {
	if r.Type != with.Type || r.Emulator != with.Emulator || r.Listed != with.Listed || !slices.Equal(r.Without, with.Without) || len(r.Cells) != len(with.Cells) {
		return false
	}
	for name, c := range r.Cells {
		o := with.Cells[name]
		if c.Result != o.Result || (c.Create == 0) != (o.Create == 0) || (c.Update == 0) != (o.Update == 0) || (c.Delete == 0) != (o.Delete == 0) {
			return false
		}
	}
	return true
}

func readFaults(dir, name string) (r faultResults, err error) {
	raw, err := os.ReadFile(filepath.Join(dir, name+".json"))
	if errors.Is(err, fs.ErrNotExist) {
		return faultResults{}, nil
	}
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return r, fmt.Errorf("the fault run of %s: %w", name, err)
	}
	return r, nil
}

func (r faultResults) write(dir, name string) error {
	raw, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name+".json"), append(raw, '\n'), 0o644)
}

// faultCases is one case for each type: the one that is called after it, without anything added.
func faultCases(cases []Case) []Case {
	of := map[string]Case{}
	for _, c := range cases {
		if have, ok := of[c.Type]; !ok || len(c.Name) < len(have.Name) {
			of[c.Type] = c
		}
	}
	var out []Case
	for _, c := range of {
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b Case) int { return strings.Compare(a.Type, b.Type) })
	return out
}

// better is the emulator on which a case passes more checks, of those that keep what faults are about: that a second resource
// can't be where AWS allows one.
func (c Case) better(r results) string {
	best, most := "", -1
	for _, emulator := range tried {
		n := 0
		for _, result := range r[emulator] {
			if result == pass {
				n++
			}
		}
		if n > most && c.faultsDiffer(emulator) == "" {
			best, most = emulator, n
		}
	}
	return best
}

// faultsDiffer is why an emulator can't be used for the fault run of a case, "" when it can.
func (c Case) faultsDiffer(emulator string) string {
	for _, d := range c.Differs {
		if d.Emulator == emulator && d.Check == faultsCheck {
			return d.Because
		}
	}
	return ""
}

// spared is the call that a fault is not put on because the emulator does with it what AWS does not, and why.
func (c Case) spared(emulator, column string) (call, because string) {
	for _, d := range c.Differs {
		if d.Emulator == emulator && d.Check == column && d.Call != "" {
			return d.Call, d.Because
		}
	}
	return "", ""
}

// faultsCheck is the name of the fault run among a case's differences.
const faultsCheck = "faults"

// faultReport renders what has been measured.
func faultReport(dir string, cases []Case) (string, error) {
	var b strings.Builder
	b.WriteString(`# What direct providers make of faults

A proxy stands in front of an emulator of AWS (` + "`pkg/emulators/faultproxy`" + `) and does one thing to the first call of a creation, of an
update and of a deletion, then to the second, and so on to the last. Each step is driven as the engine drives it: the same
token again where nobody knows what a call has done, the next attempt where a failure passes, handles polled by another process.
Afterwards the service itself lists exactly one resource more than before, that has the desired properties; after the deletion
none more. This file is generated (` + "`go test ./pkg/provider/conformance -update`" + `) from ` + "`pkg/provider/conformance/faults`" + `, which a run of
` + "`make test-emulators`" + ` compares with what it measures.

| fault | what is done |
|---|---|
`)
	for _, f := range faultColumns {
		fmt.Fprintf(&b, "| %s | %s |\n", f.name, f.says)
	}
	b.WriteString(`
A call that makes a new resource each time is never sent *twice*: TLS keeps a network from doing that, and no caller could tell. Nor could a
proxy that repeats what it has not been asked to.

A number says how many calls of create, update and delete were hit, each in a life of its own; ✗ and brackets refer to the notes. A type that
is not in the table has not been run.

| type | emulator | counted by |`)
	for _, f := range faultColumns {
		fmt.Fprintf(&b, " %s |", f.name)
	}
	b.WriteString("\n|---|---|---|" + strings.Repeat("---|", len(faultColumns)) + "\n")
	sums, types, notes := map[string]int{}, 0, []string(nil)
	for _, c := range faultCases(cases) {
		r, err := readFaults(dir, c.Name)
		if err != nil {
			return "", err
		}
		if r.Type == "" {
			continue
		}
		types++
		for _, emulator := range tried {
			if why := c.faultsDiffer(emulator); why != "" {
				notes = append(notes, fmt.Sprintf("%s does not run on %s: %s", c.Type, emulator, why))
			}
		}
		fmt.Fprintf(&b, "| %s | %s | %s |", r.Type, r.Emulator, r.Listed)
		for _, f := range faultColumns {
			cell := r.Cells[f.name]
			sums[f.name] += cell.calls()
			if cell.Result != pass {
				notes = append(notes, fmt.Sprintf("%s, %s: %s", r.Type, f.name, cell.Result))
				fmt.Fprintf(&b, " ✗ %d |", len(notes))
				continue
			}
			fmt.Fprintf(&b, " %d+%d+%d", cell.Create, cell.Update, cell.Delete)
			if call, because := c.spared(r.Emulator, f.name); call != "" {
				notes = append(notes, fmt.Sprintf("%s, %s: not on %s, of which %s has it wrong: %s", r.Type, f.name, call, r.Emulator, because))
				fmt.Fprintf(&b, " (%d)", len(notes))
			}
			b.WriteString(" |")
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "| **%d types** | | |", types)
	total := 0
	for _, f := range faultColumns {
		fmt.Fprintf(&b, " **%d** |", sums[f.name])
		total += sums[f.name]
	}
	fmt.Fprintf(&b, "\n\n%d calls were hit.\n", total)
	for i, n := range notes {
		if i == 0 {
			b.WriteString("\nNotes:\n\n")
		}
		fmt.Fprintf(&b, "%d. %s\n", i+1, n)
	}
	return b.String(), nil
}
