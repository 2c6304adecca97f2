// Package endtoend holds the suite that plays a control plane's life on an emulator of AWS: Slipway deploys its own
// stack there, and the functions' binaries, run by package bridge, deploy others through real Step Functions. It has no
// code but tests, with the build tag "emulators"; run.sh builds what they need.
package endtoend
