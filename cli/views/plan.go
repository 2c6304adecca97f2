package views

import (
	"encoding/json"
	"fmt"
	"io"
	"sort"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/slipway-cdk/slipway/pkg/diff"
	"github.com/slipway-cdk/slipway/pkg/plan"
	"github.com/slipway-cdk/slipway/pkg/schema"
)

// PlanStyle says how much of a plan is shown.
type PlanStyle int

// The styles. Summary is what a deploy shows before it asks: one line per changed property. Detail is what
// diff shows: old and new value on their own lines and in full.
const (
	Summary PlanStyle = iota
	Detail
)

// valueLimit is the number of columns that one value takes in the Summary style.
const valueLimit = 60

// maxValueLines caps a value in the Detail style, unless Verbose asks for all of it.
const maxValueLines = 30

// PlanCounts says how many resources a plan would touch, by action.
type PlanCounts struct {
	Create, Update, Replace, Delete int
	// Retain counts resources that leave the record and stay in AWS; Record changes of the record alone.
	Retain, Record     int
	Unchanged, Outputs int
	// Undecided counts nested stacks that can't be compared: that is no difference by itself.
	Undecided int
}

// CountPlan counts the changes of all views.
func CountPlan(list []plan.StackView) PlanCounts {
	var c PlanCounts
	for _, v := range list {
		c.Unchanged += v.Unchanged
		if undecided(v) {
			c.Undecided++
		}
		resources := 0
		for _, ch := range v.Changes {
			switch ch.Action {
			case diff.ActionCreate:
				c.Create++
			case diff.ActionUpdate:
				c.Update++
			case diff.ActionReplace:
				c.Replace++
			case diff.ActionDelete:
				if ch.Retain {
					c.Retain++
				} else {
					c.Delete++
				}
			case diff.ActionNone:
				if !ch.RecordOnly {
					continue
				}
				c.Record++
			}
			resources++
		}
		for _, o := range v.Outputs {
			if outputDiffers(o, resources) {
				c.Outputs++
			}
		}
	}
	return c
}

func undecided(v plan.StackView) bool { return v.Nested != nil && v.Nested.Undecided != "" }

// outputDiffers: an output that can't be computed before the deploy differs for certain only when some
// resource does.
func outputDiffers(o diff.OutputChange, resourceChanges int) bool {
	return !(o.Kind == "modify" && o.Unknown && resourceChanges == 0)
}

// Any reports whether the plan changes anything at all, records and outputs included.
func (c PlanCounts) Any() bool {
	return c.Create+c.Update+c.Replace+c.Delete+c.Retain+c.Record+c.Outputs > 0
}

// String writes the counts as a sentence without its stop.
func (c PlanCounts) String() string {
	var parts []string
	if !c.Any() {
		parts = append(parts, "no changes")
	}
	add := func(n int, text string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, text))
		}
	}
	add(c.Create, "to create")
	add(c.Update, "to update")
	add(c.Replace, "to replace")
	add(c.Delete, "to delete")
	add(c.Retain, "to leave in AWS")
	add(c.Record, "in the record only")
	if c.Outputs > 0 {
		parts = append(parts, plural(c.Outputs, "output")+" to change")
	}
	if c.Undecided > 0 {
		parts = append(parts, plural(c.Undecided, "nested stack")+" not compared")
	}
	parts = append(parts, fmt.Sprintf("%d unchanged", c.Unchanged))
	return strings.Join(parts, ", ")
}

// Plan prints plan views for people and returns what they add up to.
func (s *Streams) Plan(to Stream, list []plan.StackView, style PlanStyle) PlanCounts {
	p := planPrinter{to: to, palette: to.palette(), width: to.Width(), style: style, verbose: s.Verbose}
	for _, v := range list {
		p.stack(v)
	}
	counts := CountPlan(list)
	label := "Plan: "
	if style == Detail {
		label = "Differences: "
	}
	p.line(p.bold(label + counts.String() + "."))
	return counts
}

type planPrinter struct {
	palette
	to      io.Writer
	width   int
	style   PlanStyle
	verbose bool
}

func (p planPrinter) line(s string) { _, _ = fmt.Fprintln(p.to, fit(s, p.width)) }

