package asl

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"
)

const (
	maxNameLength = 80
	// maxSeconds bounds timeouts and waits.
	maxSeconds = 99999999
	// maxRetryDelay is the bound of MaxDelaySeconds.
	maxRetryDelay = 31622399
)

func (l *loader) state(name string, v any) *state {
	s := &state{name: name}
	o := l.object(name, "", v)
	if o.members == nil {
		return s
	}
	s.kind = kind(o.needText("Type"))
	o.text("Comment")
	switch s.kind {
	case kindTask:
		l.task(s, o)
	case kindMap:
		l.mapState(s, o)
	case kindChoice:
		l.choiceState(s, o)
	case kindWait:
		l.wait(s, o)
	case kindPass:
		l.pass(s, o)
	case kindSucceed:
		s.inputPath, s.outputPath = o.path("InputPath"), o.path("OutputPath")
	case kindFail:
		s.failError, s.failCause = o.text("Error"), o.text("Cause")
	case "":
		return s
	default:
		l.refuse(name, "state type %s is not supported", s.kind)
		return s
	}
	o.done()
	return s
}

// transition reads Next or End, exactly one of which must be there, and the paths that such states share.
func (l *loader) transition(s *state, o *object) {
	s.inputPath, s.outputPath = o.path("InputPath"), o.path("OutputPath")
	s.next = o.text("Next")
	end, hasEnd := o.get("End")
	switch {
	case hasEnd && end != true:
		l.refuse(s.name, "End must be true")
	case hasEnd && o.has("Next"):
		l.refuse(s.name, "Next and End stand side by side")
	case !hasEnd && s.next == "":
		l.refuse(s.name, "Next or End is missing")
	}
}

// resources are the tasks that the executor runs.
var resources = map[string]resource{
	"arn:aws:states:::lambda:invoke":                {"lambda", "invoke", map[string]bool{"FunctionName": true, "Payload": true}},
	"arn:aws:states:::states:startExecution":        {"states", "startExecution", map[string]bool{"StateMachineArn": true, "Name": false, "Input": false}},
	"arn:aws:states:::states:startExecution.sync:2": {"states", "startExecution.sync:2", map[string]bool{"StateMachineArn": true, "Name": false, "Input": false}},
}

func (l *loader) task(s *state, o *object) {
	l.transition(s, o)
	if arn := o.needText("Resource"); arn != "" {
		r, ok := resources[arn]
		if !ok {
			l.refuse(s.name, "resource %s is not supported", arn)
		}
		s.resource = r
	}
	s.parameters = o.template("Parameters")
	if parameters, ok := o.members["Parameters"].(map[string]any); ok {
		l.taskParameters(s, parameters)
	} else if !o.has("Parameters") {
		l.refuse(s.name, "Parameters is missing")
	}
	s.resultSelector = o.template("ResultSelector")
	s.resultPath = o.resultPath()
	s.timeout = o.seconds("TimeoutSeconds", 1, maxSeconds)
	l.errorHandlers(s, o)
}

func (l *loader) taskParameters(s *state, parameters map[string]any) {
	if s.resource.fields == nil {
		return
	}
	given := map[string]bool{}
	for _, key := range slices.Sorted(maps.Keys(parameters)) {
		name := strings.TrimSuffix(key, ".$")
		given[name] = true
		if _, ok := s.resource.fields[name]; !ok {
			l.refuse(s.name, "field Parameters.%s is not supported for %s:%s", key, s.resource.service, s.resource.action)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.resource.fields)) {
		if s.resource.fields[name] && !given[name] {
			l.refuse(s.name, "Parameters.%s is missing", name)
		}
	}
}

func (l *loader) mapState(s *state, o *object) {
	l.transition(s, o)
	s.itemsPath = path{text: "$"}
	if o.has("ItemsPath") {
		s.itemsPath, _ = l.path(s.name, "ItemsPath", o.text("ItemsPath"), false)
	}
	s.concurrency = inlineConcurrency
	if n, ok := o.integer("MaxConcurrency", 0, 1000); ok && n > 0 {
		s.concurrency = min(int(n), inlineConcurrency)
	}
	s.resultSelector = o.template("ResultSelector")
	s.resultPath = o.resultPath()
	l.errorHandlers(s, o)

	outside := l.inMap
	l.inMap = true
	defer func() { l.inMap = outside }()
	s.itemSelector = o.template("ItemSelector")
	processor, ok := o.get("ItemProcessor")
	if !ok {
		l.refuse(s.name, "ItemProcessor is missing")
		return
	}
	p := l.object(s.name, "ItemProcessor", processor)
	if config, ok := p.get("ProcessorConfig"); ok {
		c := l.object(s.name, "ItemProcessor.ProcessorConfig", config)
		if mode := c.text("Mode"); mode != "INLINE" && c.members != nil {
			l.refuse(s.name, "ItemProcessor.ProcessorConfig.Mode must be INLINE")
		}
		c.done()
	}
	sc := l.scope(s.name, p)
	s.processor = &sc
	p.done()
}

func (l *loader) wait(s *state, o *object) {
	l.transition(s, o)
	switch {
	case o.has("Seconds") == o.has("SecondsPath"):
		if !o.has("Timestamp") && !o.has("TimestampPath") {
			l.refuse(s.name, "a Wait state has either Seconds or SecondsPath")
		}
		o.get("Seconds")
		o.get("SecondsPath")
	case o.has("Seconds"):
		s.seconds = o.seconds("Seconds", 0, maxSeconds)
	default:
		p, _ := l.path(s.name, "SecondsPath", o.text("SecondsPath"), true)
		s.secondsPath = &p
	}
}

