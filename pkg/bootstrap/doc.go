// Package bootstrap puts a control plane into an account: the buckets, which are made by API because they must be there
// before anything can be deployed and outlive everything that is, and the assembly of the control plane's own stack,
// which is then deployed like any other with --direct. CDK's bootstrap stack is not needed.
//
// Every step looks at what is there and does what is missing: to repeat a bootstrap that was interrupted completes it,
// and to repeat one with a newer assembly upgrades in place.
package bootstrap
