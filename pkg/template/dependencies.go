package template

import "strings"

// Live reports whether a resource exists under the evaluated conditions.
func (t *Template) Live(id string, conditions map[string]bool) bool {
	r := t.Resources[id]
	return r != nil && (r.Condition == "" || conditions[r.Condition])
}

// Dependencies gives, for every resource that exists under the conditions, the edges to the resources that it
// waits for, with their reason: what it states (DependsOn; one to a resource that its condition drops is
// dropped too), what it refers to (in the branch of each Fn::If that is chosen), and the implicit edges of
// reference §6.3. A resource that refers to itself keeps the edge: it is a cycle.
func Dependencies(t *Template, conditions map[string]bool) map[string][]Reference {
	out := make(map[string][]Reference, len(t.Resources))
	for _, id := range t.Order {
		if !t.Live(id, conditions) {
			continue
		}
		var edges []Reference
		for _, ref := range t.Resources[id].references(conditions) {
			if t.Live(ref.Target, conditions) {
				edges = append(edges, ref)
			}
		}
		out[id] = edges
	}
	addHandlerPolicies(t, out)
	return out
}

// addHandlerPolicies makes every custom resource wait for the policies attached to the role of the function
// that handles it: the request would otherwise run before the function may do its work (reference §6.3.2).
// A policy that itself waits for the custom resource gets no such edge.
func addHandlerPolicies(t *Template, edges map[string][]Reference) {
	policies := policiesByRole(t, edges)
	if len(policies) == 0 {
		return
	}
	reach := map[string]map[string]bool{}
	for _, id := range t.Order {
		if _, live := edges[id]; !live || !IsCustomResource(t.Resources[id].Type) {
			continue
		}
		function := firstTarget(t, t.Resources[id].Properties["ServiceToken"], "AWS::Lambda::Function")
		if function == "" {
			continue
		}
		role := firstTarget(t, t.Resources[function].Properties["Role"], "AWS::IAM::Role")
		for _, policy := range policies[role] {
			if policy == id || refersTo(edges[id], policy) {
				continue
			}
			if reach[policy] == nil {
				reach[policy] = closure(edges, policy)
			}
			if reach[policy][id] {
				continue
			}
			edges[id] = append(edges[id], Reference{Target: policy, Kind: RefImplicit, Path: "Properties.ServiceToken"})
			// What was reachable before may reach more now.
			clear(reach)
		}
	}
}

// IsCustomResource reports whether the type is handled by a function or topic of the app's own.
func IsCustomResource(typ string) bool {
	return strings.HasPrefix(typ, "Custom::") || typ == "AWS::CloudFormation::CustomResource"
}

func policiesByRole(t *Template, live map[string][]Reference) map[string][]string {
	out := map[string][]string{}
	for _, id := range t.Order {
		if _, ok := live[id]; !ok {
			continue
		}
		r := t.Resources[id]
		var where any
		switch r.Type {
		case "AWS::IAM::Policy", "AWS::IAM::ManagedPolicy":
			where = r.Properties["Roles"]
		case "AWS::IAM::RolePolicy":
			where = r.Properties["RoleName"]
		default:
			continue
		}
		seen := map[string]bool{}
		WalkReferences(where, "", func(ref Reference) {
			if role := t.Resources[ref.Target]; role != nil && role.Type == "AWS::IAM::Role" && !seen[ref.Target] {
				seen[ref.Target] = true
				out[ref.Target] = append(out[ref.Target], id)
			}
		})
	}
	return out
}

// firstTarget is the first resource of a type that a value refers to, or "".
func firstTarget(t *Template, v any, typ string) string {
	found := ""
	WalkReferences(v, "", func(ref Reference) {
		if r := t.Resources[ref.Target]; found == "" && r != nil && r.Type == typ {
			found = ref.Target
		}
	})
	return found
}

func refersTo(edges []Reference, target string) bool {
	for _, e := range edges {
		if e.Target == target {
			return true
		}
	}
	return false
}

// closure is everything that a resource waits for, directly or not.
func closure(edges map[string][]Reference, from string) map[string]bool {
	seen := map[string]bool{}
	stack := []string{from}
	for len(stack) > 0 {
		id := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, e := range edges[id] {
			if !seen[e.Target] {
				seen[e.Target] = true
				stack = append(stack, e.Target)
			}
		}
	}
	return seen
}
