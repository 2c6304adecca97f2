package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/schema"
)

func lookup(t *testing.T, name string) *schema.Type {
	t.Helper()
	found, ok := schema.Lookup(name)
	if !ok {
		t.Fatalf("%s is not known", name)
	}
	return found
}

func TestEveryPropertyAndNestedPathIsChanged(t *testing.T) {
	cluster := lookup(t, "AWS::EKS::Cluster")
	properties := map[string]any{
		"RoleArn": "arn:aws:iam::123456789012:role/x", "Name": "n",
		"KubernetesNetworkConfig": map[string]any{"IpFamily": "ipv4"}, "ResourcesVpcConfig": map[string]any{"SubnetIds": []any{"a", "b"}},
	}
	before, _ := json.Marshal(properties)
	seen := map[string]bool{}
	for _, p := range mutations(cluster, properties) {
		seen[p.Kind+" "+p.Path] = true
		if reflect.DeepEqual(p.after(properties), properties) {
			t.Errorf("%s %s changes nothing", p.Kind, p.Path)
		}
	}
	if after, _ := json.Marshal(properties); !bytes.Equal(before, after) {
		t.Error("the resource itself was changed")
	}
	for name := range cluster.Properties {
		if !seen["add "+name] && !seen["change "+name] {
			t.Errorf("%s is neither added nor changed", name)
		}
	}
	for _, want := range []string{"remove Name", "change KubernetesNetworkConfig/IpFamily", "add KubernetesNetworkConfig/ServiceIpv4Cidr"} {
		if !seen[want] {
			t.Errorf("no %s", want)
		}
	}
	if seen["remove RoleArn"] {
		t.Error("a required property was removed")
	}
}

func TestChangedValuesStayOfTheirKind(t *testing.T) {
	for _, name := range schema.Names() {
		typ := lookup(t, name)
		properties := map[string]any{}
		for property, p := range typ.Properties {
			properties[property] = synthesize(typ, p, 0, true)
		}
		for _, p := range mutations(typ, properties) {
			if p.Kind != "change" && p.Kind != "add" {
				continue
			}
			for _, problem := range schema.Validate(typ, map[string]any{p.Property: p.New}, schema.Options{Lenient: true}) {
				if problem.Kind == schema.ProblemType {
					t.Errorf("%s %s %s: %s", name, p.Kind, p.Path, problem)
				}
			}
		}
	}
}

func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		property string
		old, new any
		want     string
	}{
		{"DelaySeconds", json.Number("5"), "5", "none"},
		{"DelaySeconds", json.Number("5"), "6", "update"},
		{"QueueName", "a", "b", "replace"},
	} {
		got, err := verdictOf("AWS::SQS::Queue", map[string]any{c.property: c.old}, map[string]any{c.property: c.new})
		if err != nil || got != c.want {
			t.Errorf("%s: %s, %v; want %s", c.property, got, err, c.want)
		}
	}
}

// judged writes the files of a comparison of one queue's change, often enough to count, and judges it.
func judged(t *testing.T, page string, cfndiff, registry string, row bool) error {
	t.Helper()
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	var s, agree, c, r bytes.Buffer
	line := func(out *bytes.Buffer, v any) {
		if err := json.NewEncoder(out).Encode(v); err != nil {
			t.Fatal(err)
		}
	}
	same := pair{Path: "DelaySeconds", Kind: "change", Property: "DelaySeconds", New: "1", Ours: "update"}
	pairs, updates := []pair{{Path: "Tags/*/Key", Kind: "change", Property: "Tags", New: "1", Ours: "update"}}, []string{"update"}
	for range 5000 {
		pairs, updates = append(pairs, same), append(updates, "update")
	}
	line(&s, subject{Source: "corpus", Type: "AWS::SQS::Queue", Pairs: pairs})
	line(&c, append([]string{cfndiff}, updates[1:]...))
	line(&r, append([]string{registry}, updates[1:]...))
	docs := heading + "\n| type | path | why | page |\n|---|---|---|---|\n"
	if row {
		docs += "| `AWS::SQS::Queue` | `Tags` | why | " + page + " |\n"
	}
	err := compare(&agree, write("docs.md", docs), 99, []string{write("pairs", s.String()), write("c", c.String()), write("r", r.String())})
	if err == nil && !strings.Contains(agree.String(), "agree") {
		t.Error("nothing is printed")
	}
	return err
}

func TestAMissedReplacementFailsUnlessTheDocumentationExcusesIt(t *testing.T) {
	const page = "https://docs.aws.amazon.com/x.html"
	for _, c := range []struct {
		name              string
		page              string
		cfndiff, registry string
		row               bool
		want              string // part of the error
	}{
		{"both agree", "", "update", "update", false, ""},
		{"one oracle replaces", "", "replace", "update", false, "without a decision"},
		{"the other one does", "", "unknown", "replace", false, "without a decision"},
		{"excused", page, "replace", "update", true, ""},
		{"excused without a page", "somebody said so", "replace", "update", true, "names no page"},
		{"excused for nothing", page, "update", "update", true, "about nothing"},
		{"a maybe is only a disagreement", "", "maybe", "update", false, ""},
	} {
		err := judged(t, c.page, c.cfndiff, c.registry, c.row)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

func TestTheDecisionsInTheDocumentationAreReadable(t *testing.T) {
	list, err := exceptions("../../../docs/replacement.md")
	if err != nil || len(list) < 10 {
		t.Errorf("%d decisions, %v", len(list), err)
	}
}
