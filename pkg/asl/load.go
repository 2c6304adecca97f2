package asl

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// DefinitionError says what is wrong with a definition, or not supported, and where.
type DefinitionError struct {
	// State is the name of the state, "" for the machine itself.
	State string
	// Reason names the field and what is wrong with it.
	Reason string
}

func (e *DefinitionError) Error() string {
	if e.State == "" {
		return "state machine: " + e.Reason
	}
	return fmt.Sprintf("state %q: %s", e.State, e.Reason)
}

// Load reads a state machine definition. Each ${Name} in a string of it is replaced by substitutions[Name],
// as DefinitionSubstitutions does in AWS::StepFunctions::StateMachine.
//
// Every field, state type, resource, operator and function that this package does not run is refused, and so is
// whatever Step Functions refuses. The error joins one *DefinitionError for each problem, in the order of
// the states' names.
func Load(definition []byte, substitutions map[string]string) (*Machine, error) {
	tree, err := decodeStrict(definition)
	if err != nil {
		return nil, fmt.Errorf("state machine definition is not JSON: %w", err)
	}
	l := &loader{substitutions: substitutions, seen: map[string]bool{}}
	m := l.machine(l.substitute("", tree))
	if len(l.problems) > 0 {
		return nil, errors.Join(l.problems...)
	}
	return m, nil
}

type loader struct {
	substitutions map[string]string
	problems      []error
	seen          map[string]bool // state names of the whole machine
	inMap         bool
}

func (l *loader) refuse(state, format string, args ...any) {
	l.problems = append(l.problems, &DefinitionError{State: state, Reason: fmt.Sprintf(format, args...)})
}

var placeholder = regexp.MustCompile(`\$\{([^}]*)\}`)

// substitute replaces the placeholders in every string value of the tree.
func (l *loader) substitute(field string, v any) any {
	switch v := v.(type) {
	case string:
		return placeholder.ReplaceAllStringFunc(v, func(match string) string {
			name := match[2 : len(match)-1]
			s, ok := l.substitutions[name]
			if !ok {
				l.refuse("", "%s: placeholder %s has no substitution", field, match)
			}
			return s
		})
	case []any:
		for i := range v {
			v[i] = l.substitute(field, v[i])
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			v[k] = l.substitute(k, v[k])
		}
	}
	return v
}

func (l *loader) machine(v any) *Machine {
	o := l.object("", "definition", v)
	m := &Machine{Comment: o.text("Comment")}
	if n, ok := o.integer("TimeoutSeconds", 1, maxSeconds); ok {
		m.timeout = time.Duration(n) * time.Second
	}
	m.states = l.scope("", o)
	o.done()
	return m
}

// scope reads StartAt and States, and checks that the states hang together.
func (l *loader) scope(where string, o *object) scope {
	sc := scope{startAt: o.needText("StartAt"), states: map[string]*state{}}
	states := o.needObject("States")
	if states == nil {
		return sc
	}
	if len(states) == 0 {
		l.refuse(where, "States is empty")
		return sc
	}
	for _, name := range slices.Sorted(maps.Keys(states)) {
		if n := utf8.RuneCountInString(name); n == 0 || n > maxNameLength {
			l.refuse(name, "the name of a state has 1 to %d characters", maxNameLength)
		}
		if l.seen[name] {
			l.refuse(name, "another state of the machine has the same name")
		}
		l.seen[name] = true
		sc.states[name] = l.state(name, states[name])
	}
	l.connections(where, sc)
	return sc
}

// connections checks that every transition leads to a state of the scope, that every state is reached and
// that an end can be.
func (l *loader) connections(where string, sc scope) {
	if sc.startAt != "" && sc.states[sc.startAt] == nil {
		l.refuse(where, "StartAt names state %q, which does not exist", sc.startAt)
		return
	}
	reached := map[string]bool{}
	queue := []string{sc.startAt}
	ends := false
	for len(queue) > 0 {
		s := sc.states[queue[0]]
		queue = queue[1:]
		if s == nil || reached[s.name] {
			continue
		}
		reached[s.name] = true
		if s.kind != kindChoice && s.next == "" {
			ends = true
		}
		for _, t := range s.targets() {
			if t.name != "" && sc.states[t.name] == nil {
				l.refuse(s.name, "%s names state %q, which does not exist", t.field, t.name)
			}
			queue = append(queue, t.name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(sc.states)) {
		if !reached[name] {
			l.refuse(name, "no transition leads to this state")
		}
	}
	if !ends {
		l.refuse(where, "no state ends the machine")
	}
}

type target struct{ field, name string }

func (s *state) targets() []target {
	var all []target
	if s.next != "" {
		all = append(all, target{"Next", s.next})
	}
	for _, c := range s.catchers {
		all = append(all, target{"Catch", c.next})
	}
	for _, c := range s.choices {
		all = append(all, target{"Choices", c.next})
	}
	if s.fallback != "" {
		all = append(all, target{"Default", s.fallback})
	}
	return all
}

// path reads a path and checks where it starts. A field that takes no context path says so.
func (l *loader) path(state, field, text string, contextAllowed bool) (path, bool) {
	if strings.HasPrefix(text, "States.") {
		l.refuse(state, "%s calls an intrinsic function: %s is not supported", field, strings.SplitN(text, "(", 2)[0])
		return path{}, false
	}
	p, err := parsePath(text)
	if err != nil {
		l.refuse(state, "%s: %v", field, err)
		return path{}, false
	}
	if p.context && !contextAllowed {
		l.refuse(state, "%s: path %q reads the context object, which is not supported here", field, text)
		return path{}, false
	}
	l.contextPath(state, field, p)
	return p, true
}

// contextMembers are the members of the context object that the executor provides
// (https://docs.aws.amazon.com/step-functions/latest/dg/input-output-contextobject.html).
var contextMembers = []string{
	"Execution.Id", "Execution.Name", "Execution.Input", "Execution.StartTime",
	"State.Name", "State.EnteredTime",
	"StateMachine.Id", "StateMachine.Name",
	"Map.Item.Index", "Map.Item.Value",
}

// contextPath refuses a path to a member of the context object that is not provided.
func (l *loader) contextPath(state, field string, p path) {
	if !p.context {
		return
	}
	var names []string
	for _, s := range p.steps {
		names = append(names, s.name)
	}
	given := strings.Join(names, ".") + "."
	for _, member := range contextMembers {
		if !strings.HasPrefix(given, member+".") {
			continue
		}
		if strings.HasPrefix(member, "Map.") && !l.inMap {
			l.refuse(state, "%s: path %q has a value only inside a Map state", field, p.text)
		}
		return
	}
	l.refuse(state, "%s: path %q: the context object is supported as %s", field, p.text, strings.Join(contextMembers, ", "))
}
