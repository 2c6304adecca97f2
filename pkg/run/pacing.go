package run

import (
	"slices"
	"time"

	"github.com/slipway-cdk/slipway/pkg/plan"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/provider/pace"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// pace holds back what would meet a service that has asked to slow down. What it learns from the results of the last
// wave, and what it lets through, becomes part of the decision: a repeat decides the same.
func (s *stackTurn) pace(wave plan.Wave) plan.Wave {
	paced, left := wave.Paced(s.learn(),
		func(id string) string { return pace.Service(s.byID[id].Type) },
		func(id string) bool {
			op, known := s.ops[id]
			return !known || retryDue(op) || op.Status == runlog.OpIntent && op.Doubts > 0
		},
		s.now())
	s.rec.Paces = left
	return paced
}

// learn adjusts the paces of the last decision to what has ended since.
func (s *stackTurn) learn() map[string]plan.Pace {
	throttled, taken := map[string]int{}, map[string]int{}
	folded := make(map[string]bool, len(s.prev.Folded))
	for _, key := range s.prev.Folded {
		folded[key] = true
	}
	began := s.now()
	for id, op := range s.ops {
		// What the last wave has ended, or left because its service was too busy.
		busy := op.Doubts > 0 && op.Doubt == provider.KindThrottled && op.Wave == s.n-1
		if op.Kind != string(plan.KindResource) || !busy && (!op.Status.Ended() || folded[foldKey(op)]) {
			continue
		}
		service := pace.Service(s.byID[id].Type)
		switch {
		case busy:
			throttled[service]++
		case op.Status == runlog.OpSucceeded:
			taken[service]++
		case op.Error != nil && op.Error.Kind == provider.KindThrottled:
			throttled[service]++
		}
		if op.StartedAt.Before(began) {
			began = op.StartedAt
		}
	}
	out := map[string]plan.Pace{}
	for _, service := range sortedIDs(throttled) {
		out[service] = s.prev.Paces[service]
	}
	for service, p := range s.prev.Paces {
		out[service] = p
	}
	for service, p := range out {
		out[service] = p.Learn(throttled[service], taken[service], max(s.now().Sub(began), time.Second))
	}
	return out
}

// newAccess reports whether something of IAM or KMS that an operation relies on was made or changed by this
// deployment: services may not know of it yet. That is what it depends on, whatever is attached to that (a policy to a
// role), and what a stack that this one depends on may have made.
func (s *stackTurn) newAccess(planned plan.Operation) bool {
	if s.h.Root != s.h.RunID && len(s.req.Stacks) > 0 && len(s.req.Stacks[0].DependsOn) > 0 {
		return true
	}
	relies := map[string]bool{}
	var follow func(id string)
	follow = func(id string) {
		for _, d := range s.byID[id].DependsOn {
			if !relies[d] {
				relies[d] = true
				follow(d)
			}
		}
	}
	follow(planned.ID)
	for id, op := range s.ops {
		if op.Status != runlog.OpSucceeded || !grantsAccess(op.Type) || op.Reason == reasonUnchanged || op.Action == string(plan.ActionRecord) {
			continue
		}
		if relies[id] || slices.ContainsFunc(s.byID[id].DependsOn, func(d string) bool { return relies[d] && grantsAccess(s.byID[d].Type) }) {
			return true
		}
	}
	return false
}

// grantsAccess: resources of the type decide what a role or a service may do.
func grantsAccess(typeName string) bool {
	switch pace.Service(typeName) {
	case "IAM", "KMS":
		return true
	}
	return false
}
