// Package bridge runs Lambda functions as Lambda runs them, for emulators of AWS that do it in another way or not at
// all. It serves the Runtime API to bootstrap processes, the very binaries that are uploaded to Lambda, and keeps a
// pool of them for each function: one process for each invocation at a time, used again by the next one, killed when its
// time is up.
//
// An emulator reaches it over HTTP (Front). MiniStack's own executor is replaced by launch_ministack.py; moto's Step
// Functions take the bridge's address for moto's own and what the bridge does not serve is passed on. The functions'
// own calls go to the emulator through a Gateway, which keeps a book on them.
//
// Layers, extensions, container images and functions that stream their response are not in the room.
package bridge
