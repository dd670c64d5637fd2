package netns

import (
	"errors"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"
)

// OriginalDestination is where a connection went before it was redirected.
func OriginalDestination(c *net.TCPConn) (at netip.AddrPort, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return at, err
	}
	const original = 80 // of both families
	var failed error
	err = raw.Control(func(fd uintptr) {
		if local := c.LocalAddr().(*net.TCPAddr); local.IP.To4() != nil {
			found, err := unix.GetsockoptIPv6Mreq(int(fd), unix.SOL_IP, original)
			if failed = err; err == nil { // family, port and address
				a := found.Multiaddr
				at = netip.AddrPortFrom(netip.AddrFrom4([4]byte(a[4:8])), uint16(a[2])<<8|uint16(a[3]))
			}
			return
		}
		found, err := unix.GetsockoptIPv6MTUInfo(int(fd), unix.SOL_IPV6, original)
		if failed = err; err == nil {
			at = netip.AddrPortFrom(netip.AddrFrom16(found.Addr.Addr), found.Addr.Port<<8|found.Addr.Port>>8)
		}
	})
	return at, errors.Join(err, failed)
}
