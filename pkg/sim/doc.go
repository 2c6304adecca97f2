// Package sim plays whole deployments in virtual time and breaks them: the real engine (pkg/run), the real state
// machines (statemachine, pkg/asl), the real records and locks (pkg/state) and the real Cloud Control provider, over
// an object store, a run log, a Cloud Control API and services that live in memory.
//
// Every call that leaves the engine is a gate: the goroutine parks there, and one scheduler decides who goes on, what
// goes wrong with the call, and when time passes. Only one parked goroutine is released at a time, and everything
// that the scheduler decides comes from the seed, so one seed is one history, whatever the Go scheduler does. The
// history is told in full when an invariant does not hold, together with the fewest faults that still break it.
//
// The files: scheduler.go and gate.go hold the play together; faults.go says what can go wrong; objects.go, log.go,
// executions.go, cloud.go and direct.go are the world; graph.go makes templates, history.go what people do,
// second.go what another tool does meanwhile; invariants.go judges; shrink.go, report.go and coverage.go tell.
package sim
