// Package endtoend holds the suite that plays a control plane's life on an emulator of AWS: the command line installs it
// with `slipway bootstrap`, and the functions' binaries, run by package bridge, deploy others through real Step Functions.
// Every call that the functions make is held against the policies of their roles, which the emulator does not enforce. It
// has no code but tests, with the build tag "emulators"; run.sh builds what they need.
package endtoend
