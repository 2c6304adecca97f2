// Package controlplane connects the engine to AWS: state in S3, the run log in DynamoDB, executions in Step
// Functions, resources through Cloud Control. It is what the functions of a team's own control plane run;
// nothing of the engine is written again here. Package local is its counterpart for --local.
//
// A stack is worked on under the execution role that the server's policy has chosen for it, in its own account or
// in another. Without a role the control plane works in its own account only: a stack of another one is refused by
// every client rather than deployed into the wrong one.
package controlplane
