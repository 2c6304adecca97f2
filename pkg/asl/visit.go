package asl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"
)

// dataLimit is how many bytes of UTF-8 the input or output of a state, and the result of a task, may have
// (https://docs.aws.amazon.com/step-functions/latest/dg/service-quotas.html).
const dataLimit = 262144

// visit is one stay of an execution in a state.
type visit struct {
	run     *run
	ctx     context.Context // ends with the run, or with the iteration that the state is in
	state   *state
	raw     doc // the state's input, before InputPath
	item    *item
	entered int64 // the event
	since   time.Time
	last    int64 // the last event
}

// enter runs the state and returns its output and the name of the next one, "" after an end.
func (v *visit) enter() (doc, string, error) {
	if v.ctx.Err() != nil {
		return doc{}, "", context.Cause(v.ctx)
	}
	v.since = v.run.e.Clock.Now()
	err := v.add(Event{
		Type:         EventType(v.state.kind + "StateEntered"),
		StateEntered: &StateEnteredDetails{Name: v.state.name, Input: v.raw.text},
	})
	if err != nil {
		return doc{}, "", err
	}
	v.entered = v.last
	var out doc
	next := v.state.next
	switch v.state.kind {
	case kindTask:
		out, next, err = v.handled(v.task)
	case kindMap:
		out, next, err = v.handled(v.mapItems)
	case kindChoice:
		out, next, err = v.choose()
	case kindWait:
		out, err = v.wait()
	case kindPass:
		out, err = v.pass()
	case kindSucceed:
		out, err = v.succeed()
	default:
		err = &failure{v.state.failError, v.state.failCause, v.last}
	}
	if err != nil {
		return doc{}, "", v.aborted(err)
	}
	err = v.add(Event{
		Type:        EventType(v.state.kind + "StateExited"),
		StateExited: &StateExitedDetails{Name: v.state.name, Output: out.text},
	})
	return out, next, err
}

// aborted records that the state was cut off because another iteration of its Map has failed.
func (v *visit) aborted(err error) error {
	if errors.Is(err, errSibling) && v.run.ctx.Err() == nil {
		if e := v.add(Event{Type: EventType(v.state.kind + "StateAborted")}); e != nil {
			return e
		}
	}
	return err
}

// add records an event that follows the visit's last one.
func (v *visit) add(e Event) error {
	id, err := v.run.add(v.last, e)
	if err == nil {
		v.last = id
	}
	return err
}

// runtime is the failure of an execution that Step Functions could not process. Nothing catches it.
func (v *visit) runtime(format string, args ...any) *failure {
	return &failure{name: errRuntime, cause: fmt.Sprintf("An error occurred while executing the state '%s' (entered at the event id #%d). ", v.state.name, v.entered) + fmt.Sprintf(format, args...)}
}

// context is the context object ($$).
func (v *visit) context() any {
	x := v.run.record
	c := map[string]any{
		"Execution":    map[string]any{"Id": x.ARN, "Name": x.Name, "Input": v.run.input.value, "StartTime": timestamp(x.StartedAt)},
		"State":        map[string]any{"Name": v.state.name, "EnteredTime": timestamp(v.since)},
		"StateMachine": map[string]any{"Id": x.Machine, "Name": v.run.arn.machine},
	}
	if v.item != nil {
		c["Map"] = map[string]any{"Item": map[string]any{"Index": integer(int64(v.item.index)), "Value": v.item.value}}
	}
	return c
}

func timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

func integer(n int64) json.Number { return json.Number(fmt.Sprint(n)) }

// filter applies InputPath or OutputPath to v.
func (v *visit) filter(p *path, data any) (any, error) {
	if p == nil {
		return map[string]any{}, nil
	}
	found, ok := lookup(*p, data, v.context)
	if !ok {
		return nil, v.runtime("Invalid path '%s' : Missing property in path", p.text)
	}
	return found, nil
}

// effective is the state's input after InputPath and Parameters.
func (v *visit) effective() (any, error) {
	data, err := v.filter(v.state.inputPath, v.raw.value)
	if err != nil {
		return nil, err
	}
	return v.fill(v.state.parameters, data)
}

