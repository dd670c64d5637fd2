// Package netns runs tests in a network namespace of their own, in which every port is
// free and nothing that listens can be reached from elsewhere.
package netns

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// Run runs this program once more, with arguments and additions to its environment, in
// a network namespace of its own, and returns its exit status.
func Run(arguments []string, env ...string) (status int, err error) {
	again := exec.Command("/proc/self/exe", arguments...)
	again.Env = append(os.Environ(), env...)
	again.Stdin, again.Stdout, again.Stderr = os.Stdin, os.Stdout, os.Stderr
	again.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if id := os.Geteuid(); id != 0 {
		again.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		again.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: id, Size: 1}}
		again.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	if err := again.Start(); err != nil {
		return 1, fmt.Errorf("a network namespace cannot be made: %w\n"+
			"run these tests as root (in a container: with CAP_SYS_ADMIN), or allow user namespaces to everybody:\n"+
			"sysctl -w kernel.unprivileged_userns_clone=1 kernel.apparmor_restrict_unprivileged_userns=0", err)
	}
	var ended *exec.ExitError
	if err := again.Wait(); err != nil && !errors.As(err, &ended) {
		return 1, err
	}
	return again.ProcessState.ExitCode(), nil
}

// AddAddress gives loopback one more address, so that there is a way to it. Those of IPv4 differ in their
// last byte.
func AddAddress(address netip.Addr) error {
	if address.Is6() {
		return addIPv6(address)
	}
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(socket)
	alias, err := unix.NewIfreq(fmt.Sprint("lo:", address.As4()[3]))
	if err != nil {
		return err
	}
	if err := alias.SetInet4Addr(address.AsSlice()); err != nil {
		return err
	}
	if err := unix.IoctlIfreq(socket, unix.SIOCSIFADDR, alias); err != nil {
		return fmt.Errorf("adding %s to loopback: %w", address, err)
	}
	return nil
}

// RaiseLoopback brings up the one interface that a new namespace has.
func RaiseLoopback() error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(socket)
	loopback, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	loopback.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, loopback); err != nil {
		return fmt.Errorf("bringing up loopback in the namespace: %w", err)
	}
	return nil
}
