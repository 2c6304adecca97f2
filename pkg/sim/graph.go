package sim

import (
	"crypto/sha256"
	"encoding/hex"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/run"
)

// stack is what a team has in its app for one stack: the source of its templates.
type stack struct {
	name      string
	resources []*resource
	dependsOn []string
	serial    int
	// ever are the resources that a template has ever had a policy for under which AWS keeps them.
	ever map[string]bool
}

// resource is one resource of an app.
type resource struct {
	id, typ string
	// text and fixed count the changes: in place, and such that need another resource.
	text, fixed int
	refs        []string // logical ids, earlier in the stack
	imports     []string // exports of other stacks
	dependsOn   string
	// policy and replacePolicy are the DeletionPolicy and UpdateReplacePolicy.
	policy, replacePolicy string
	// bad: its service refuses it.
	bad bool
	// pinned: it is exported, and stays.
	pinned bool
}

func newStack(rng *rand.Rand, name string, before []*stack) *stack {
	s := &stack{name: name, ever: map[string]bool{}}
	for range 2 + rng.IntN(6) {
		s.add(rng)
	}
	s.resources[0].pinned = true
	for _, b := range before {
		if rng.IntN(2) == 0 {
			s.dependsOn = append(s.dependsOn, b.name)
			s.resources[rng.IntN(len(s.resources))].imports = []string{b.name + "-out"}
		}
	}
	return s
}

// add puts another resource into the stack.
func (s *stack) add(rng *rand.Rand) {
	k := kinds[rng.IntN(len(kinds))]
	r := &resource{id: "R" + number(s.serial), typ: k.name}
	s.serial++
	s.connect(rng, r, s.resources)
	if k.named == "" && !k.custom && rng.IntN(8) == 0 {
		r.policy = []string{"Retain", "RetainExceptOnCreate"}[rng.IntN(2)]
		if rng.IntN(2) == 0 {
			r.replacePolicy = "Retain"
		}
	}
	s.resources = append(s.resources, r)
}

func (s *stack) connect(rng *rand.Rand, r *resource, earlier []*resource) {
	r.refs, r.dependsOn = nil, ""
	for _, other := range earlier {
		if rng.IntN(max(2, len(earlier))) == 0 {
			r.refs = append(r.refs, other.id)
		}
	}
	if len(earlier) > 0 && rng.IntN(4) == 0 {
		r.dependsOn = earlier[rng.IntN(len(earlier))].id
	}
}

// mutate changes the app.
func (s *stack) mutate(rng *rand.Rand) {
	for _, r := range s.resources {
		r.bad = false
	}
	for range 1 + rng.IntN(4) {
		i := rng.IntN(len(s.resources))
		r := s.resources[i]
		switch rng.IntN(12) {
		case 0, 1, 2:
			r.text++
		case 3, 4, 10, 11:
			r.fixed++
		case 5:
			s.add(rng)
		case 6:
			s.remove(i)
		case 7:
			if !r.pinned && r.policy == "" && r.replacePolicy == "" {
				r.typ = kinds[rng.IntN(len(kinds))].name
			}
		case 8:
			s.connect(rng, r, s.resources[:i])
		case 9:
			if kindOf(r.typ).named == "" && !kindOf(r.typ).custom {
				r.policy = []string{"", "Delete", "Retain"}[rng.IntN(3)]
			}
		}
	}
}

func (s *stack) remove(i int) {
	gone := s.resources[i]
	if gone.pinned {
		return
	}
	s.resources = slices.Delete(s.resources, i, i+1)
	for _, r := range s.resources {
		r.refs = slices.DeleteFunc(r.refs, func(id string) bool { return id == gone.id })
		if r.dependsOn == gone.id {
			r.dependsOn = ""
		}
	}
}

// spoil makes the service refuse one resource.
func (s *stack) spoil(rng *rand.Rand) {
	r := s.resources[rng.IntN(len(s.resources))]
	r.bad = true
	r.text++
}

