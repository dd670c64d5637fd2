package netns

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"
)

// routeHere has all addresses of a block be those of loopback, as all of 127.0.0.0/8 are.
func routeHere(block netip.Prefix) error {
	loopback, err := net.InterfaceByName("lo")
	if err != nil {
		return err
	}
	family, scope := byte(unix.AF_INET), byte(unix.RT_SCOPE_HOST)
	if block.Addr().Is6() {
		family, scope = unix.AF_INET6, unix.RT_SCOPE_UNIVERSE
	}
	body := []byte{family, byte(block.Bits()), 0, 0, unix.RT_TABLE_LOCAL, unix.RTPROT_BOOT, scope, unix.RTN_LOCAL, 0, 0, 0, 0}
	body = appendAttribute(body, unix.RTA_DST, block.Addr().AsSlice())
	body = appendAttribute(body, unix.RTA_OIF, binary.NativeEndian.AppendUint32(nil, uint32(loopback.Index)))
	return order(unix.RTM_NEWROUTE, body)
}

// addIPv6 gives loopback one more address, which programs can listen on and call from.
// Nobody else is asked whether they have it: until that was over, it could not be used.
func addIPv6(address netip.Addr) error {
	loopback, err := net.InterfaceByName("lo")
	if err != nil {
		return err
	}
	body := []byte{unix.AF_INET6, 128, unix.IFA_F_NODAD, unix.RT_SCOPE_UNIVERSE}
	body = binary.NativeEndian.AppendUint32(body, uint32(loopback.Index))
	if err := order(unix.RTM_NEWADDR, appendAttribute(body, unix.IFA_LOCAL, address.AsSlice())); err != nil {
		return fmt.Errorf("adding %s to loopback: %w", address, err)
	}
	return nil
}

func appendAttribute(b []byte, kind uint16, value []byte) []byte {
	b = binary.NativeEndian.AppendUint16(b, uint16(4+len(value)))
	return append(binary.NativeEndian.AppendUint16(b, kind), value...)
}

// order has the kernel create something in the network of this namespace.
func order(kind uint16, body []byte) error {
	socket, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer unix.Close(socket)
	native := binary.NativeEndian
	message := native.AppendUint32(nil, uint32(unix.SizeofNlMsghdr+len(body)))
	message = native.AppendUint16(message, kind)
	message = native.AppendUint16(message, unix.NLM_F_REQUEST|unix.NLM_F_CREATE|unix.NLM_F_ACK)
	message = append(message, make([]byte, 8)...) // number and sender
	if err := unix.Sendto(socket, append(message, body...), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	answer := make([]byte, unix.Getpagesize())
	n, _, err := unix.Recvfrom(socket, answer, 0)
	if err != nil {
		return err
	}
	if n < unix.SizeofNlMsghdr+4 {
		return fmt.Errorf("an answer of %d bytes", n)
	}
	if code := int32(native.Uint32(answer[unix.SizeofNlMsghdr:])); code != 0 {
		return unix.Errno(-code)
	}
	return nil
}