func (p planPrinter) stack(v plan.StackView) {
	where := Clean(v.Region)
	if v.Account != "" {
		where = Clean(v.Account) + ", " + where
	}
	p.line(p.bold("Stack "+title(v)) + p.dim(" ("+where+")"))
	if undecided(v) {
		p.line("  not compared: " + Clean(v.Nested.Undecided))
		p.line("")
		return
	}
	nameWidth, changes := 0, 0
	for _, c := range v.Changes {
		if c.Action != diff.ActionNone || c.RecordOnly {
			changes++
			nameWidth = max(nameWidth, ansi.StringWidth(Clean(c.LogicalID)))
		}
	}
	nameWidth = min(nameWidth, 40)
	actions := map[string]diff.Action{}
	for _, c := range v.Changes {
		actions[c.LogicalID] = c.Action
	}
	for _, c := range v.Changes {
		if c.Action == diff.ActionNone && !c.RecordOnly {
			continue
		}
		p.change(c, nameWidth, actions)
	}
	shown := false
	for _, o := range v.Outputs {
		if !outputDiffers(o, changes) {
			continue
		}
		if !shown {
			shown = true
			p.line("  Outputs")
		}
		p.output(o)
	}
	for _, e := range v.Replay {
		p.entry(e)
	}
	if changes == 0 && !shown && len(v.Replay) == 0 {
		p.line("  no changes (" + plural(v.Unchanged, "resource") + " unchanged)")
	}
	p.line("")
}

// entry prints what a rollback does not undo, and why.
func (p planPrinter) entry(e plan.Entry) {
	word := map[plan.Fate]string{
		plan.EntryReverted: "skipped", plan.EntryLeft: "left as it is", plan.EntryLost: "can't be undone",
	}[e.Fate]
	if word == "" {
		return
	}
	p.line(fmt.Sprintf("  %s %s  %s", p.dim("·"), p.bold(Clean(e.LogicalID))+"  "+p.dim(Clean(e.Type)), word+": "+Clean(e.Reason)))
}

// title names a stack. A nested one is named by the way that leads to it: no stack name has a "~" of its own.
func title(v plan.StackView) string {
	if v.Nested == nil {
		return Clean(v.Stack)
	}
	t := strings.ReplaceAll(Clean(v.Stack), "~", " / nested ")
	if v.Nested.Gone {
		t += ", not in the template any more"
	}
	return t
}

// symbol returns the mark of an action in two columns, and the word that always stands beside it.
func (p planPrinter) symbol(action string) (mark, word string) {
	switch action {
	case "create", "add":
		return p.green("＋"), p.green("create")
	case "update", "modify":
		return p.yellow("~ "), p.yellow("update")
	case "replace":
		return p.cyan("± "), p.cyan("replace")
	case "delete", "remove":
		return p.red("− "), p.red("delete")
	default:
		return p.dim("· "), p.dim("record")
	}
}

func (p planPrinter) change(c diff.Change, nameWidth int, actions map[string]diff.Action) {
	action := string(c.Action)
	mark, word := p.symbol(action)
	notes := ""
	note := func(s string) { notes += "  " + p.dim("("+s+")") }
	if c.Adopted {
		note("adopted: a rollback has left it in AWS")
	} else if c.RecordOnly {
		note("policies or dependencies only, no call to AWS")
	}
	if c.Speculative {
		note("only if its new value differs")
	}
	switch gone := c.Action == diff.ActionReplace || c.Action == diff.ActionDelete; {
	case c.Retain && c.Action == diff.ActionReplace:
		note("the old one stays in AWS: UpdateReplacePolicy")
	case c.Retain:
		note("stays in AWS: DeletionPolicy")
	case c.Action == diff.ActionDelete && diff.Retained(c.DeletionPolicy):
		note("its DeletionPolicy would keep it in AWS; a simulated account keeps nothing")
	case gone && c.Stateful:
		notes += "  " + p.red("(it holds data)")
	}
	if c.DeleteFirst {
		note("the old one is deleted before the new one is created")
	}
	p.line(fmt.Sprintf("  %s %s  %s  %s%s", mark, pad(word, 7), pad(p.bold(Clean(c.LogicalID)), nameWidth), p.dim(Clean(c.Type)), notes))
	if c.OldType != "" && c.OldType != c.Type {
		p.line("       " + p.cyan("replaced because the type changes") + ": " + Clean(c.OldType) + " → " + Clean(c.Type))
	}
	if c.Action == diff.ActionReplace && c.OldType == "" && !namesReplacement(c) {
		p.line("       " + p.cyan("replaced: it can't be updated in place"))
	}
	if c.Action == diff.ActionCreate && p.style == Summary && !p.verbose {
		return // everything is new: the values say nothing that the template does not
	}
	for _, ch := range c.Changes {
		p.property(c, ch, actions)
	}
}

