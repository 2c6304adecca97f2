package sandbox

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudcontrol"
	cctypes "github.com/aws/aws-sdk-go-v2/service/cloudcontrol/types"

	"github.com/slipway-cdk/slipway/pkg/schema"
)

// minimal builds the smallest model that a type's schema accepts.
type minimal struct {
	t   *schema.Type
	rng *rand.Rand
}

func (g minimal) model() map[string]any { return g.object(&g.t.Definition, 0) }

func (g minimal) object(def *schema.Definition, depth int) map[string]any {
	m := map[string]any{}
	if def == nil || depth > 12 {
		return m
	}
	for _, name := range def.Required {
		p := def.Properties[name]
		if p == nil {
			p = &schema.Property{Kind: schema.KindString}
		}
		m[name] = g.value(p, depth)
	}
	return m
}

func (g minimal) value(p *schema.Property, depth int) any {
	switch p.Kind {
	case schema.KindInteger, schema.KindNumber:
		if len(p.Enum) > 0 {
			return json.Number(p.Enum[0])
		}
		n := 1.0
		if p.Minimum != nil {
			n = *p.Minimum
		} else if p.Maximum != nil && *p.Maximum < n {
			n = *p.Maximum
		}
		return json.Number(fmt.Sprintf("%g", n))
	case schema.KindBoolean:
		return true
	case schema.KindJSON, schema.KindMap:
		return map[string]any{}
	case schema.KindList:
		list := []any{}
		if p.MinItems != nil {
			for range *p.MinItems {
				list = append(list, g.value(p.Elem, depth+1))
			}
		}
		return list
	case schema.KindObject:
		return g.object(g.t.Definitions[p.Ref], depth+1)
	case schema.KindUnion:
		return g.value(p.Alternatives[0], depth+1)
	}
	if len(p.Enum) > 0 {
		return p.Enum[0]
	}
	least, most := 1, 1024
	if p.MinLength != nil {
		least = max(1, *p.MinLength)
	}
	if p.MaxLength != nil {
		most = *p.MaxLength
	}
	if p.Pattern != "" {
		for range 5 {
			if s, ok := example(p.Pattern, least, most, g.rng); ok {
				return s
			}
		}
	}
	s := "x" + fmt.Sprint(g.rng.Uint64())
	for len(s) < least {
		s += "0"
	}
	return s[:min(len(s), most)]
}

// Every type that Cloud Control can provision goes through its life here: create from the smallest model that the
// schema accepts, read, list, delete. All identifiers and unconditional attributes must be there in between.
func TestEveryProvisionableTypeLivesFromAMinimalModel(t *testing.T) {
	b := newBench(t, Options{})
	ctx := context.Background()
	total, passed := 0, 0
	why := map[string][]string{}
	for _, name := range schema.Names() {
		typ, ok := schema.Lookup(name)
		if !ok {
			t.Fatalf("%s is listed but not there", name)
		}
		if !typ.Provisionable || name == nestedStackType {
			continue
		}
		total++
		model := minimal{typ, rand.New(rand.NewPCG(1, uint64(total)))}.model()
		if reason := b.life(ctx, typ, model); reason != "" {
			key, _, _ := strings.Cut(reason, ":")
			why[key] = append(why[key], name+" "+reason)
			continue
		}
		passed++
	}
	t.Logf("%d of %d provisionable types pass (%.1f %%)", passed, total, 100*float64(passed)/float64(total))
	for _, key := range sortedKeys(why) {
		for _, line := range why[key] {
			t.Log(line)
		}
	}
	if passed*1000 < total*985 {
		t.Errorf("only %d of %d types pass", passed, total)
	}
	left, err := b.s.List(ctx, Filter{})
	if err != nil || len(left) > total-passed {
		t.Errorf("%d resources are left after all deletes: %v", len(left), err)
	}
}

