package guide

import "syscall"

// leash has a process lead a group of its own, and ends it when this one is gone,
// however that came about.
func leash() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
