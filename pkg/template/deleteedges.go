package template

import "strings"

// Deployed is what DeleteEdges needs to know of a recorded resource.
type Deployed struct {
	Type         string
	PhysicalID   string
	Properties   map[string]any
	Attributes   map[string]any
	Dependencies []string
}

// DeleteEdge says that First has to be gone before Then is deleted. Both are logical ids.
type DeleteEdge struct{ First, Then string }

// DeleteEdges gives the order of deletion that AWS demands between recorded resources beyond their recorded
// dependencies (reference §6.4): a VPC goes after what is in it, an internet gateway after the NAT gateways of
// its VPC, a security group after the functions that use it, an alarm after the composite alarms that name it.
//
// Unlike in the reference, an edge is only made between resources that are related: one refers to the other
// (recorded dependency, or its physical id in a property), or, for what reaches the network through a gateway, both belong to
// the same VPC. The edges come sorted and work without a template.
func DeleteEdges(records map[string]Deployed) []DeleteEdge {
	d := &deletion{records: records, byType: map[string][]string{}}
	d.index()
	var out []DeleteEdge
	for _, then := range sortedKeys(records) {
		rule, ok := deleteRuleOf(records[then].Type)
		if !ok {
			continue
		}
		for _, typ := range rule {
			for _, first := range d.byType[typ] {
				if first != then && d.related(first, then) {
					out = append(out, DeleteEdge{First: first, Then: then})
				}
			}
		}
	}
	return append(out, d.compositeAlarms()...)
}

// deleteRuleOf lists the types that must be gone before one of the given type.
func deleteRuleOf(typ string) ([]string, bool) {
	switch typ {
	case "AWS::EC2::InternetGateway":
		return []string{"AWS::EC2::VPCGatewayAttachment", "AWS::EC2::NatGateway"}, true
	case "AWS::EC2::VPCGatewayAttachment":
		return []string{"AWS::EC2::NatGateway"}, true
	case "AWS::Events::EventBus":
		return []string{"AWS::Events::Rule"}, true
	case "AWS::Athena::WorkGroup":
		return []string{"AWS::Athena::NamedQuery"}, true
	case "AWS::CloudFront::ResponseHeadersPolicy", "AWS::CloudFront::CachePolicy", "AWS::CloudFront::OriginAccessControl":
		return []string{"AWS::CloudFront::Distribution"}, true
	case "AWS::EC2::VPC":
		return []string{"AWS::EC2::Subnet", "AWS::EC2::SecurityGroup", "AWS::EC2::InternetGateway", "AWS::EC2::EgressOnlyInternetGateway", "AWS::EC2::VPCGatewayAttachment", "AWS::EC2::RouteTable"}, true
	case "AWS::EC2::Subnet":
		return []string{"AWS::EC2::SubnetRouteTableAssociation", "AWS::Lambda::Function"}, true
	case "AWS::EC2::RouteTable":
		return []string{"AWS::EC2::Route", "AWS::EC2::SubnetRouteTableAssociation"}, true
	case "AWS::EC2::SecurityGroup":
		return []string{"AWS::EC2::SecurityGroupIngress", "AWS::EC2::SecurityGroupEgress", "AWS::Lambda::Function"}, true
	}
	return nil, false
}

type deletion struct {
	records map[string]Deployed
	byType  map[string][]string
	// refers[a][b]: a refers to b.
	refers map[string]map[string]bool
	// networks are the VPCs that a resource belongs to, by logical id of the VPC.
	networks map[string]map[string]bool
}

func (d *deletion) index() {
	byID := map[string][]string{}
	for _, id := range sortedKeys(d.records) {
		r := d.records[id]
		d.byType[r.Type] = append(d.byType[r.Type], id)
		for _, name := range physicalNames(r) {
			byID[name] = append(byID[name], id)
		}
	}
	d.refers = map[string]map[string]bool{}
	for id, r := range d.records {
		to := map[string]bool{}
		for _, dep := range r.Dependencies {
			if _, ok := d.records[dep]; ok {
				to[dep] = true
			}
		}
		walkTexts(r.Properties, func(s string) {
			for _, target := range byID[s] {
				if target != id {
					to[target] = true
				}
			}
		})
		d.refers[id] = to
	}
	d.networks = map[string]map[string]bool{}
	for _, vpc := range d.byType["AWS::EC2::VPC"] {
		d.enclose(vpc)
	}
}

