package asl

import (
	"encoding/json"
	"time"
)

// choose runs a Choice state.
func (v *visit) choose() (doc, string, error) {
	data, err := v.filter(v.state.inputPath, v.raw.value)
	if err != nil {
		return doc{}, "", err
	}
	next := v.state.fallback
	for _, c := range v.state.choices {
		ok, err := c.test.holds(data, v.context)
		if err != nil {
			return doc{}, "", v.runtime("%s", err)
		}
		if ok {
			next = c.next
			break
		}
	}
	if next == "" {
		return doc{}, "", &failure{errNoChoice, "No choice rule of state '" + v.state.name + "' matches, and it has no default", v.last}
	}
	out, err := v.output(data)
	return out, next, err
}

// wait runs a Wait state.
func (v *visit) wait() (doc, error) {
	data, err := v.filter(v.state.inputPath, v.raw.value)
	if err != nil {
		return doc{}, err
	}
	d := v.state.seconds
	if p := v.state.secondsPath; p != nil {
		found, ok := lookup(*p, data, v.context)
		if !ok {
			return doc{}, v.runtime("Invalid path '%s' : Missing property in path", p.text)
		}
		n, isNumber := found.(json.Number)
		seconds, err := n.Int64()
		if !isNumber || err != nil || seconds < 0 || seconds > maxSeconds {
			return doc{}, v.runtime("The SecondsPath parameter does not reference a valid value: '%s' must be a whole number from 0 to %d", p.text, maxSeconds)
		}
		d = time.Duration(seconds) * time.Second
	}
	if err := v.sleep(d); err != nil {
		return doc{}, err
	}
	return v.output(data)
}

// pass runs a Pass state.
func (v *visit) pass() (doc, error) {
	data, err := v.effective()
	if err != nil {
		return doc{}, err
	}
	if v.state.hasResult {
		data = v.state.result
	}
	return v.result(data)
}

// succeed runs a Succeed state.
func (v *visit) succeed() (doc, error) {
	data, err := v.filter(v.state.inputPath, v.raw.value)
	if err != nil {
		return doc{}, err
	}
	return v.output(data)
}
