// Package asl runs Amazon States Language state machines in this process: the constructs that Slipway's own
// definitions use, with the semantics of Step Functions, and no others. A definition that uses anything else
// is refused when it is loaded, so what runs here runs the same in Step Functions.
//
// In the room: the definition model and its strict loader, payload templates and reference paths, the
// interpreter of states, retries, timeouts and limits, histories, and the record of executions with an
// in-memory Store. Not in the room: the functions that tasks invoke, the durable Store, and what a process
// does about executions whose holder has died.
//
// Sources: the Amazon States Language specification (https://states-language.net) and the Step Functions
// developer guide (https://docs.aws.amazon.com/step-functions/latest/dg/).
package asl
