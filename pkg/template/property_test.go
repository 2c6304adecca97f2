package template_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/slipway-cdk/slipway/pkg/graph"
	"github.com/slipway-cdk/slipway/pkg/template"
)

// drawTemplate generates a template of up to 12 resources that refer to each other in every way there is. Every
// reference goes to an earlier resource, so that there is an order.
func drawTemplate(t *rapid.T) map[string]any {
	resources := map[string]any{}
	var ids []string
	n := rapid.IntRange(1, 12).Draw(t, "resources")
	for i := range n {
		id := fmt.Sprintf("%s%d", rapid.SampledFrom([]string{"Res", "Role", "A", "Bucket9x"}).Draw(t, "name"), i)
		r := map[string]any{"Type": rapid.SampledFrom([]string{"AWS::IAM::Role", "AWS::Lambda::Function", "AWS::IAM::Policy", "Custom::Thing", "AWS::EC2::Route"}).Draw(t, "type")}
		if len(ids) > 0 {
			properties := map[string]any{}
			for j := range rapid.IntRange(0, 4).Draw(t, "references") {
				properties[fmt.Sprintf("P%d", j)] = drawReference(t, rapid.SampledFrom(ids).Draw(t, "target"), rapid.SampledFrom(ids).Draw(t, "other"))
			}
			r["Properties"] = properties
			switch rapid.IntRange(0, 4).Draw(t, "elsewhere") {
			case 0:
				r["DependsOn"] = rapid.SampledFrom(ids).Draw(t, "dependency")
			case 1:
				r["DependsOn"] = []any{ids[0], ids[len(ids)-1]}
			case 2:
				r["Metadata"] = map[string]any{"M": drawReference(t, ids[0], ids[0])}
			case 3:
				r["UpdatePolicy"] = map[string]any{"U": drawReference(t, ids[0], ids[0])}
			}
		}
		resources[id] = r
		ids = append(ids, id)
	}
	return map[string]any{"Resources": resources, "Conditions": map[string]any{"C": map[string]any{"Fn::Equals": []any{"a", "a"}}}}
}

func drawReference(t *rapid.T, target, other string) any {
	switch rapid.IntRange(0, 9).Draw(t, "kind") {
	case 0:
		return map[string]any{"Ref": target}
	case 1:
		return map[string]any{"Fn::GetAtt": []any{target, "Arn"}}
	case 2:
		return map[string]any{"Fn::GetAtt": target + ".Endpoint.Address"}
	case 3:
		return map[string]any{"Fn::Sub": "x${" + target + "}${!" + other + "}${" + other + ".Arn}"}
	case 4:
		return map[string]any{"Fn::Sub": []any{"${V}${" + target + "}", map[string]any{"V": map[string]any{"Ref": other}}}}
	case 5:
		return map[string]any{"Fn::If": []any{"C", map[string]any{"Ref": target}, map[string]any{"Ref": other}}}
	case 6:
		return map[string]any{"Fn::Join": []any{"", []any{"a", map[string]any{"Ref": target}, map[string]any{"Fn::GetAtt": []any{other, "Arn"}}}}}
	case 7:
		return []any{map[string]any{"Deep": map[string]any{"Fn::Select": []any{"0", []any{map[string]any{"Ref": target}, "b"}}}}}
	case 8:
		return map[string]any{"Fn::Split": []any{",", map[string]any{"Ref": target}}}
	}
	return map[string]any{"Fn::Base64": map[string]any{"Fn::Sub": "${" + target + "}"}}
}

func parseDrawn(t *rapid.T, doc map[string]any) *template.Template {
	data, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	tmpl, err := template.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	return tmpl
}

// rename gives every logical ID of a document another name, wherever it is spoken of.
func rename(v any, name func(string) string) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, e := range v {
			out[name(k)] = rename(e, name)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = rename(e, name)
		}
		return out
	case string:
		return name(v)
	}
	return v
}

func TestNoEdgeIsLostWhenLogicalIDsAreRenamed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		doc := drawTemplate(t)
		before := parseDrawn(t, doc)
		ids := slices.Clone(before.Order)
		// Longer names first: one may begin another.
		slices.SortFunc(ids, func(a, b string) int { return len(b) - len(a) })
		var pairs []string
		names := map[string]string{}
		for i, id := range ids {
			// The new names sort the other way round.
			names[id] = fmt.Sprintf("Zz%03dNew", 999-i)
			pairs = append(pairs, id, names[id])
		}
		// Every name is written out in strings: "x${A1}", "A1.Arn", "A1".
		replacer := strings.NewReplacer(pairs...)
		after := parseDrawn(t, rename(doc, replacer.Replace).(map[string]any))

		conditions := map[string]bool{"C": rapid.Bool().Draw(t, "C")}
		type edge struct{ From, To, Attribute, Kind string }
		edges := func(tmpl *template.Template, name func(string) string) map[edge]int {
			out := map[edge]int{}
			for id, refs := range template.Dependencies(tmpl, conditions) {
				for _, ref := range refs {
					out[edge{name(id), name(ref.Target), ref.Attribute, string(ref.Kind)}]++
				}
			}
			return out
		}
		want := edges(before, func(id string) string { return names[id] })
		got := edges(after, func(id string) string { return id })
		for e := range want {
			// An edge that the template does not state is drawn unless it would close a circle, which depends on what was drawn before.
			if e.Kind != string(template.RefImplicit) && got[e] != want[e] {
				t.Fatalf("the edge %v was there %d times, and is there %d times", e, want[e], got[e])
			}
		}
	})
}

func TestEveryOrderRespectsEveryEdge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tmpl := parseDrawn(t, drawTemplate(t))
		var options []template.DependencyOption
		if rapid.Bool().Draw(t, "relaxed") {
			options = append(options, template.RelaxVPCRoutes())
		}
		edges := template.Dependencies(tmpl, map[string]bool{"C": rapid.Bool().Draw(t, "C")}, options...)
		g := graphOf(edges)
		levels, err := g.Levels()
		if err != nil {
			t.Fatalf("there is no order: %v", err)
		}
		place := map[string]int{}
		for i, level := range levels {
			for _, id := range level {
				place[id] = i
			}
		}
		if len(place) != len(tmpl.Resources) {
			t.Fatalf("%d of %d resources are in the order", len(place), len(tmpl.Resources))
		}
		for id, refs := range edges {
			for _, ref := range refs {
				if place[ref.Target] >= place[id] {
					t.Fatalf("%s comes at %d, and waits for %s at %d", id, place[id], ref.Target, place[ref.Target])
				}
			}
		}
	})
}

func TestParsingIsDeterministic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		doc := drawTemplate(t)
		a, b := parseDrawn(t, doc), parseDrawn(t, doc)
		if diff := cmp.Diff(a, b); diff != "" {
			t.Fatal(diff)
		}
		if diff := cmp.Diff(template.Dependencies(a, nil), template.Dependencies(b, nil)); diff != "" {
			t.Fatal(diff)
		}
	})
}

func graphOf(edges map[string][]template.Reference) *graph.Graph {
	g := graph.New(len(edges))
	for id := range edges {
		g.AddNode(id)
	}
	for id, refs := range edges {
		for _, ref := range refs {
			g.AddEdge(ref.Target, id)
		}
	}
	return g
}
