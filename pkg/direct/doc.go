// Package direct is the plane of --direct: real resources, made from this machine with the caller's own credentials,
// and everything that has to outlive the process in the state bucket. It needs no control plane, and it is what puts
// one there.
//
// Package inprocess carries the runs, package controlplane's Accounts make the clients, package runlog/objects keeps the
// log. What is here is what a plane without servers has to settle for itself:
//
//   - who is alive (presence.go): a process that carries runs says so in the bucket every few seconds. Whoever finds
//     that it has stopped settles its runs, on any machine.
//   - who carries what (executions.go): the executions of the state machines are objects, too.
//   - which key (keys.go): the secrets of a run are sealed with the control plane's KMS key where there is one, else
//     with keys in an SSM SecureString.
package direct
