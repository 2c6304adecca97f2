//go:build !windows

package main

import "syscall"

// ownSession takes a process out of the terminal's session, so that neither Ctrl-C nor the terminal's end reaches it.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