// failAfterReplacing makes the service refuse the last resource, after another one that it depends on is replaced.
func (s *stack) failAfterReplacing(rng *rand.Rand) {
	last := len(s.resources) - 1
	var can []*resource
	for _, r := range s.resources[:last] {
		if k := kindOf(r.typ); k.fixed != "" {
			can = append(can, r)
			if k.route == provider.RouteSDK {
				can = append(can, r, r, r) // there is one such kind among those of Cloud Control
			}
		}
	}
	if len(can) == 0 {
		return
	}
	replaced := can[rng.IntN(len(can))]
	replaced.fixed++
	s.resources[last].bad = true
	s.resources[last].text++
	s.resources[last].dependsOn = replaced.id
}

func (s *stack) heal() {
	for _, r := range s.resources {
		r.bad = false
	}
}

// template renders the app as it is now.
func (s *stack) template() ([]byte, string) {
	resources := map[string]any{}
	for _, r := range s.resources {
		resources[r.id] = s.render(r)
		if r.policy != "" && r.policy != "Delete" || r.replacePolicy == "Retain" {
			s.ever[r.id] = true
		}
	}
	body := []byte(encodeJSON(map[string]any{
		"Resources": resources,
		"Outputs": map[string]any{
			"Out": map[string]any{"Value": map[string]any{"Ref": s.resources[0].id}, "Export": map[string]any{"Name": s.name + "-out"}},
		},
	}))
	sum := sha256.Sum256(body)
	return body, run.TemplateKey(hex.EncodeToString(sum[:]))
}

func (s *stack) render(r *resource) map[string]any {
	parts := []any{s.name + "/" + r.id + " v" + number(r.text)}
	if r.bad {
		parts = append(parts, "BAD")
	}
	for i, id := range r.refs {
		attribute := s.attributeOf(id)
		if i%2 == 0 || attribute == "" {
			parts = append(parts, map[string]any{"Ref": id})
		} else {
			parts = append(parts, map[string]any{"Fn::GetAtt": []any{id, attribute}})
		}
	}
	for _, name := range r.imports {
		parts = append(parts, map[string]any{"Fn::ImportValue": name})
	}
	var text any = map[string]any{"Fn::Join": []any{" ", parts}}
	k := kindOf(r.typ)
	props := map[string]any{}
	switch k.text {
	case "Tags":
		props["Tags"] = []any{map[string]any{"Key": "text", "Value": text}}
	case "PolicyDocument":
		props["PolicyDocument"], props["PolicyName"] = map[string]any{"Text": text}, "policy"
	default:
		props[k.text] = text
	}
	switch r.typ {
	case "Custom::Thing":
		props["ServiceToken"] = "arn:aws:lambda:eu-west-1:111111111111:function:handler"
	case "AWS::SSM::Parameter":
		props["Type"] = "String"
	}
	if r.fixed > 0 {
		switch k.fixed {
		case "FifoQueue":
			props["FifoQueue"] = r.fixed%2 == 1
		case "DomainName":
			props["DomainName"] = "d" + number(r.fixed) + ".example.com"
		case "Value":
			props["Value"] = strings.Repeat("v", 20) + number(r.fixed)
		case "TopicName", "Name":
			props[k.fixed] = s.name + "-" + r.id + "-fixed" + number(r.fixed)
		}
	}
	out := map[string]any{"Type": r.typ, "Properties": props}
	if r.dependsOn != "" {
		out["DependsOn"] = r.dependsOn
	}
	if r.policy != "" {
		out["DeletionPolicy"] = r.policy
	}
	if r.replacePolicy != "" {
		out["UpdateReplacePolicy"] = r.replacePolicy
	}
	return out
}

func (s *stack) attributeOf(id string) string {
	for _, r := range s.resources {
		if r.id == id {
			return kindOf(r.typ).attribute
		}
	}
	return ""
}
