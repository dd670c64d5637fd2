//go:build !linux

package guide

import "syscall"

// leash has a process lead a group of its own. Only Linux can end it when this one
// is gone.
func leash() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
