package views

import "fmt"

// BootstrapIntent is what a bootstrap is going to make.
type BootstrapIntent struct {
	Account, Region, StateBucket string
	// NewBucket: the state bucket is not there yet.
	NewBucket bool
	// Parts are what the control plane is made of; Monthly is what it costs at rest, in US dollars a month.
	Parts   []BootstrapPart
	Monthly float64
}

// BootstrapPart is one kind of resource.
type BootstrapPart struct {
	Type    string
	Count   int
	Monthly float64
}

// BootstrapIntent says what a bootstrap is going to make and what that costs at rest. It goes to standard error: it is
// read before something is decided.
func (s *Streams) BootstrapIntent(in BootstrapIntent) {
	say := func(format string, args ...any) { _, _ = fmt.Fprintln(s.Err, Clean(fmt.Sprintf(format, args...))) }
	bucket := "is there; what it lacks is completed"
	if in.NewBucket {
		bucket = "is made: private, versioned, encrypted, TLS only, for this account only"
	}
	say("Account %s, region %s", in.Account, in.Region)
	say("  state bucket %s %s", in.StateBucket, bucket)
	if len(in.Parts) == 0 {
		return
	}
	say("  the control plane is made of")
	for _, p := range in.Parts {
		cost := ""
		if p.Monthly > 0 {
			cost = fmt.Sprintf("   %.2f USD a month", p.Monthly)
		}
		say("  %6d %s%s", p.Count, p.Type, cost)
	}
	say("At rest it costs about %.2f USD a month at list prices, and storage; deploys are charged by use.", in.Monthly)
}
