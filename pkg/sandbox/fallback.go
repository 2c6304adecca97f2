package sandbox

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/slipway-cdk/slipway/pkg/schema"
)

// fallback invents a value for a path that the table has no rule for, from its name, kind and constraints.
func (m *maker) fallback(path string) any {
	p := m.t.At(strings.Split(path, "/"))
	if p == nil {
		p = &schema.Property{Kind: schema.KindString}
	}
	return m.invent(path, p, 0)
}

func (m *maker) invent(path string, p *schema.Property, depth int) any {
	switch p.Kind {
	case schema.KindInteger, schema.KindNumber:
		n := 1.0
		if p.Minimum != nil && *p.Minimum > n {
			n = *p.Minimum
		}
		if p.Maximum != nil && *p.Maximum < n {
			n = *p.Maximum
		}
		if strings.HasSuffix(path, "Port") && p.Maximum == nil {
			n = 443
		}
		return json.Number(fmt.Sprintf("%g", n))
	case schema.KindBoolean:
		return false
	case schema.KindList:
		n := 1
		if p.MinItems != nil && *p.MinItems > n {
			n = *p.MinItems
		}
		list := []any{}
		for range n {
			if p.Elem == nil || depth > 3 {
				break
			}
			// "SubnetIds" holds a "SubnetId".
			list = append(list, m.invent(strings.TrimSuffix(path, "s"), p.Elem, depth+1))
		}
		return list
	case schema.KindMap, schema.KindJSON:
		return map[string]any{}
	case schema.KindObject:
		object := map[string]any{}
		def := m.t.Definitions[p.Ref]
		if def == nil || depth > 3 {
			return object
		}
		for _, name := range sortedKeys(def.Properties) {
			// What only AWS sets is all that it would answer with.
			if m.t.IsReadOnly(strings.Split(path, "/")) || contains(def.Required, name) {
				object[name] = m.invent(path+"/"+name, def.Properties[name], depth+1)
			}
		}
		return object
	case schema.KindUnion:
		for _, a := range p.Alternatives {
			if a.Kind == schema.KindString {
				return m.invent(path, a, depth)
			}
		}
		if len(p.Alternatives) > 0 {
			return m.invent(path, p.Alternatives[0], depth)
		}
	}
	return m.text(path, p)
}

// text invents a string. Candidates are tried in order; the first that fits the schema's constraints is taken.
func (m *maker) text(path string, p *schema.Property) string {
	if len(p.Enum) > 0 {
		for _, settled := range []string{"ACTIVE", "Active", "AVAILABLE", "Available", "ENABLED", "READY", "COMPLETED", "CREATED"} {
			if contains(p.Enum, settled) {
				return settled
			}
		}
		return p.Enum[0]
	}
	least, most := 0, 1024
	if p.MinLength != nil {
		least = *p.MinLength
	}
	if p.MaxLength != nil {
		most = *p.MaxLength
	}
	fits := func(s string) bool {
		n := utf8.RuneCountInString(s)
		return n >= least && n <= most && (p.Pattern == "" || matches(p.Pattern, s))
	}
	candidates := m.candidates(path)
	for _, c := range candidates {
		if fits(c) {
			return c
		}
	}
	if p.Pattern != "" {
		if s, ok := example(p.Pattern, least, most, m.rng); ok {
			return s
		}
	}
	s := candidates[0]
	for utf8.RuneCountInString(s) < least {
		s += m.random(lowerDigits, 8)
	}
	if r := []rune(s); len(r) > most {
		s = string(r[len(r)-most:])
	}
	return s
}

