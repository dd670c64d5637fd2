//go:build !linux

package process

import "syscall"

// leash would end a process when this one is gone. Only Linux can.
func leash() *syscall.SysProcAttr { return nil }
