// Package leastprivilege records every call to AWS that the functions of a control plane, its trigger and its callers
// make in whole runs on an emulator, into infra/testdata/calls.jsonl. Package infra holds the synthesized policies
// against that recording: all of it is allowed, and nothing more is than it needs.
//
// The suite carries the build tag "emulators". It fails where a call is made that is not in the recording;
// `SLIPWAY_RECORD_CALLS=1 pkg/emulators/run.sh ministack` writes the recording anew.
package leastprivilege
