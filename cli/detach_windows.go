package main

import "syscall"

// ownSession takes a process out of the console's group, so that Ctrl-C does not reach it.
func ownSession() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}
