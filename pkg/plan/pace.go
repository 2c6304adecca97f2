package plan

import (
	"math"
	"slices"
	"time"
)

// The bounds of a pace, in operations per second.
const (
	leastPace = 0.5
	mostPace  = MapWidth
	// shrink is what a throttled wave leaves of the pace.
	shrink = 0.5
)

// Pace is how fast operations of one service are begun while that service asks to slow down. It is the part of a token
// bucket that one decision hands on to the next: provisioners are processes of their own, and only the planner sees
// all of them. The zero value is no pace at all: everything starts.
type Pace struct {
	// PerSecond is the rate; 0 is without a limit.
	PerSecond float64 `json:"perSecond"`
	// Tokens are the operations that may be begun at At.
	Tokens float64   `json:"tokens"`
	At     time.Time `json:"at"`
}

// Limited reports whether the pace holds anything back.
func (p Pace) Limited() bool { return p.PerSecond > 0 }

// Learn is the pace after the results of a wave that took d. One that was throttled halves it, the first one from what
// the service has taken; any other that was not adds one operation per second (additive increase, multiplicative
// decrease).
func (p Pace) Learn(throttled, taken int, d time.Duration) Pace {
	switch {
	case throttled > 0 && !p.Limited():
		p.PerSecond = float64(taken) / max(d.Seconds(), 1)
		p.PerSecond = min(max(p.PerSecond*shrink, leastPace), mostPace*shrink)
		p.Tokens = 0
	case throttled > 0:
		p.PerSecond = max(p.PerSecond*shrink, leastPace)
		p.Tokens = min(p.Tokens, 0)
	case taken > 0 && p.Limited():
		if p.PerSecond++; p.PerSecond >= mostPace {
			return Pace{}
		}
	}
	return p
}

// Refill is the pace at a later time. What may be begun at once is at most what two seconds bring, and one operation at
// the least.
func (p Pace) Refill(now time.Time) Pace {
	if !p.Limited() {
		return p
	}
	if !p.At.IsZero() {
		p.Tokens += max(now.Sub(p.At).Seconds(), 0) * p.PerSecond
	}
	p.Tokens = min(p.Tokens, max(2*p.PerSecond, 1))
	p.At = now
	return p
}

// wait is how long it takes until one more operation may be begun.
func (p Pace) wait() time.Duration {
	missing := 1 - p.Tokens
	if missing <= 0 || !p.Limited() {
		return 0
	}
	return time.Duration(math.Ceil(missing / p.PerSecond * float64(time.Second)))
}

// Paced takes out of a wave the operations that would go beyond the pace of their service, last ones first, and returns the
// paces that are left. begins tells the operations that make a new request from those that only follow one: those are
// never held back. A wave of which nothing is left waits until the next operation may be begun.
func (w Wave) Paced(paces map[string]Pace, service func(id string) string, begins func(id string) bool, now time.Time) (Wave, map[string]Pace) {
	left := make(map[string]Pace, len(paces))
	for s, p := range paces {
		if p.Limited() {
			left[s] = p.Refill(now)
		}
	}
	if len(left) == 0 {
		return w, left
	}
	held := 0
	var soonest time.Duration
	hold := func(id string) bool {
		s := service(id)
		p, limited := left[s]
		switch {
		case !limited || !begins(id):
			return false
		case p.Tokens >= 1:
			p.Tokens--
			left[s] = p
			return false
		}
		if until := p.wait(); held == 0 || until < soonest {
			soonest = until
		}
		held++
		return true
	}
	w.Poll = slices.DeleteFunc(slices.Clone(w.Poll), hold)
	w.Start = slices.DeleteFunc(slices.Clone(w.Start), hold)
	w.Waiting += held
	if held > 0 && len(w.Poll)+len(w.Start) == 0 {
		w.Wait = soonest
	}
	return w, left
}
