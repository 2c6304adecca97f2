// Package statemachine embeds the state machines of Slipway: the one definition that Step Functions and the
// local executor (pkg/asl) both run. Functions and machines stand in them as ${Name} placeholders.
package statemachine

import _ "embed"

// Run is the definition of a run: open, waves, close.
//
//go:embed run.asl.json
var Run []byte

// Settle is the definition that settles a run whose execution has died.
//
//go:embed settle.asl.json
var Settle []byte

// The placeholders in the definitions.
const (
	PlannerFunction     = "PlannerFunction"
	ProvisionerFunction = "ProvisionerFunction"
	PublisherFunction   = "PublisherFunction"
	JanitorFunction     = "JanitorFunction"
	SettleStateMachine  = "SettleStateMachine"
)