// enclose marks everything that refers to the VPC, directly or over other resources, as belonging to it, and
// the gateways that an attachment ties to it.
func (d *deletion) enclose(vpc string) {
	referrers := map[string][]string{}
	for from, to := range d.refers {
		for target := range to {
			referrers[target] = append(referrers[target], from)
		}
	}
	seen := map[string]bool{vpc: true}
	stack := []string{vpc}
	push := func(id string) {
		if !seen[id] {
			seen[id] = true
			stack = append(stack, id)
		}
	}
	for len(stack) > 0 {
		id := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if d.networks[id] == nil {
			d.networks[id] = map[string]bool{}
		}
		d.networks[id][vpc] = true
		for _, from := range referrers[id] {
			push(from)
		}
		if d.records[id].Type == "AWS::EC2::VPCGatewayAttachment" {
			for to := range d.refers[id] {
				if strings.HasSuffix(d.records[to].Type, "Gateway") {
					push(to)
				}
			}
		}
	}
}

func (d *deletion) related(first, then string) bool {
	if d.refers[first][then] || d.refers[then][first] {
		return true
	}
	// Gateways have no reference between them: what ties them is the VPC.
	switch d.records[then].Type {
	case "AWS::EC2::InternetGateway", "AWS::EC2::VPCGatewayAttachment", "AWS::EC2::VPC":
		for vpc := range d.networks[first] {
			if then == vpc || d.networks[then][vpc] {
				return true
			}
		}
	}
	return false
}

// compositeAlarms puts every composite alarm before the alarms that its rule names, by name or ARN
// (https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/Create_Composite_Alarm.html).
func (d *deletion) compositeAlarms() []DeleteEdge {
	names := map[string]string{}
	for _, typ := range []string{"AWS::CloudWatch::Alarm", "AWS::CloudWatch::CompositeAlarm"} {
		for _, id := range d.byType[typ] {
			for _, name := range physicalNames(d.records[id]) {
				names[alarmName(name)] = id
			}
		}
	}
	var out []DeleteEdge
	for _, composite := range d.byType["AWS::CloudWatch::CompositeAlarm"] {
		rule, _ := d.records[composite].Properties["AlarmRule"].(string)
		seen := map[string]bool{composite: true}
		for _, name := range alarmsInRule(rule) {
			if then, ok := names[alarmName(name)]; ok && !seen[then] {
				seen[then] = true
				out = append(out, DeleteEdge{First: composite, Then: then})
			}
		}
	}
	return out
}

// alarmsInRule reads the arguments of ALARM(…), OK(…) and INSUFFICIENT_DATA(…).
func alarmsInRule(rule string) []string {
	var out []string
	for {
		open := strings.IndexByte(rule, '(')
		if open < 0 {
			return out
		}
		word := strings.TrimSpace(rule[:open])
		rule = rule[open+1:]
		isState := false
		for _, f := range []string{"ALARM", "OK", "INSUFFICIENT_DATA"} {
			isState = isState || strings.HasSuffix(word, f)
		}
		if !isState {
			continue
		}
		arg := strings.TrimSpace(rule)
		if len(arg) > 0 && (arg[0] == '"' || arg[0] == '\'') {
			if end := strings.IndexByte(arg[1:], arg[0]); end >= 0 {
				out = append(out, arg[1:1+end])
				rule = arg[end+2:]
				continue
			}
		}
		if end := strings.IndexByte(arg, ')'); end >= 0 {
			out = append(out, strings.TrimSpace(arg[:end]))
			rule = arg[end:]
		}
	}
}

func alarmName(s string) string {
	if _, name, ok := strings.Cut(s, ":alarm:"); ok && strings.HasPrefix(s, "arn:") {
		return name
	}
	return s
}

// physicalNames are the texts that another resource's properties may know a resource by: its physical id and
// its recorded ids and ARN. The parts of a composite id are not among them: they name other resources.
func physicalNames(r Deployed) []string {
	seen := map[string]bool{}
	var out []string
	add := func(s string) {
		if s != "" && !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	add(r.PhysicalID)
	for _, key := range []string{"Arn", "Id", "GroupId"} { // Cloud Control's names for them
		if s, ok := r.Attributes[key].(string); ok {
			add(s)
		}
	}
	return out
}

func walkTexts(v any, visit func(string)) {
	switch v := v.(type) {
	case string:
		visit(v)
	case map[string]any:
		for _, x := range v {
			walkTexts(x, visit)
		}
	case []any:
		for _, x := range v {
			walkTexts(x, visit)
		}
	}
}