func namesReplacement(c diff.Change) bool {
	for _, ch := range c.Changes {
		if ch.Replacement != schema.ReplaceNever {
			return true
		}
	}
	return false
}

func (p planPrinter) property(c diff.Change, ch diff.PropertyChange, actions map[string]diff.Action) {
	reason := ""
	if c.Action == diff.ActionReplace {
		switch ch.Replacement {
		case schema.ReplaceAlways:
			reason = p.cyan(" (forces replacement)")
		case schema.ReplaceMaybe:
			reason = p.cyan(" (may force replacement)")
		}
	}
	if ch.Cause != "" {
		how := "changes"
		switch actions[ch.Cause] {
		case diff.ActionReplace:
			how = "is replaced"
		case diff.ActionUpdate:
			how = "is updated"
		case diff.ActionCreate:
			how = "is created"
		}
		reason += p.dim(" (because " + Clean(ch.Cause) + " " + how + ")")
	}
	path := Clean(ch.Path)
	if p.style == Summary {
		p.line("       " + path + reason + ": " + p.old(ch.Old) + " → " + p.new(ch))
		return
	}
	p.line("       " + path + reason)
	if ch.Old != nil {
		p.block(p.red, "−  ", ch.Old)
	}
	switch {
	case ch.Unknown:
		p.line("         " + p.green("＋ "+p.new(ch)))
	case ch.New != nil:
		p.block(p.green, "＋ ", ch.New)
	}
}

func (p planPrinter) old(v any) string {
	if v == nil {
		return p.dim("(not set)")
	}
	return value(v, valueLimit)
}

func (p planPrinter) new(ch diff.PropertyChange) string {
	if ch.Unknown {
		from := ""
		if len(ch.NewRefs) > 0 {
			refs := make([]string, len(ch.NewRefs))
			for i, r := range ch.NewRefs {
				refs[i] = Clean(r)
			}
			sort.Strings(refs)
			from = " from " + strings.Join(refs, ", ")
		}
		return "(known after deploy" + from + ")"
	}
	if ch.New == nil {
		return p.dim("(removed)")
	}
	return value(ch.New, valueLimit)
}

// block prints a value in full, as indented JSON.
func (p planPrinter) block(paint func(string) string, mark string, v any) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return
	}
	lines := strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
	cut := 0
	if !p.verbose && len(lines) > maxValueLines {
		cut = len(lines) - maxValueLines
		lines = lines[:maxValueLines]
	}
	for i, l := range lines {
		lead := pad("", ansi.StringWidth(mark))
		if i == 0 {
			lead = mark
		}
		p.line("         " + paint(lead+strings.TrimRight(CleanLines(l), "\n")))
	}
	if cut > 0 {
		p.line("         " + p.dim("… "+plural(cut, "more line")+": --verbose shows all, --json too"))
	}
}

func (p planPrinter) output(o diff.OutputChange) {
	mark, word := p.symbol(o.Kind)
	name := Clean(o.Name)
	if o.Export {
		name += " (export)"
	}
	oldText, newText := p.old(o.Old), ""
	if o.Withheld {
		oldText = "(withheld: it may be a secret)"
	}
	switch {
	case o.Unknown:
		newText = "(known after deploy)"
	case o.Kind == "remove":
		newText = "(removed)"
	default:
		newText = value(o.New, valueLimit)
	}
	text := oldText + " → " + newText
	if o.Kind == "add" {
		text = newText
	}
	p.line(fmt.Sprintf("  %s %s  %s: %s", mark, pad(word, 7), name, text))
}
