//go:build !linux

package nacos_test

import "syscall"

func leash() *syscall.SysProcAttr { return nil }
