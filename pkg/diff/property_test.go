package diff

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/slipway-cdk/slipway/pkg/intrinsic"
	"github.com/slipway-cdk/slipway/pkg/state"
)

// drawTemplate draws a template of queues, topics, parameters, functions and custom resources that refer to
// earlier ones in every way, with conditions.
func drawTemplate(t *rapid.T, label string) string {
	n := rapid.IntRange(1, 12).Draw(t, label+" resources")
	resources := map[string]any{}
	var ids []string
	value := func(name string) any {
		kind := rapid.IntRange(0, 6).Draw(t, name)
		if len(ids) == 0 && kind > 1 {
			kind = 0
		}
		target := ""
		if len(ids) > 0 {
			target = rapid.SampledFrom(ids).Draw(t, name+" target")
		}
		text := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, name+" text")
		switch kind {
		case 0:
			return text
		case 1:
			return map[string]any{"Fn::If": []any{"Yes", text, map[string]any{"Ref": "AWS::NoValue"}}}
		case 2:
			return map[string]any{"Ref": target}
		case 3:
			return map[string]any{"Fn::GetAtt": []any{target, "Arn"}}
		case 4:
			return map[string]any{"Fn::Sub": text + "-${" + target + "}-${AWS::Region}"}
		case 5:
			return map[string]any{"Fn::Join": []any{"-", []any{map[string]any{"Ref": target}, text}}}
		}
		return map[string]any{"Fn::If": []any{"No", map[string]any{"Ref": target}, map[string]any{"Ref": "AWS::NoValue"}}}
	}
	for i := range n {
		id := fmt.Sprintf("R%d", rapid.IntRange(0, 14).Draw(t, "id"))
		if resources[id] != nil {
			continue
		}
		name := fmt.Sprintf("%s %d ", label, i)
		r := map[string]any{}
		switch rapid.IntRange(0, 4).Draw(t, name+"type") {
		case 0:
			r["Type"] = "AWS::SQS::Queue"
			r["Properties"] = map[string]any{
				"DelaySeconds": rapid.IntRange(0, 2).Draw(t, name+"delay"), "KmsMasterKeyId": value(name + "key"),
				"Tags": []any{map[string]any{"Key": "t", "Value": value(name + "tag")}},
			}
		case 1:
			r["Type"] = "AWS::SNS::Subscription"
			r["Properties"] = map[string]any{"Protocol": "sqs", "TopicArn": value(name + "topic"), "Endpoint": value(name + "endpoint")}
		case 2:
			r["Type"] = "AWS::Lambda::Permission"
			r["Properties"] = map[string]any{"Action": "a", "FunctionName": value(name + "fn"), "Principal": "p"}
		case 3:
			r["Type"] = "Custom::Thing"
			r["Properties"] = map[string]any{"ServiceToken": "t", "A": value(name + "a"), "Timestamp": rapid.IntRange(0, 9).Draw(t, name+"time")}
		default:
			r["Type"] = "AWS::IAM::Role"
			r["Properties"] = map[string]any{"Path": "/" + rapid.SampledFrom([]string{"x", "y"}).Draw(t, name+"path") + "/", "Description": value(name + "text")}
		}
		if len(ids) > 0 && rapid.IntRange(0, 3).Draw(t, name+"depends") == 0 {
			r["DependsOn"] = rapid.SampledFrom(ids).Draw(t, name+"on")
		}
		if rapid.IntRange(0, 3).Draw(t, name+"retain") == 0 {
			r["DeletionPolicy"] = "Retain"
		}
		resources[id] = r
		ids = append(ids, id)
	}
	// Subscriptions and permissions have no Arn: give readers something that exists.
	for _, r := range resources {
		fixAttributes(resources, r)
	}
	output := value(label + " output")
	fixAttributes(resources, output)
	data, err := json.Marshal(map[string]any{
		"Conditions": map[string]any{"Yes": map[string]any{"Fn::Equals": []any{"a", "a"}}, "No": map[string]any{"Fn::Equals": []any{"a", "b"}}},
		"Resources":  resources,
		"Outputs":    map[string]any{"Out": map[string]any{"Value": output}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func fixAttributes(resources map[string]any, v any) {
	switch v := v.(type) {
	case map[string]any:
		if arg, ok := v["Fn::GetAtt"].([]any); ok {
			switch resources[arg[0].(string)].(map[string]any)["Type"] {
			case "AWS::SNS::Subscription", "AWS::Lambda::Permission":
				delete(v, "Fn::GetAtt")
				v["Ref"] = arg[0]
			}
			return
		}
		for _, member := range v {
			fixAttributes(resources, member)
		}
	case []any:
		for _, item := range v {
			fixAttributes(resources, item)
		}
	}
}

// TestApplyingThenDiffingIsEmpty: whatever is deployed, deploying something else over it leaves no difference.
// The new physical ids of replacements differ from the old ones here, as they do in AWS.
func TestApplyingThenDiffingIsEmpty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from, err := inputOf([]byte(drawTemplate(t, "from")), nil)
		if err != nil {
			t.Fatal(err)
		}
		rec, diags := deploy(from)
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		same := from
		same.Record = rec
		if result, diags := Compute(same); len(diags) > 0 || len(result.Changes) > 0 {
			t.Fatalf("diff(x, x): %v\n%s", diags, brief(result.Changes))
		}

		to, err := inputOf([]byte(drawTemplate(t, "to")), nil)
		if err != nil {
			t.Fatal(err)
		}
		to.Record = rec
		result, diags := Compute(to)
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		applied := apply(t, to, result)
		again := to
		again.Record = applied
		if result, diags := Compute(again); len(diags) > 0 || len(result.Changes) > 0 {
			t.Fatalf("after applying: %v\n%s", diags, brief(result.Changes))
		}
	})
}

