//go:build !linux

package nacos_test

import (
	"errors"
	"syscall"
)

var errLinux = errors.New("these tests need a network namespace, which only Linux has")

func separate(...string) (status int, err error) { return 1, errLinux }

func raiseLoopback() error { return errLinux }

func leash() *syscall.SysProcAttr { return nil }
