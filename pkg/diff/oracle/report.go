package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"sort"
	"strings"
	"text/tabwriter"
)

// verdicts, from the mildest to the hardest. An oracle that does not know a property has none: "unknown".
var verdicts = [...]string{"none", "update", "maybe", "replace"}

const unknown = "unknown"

// matrix counts pairs by our verdict and an oracle's.
type matrix map[[2]string]int

func (m matrix) agreement() (same, all int) {
	for cell, n := range m {
		if cell[1] == unknown {
			continue
		}
		all += n
		if cell[0] == cell[1] {
			same += n
		}
	}
	return same, all
}

func (m matrix) print(w io.Writer, title string) {
	same, all := m.agreement()
	fmt.Fprintf(w, "\n%s: %d of %d agree, %.2f %%\n", title, same, all, percent(same, all))
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "ours \\ theirs\t%s\t%s\t\n", strings.Join(verdicts[:], "\t"), unknown)
	for _, ours := range verdicts {
		fmt.Fprintf(table, "%s\t", ours)
		for _, theirs := range append(slices.Clone(verdicts[:]), unknown) {
			fmt.Fprintf(table, "%d\t", m[[2]string{ours, theirs}])
		}
		fmt.Fprintln(table)
	}
	_ = table.Flush() // a report that can't be written fails where it is read
}

func percent(part, all int) float64 {
	if all == 0 {
		return 0
	}
	return 100 * float64(part) / float64(all)
}

func rank(verdict string) int { return slices.Index(verdicts[:], verdict) }

// harder of two verdicts, an unknown one counting for nothing.
func harder(a, b string) string {
	if rank(b) > rank(a) {
		return b
	}
	return a
}

// place is where verdicts differ: one line of the list of disagreements.
type place struct{ typ, path, ours, cfndiff, registry string }

type report struct {
	cfndiff, registry matrix
	// real and everyType compare with the harder verdict of the two: resources of real templates, and the made-up one of
	// each type.
	real, everyType matrix
	// reordered compares with the registry alone.
	reordered  matrix
	kinds      map[string]int
	differ     map[place]int
	lax        map[place]int // an oracle says replace, we say update or none
	subjects   map[string]int
	allowed    []exception
	usedExcept map[exception]int
}

// compare reads the pairs and both oracles' verdicts, prints what they come to, and fails when too few agree or
// when a replacement is missed that the documentation does not excuse.
func compare(w io.Writer, docs string, least float64, files []string) error {
	allowed, err := exceptions(docs)
	if err != nil {
		return err
	}
	r := &report{
		cfndiff: matrix{}, registry: matrix{}, real: matrix{}, everyType: matrix{}, reordered: matrix{},
		kinds: map[string]int{}, differ: map[place]int{}, lax: map[place]int{}, subjects: map[string]int{},
		allowed: allowed, usedExcept: map[exception]int{},
	}
	if err := r.read(files); err != nil {
		return err
	}
	r.print(w)
	return r.judge(least)
}

func (r *report) read(files []string) error {
	var subjects []subject
	var answers [2][][]string
	for i, file := range files {
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		if i == 0 {
			err = lines(f, func(s subject) error { subjects = append(subjects, s); return nil })
		} else {
			err = lines(f, func(v []string) error { answers[i-1] = append(answers[i-1], v); return nil })
		}
		f.Close()
		if err != nil {
			return fmt.Errorf("reading %s: %w", file, err)
		}
	}
	for i, answer := range answers {
		if len(answer) != len(subjects) {
			return fmt.Errorf("%s answers %d of %d resources", files[i+1], len(answer), len(subjects))
		}
	}
	for i, s := range subjects {
		r.subjects[s.Source]++
		for j, p := range s.Pairs {
			r.add(s, p, answers[0][i][j], answers[1][i][j])
		}
	}
	return nil
}

func (r *report) add(s subject, p pair, cfndiff, registry string) {
	r.kinds[p.Kind]++
	if p.Kind == "reorder" {
		// cloudformation-diff compares every list in its order, so only the registry has an opinion.
		r.reordered[[2]string{p.Ours, registry}]++
		return
	}
	at := place{typ: s.Type, path: p.Path, ours: p.Ours, cfndiff: cfndiff, registry: registry}
	joint := harder(cfndiff, registry)
	cell := [2]string{p.Ours, joint}
	if s.Source == "schema" {
		r.everyType[cell]++
	} else {
		r.real[cell]++
	}
	r.cfndiff[[2]string{p.Ours, cfndiff}]++
	r.registry[[2]string{p.Ours, registry}]++
	if joint != unknown && joint != p.Ours {
		r.differ[at]++
	}
	if joint == "replace" && rank(p.Ours) < rank("maybe") {
		if e, ok := r.excuse(at); ok {
			r.usedExcept[e]++
		} else {
			r.lax[at]++
		}
	}
}

func (r *report) excuse(at place) (exception, bool) {
	for _, e := range r.allowed {
		if e.typ == at.typ && e.covers(at.path) {
			return e, true
		}
	}
	return exception{}, false
}

func (r *report) print(w io.Writer) {
	fmt.Fprintf(w, "%d changes of %d resources (%s)\nby kind: %s\n", sum(r.kinds), sum(r.subjects), counts(r.subjects), counts(r.kinds))
	r.cfndiff.print(w, "@aws-cdk/cloudformation-diff")
	r.registry.print(w, "registry schemas (cfn-lint)")
	r.real.print(w, "the harder of the two, resources of templates")
	r.everyType.print(w, "the harder of the two, one resource of every type")
	r.reordered.print(w, "reordered lists, registry schemas")
	fmt.Fprintf(w, "\nwhere we differ from the harder of the two (type, path: ours; cloudformation-diff; registry; pairs):\n")
	printPlaces(w, r.differ)
	fmt.Fprintf(w, "\nreplacements that an oracle sees and we do not, by decision (docs/replacement.md):\n")
	for _, e := range r.allowed {
		fmt.Fprintf(w, "  %s %s: %d pairs\n", e.typ, e.path, r.usedExcept[e])
	}
}

func printPlaces(w io.Writer, places map[place]int) {
	list := slices.Collect(maps.Keys(places))
	sort.Slice(list, func(i, j int) bool {
		a, b := list[i], list[j]
		return strings.Join([]string{a.typ, a.path, a.ours, a.cfndiff}, " ") < strings.Join([]string{b.typ, b.path, b.ours, b.cfndiff}, " ")
	})
	for _, p := range list {
		fmt.Fprintf(w, "  %s %s: %s; %s; %s; %d\n", p.typ, p.path, p.ours, p.cfndiff, p.registry, places[p])
	}
}

func (r *report) judge(least float64) error {
	same, all := r.real.agreement()
	if all < 5000 {
		return fmt.Errorf("only %d changes of real resources were compared", all)
	}
	if percent(same, all) < least {
		return fmt.Errorf("%.2f %% agree, want %.2f %%", percent(same, all), least)
	}
	for _, e := range r.allowed {
		if r.usedExcept[e] == 0 {
			return fmt.Errorf("the decision on %s %s in the documentation is about nothing", e.typ, e.path)
		}
	}
	if len(r.lax) > 0 {
		var b strings.Builder
		printPlaces(&b, r.lax)
		return fmt.Errorf("replacements that an oracle sees and we do not, without a decision:\n%s", b.String())
	}
	return nil
}

func sum(m map[string]int) (n int) {
	for _, v := range m {
		n += v
	}
	return n
}

func counts(m map[string]int) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, fmt.Sprintf("%s %d", k, m[k]))
	}
	return strings.Join(parts, ", ")
}
