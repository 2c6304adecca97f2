// Cost computes what a deploy through the control plane costs, and what it costs when nothing is deployed, from counts
// and prices, and prints both as tables for docs/self-hosting.md.
//
//	go run ./infra/cost infra/testdata/counts.json
//
// The counts are made by package leastprivilege; durations, which an emulator cannot tell, are assumptions of this
// program and printed as such. Prices are those of package prices.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/prices"
)

// assumed are the memory, in GB, and the seconds of an invocation. No emulator tells how long AWS takes.
var assumed = map[string]struct{ memory, seconds float64 }{
	"planner": {1769.0 / 1024, 1.5}, "provisioner": {0.5, 8}, "publisher": {1, 3}, "janitor": {1769.0 / 1024, 0.5}, "trigger": {0.25, 0.3},
}

// loggedEach is how much an invocation logs, in GB: some lines of JSON and Lambda's own.
const loggedEach = 2e3 / 1e9

// counted is what a deploy takes: see counts.json.
type counted struct {
	What        string
	Resources   int
	Executions  int
	Transitions int
	Invocations map[string]int
	Requests    map[string]int
}

// line is one line of a bill.
type line struct {
	price  string
	amount float64
}

// bill is what was counted, in what is billed. A transaction writes each of its items twice over; an item has up to two
// KB; a header is written to its index as well.
func (c counted) bill() []line {
	var gbSeconds, invocations float64
	for name, n := range c.Invocations {
		a := assumed[name]
		gbSeconds += float64(n) * a.memory * a.seconds
		invocations += float64(n)
	}
	of := func(actions ...string) (n float64) {
		for _, a := range actions {
			n += float64(c.Requests[a])
		}
		return n
	}
	transactions := of("dynamodb:ConditionCheckItem")
	return []line{
		{prices.Transition, float64(c.Transitions)},
		{prices.Invocation, invocations},
		{prices.GBSecond, gbSeconds},
		{prices.Write, 2*of("dynamodb:PutItem", "dynamodb:UpdateItem") + 2*transactions + 2*transactions},
		{prices.Read, of("dynamodb:GetItem", "dynamodb:BatchGetItem") + 4*of("dynamodb:Query")},
		{prices.Put, of("s3:PutObject")},
		// Most of what is recorded as a listing is a GET of what is absent, which takes that permission.
		{prices.Get, of("s3:GetObject", "s3:GetObjectVersion", "s3:ListBucket")},
		{prices.KeyUse, of("kms:GenerateDataKey", "kms:Decrypt", "kms:Encrypt")},
		{prices.Logged, invocations * loggedEach},
	}
}

// sweeps is how often the janitor sweeps in a month of 30 days.
const sweeps = 30 * 24 * 12

// atRest is a month in which nothing is deployed: what is paid for being there, and the sweeps.
func atRest() []line {
	a := assumed["janitor"]
	return []line{
		{prices.Key, 1}, {prices.Alarm, 8}, {prices.Dashboard, 1},
		{prices.Invocation, sweeps}, {prices.GBSecond, sweeps * a.memory * a.seconds},
		{prices.Read, sweeps * 2}, {prices.Put, sweeps * 3}, {prices.Logged, sweeps * loggedEach},
	}
}

func total(bill []line) (sum float64) {
	for _, l := range bill {
		sum += l.amount * prices.Table()[l.price].Each
	}
	return sum
}

// table prints a bill as a table in Markdown.
func table(w io.Writer, bill []line) {
	fmt.Fprintln(w, "| | amount | US dollars |\n|---|---:|---:|")
	for _, l := range bill {
		p := prices.Table()[l.price]
		if l.amount > 0 {
			fmt.Fprintf(w, "| %s: %s | %s | %.5f |\n", p.Of, p.Unit, amount(l.amount), l.amount*p.Each)
		}
	}
	fmt.Fprintf(w, "| **all** | | **%.4f** |\n", total(bill))
}

func amount(v float64) string {
	if v >= 1 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.2g", v)
}

// report prints everything that docs/self-hosting.md has.
func report(w io.Writer, deploys []counted) {
	for _, c := range deploys {
		fmt.Fprintf(w, "A %s, of %d resources in one stack: %d executions, %d transitions, %d invocations.\n\n", c.What, c.Resources, c.Executions, c.Transitions, invocations(c))
		table(w, c.bill())
		fmt.Fprintln(w)
	}
	fmt.Fprint(w, "A month in which nothing is deployed:\n\n")
	table(w, atRest())
	fmt.Fprint(w, "\nAssumed: ")
	var parts []string
	for _, name := range []string{"planner", "provisioner", "publisher", "janitor", "trigger"} {
		parts = append(parts, fmt.Sprintf("%s %g s", name, assumed[name].seconds))
	}
	fmt.Fprintf(w, "%s for an invocation; 2 KB of log for each.\n", strings.Join(parts, ", "))
}

func invocations(c counted) (n int) {
	for _, of := range c.Invocations {
		n += of
	}
	return n
}

func read(file string) ([]counted, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var deploys []counted
	if err := json.Unmarshal(b, &deploys); err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	return deploys, nil
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: cost COUNTS.json")
		os.Exit(2)
	}
	deploys, err := read(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "cost:", err)
		os.Exit(1)
	}
	report(os.Stdout, deploys)
}
