package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/cloudcontrol"

	"github.com/slipway-cdk/slipway/pkg/schema"
)

// Real templates must pass through the sandbox in dependency order, twice, and leave nothing behind: it may be no
// stricter than AWS, either.
func TestRealTemplatesDeployTwiceAndLeaveNothing(t *testing.T) {
	dirs, err := filepath.Glob("../../../shared/corpus/assemblies/*")
	if err != nil || len(dirs) == 0 {
		t.Skip("the corpus of assemblies is not here")
	}
	refused := 0
	total := 0
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "*.template.json"))
		if err != nil {
			t.Fatal(err)
		}
		importing := func(file string) int {
			raw, _ := os.ReadFile(file)
			return strings.Count(string(raw), "Fn::ImportValue")
		}
		// Stacks that import nothing come first: enough order for this corpus.
		sort.SliceStable(files, func(i, j int) bool { return min(importing(files[i]), 1) < min(importing(files[j]), 1) })
		b := newBench(t, Options{})
		for round := range 2 {
			exports := map[string]any{}
			var stacks []*stack
			for _, file := range files {
				raw, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				template, err := decodeObject(string(raw))
				if err != nil {
					t.Fatal(err)
				}
				s := &stack{b: b, name: strings.TrimSuffix(filepath.Base(file), ".template.json"), template: template, exports: exports,
					refs: map[string]string{}, attributes: map[string]map[string]any{}, types: map[string]string{}, ids: map[string]string{}}
				stacks = append(stacks, s)
				total++
				for _, line := range s.deploy() {
					refused++
					t.Logf("%s, round %d: %s", filepath.Base(dir), round, line)
				}
			}
			slices.Reverse(stacks)
			for _, s := range stacks {
				for _, line := range s.destroy() {
					refused++
					t.Errorf("%s, round %d: %s", filepath.Base(dir), round, line)
				}
			}
		}
		if left, err := b.s.List(bg, Filter{}); err != nil || len(left) > 0 {
			t.Errorf("%s leaves %d resources: %v", filepath.Base(dir), len(left), err)
		}
	}
	t.Logf("%d template deployments, %d refusals", total, refused)
	if refused > 0 {
		t.Errorf("%d refusals", refused)
	}
}

// deploy creates the stack's resources and says what was refused.
func (s *stack) deploy() []string {
	var problems []string
	waiting := map[string]map[string]bool{}
	for id, r := range s.resources() {
		m := r.(map[string]any)
		if c, ok := m["Condition"].(string); ok && !s.condition(c) {
			continue
		}
		deps := map[string]bool{}
		s.dependencies(m["Properties"], deps)
		switch d := m["DependsOn"].(type) {
		case string:
			deps[d] = true
		case []any:
			for _, e := range d {
				deps[text(e)] = true
			}
		}
		waiting[id] = deps
	}
	for len(waiting) > 0 {
		var ready []string
		for id, deps := range waiting {
			free := true
			for d := range deps {
				if _, w := waiting[d]; w && d != id {
					free = false
				}
			}
			if free {
				ready = append(ready, id)
			}
		}
		if len(ready) == 0 {
			return append(problems, "a cycle")
		}
		sort.Strings(ready)
		for _, id := range ready {
			delete(waiting, id)
			if problem := s.create(id); problem != "" {
				problems = append(problems, fmt.Sprintf("%s (%s): %s", id, s.types[id], problem))
			}
		}
	}
	outputs, _ := s.template["Outputs"].(map[string]any)
	for _, o := range outputs {
		m, _ := o.(map[string]any)
		value := s.resolve(m["Value"])
		if e, ok := m["Export"].(map[string]any); ok {
			s.exports[text(s.resolve(e["Name"]))] = value
		}
	}
	return problems
}

