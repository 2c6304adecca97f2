// Package shipped loads the state machines that Slipway ships (package statemachine) for the local executor (package asl).
package shipped

import (
	"fmt"

	"github.com/slipway-cdk/slipway/pkg/asl"
	"github.com/slipway-cdk/slipway/statemachine"
)

// Names are what the functions and machines are called where the machines run: names of functions, ARNs of machines.
type Names struct {
	Planner, Provisioner, Publisher, Janitor string
	Run, Settle                              string
}

// Machines loads the machines, by their ARNs. They never change and may be shared.
func Machines(of Names) (map[string]*asl.Machine, error) {
	substitutions := map[string]string{
		statemachine.PlannerFunction: of.Planner, statemachine.ProvisionerFunction: of.Provisioner,
		statemachine.PublisherFunction: of.Publisher, statemachine.JanitorFunction: of.Janitor,
		statemachine.SettleStateMachine: of.Settle,
	}
	out := map[string]*asl.Machine{}
	for arn, definition := range map[string][]byte{of.Run: statemachine.Run, of.Settle: statemachine.Settle} {
		m, err := asl.Load(definition, substitutions)
		if err != nil {
			return nil, fmt.Errorf("loading %s: %w", arn, err)
		}
		out[arn] = m
	}
	return out, nil
}
