package local

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/sandbox"
	"github.com/slipway-cdk/slipway/pkg/state"
)

// deployCheck compares what lives in the sandbox with the template, without the resolver: every position that
// was a Ref or Fn::GetAtt of a resource must hold that resource's identifier or attribute as the sandbox tells
// it, and no intrinsic function may be left anywhere.
type deployCheck struct {
	stack    string
	template map[string]any
	record   *state.Record
	live     map[string]sandbox.Resource // by logical id
	checked  int                         // positions that were compared
	problems []string
}

func checkStack(t *testing.T, p *Plane, s *assembly.Stack) *deployCheck {
	t.Helper()
	ctx := context.Background()
	account, region := s.Account, s.Region
	if account == "" {
		account = p.account
	}
	if region == "" {
		region = p.region
	}
	rec, _, err := p.States().Load(ctx, s.Name, region)
	if err != nil {
		t.Fatalf("loading the record of %s: %v", s.Name, err)
	}
	c := &deployCheck{stack: s.Name, record: rec, live: map[string]sandbox.Resource{}}
	dec := json.NewDecoder(strings.NewReader(string(s.Template)))
	dec.UseNumber()
	if err := dec.Decode(&c.template); err != nil {
		t.Fatal(err)
	}
	all, err := p.Sandbox().List(ctx, sandbox.Filter{Account: account})
	if err != nil {
		t.Fatal(err)
	}
	byKey := map[string][]sandbox.Resource{}
	for _, r := range all {
		if r.Region == region || r.Region == sandbox.GlobalRegion {
			byKey[r.Type+" "+r.Identifier] = append(byKey[r.Type+" "+r.Identifier], r)
		}
	}
	for id, r := range rec.Resources {
		found := byKey[r.ResourceType+" "+r.PhysicalID]
		if len(found) == 0 {
			c.problem(id, "is in the record and not in the sandbox")
			continue
		}
		c.live[id] = found[0]
		for _, other := range found[1:] {
			// Of those with one name it is the one that belongs to what the record says: a stage of its API.
			if agreement(other.Properties, r.Properties) > agreement(c.live[id].Properties, r.Properties) {
				c.live[id] = other
			}
		}
	}
	resources, _ := c.template["Resources"].(map[string]any)
	for id, raw := range resources {
		res, _ := raw.(map[string]any)
		if res["Type"] == "AWS::CDK::Metadata" {
			continue
		}
		if _, conditional := res["Condition"]; !conditional && rec.Resources[id] == nil {
			c.problem(id, "is in the template and not in the record")
		}
		if rec.Resources[id] == nil {
			continue
		}
		props, _ := res["Properties"].(map[string]any)
		c.compare(id+" recorded", props, rec.Resources[id].Properties)
		if live, ok := c.live[id]; ok {
			c.compare(id+" live", props, live.Properties)
			c.noIntrinsic(id+" live", live.Properties)
		}
		c.noIntrinsic(id+" recorded", rec.Resources[id].Properties)
	}
	c.noIntrinsic("outputs", rec.Outputs)
	return c
}

// agreement is how many of the recorded properties are texts that the live resource has, too.
func agreement(live, recorded map[string]any) int {
	n := 0
	for name, v := range recorded {
		if s, ok := v.(string); ok && live[name] == s {
			n++
		}
	}
	return n
}

func (c *deployCheck) problem(where, format string, args ...any) {
	c.problems = append(c.problems, c.stack+"/"+where+": "+fmt.Sprintf(format, args...))
}

// compare walks the template's value and what came of it side by side, as far as their shapes agree.
func (c *deployCheck) compare(path string, want, got any) {
	switch w := want.(type) {
	case map[string]any:
		if target, attribute, ok := c.reference(w); ok {
			c.checkReference(path, target, attribute, got)
			return
		}
		g, ok := got.(map[string]any)
		if !ok {
			return
		}
		for k, v := range w {
			if gv, ok := g[k]; ok {
				c.compare(path+"."+k, v, gv)
			}
		}
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return
		}
		for i := range w {
			c.compare(fmt.Sprintf("%s.%d", path, i), w[i], g[i])
		}
	}
}

// reference recognises a Ref or Fn::GetAtt of a resource.
func (c *deployCheck) reference(m map[string]any) (target, attribute string, ok bool) {
	if len(m) != 1 {
		return "", "", false
	}
	if name, is := m["Ref"].(string); is {
		_, resource := c.record.Resources[name]
		return name, "", resource
	}
	switch arg := m["Fn::GetAtt"].(type) {
	case string:
		target, attribute, _ = strings.Cut(arg, ".")
		return target, attribute, true
	case []any:
		if len(arg) == 2 {
			target, _ = arg[0].(string)
			attribute, ok = arg[1].(string)
			return target, attribute, ok
		}
	}
	return "", "", false
}

func (c *deployCheck) checkReference(path, target, attribute string, got any) {
	producer, ok := c.live[target]
	if !ok {
		c.problem(path, "refers to %s, which does not live", target)
		return
	}
	c.checked++
	if attribute != "" {
		if want, ok := lookup(producer.Properties, attribute); ok {
			if !sameScalar(want, got) {
				c.problem(path, "is not attribute %s of %s", attribute, target)
			}
			return
		}
		// A custom resource's data is known to its handler and the record only.
		if want, ok := lookup(c.record.Resources[target].Attributes, attribute); !ok || !sameScalar(want, got) {
			c.problem(path, "is not attribute %s of %s, which the sandbox does not show", attribute, target)
		}
		return
	}
	text, _ := got.(string)
	if text == producer.Identifier || slices.Contains(strings.Split(producer.Identifier, "|"), text) {
		return
	}
	for _, v := range producer.Properties {
		if sameScalar(v, got) {
			return
		}
	}
	if wafRef(producer, text) {
		return
	}
	c.problem(path, "is neither the identifier nor an attribute of %s (%s)", target, producer.Type)
}

// wafRef: Ref of a web ACL is "name|id|scope", whose parts are the identifier's and attributes
// (https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-wafv2-webacl.html).
func wafRef(producer sandbox.Resource, text string) bool {
	if !strings.Contains(text, "|") {
		return false
	}
	for _, part := range strings.Split(text, "|") {
		found := slices.Contains(strings.Split(producer.Identifier, "|"), part)
		for _, v := range producer.Properties {
			found = found || v == part
		}
		if !found {
			return false
		}
	}
	return true
}

// lookup reads a dotted attribute name: as a key, then as a path.
func lookup(m map[string]any, name string) (any, bool) {
	if v, ok := m[name]; ok {
		return v, true
	}
	head, rest, dotted := strings.Cut(name, ".")
	if !dotted {
		return nil, false
	}
	inner, ok := m[head].(map[string]any)
	if !ok {
		return nil, false
	}
	return lookup(inner, rest)
}

func sameScalar(a, b any) bool {
	x, errA := json.Marshal(a)
	y, errB := json.Marshal(b)
	return errA == nil && errB == nil && strings.Trim(string(x), `"`) == strings.Trim(string(y), `"`)
}

// noIntrinsic finds functions that were left in a value.
func (c *deployCheck) noIntrinsic(path string, v any) {
	switch x := v.(type) {
	case map[string]any:
		for k, inner := range x {
			if len(x) == 1 && (k == "Ref" || strings.HasPrefix(k, "Fn::")) {
				c.problem(path, "still holds %s", k)
			}
			c.noIntrinsic(path+"."+k, inner)
		}
	case []any:
		for i, inner := range x {
			c.noIntrinsic(fmt.Sprintf("%s.%d", path, i), inner)
		}
	}
}
