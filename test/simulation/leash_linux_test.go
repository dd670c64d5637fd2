package simulation

import "syscall"

// leash ends a process when this one is gone, however that came about.
func leash() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