func (s *stack) create(id string) string {
	r := s.resources()[id].(map[string]any)
	typeName := r["Type"].(string)
	s.types[id] = typeName
	properties, _ := s.resolve(r["Properties"]).(map[string]any)
	if properties == nil {
		properties = map[string]any{}
	}
	c := s.b.direct()
	if strings.HasPrefix(typeName, customPrefix) || typeName == customType {
		token, _ := properties["ServiceToken"].(string)
		response, err := c.InvokeCustomResource(bg, CustomResourceEvent{RequestType: "Create", RequestID: s.b.id(), ServiceToken: token, LogicalResourceID: id,
			ResourceType: typeName, ResourceProperties: properties, WantAttributes: s.wanted(id)})
		if err != nil || response.Status != statusSuccess {
			return fmt.Sprintf("%v %s", err, response.Reason)
		}
		s.done(id, response.PhysicalResourceID, response.PhysicalResourceID, response.Data)
		return ""
	}
	t, ok := schema.Lookup(typeName)
	if !ok {
		return "unknown type"
	}
	for k := range properties {
		properties[k] = coerce(t, t.Properties[k], properties[k])
	}
	var e ProgressEvent
	if t.Provisionable {
		model := encode(properties)
		out, err := s.b.cc.CreateResource(bg, &cloudcontrol.CreateResourceInput{TypeName: &typeName, DesiredState: &model})
		if err != nil {
			return err.Error()
		}
		if e, err = s.b.s.status(Caller{DefaultAccount, DefaultRegion}, routeCloudControl, *out.ProgressEvent.RequestToken); err != nil {
			return err.Error()
		}
	} else {
		first, err := c.Create(bg, typeName, "", properties, "")
		if err != nil {
			return err.Error()
		}
		if e, err = c.Status(bg, first.RequestToken); err != nil {
			return err.Error()
		}
	}
	if e.OperationStatus != statusSuccess {
		return e.ErrorCode + " " + e.StatusMessage
	}
	model, err := decodeObject(e.ResourceModel)
	if err != nil {
		return err.Error()
	}
	ref := e.Identifier
	if v := getString(model, t.RefProperty); t.RefProperty != "" && v != "" {
		ref = v
	}
	s.done(id, e.Identifier, ref, model)
	return ""
}

func (s *stack) done(id, identifier, ref string, attributes map[string]any) {
	s.order = append(s.order, id)
	s.ids[id], s.refs[id], s.attributes[id] = identifier, ref, attributes
}

// wanted lists the attributes of a resource that the template reads.
func (s *stack) wanted(id string) []string {
	var out []string
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if l, ok := v["Fn::GetAtt"].([]any); ok && l[0] == id {
				out = append(out, text(l[1]))
			}
			for _, e := range v {
				walk(e)
			}
		case []any:
			for _, e := range v {
				walk(e)
			}
		}
	}
	walk(s.template)
	return out
}

// destroy deletes in the reverse order.
func (s *stack) destroy() []string {
	var problems []string
	c := s.b.direct()
	for _, id := range slices.Backward(s.order) {
		typeName := s.types[id]
		t, _ := schema.Lookup(typeName)
		var e ProgressEvent
		var err error
		switch {
		case strings.HasPrefix(typeName, customPrefix) || typeName == customType:
			var r CustomResourceResponse
			r, err = c.InvokeCustomResource(bg, CustomResourceEvent{RequestType: "Delete", RequestID: s.b.id(), ServiceToken: "t", LogicalResourceID: id,
				ResourceType: typeName, PhysicalResourceID: s.ids[id]})
			e.OperationStatus, e.StatusMessage = r.Status, r.Reason
		case t.Provisionable:
			d := s.b.delete(typeName, s.ids[id])
			e.OperationStatus, e.ErrorCode = string(d.OperationStatus), string(d.ErrorCode)
			if d.StatusMessage != nil {
				e.StatusMessage = *d.StatusMessage
			}
		default:
			if e, err = c.Delete(bg, typeName, s.ids[id], nil, ""); err == nil {
				e, err = c.Status(bg, e.RequestToken)
			}
		}
		if err != nil || e.OperationStatus != statusSuccess {
			problems = append(problems, fmt.Sprintf("deleting %s (%s): %v %s %s", id, typeName, err, e.ErrorCode, e.StatusMessage))
		}
	}
	return problems
}

// id is a new request id.
func (b *bench) id() (out string) {
	b.s.draw(func(m *maker) { out, _ = m.builtin("uuid") })
	return out
}
