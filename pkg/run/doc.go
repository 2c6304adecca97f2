// Package run is the engine: what the functions do when the state machine calls them. Open takes the lock,
// plans and writes the plan; Next folds results into state and decides the next wave; Provision carries out
// one operation on one resource; Publish one asset; Close saves outputs and ends the run; Settle ends a run
// whose execution has died. One Engine serves the Lambda functions and the local plane alike.
//
// Every step may be repeated and may die on any line: it is written as "read what stands, do the rest".
// The pieces that make this hold are
//
//   - the run header with its version, status and epoch: a fenced run's late steps are refused;
//   - the operation journal: an intent before every call, its result after it, the same token on a repeat;
//   - the decision record: decision n exists once, a repeated Next returns it;
//   - the result: one header write decides it, the terminal event repeats it, and only then the run is CLOSED;
//   - one writer of state.json per run, always conditional, folding results that still fit the record.
package run
