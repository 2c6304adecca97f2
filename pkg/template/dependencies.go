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
//
// Of a template that is not expanded, what its loops would produce is not there; Validate refuses it.
func Dependencies(t *Template, conditions map[string]bool, options ...DependencyOption) map[string][]Reference {
	var o dependencyOptions
	for _, set := range options {
		set(&o)
	}
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
		if o.relaxVPCRoutes {
			edges = t.withoutRoutes(id, edges)
		}
		out[id] = edges
	}
	addHandlerPolicies(t, out)
	return out
}

// DependencyOption changes what Dependencies gives.
type DependencyOption func(*dependencyOptions)

type dependencyOptions struct{ relaxVPCRoutes bool }

// RelaxVPCRoutes drops the stated dependencies (DependsOn) of roles, policies and Lambda functions on routes and route
// table associations (reference §6.3.4). The CDK states them for everything in a VPC, so that nothing runs before it
// can reach the network; these types do not use the network while they are created, and waiting for a NAT gateway
// takes minutes. An edge that is also a reference stays, which cdkd drops as well.
func RelaxVPCRoutes() DependencyOption {
	return func(o *dependencyOptions) { o.relaxVPCRoutes = true }
}

// withoutRoutes is the edges of a resource without those that RelaxVPCRoutes drops.
func (t *Template) withoutRoutes(id string, edges []Reference) []Reference {
	switch t.Resources[id].Type {
	case "AWS::IAM::Role", "AWS::IAM::Policy", "AWS::Lambda::Function", "AWS::Lambda::Url", "AWS::Lambda::EventSourceMapping":
	default:
		return edges
	}
	var out []Reference
	for _, e := range edges {
		typ := t.Resources[e.Target].Type
		if e.Kind != RefDependsOn || (typ != "AWS::EC2::Route" && typ != "AWS::EC2::SubnetRouteTableAssociation") {
			out = append(out, e)
		}
	}
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