// apply does what the changes say: what they leave out stays as it is recorded.
func apply(t *rapid.T, in Input, result Result) *state.Record {
	rec := &state.Record{Resources: map[string]*state.Resource{}}
	for id, r := range in.Record.Resources {
		was := *r
		rec.Resources[id] = &was
	}
	order, err := Graph(in).TopologicalOrder()
	if err != nil {
		t.Fatal(err)
	}
	changes := map[string]Change{}
	for _, c := range result.Changes {
		changes[c.LogicalID] = c
		if c.Action == ActionDelete {
			delete(rec.Resources, c.LogicalID)
		}
	}
	for _, id := range order {
		c, changed := changes[id]
		if !changed {
			continue
		}
		r := in.Template.Resources[id]
		scope := *in.Scope
		scope.Resources = map[string]intrinsic.Resource{}
		for other, was := range rec.Resources {
			scope.Resources[other] = readable(was)
		}
		now := &state.Resource{ResourceType: r.Type, Dependencies: result.Dependencies[id], DeletionPolicy: c.DeletionPolicy, UpdateReplacePolicy: c.UpdateReplacePolicy}
		if now.Properties, err = intrinsic.NewResolver(&scope).ResolveProperties(r.Properties, "Properties"); err != nil {
			t.Fatal(err)
		}
		if was := rec.Resources[id]; was != nil {
			now.PhysicalID, now.Attributes = was.PhysicalID, was.Attributes
		}
		if c.Action == ActionCreate || c.Action == ActionReplace {
			now.PhysicalID = physicalID(id, r.Type) + "-next"
			now.Attributes = map[string]any{"Arn": "arn:next:" + id}
		}
		rec.Resources[id] = now
	}
	return rec
}

// TestComputeIsDeterministic: the same question has the same answer, in the same order.
func TestComputeIsDeterministic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from, err := inputOf([]byte(drawTemplate(t, "from")), nil)
		if err != nil {
			t.Fatal(err)
		}
		to, err := inputOf([]byte(drawTemplate(t, "to")), nil)
		if err != nil {
			t.Fatal(err)
		}
		rec, diags := deploy(from)
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		to.Record = rec
		first, _ := Compute(to)
		second, _ := Compute(to)
		a, _ := json.Marshal(first.Changes)
		b, _ := json.Marshal(second.Changes)
		if string(a) != string(b) {
			t.Fatalf("%s\n%s", a, b)
		}
	})
}

// TestNothingHangsOnNames: under other logical IDs the graph has the same edges and every resource the same verdict.
func TestNothingHangsOnNames(t *testing.T) {
	id := regexp.MustCompile(`\bR(\d+)\b`)
	renamed := func(s string) string { return id.ReplaceAllString(s, "Other${1}x") }
	rapid.Check(t, func(t *rapid.T) {
		from, to := drawTemplate(t, "from"), drawTemplate(t, "to")
		verdicts := func(rename func(string) string) (edges, changes string) {
			was, err := inputOf([]byte(rename(from)), nil)
			if err != nil {
				t.Fatal(err)
			}
			in, err := inputOf([]byte(rename(to)), nil)
			if err != nil {
				t.Fatal(err)
			}
			rec, diags := deploy(was)
			if diags.HasErrors() {
				t.Fatal(diags)
			}
			in.Record = rec
			result, diags := Compute(in)
			if diags.HasErrors() {
				t.Fatal(diags)
			}
			for _, e := range Graph(in).Edges() {
				edges += fmt.Sprintln(e.From, e.To, e.Labels)
			}
			return edges, brief(result.Changes)
		}
		edges, changes := verdicts(func(s string) string { return s })
		otherEdges, otherChanges := verdicts(renamed)
		if want := renamed(edges); otherEdges != want {
			t.Fatalf("edges:\n%s\nwant:\n%s", otherEdges, want)
		}
		if want := renamed(changes); sortedLines(otherChanges) != sortedLines(want) {
			t.Fatalf("changes:\n%s\nwant:\n%s", otherChanges, want)
		}
	})
}

// sortedLines: deletions come by name.
func sortedLines(s string) string {
	lines := strings.Split(s, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
