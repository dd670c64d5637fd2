//go:build !linux

package process

import "syscall"

// attributes would have a process end when this one is gone. Only Linux can.
func attributes(*User) *syscall.SysProcAttr { return nil }