func (l *loader) pass(s *state, o *object) {
	l.transition(s, o)
	s.result, s.hasResult = o.get("Result")
	s.parameters = o.template("Parameters")
	s.resultPath = o.resultPath()
}

func (l *loader) choiceState(s *state, o *object) {
	s.inputPath, s.outputPath = o.path("InputPath"), o.path("OutputPath")
	s.fallback = o.text("Default")
	if !o.has("Choices") {
		l.refuse(s.name, "Choices is missing")
	}
	for _, rule := range o.list("Choices") {
		c := choice{next: rule.needText("Next")}
		rule.text("Comment")
		c.test = l.condition(rule)
		rule.done()
		s.choices = append(s.choices, c)
	}
}

// condition reads the test of a choice rule: one operator and its variable, or And, Or, Not.
func (l *loader) condition(rule *object) condition {
	inner := func(name string) []condition {
		var all []condition
		for _, one := range rule.list(name) {
			all = append(all, l.condition(one))
			one.done()
		}
		return all
	}
	switch {
	case rule.has("And"):
		return allOf(inner("And"))
	case rule.has("Or"):
		return anyOf(inner("Or"))
	case rule.has("Not"):
		v, _ := rule.get("Not")
		one := l.object(rule.state, rule.field("Not"), v)
		c := not{l.condition(one)}
		one.done()
		return c
	}
	if rule.members == nil {
		return nil
	}
	var variable path
	if text := rule.needText("Variable"); text != "" {
		variable, _ = l.path(rule.state, rule.field("Variable"), text, true)
	}
	var found condition
	for _, operator := range slices.Sorted(maps.Keys(rule.members)) {
		if operator == "IsPresent" {
			v, _ := rule.get(operator)
			want, ok := v.(bool)
			if !ok {
				l.refuse(rule.state, "%s must be true or false", rule.field(operator))
			}
			found = l.onlyCondition(rule, found, present{variable, want})
			continue
		}
		match, known, ok := comparisonFor(operator, rule.members[operator])
		if !known {
			continue
		}
		rule.get(operator)
		if !ok {
			l.refuse(rule.state, "%s has a constant of the wrong type", rule.field(operator))
		}
		found = l.onlyCondition(rule, found, comparison{variable, match})
	}
	if found == nil {
		l.refuse(rule.state, "%s has no comparison operator that is supported", rule.what)
	}
	return found
}

func (l *loader) onlyCondition(rule *object, before, found condition) condition {
	if before != nil {
		l.refuse(rule.state, "%s has more than one comparison operator", rule.what)
	}
	return found
}

// errorNames are the predefined names that Retry and Catch may use here. States.Runtime is not among them: it
// always fails the execution. The others belong to constructs that are not supported.
var errorNames = map[string]bool{
	errAll: true, errTaskFailed: true, errTimeout: true, errDataLimit: true, errResultPath: true,
}

func (l *loader) errorHandlers(s *state, o *object) {
	retry := o.list("Retry")
	for i, r := range retry {
		t := retrier{errors: l.errorEquals(r, i == len(retry)-1), interval: time.Second, maxAttempts: 3, backoff: 2}
		if r.has("IntervalSeconds") {
			t.interval = r.seconds("IntervalSeconds", 1, maxSeconds)
		}
		if n, ok := r.integer("MaxAttempts", 0, maxSeconds); ok {
			t.maxAttempts = int(n)
		}
		if v, ok := r.get("BackoffRate"); ok {
			n, _ := v.(json.Number)
			f, err := n.Float64()
			if err != nil || f < 1 {
				l.refuse(s.name, "%s must be a number of at least 1", r.field("BackoffRate"))
			}
			t.backoff = f
		}
		if r.has("MaxDelaySeconds") {
			t.maxDelay = r.seconds("MaxDelaySeconds", 1, maxRetryDelay)
			if t.maxDelay > 0 && t.maxDelay <= t.interval {
				l.refuse(s.name, "%s must be greater than IntervalSeconds", r.field("MaxDelaySeconds"))
			}
		}
		switch strategy := r.text("JitterStrategy"); {
		case strategy == "FULL":
			t.fullJitter = true
		case strategy != "NONE" && r.has("JitterStrategy"):
			l.refuse(s.name, "%s must be FULL or NONE", r.field("JitterStrategy"))
		}
		r.text("Comment")
		r.done()
		s.retriers = append(s.retriers, t)
	}
	catch := o.list("Catch")
	for i, c := range catch {
		s.catchers = append(s.catchers, catcher{
			errors:     l.errorEquals(c, i == len(catch)-1),
			resultPath: c.resultPath(),
			next:       c.needText("Next"),
		})
		c.text("Comment")
		c.done()
	}
}

func (l *loader) errorEquals(o *object, last bool) []string {
	names := o.texts("ErrorEquals")
	for _, name := range names {
		switch {
		case name == errAll && (len(names) > 1 || !last):
			l.refuse(o.state, "%s: States.ALL must stand alone, in the last entry", o.field("ErrorEquals"))
		case strings.HasPrefix(name, "States.") && !errorNames[name]:
			l.refuse(o.state, "%s: error name %s is not supported", o.field("ErrorEquals"), name)
		}
	}
	return names
}
