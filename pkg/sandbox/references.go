package sandbox

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/schema"
)

//go:embed relations.txt
var relationsTable string

// relations is where services enforce references, beyond required properties.
type relations struct {
	refuses map[string]bool // target types that can't be deleted while anything names them
	exists  map[string]bool // "type path" of names and ARNs that are looked up
	// unrelated are "type path" of properties that the schema wrongly relates to a type.
	unrelated map[string]bool
	// owns, outlives and blocks say what a reference means when its target is deleted; see relations.txt.
	owns, outlives, blocks map[tie]bool
	// related is the target of "type path" where the table says so and the schema does not.
	related map[string]string
}

// tie is one kind of reference: what a property (path, without list indices) of one type names of another.
type tie struct{ target, typeName, path string }

func parseRelations(table string) (relations, error) {
	r := relations{
		refuses: map[string]bool{}, exists: map[string]bool{}, unrelated: map[string]bool{},
		owns: map[tie]bool{}, outlives: map[tie]bool{}, blocks: map[tie]bool{}, related: map[string]string{},
	}
	ties := map[string]map[tie]bool{"owns": r.owns, "outlives": r.outlives, "blocks": r.blocks}
	for n, line := range strings.Split(table, "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		verb, rest, _ := strings.Cut(line, " ")
		switch verb {
		case "refuses":
			r.refuses[rest] = true
		case "exists":
			r.exists[rest] = true
		case "unrelated":
			r.unrelated[rest] = true
		case "owns", "outlives", "blocks":
			f := strings.Split(rest, " ")
			if len(f) != 3 {
				return r, fmt.Errorf("relation table, line %d: %s takes a target, a type and a path", n+1, verb)
			}
			ties[verb][tie{f[0], f[1], f[2]}] = true
			r.related[f[1]+" "+f[2]] = f[0]
		default:
			return r, fmt.Errorf("relation table, line %d: unknown verb %q", n+1, verb)
		}
	}
	return r, nil
}

// reference is one string in a model that names, or may name, another resource.
type reference struct {
	value string
	path  string // without list indices: "Subnets", "VpcConfig/SubnetIds"
	// relation is the type that the schema says is named, "" where it says nothing.
	relation string
	required bool
}

// free are members whose texts may mention anything without AWS looking: documents, environments, tags.
var free = regexp.MustCompile(`^(Tags?|TagList|.*Description|.*PolicyDocument|.*Policy|Policies|Environment|EnvironmentVariables|Definition(String|Substitutions)?|` +
	`Template(Body)?|Body|UserData|Metadata|Comment|Content|.*Script|.*Pattern|InputTransformer|Input|DefaultArguments|Variables|DockerLabels|Command|EntryPoint|ContainerDefinitions)$`)

var arnPattern = regexp.MustCompile(`arn:aws[a-z-]*:[a-z0-9-]+:[a-z0-9-]*:[0-9]*:[A-Za-z0-9_./:+=,@$!|-]+`)

// references lists what a model refers to.
func (r relations) references(t *schema.Type, model map[string]any) []reference {
	w := &referenceWalk{t: t, unrelated: r.unrelated, related: r.related, seen: map[string]bool{}}
	w.object(&t.Definition, model, "", true)
	return w.found
}

type referenceWalk struct {
	t         *schema.Type
	unrelated map[string]bool
	related   map[string]string
	found     []reference
	seen      map[string]bool
}

func (w *referenceWalk) object(def *schema.Definition, model map[string]any, path string, required bool) {
	for _, name := range sortedKeys(model) {
		if free.MatchString(name) {
			continue
		}
		var p *schema.Property
		needed := false
		if def != nil {
			p, needed = def.Properties[name], slices.Contains(def.Required, name)
		}
		at := name
		if path != "" {
			at = path + "/" + name
		}
		w.value(p, model[name], at, required && needed)
	}
}

func (w *referenceWalk) value(p *schema.Property, v any, path string, required bool) {
	switch v := v.(type) {
	case map[string]any:
		if p != nil && p.Kind == schema.KindMap {
			for _, k := range sortedKeys(v) {
				w.value(p.Elem, v[k], path, false)
			}
			return
		}
		w.object(w.definition(p), v, path, required)
	case []any:
		elem := p
		if p != nil && p.Kind == schema.KindList {
			e := schema.Property{}
			if p.Elem != nil {
				e = *p.Elem
			}
			// A list's relation is that of its items.
			if e.RelationType == "" {
				e.RelationType = p.RelationType
			}
			elem = &e
		}
		for _, item := range v {
			w.value(elem, item, path, required)
		}
	case string:
		r := reference{path: path, required: required}
		if p != nil && !w.unrelated[w.t.Name+" "+path] {
			r.relation = p.RelationType
		}
		if r.relation == "" {
			r.relation = w.related[w.t.Name+" "+path]
		}
		w.text(r, v)
	}
}

// definition is the object definition of a property, of the first alternative that has one.
func (w *referenceWalk) definition(p *schema.Property) *schema.Definition {
	if p == nil {
		return nil
	}
	if p.Kind == schema.KindUnion {
		for _, a := range p.Alternatives {
			if d := w.definition(a); d != nil {
				return d
			}
		}
		return nil
	}
	return w.t.Definitions[p.Ref]
}

func (w *referenceWalk) text(r reference, s string) {
	if len(s) > 4096 || s == "" {
		return
	}
	add := func(value string) {
		key := value + "\x00" + r.path
		if !w.seen[key] {
			w.seen[key] = true
			r.value = value
			w.found = append(w.found, r)
		}
	}
	if r.relation != "" || unmistakable(s) {
		add(s)
	}
	for _, arn := range arnPattern.FindAllString(s, -1) {
		if arn != s {
			add(arn)
		}
		// "arn:…:log-group:x:*" and "arn:…:function:x:prod" name the group and the function, too.
		if i := strings.LastIndexByte(arn, ':'); strings.Count(arn, ":") > 6 {
			add(arn[:i])
		}
	}
}

var (
	idShape     = regexp.MustCompile(`^[a-z]+(-[a-z]+)?-[0-9a-f]{8,17}$`)
	uuidShape   = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)
	randomInARN = regexp.MustCompile(`[0-9a-f]{16}|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|-[A-Za-z0-9]{6}$`)
)

// unmistakable reports whether a value can only name one resource in the world: an ARN, an id, a URL; a name
// such as "prod" may be anything.
func unmistakable(s string) bool {
	return strings.HasPrefix(s, "arn:") || idShape.MatchString(s) || uuidShape.MatchString(s) || strings.HasPrefix(s, "https://")
}

// unpredictable reports whether nobody could have written the value before the resource existed.
func unpredictable(s string) bool {
	if strings.HasPrefix(s, "arn:") {
		return randomInARN.MatchString(s)
	}
	return idShape.MatchString(s) || uuidShape.MatchString(s)
}

// mustExist reports whether the service looks up what a reference names.
func (r relations) mustExist(typeName string, ref reference) bool {
	if r.exists[typeName+" "+ref.path] {
		return true
	}
	return unpredictable(ref.value) && (ref.relation != "" || ref.required || idShape.MatchString(ref.value))
}

// holds reports whether the service refuses to delete a target while a reference names it.
func (r relations) holds(t tie, required bool) bool {
	return required || r.refuses[t.target] || r.blocks[t]
}