// fill applies a payload template; a nil template is data itself.
func (v *visit) fill(t *template, data any) (any, error) {
	if t == nil {
		return data, nil
	}
	filled, err := t.fill(data, v.context)
	var missing *missingError
	if errors.As(err, &missing) {
		// Step Functions names this States.Runtime, although its guide lists States.ParameterPathFailure.
		return nil, v.runtime("%s", missing.Error())
	}
	return filled, err
}

// result makes the state's output of its result: ResultSelector, ResultPath, OutputPath.
func (v *visit) result(result any) (doc, error) {
	result, err := v.fill(v.state.resultSelector, result)
	if err != nil {
		return doc{}, err
	}
	out, err := v.put(v.state.resultPath, result)
	if err != nil {
		return doc{}, err
	}
	return v.output(out)
}

// put applies a ResultPath: it joins a result, or an error, with the state's raw input.
func (v *visit) put(p *path, result any) (any, error) {
	if p == nil {
		return v.raw.value, nil
	}
	out, ok := p.set(v.raw.value, result)
	if !ok {
		return nil, &failure{errResultPath, fmt.Sprintf("Unable to apply ReferencePath %s to the state's input", p.text), v.last}
	}
	return out, nil
}

// output applies OutputPath and the limit.
func (v *visit) output(data any) (doc, error) {
	data, err := v.filter(v.state.outputPath, data)
	if err != nil {
		return doc{}, err
	}
	return v.limited(data, v.state.name)
}

// limited is data as a doc, or States.DataLimitExceeded.
func (v *visit) limited(data any, of string) (doc, error) {
	d, err := newDoc(data)
	if err != nil {
		return doc{}, err
	}
	if len(d.text) > dataLimit {
		return doc{}, &failure{errDataLimit, fmt.Sprintf("The state/task '%s' returned a result with a size exceeding the maximum number of bytes service limit.", of), v.last}
	}
	return d, nil
}

// handled runs work under the state's Retry and Catch.
func (v *visit) handled(work func() (doc, error)) (doc, string, error) {
	tried := make([]int, len(v.state.retriers))
	for {
		out, err := work()
		if err == nil {
			return out, v.state.next, nil
		}
		var f *failure
		if !errors.As(err, &f) {
			return doc{}, "", err
		}
		if delay, again := v.retry(f, tried); again {
			if err := v.sleep(delay); err != nil {
				return doc{}, "", err
			}
			continue
		}
		return v.catch(f)
	}
}

// retry says whether the failure is retried, and after which delay. tried counts per retrier.
func (v *visit) retry(f *failure, tried []int) (time.Duration, bool) {
	for i, r := range v.state.retriers {
		if !f.matches(r.errors) {
			continue
		}
		if tried[i] >= r.maxAttempts {
			return 0, false
		}
		delay := r.delay(tried[i])
		tried[i]++
		if r.fullJitter {
			delay = v.run.e.jitter(delay)
		}
		return delay, true
	}
	return 0, false
}

// delay is the time before the retry that follows n others, before jitter.
func (r retrier) delay(n int) time.Duration {
	seconds := r.interval.Seconds() * math.Pow(r.backoff, float64(n))
	limit := time.Duration(maxRetryDelay) * time.Second
	if r.maxDelay > 0 {
		limit = r.maxDelay
	}
	if seconds >= limit.Seconds() {
		return limit
	}
	return time.Duration(seconds * float64(time.Second))
}

func (v *visit) catch(f *failure) (doc, string, error) {
	for _, c := range v.state.catchers {
		if !f.matches(c.errors) {
			continue
		}
		out, err := v.put(c.resultPath, map[string]any{"Error": f.name, "Cause": f.cause})
		if err != nil {
			return doc{}, "", err
		}
		d, err := v.limited(out, v.state.name)
		return d, c.next, err
	}
	return doc{}, "", f
}

// sleep waits on the executor's clock, or returns why the visit ends before.
func (v *visit) sleep(d time.Duration) error {
	if err := v.run.e.Clock.Sleep(v.ctx, d); err != nil {
		return context.Cause(v.ctx)
	}
	return nil
}