// life returns what went wrong, "" for a full life.
func (b *bench) life(ctx context.Context, typ *schema.Type, model map[string]any) string {
	name := typ.Name
	text := encode(model)
	out, err := b.cc.CreateResource(ctx, &cloudcontrol.CreateResourceInput{TypeName: &name, DesiredState: &text})
	if err != nil {
		return "create: " + err.Error()
	}
	e := b.wait(out.ProgressEvent.RequestToken)
	if e.OperationStatus != cctypes.OperationStatusSuccess {
		return fmt.Sprintf("create: %s %s", e.ErrorCode, aws.ToString(e.StatusMessage))
	}
	id := aws.ToString(e.Identifier)
	got, err := b.get(name, id)
	if err != nil {
		return "get: " + err.Error()
	}
	for _, p := range typ.PrimaryIdentifier {
		if getString(got, p) == "" && !typ.IsWriteOnly(strings.Split(p, "/")) {
			return "identifier: no " + p
		}
	}
	shape := b.s.shapes[name]
	for attribute := range typ.Attributes {
		path := strings.ReplaceAll(attribute, ".", "/")
		if _, ok := get(got, path); ok || typ.IsWriteOnly(strings.Split(path, "/")) || strings.Contains(path, "*") {
			continue
		}
		if conditional(shape, path) {
			continue
		}
		return "attribute: no " + attribute
	}
	if typ.Listable {
		list, err := b.cc.ListResources(ctx, &cloudcontrol.ListResourcesInput{TypeName: &name})
		if err != nil {
			return "list: " + err.Error()
		}
		if len(list.ResourceDescriptions) != 1 || *list.ResourceDescriptions[0].Identifier != id {
			return fmt.Sprintf("list: %d resources", len(list.ResourceDescriptions))
		}
	}
	if typ.Updatable {
		// An empty change must be accepted: everything that the sandbox made up fits the schema.
		if e, err := b.update(name, id, "[]"); err != nil && !writeOnlyRequired(typ) {
			return "update: " + err.Error()
		} else if err == nil && e.OperationStatus != cctypes.OperationStatusSuccess {
			return "update: " + aws.ToString(e.StatusMessage)
		}
	}
	if e := b.delete(name, id); e.OperationStatus != cctypes.OperationStatusSuccess {
		return fmt.Sprintf("delete: %s %s", e.ErrorCode, aws.ToString(e.StatusMessage))
	}
	if _, err := b.get(name, id); codeOf(err) != codeNotFound {
		return fmt.Sprintf("delete: still there (%v)", err)
	}
	return ""
}

// The other types go through the direct API.
func TestEveryOtherTypeLivesThroughTheDirectAPI(t *testing.T) {
	b := newBench(t, Options{})
	c := b.direct()
	total := 0
	for _, name := range schema.Names() {
		typ, _ := schema.Lookup(name)
		if typ.Provisionable || name == nestedStackType || name == customType {
			continue
		}
		total++
		model := minimal{typ, rand.New(rand.NewPCG(2, uint64(total)))}.model()
		e, err := c.Create(bg, name, "", model, "")
		if err == nil {
			e, err = c.Status(bg, e.RequestToken)
		}
		if err != nil || e.OperationStatus != statusSuccess {
			t.Errorf("%s: %v %s %s", name, err, e.ErrorCode, e.StatusMessage)
			continue
		}
		id := e.Identifier
		if e, err = c.Update(bg, name, id, nil, model, ""); err != nil {
			t.Errorf("updating %s with what it has: %v", name, err)
		}
		r, err := c.Get(bg, name, id, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for attribute := range typ.Attributes {
			if path := strings.ReplaceAll(attribute, ".", "/"); r.Attributes[attribute] == nil && !present(r.Attributes, path) && !typ.IsWriteOnly(strings.Split(path, "/")) && !conditional(b.s.shapes[name], path) {
				t.Errorf("%s has no %s", name, attribute)
			}
		}
		if e, err = c.Delete(bg, name, id, nil, ""); err == nil {
			e, err = c.Status(bg, e.RequestToken)
		}
		if err != nil || e.OperationStatus != statusSuccess {
			t.Errorf("deleting %s: %v %s", name, err, e.StatusMessage)
		}
	}
	t.Logf("%d types", total)
}

func conditional(s *shape, path string) bool {
	if s == nil {
		return false
	}
	for _, r := range s.rules {
		if r.condition != "" && (r.path == path || strings.HasPrefix(r.path, path+"/")) {
			return true
		}
	}
	return false
}

// writeOnlyRequired: the model that an update starts from lacks write-only properties, so that a required one must
// be sent again.
func writeOnlyRequired(t *schema.Type) bool { return len(t.WriteOnly) > 0 }
