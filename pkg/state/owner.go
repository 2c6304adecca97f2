package state

import "strings"

// ownerMark separates who asked from the run that holds the lock.
const ownerMark = ":slipway:"

// Owner is the owner string of a run's lock: "user@host:slipway:{runID}", where cdkd writes
// "user@host:pid" (reference §2). It is unique per run, so a process that finds it knows whose lock it is
// and whether that run still lives.
func Owner(caller, runID string) string {
	caller = Printable(caller)
	if caller == "" {
		caller = "unknown"
	}
	return caller + ownerMark + runID
}

// RunOfOwner returns the run that an owner string names; ours is false for a lock that Slipway has not
// written.
func RunOfOwner(owner string) (runID string, ours bool) {
	i := strings.LastIndex(owner, ownerMark)
	if i < 0 || owner[i+len(ownerMark):] == "" {
		return "", false
	}
	return owner[i+len(ownerMark):], true
}
