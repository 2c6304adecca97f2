package conformance

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/provider/coverage"
	"github.com/slipway-cdk/slipway/pkg/provider/direct"
	"github.com/slipway-cdk/slipway/pkg/provider/services"
	"github.com/slipway-cdk/slipway/pkg/schema"
)

var update = flag.Bool("update", os.Getenv("SLIPWAY_TEST_UPDATE") != "", "write the documents and what has been measured")

const docs = "../../../docs/"

// TestDocuments keeps the generated documents true.
func TestDocuments(t *testing.T) {
	cases, err := Cases()
	if err != nil {
		t.Fatal(err)
	}
	measured, err := matrix("results", cases)
	if err != nil {
		t.Fatal(err)
	}
	data, err := handled(services.Coverage()).Encode()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		docs + "provider-matrix.md": measured, docs + "provider-coverage.md": coverageTable(services.Coverage()), "../coverage/coverage.json": string(data),
	} {
		if *update {
			if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if have, err := os.ReadFile(name); err != nil || string(have) != want {
			t.Errorf("%s is not what the code says (%v): run go test ./pkg/provider/conformance -update", name, err)
		}
	}
}

// TestEveryTypeHasACaseAndEveryPropertyARoute checks the cases and kinds against the schema.
func TestEveryTypeHasACaseAndEveryPropertyARoute(t *testing.T) {
	cases, err := Cases()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range services.Coverage() {
		if !slices.ContainsFunc(cases, func(k Case) bool { return k.Type == c.Type }) {
			t.Errorf("%s has no case in testdata", c.Type)
		}
		typ, ok := schema.Lookup(c.Type)
		if !ok {
			t.Errorf("%s is no type", c.Type)
			continue
		}
		for name := range typ.Properties {
			if typ.IsReadOnly([]string{name}) {
				continue
			}
			_, routed := c.Unhandled[name]
			if handled := slices.Contains(c.Handled, name); handled == routed {
				t.Errorf("%s of %s: handled %t, stated as unhandled %t", name, c.Type, handled, routed)
			}
		}
		for _, name := range c.Handled {
			if typ.Properties[name] == nil {
				t.Errorf("%s has no property %s", c.Type, name)
			}
		}
		// What can be changed in place is changed by a case, and what can be left out is removed by one.
		for _, name := range c.Handled {
			mutable := typ.Replacement([]string{name}) == schema.ReplaceNever && !slices.Contains(c.Fixed, name)
			if mutable && !slices.ContainsFunc(cases, func(k Case) bool { return k.Type == c.Type && k.Change[name] != nil }) {
				t.Errorf("no case changes %s of %s", name, c.Type)
			}
		}
	}
}

// handled is the coverage as data.
func handled(list []direct.Coverage) coverage.Coverage {
	out := coverage.Coverage{}
	for _, c := range list {
		out[c.Type] = c.Handled
	}
	return out
}

func coverageTable(list []direct.Coverage) string {
	var b strings.Builder
	b.WriteString(`# What the direct providers can set

These types are made through their services' own APIs. A new resource that has a property which is not handled is made through
Cloud Control, where that can provision the type; where it can't, the plan says so. Every other type is
Cloud Control's. This file is generated: ` + "`go test ./pkg/provider/conformance -update`" + `.

| type | handled | not handled | with one of those |
|---|---|---|---|
`)
	for _, c := range list {
		var rest []string
		for name, why := range c.Unhandled {
			rest = append(rest, fmt.Sprintf("%s (%s)", name, why))
		}
		slices.Sort(rest)
		elsewhere := "–"
		switch {
		case len(rest) == 0:
		case c.CloudControl:
			elsewhere = "Cloud Control"
		default:
			elsewhere = "refused at plan time"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", c.Type, strings.Join(c.Handled, ", "), strings.Join(rest, ", "), elsewhere)
	}
	return b.String()
}

// TestEveryCaseHasRunOnBothEmulators: an empty cell would say nothing, and a failure must not be recorded as a result.
func TestEveryCaseHasRunOnBothEmulators(t *testing.T) {
	cases, err := Cases()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		r, err := readResults("results", c.Name)
		if err != nil {
			t.Fatal(err)
		}
		for _, emulator := range tried {
			for _, k := range checks {
				if got := r[emulator][k.name]; got == "" || got == "fails" {
					t.Errorf("%s, %s: %q is recorded as %q", c.Name, emulator, k.name, got)
				}
			}
		}
	}
}