// candidates are values of the shape that a name suggests, the likeliest first.
func (m *maker) candidates(path string) []string {
	last := afterLast(path, "/")
	kind := strings.ToLower(word(m.t.Name))
	svc := strings.ToLower(service(m.t.Name))
	random := m.random(lowerDigits, 12)
	var out []string
	has := func(suffixes ...string) bool {
		for _, s := range suffixes {
			if strings.HasSuffix(last, s) {
				return true
			}
		}
		return false
	}
	switch {
	case has("Arn", "ARN"):
		out = append(out, m.arn(last))
	case has("Url", "URL", "Uri", "URI"):
		out = append(out, m.expand("https://"+random+"."+svc+".{region}.{dns}"))
	case has("DnsName", "DNSName", "DomainName", "Domain", "Endpoint", "Hostname", "HostName", "Dns", "DNS"), strings.HasPrefix(path, "Endpoint/Address"):
		out = append(out, m.expand(random+"."+svc+".{region}.{dns}"))
	case has("Time", "At", "Date", "Timestamp", "CreatedOn", "ModifiedOn"):
		out = append(out, m.expand("{now}"), m.expand("{epoch}"))
	case last == "Status" || last == "State" || has("Status", "State"):
		out = append(out, "ACTIVE", "Active")
	case has("Version", "VersionNumber"):
		out = append(out, "1", "1.0.0")
	case has("Port"):
		out = append(out, "443")
	case has("IpAddress", "IPAddress", "PrivateIp"):
		out = append(out, m.expand("{privateip}"))
	case has("AccountId", "OwnerId", "AccountID") || last == "Account":
		out = append(out, m.caller.Account)
	case last == "Region" || has("AwsRegion"):
		out = append(out, m.caller.Region)
	case has("CreatedBy", "UpdatedBy", "LastModifiedBy"):
		out = append(out, m.expand("arn:{partition}:iam::{account}:root"))
	case has("HostedZoneId", "HostedZoneID"):
		out = append(out, m.expand("Z{upper13}"))
	case has("Id", "ID", "Identifier"):
		out = append(out, m.expand(kind+"-{hex17}"), m.expand("{uuid}"), random[:10], strings.ToUpper(random[:10]), m.random(digits[1:], 12))
	}
	return append(out, kind+"-"+random, kind+random, kind+"_"+random, word(m.t.Name)+"-"+random, word(m.t.Name)+random, strings.ToUpper(kind+random),
		"/"+kind+"/"+random, random, m.expand("{uuid}"), m.random(digits[1:], 12))
}

// arn makes the ARN of an attribute: the resource's own by the service's template, another one below the
// service otherwise.
func (m *maker) arn(name string) string {
	kind := word(m.t.Name)
	own := name == "Arn" || name == "ARN" || strings.EqualFold(name, kind+"Arn") || strings.EqualFold(name, "ResourceArn")
	if !own || m.t.ARN == "" {
		resource := strings.ToLower(kind)
		if !own {
			resource += "/" + strings.ToLower(strings.TrimSuffix(strings.TrimSuffix(name, "Arn"), "ARN"))
		}
		region := "{region}"
		if isGlobal(m.t.Name) {
			region = ""
		}
		return m.expand("arn:{partition}:" + strings.ToLower(service(m.t.Name)) + ":" + region + ":{account}:" + resource + "/" + m.distinct())
	}
	text := m.t.ARN
	for {
		start := strings.Index(text, "${")
		if start < 0 {
			return text
		}
		end := strings.IndexByte(text[start:], '}')
		if end < 0 {
			return text
		}
		text = text[:start] + m.variable(text[start+2:start+end]) + text[start+end+1:]
	}
}

// variable is the value of a variable in a service's ARN template: "QueueName", "ApiId".
func (m *maker) variable(name string) string {
	switch name {
	case "Partition", "Region", "Account":
		v, _ := m.builtin(strings.ToLower(name))
		return v
	}
	kind := word(m.t.Name)
	for _, candidate := range []string{name, strings.ReplaceAll(name, "WithPath", ""), strings.TrimPrefix(name, kind), kind + name} {
		for _, known := range sortedKeys(m.model) {
			if strings.EqualFold(known, candidate) {
				if v := getString(m.model, known); v != "" && !strings.HasPrefix(v, "arn:") {
					return v
				}
			}
		}
		if _, ok := m.shape.find(candidate); ok {
			if v := m.value(candidate, false); v != "" {
				return v
			}
		}
	}
	return m.distinct()
}

// distinct is what tells the resource from others of its type: a component of its identifier, where one is known
// that isn't an ARN itself, or a new random text.
func (m *maker) distinct() string {
	for _, path := range append(append([]string{}, m.t.PrimaryIdentifier...), "Id", word(m.t.Name)+"Id", word(m.t.Name)+"Name", "Name") {
		if v := getString(m.model, path); v != "" && !strings.Contains(v, ":") {
			return v
		}
	}
	return m.random(lowerDigits, 16)
}

func contains(list []string, s string) bool {
	for _, e := range list {
		if e == s {
			return true
		}
	}
	return false
}
