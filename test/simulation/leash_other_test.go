//go:build !linux

package simulation

import "syscall"

// leash would end a process when this one is gone. Only Linux can.
func leash() *syscall.SysProcAttr { return nil }
