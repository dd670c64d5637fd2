//go:build !linux

package netns

import (
	"errors"
	"net/netip"
)

var errLinux = errors.New("network namespaces are Linux's; run these tests there")

// Run fails.
func Run([]string, ...string) (status int, err error) { return 1, errLinux }

// RaiseLoopback fails.
func RaiseLoopback() error { return errLinux }

// AddAddress fails.
func AddAddress(netip.Addr) error { return errLinux }

// RedirectDatagrams fails.
func RedirectDatagrams(uint16, uint16) error { return errLinux }

// Redirect fails.
func Redirect(netip.Addr, uint16, netip.Addr) error { return errLinux }
