//go:build unix

package diff

import (
	"syscall"
	"time"
)

// cpuTime is what the process has computed so far, whatever else the machine is doing.
func cpuTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
