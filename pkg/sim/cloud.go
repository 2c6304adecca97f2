package sim

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/slipway-cdk/slipway/pkg/provider"
	cc "github.com/slipway-cdk/slipway/pkg/provider/cloudcontrol"
)

// cloud is the simulated account: what exists, and the requests that have been made. It is only changed by the
// goroutine that the scheduler has released.
type cloud struct {
	w        *world
	live     map[string]*thing // by type and physical id
	names    map[string]string // type and name to type and physical id
	requests map[string]*request
	tokens   map[string]*request // by API and client token
	failed   map[string]bool     // the handler of a resource has failed, by API and client token
	serial   int
	// mutations counts what has changed anything.
	mutations int
	// slow is the share of requests that take a while; eventual: what was made can't be read at once; strict: what is
	// referred to can't be deleted.
	slow             float64
	eventual, strict bool
	refusedSince     map[string]time.Time
}

// thing is a live resource.
type thing struct {
	typ, id, name string
	props         map[string]any
	token         string
	made          time.Time
	// owner is "stack/logicalId", read from the properties.
	owner string
	// foreign: another tool has made it.
	foreign bool
}

// request is one asynchronous request.
type request struct {
	token, operation, typ, id, body string
	at, ready                       time.Time
	code, message                   string
}

func newCloud(w *world) *cloud {
	return &cloud{
		w: w, live: map[string]*thing{}, names: map[string]string{}, requests: map[string]*request{},
		tokens: map[string]*request{}, failed: map[string]bool{}, refusedSince: map[string]time.Time{},
	}
}

// kind describes a resource type of the simulation.
type kind struct {
	name string
	// text is the property that holds what a resource refers to; fixed the one that can't be changed in place.
	text, fixed string
	// named: the name, in named, is unique.
	named string
	route provider.Route
	// attribute is what Fn::GetAtt reads.
	attribute string
	// Unnamed resources can be retained: nothing collides with them.
	custom bool
}

var kinds = []kind{
	{name: "AWS::SNS::Topic", text: "DisplayName", fixed: "TopicName", named: "TopicName", attribute: "TopicName"},
	{name: "AWS::SQS::Queue", text: "Tags", fixed: "FifoQueue", named: "QueueName", attribute: "Arn"},
	{name: "AWS::EC2::InternetGateway", text: "Tags", attribute: "InternetGatewayId"},
	{name: "AWS::ApiGateway::ApiKey", text: "Description", fixed: "Value", attribute: "APIKeyId"},
	{name: "AWS::EC2::DHCPOptions", text: "Tags", fixed: "DomainName", attribute: "DhcpOptionsId"},
	{name: "AWS::SSM::Parameter", text: "Value", fixed: "Name", named: "Name", route: provider.RouteSDK, attribute: "Type"},
	{name: "AWS::IAM::Policy", text: "PolicyDocument", route: provider.RouteSDK, attribute: "Id"},
	{name: "Custom::Thing", text: "In", route: provider.RouteSDK, attribute: "Out", custom: true},
}

func kindOf(typ string) kind {
	for _, k := range kinds {
		if k.name == typ {
			return k
		}
	}
	return kind{name: typ}
}

// providers connects the cloud as one process reaches it.
func (c *cloud) providers(p *process) *provider.Registry {
	direct := provider.Named{Provider: &direct{p: p, c: c}}
	api := ccAPI{p: p, c: c}
	return &provider.Registry{
		Custom:       &custom{p: p, c: c},
		Direct:       map[string]provider.Provider{"AWS::SSM::Parameter": direct, "AWS::IAM::Policy": direct},
		CloudControl: provider.Named{Provider: &cc.Provider{Clock: p, Client: func(string, string) cc.API { return api }}},
		Provisionable: func(typ string) bool {
			return slices.ContainsFunc(kinds, func(k kind) bool { return k.name == typ && k.route == "" })
		},
	}
}

// textOf is what a resource's properties say of who it is and what it refers to.
func textOf(typ string, props map[string]any) string {
	switch v := props[kindOf(typ).text].(type) {
	case string:
		return v
	case []any:
		if len(v) > 0 {
			tag, _ := v[0].(map[string]any)
			text, _ := tag["Value"].(string)
			return text
		}
	case map[string]any:
		text, _ := v["Text"].(string)
		return text
	}
	return ""
}

// ownerOf reads "stack/logicalId" from a text.
func ownerOf(text string) string {
	owner, _, _ := strings.Cut(text, " ")
	return owner
}

// isBad: the service refuses it, whatever happens.
func isBad(props map[string]any, typ string) bool { return strings.Contains(textOf(typ, props), "BAD") }

// make creates a resource. It fails when its name is taken.
func (c *cloud) make(typ string, props map[string]any, token string) (*thing, bool) {
	name := ""
	if n := kindOf(typ).named; n != "" {
		name, _ = props[n].(string)
		if _, taken := c.names[typ+" "+name]; taken {
			return nil, false
		}
	}
	c.serial++
	c.mutations++
	id := fmt.Sprintf("%s-%d", strings.ToLower(typ[strings.LastIndex(typ, ":")+1:]), c.serial)
	if name != "" {
		id = name
	}
	t := &thing{typ: typ, id: id, name: name, props: props, token: token, made: c.w.s.time(), owner: ownerOf(textOf(typ, props))}
	c.live[typ+" "+id] = t
	if name != "" {
		c.names[typ+" "+name] = typ + " " + id
	}
	return t, true
}

func (c *cloud) get(typ, id string) *thing { return c.live[typ+" "+id] }

func (c *cloud) change(t *thing, props map[string]any) {
	c.mutations++
	t.props = props
}

func (c *cloud) remove(t *thing) { c.removeLocked(t) }

func (c *cloud) removeLocked(t *thing) {
	c.mutations++
	delete(c.live, t.typ+" "+t.id)
	if t.name != "" {
		delete(c.names, t.typ+" "+t.name)
	}
}

// patience is how long something that is referred to can't be deleted: who refers to it is on its way out.
const patience = 45 * time.Second

// inUse reports whether a resource can't be deleted, because another one refers to it.
func (c *cloud) inUse(t *thing) bool {
	if !c.strict {
		return false
	}
	now := c.w.s.time()
	since, refused := c.refusedSince[t.typ+" "+t.id]
	if refused && now.Sub(since) > patience {
		return false
	}
	for _, other := range c.live {
		if other != t && strings.Contains(textOf(other.typ, other.props), t.id) {
			if !refused {
				c.refusedSince[t.typ+" "+t.id] = now
			}
			return true
		}
	}
	return false
}

// model is a resource as it is read.
func (t *thing) model() map[string]any {
	m := maps.Clone(t.props)
	if k := kindOf(t.typ); m[k.attribute] == nil && k.attribute != "" {
		m[k.attribute] = t.id
	}
	return m
}

// takes is how long a request takes.
func (c *cloud) takes(token string) time.Duration {
	h := hashed(c.w.seed, "takes", token)
	u := float64(h>>11) / (1 << 53)
	switch {
	case u > c.slow:
		return 0
	case u > c.slow*0.1:
		return time.Duration(1+h%20) * time.Second
	}
	return time.Duration(60+h%800) * time.Second
}

func encodeJSON(v any) string {
	body, err := json.Marshal(v)
	if err != nil {
		panic(err) // properties are JSON
	}
	return string(body)
}
