package netns

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// The marks of connections that a test makes. All others are those of the programs
// that it tests.
const (
	Redirected = 1 // they go to the port that a sidecar has them redirected to
	Direct     = 2 // they go where they go
)

// Everywhere are the addresses that [Answer] has answered, beside low ports of loopback.
var (
	EverywhereLocal = netip.MustParsePrefix("127.128.0.0/9")
	EverywhereIPv4  = netip.MustParsePrefix("10.128.0.0/9") // for what may not be loopback
	EverywhereIPv6  = netip.MustParsePrefix("2001:db8::/32")
	// allotted are what sidecars answer lookups with: of Isthmus, and of istiod. No server answers there.
	allotted = []netip.Prefix{netip.MustParsePrefix("241.0.0.0/8"), netip.MustParsePrefix("240.240.0.0/16"), netip.MustParsePrefix("2001:2::/48")}
)

// Marked has a [net.Dialer] mark its connections.
func Marked(mark int) func(network, address string, c syscall.RawConn) error {
	return func(_, _ string, c syscall.RawConn) (err error) {
		failed := c.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_MARK, mark) })
		return errors.Join(err, failed)
	}
}

// HighPorts are those that programs of tests listen on.
const HighPorts = 20000

// Answer has a port of loopback answer at every port of every address of the
// namespace's documentation, and at low ports of loopback itself. Connections with the
// mark [Redirected] arrive at the port of a sidecar instead.
func Answer(answering, sidecar uint16) error {
	for _, block := range append([]netip.Prefix{EverywhereIPv4, EverywhereIPv6}, allotted...) {
		if err := routeHere(block); err != nil {
			return fmt.Errorf("having %s be reached: %w", block, err)
		}
	}
	connection, err := nftables.New()
	if err != nil {
		return fmt.Errorf("speaking with the firewall of the namespace: %w", err)
	}
	for family, everywhere := range map[nftables.TableFamily][]netip.Prefix{
		nftables.TableFamilyIPv4: {EverywhereLocal, EverywhereIPv4}, nftables.TableFamilyIPv6: {EverywhereIPv6},
	} {
		table := connection.AddTable(&nftables.Table{Family: family, Name: "answer"})
		chain := connection.AddChain(&nftables.Chain{
			Name: "output", Table: table, Type: nftables.ChainTypeNAT, Hooknum: nftables.ChainHookOutput, Priority: nftables.ChainPriorityNATDest,
		})
		loopback := netip.PrefixFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 32)
		if family == nftables.TableFamilyIPv6 {
			loopback = netip.PrefixFrom(netip.IPv6Loopback(), 128)
		}
		rules := [][]expr.Any{
			append(marked(Direct), &expr.Verdict{Kind: expr.VerdictAccept}),
			append(marked(Redirected), redirectHere(sidecar)...),
			append(append(within(loopback), below(HighPorts)...), redirectHere(answering)...),
		}
		for _, block := range everywhere {
			rules = append(rules, append(within(block), redirectHere(answering)...))
		}
		for _, rule := range rules {
			connection.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: append(tcp(), rule...)})
		}
	}
	if err := connection.Flush(); err != nil {
		return fmt.Errorf("having a port answer for all: %w", err)
	}
	return nil
}

func tcp() []expr.Any {
	return []expr.Any{&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1}, &expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{unix.IPPROTO_TCP}}}
}

func marked(mark uint32) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyMARK, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binary.NativeEndian.AppendUint32(nil, mark)},
	}
}

// within compares the address that a packet goes to.
func within(block netip.Prefix) []expr.Any {
	offset, size := uint32(16), uint32(4) // in the header of IPv4
	if block.Addr().Is6() {
		offset, size = 24, 16
	}
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: size},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: size, Mask: net.CIDRMask(block.Bits(), int(size)*8), Xor: make([]byte, size)},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: block.Masked().Addr().AsSlice()},
	}
}

// below compares the port that a packet goes to.
func below(port uint16) []expr.Any {
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
		&expr.Cmp{Op: expr.CmpOpLt, Register: 1, Data: binary.BigEndian.AppendUint16(nil, port)},
	}
}

func redirectHere(port uint16) []expr.Any {
	return []expr.Any{&expr.Immediate{Register: 1, Data: binary.BigEndian.AppendUint16(nil, port)}, &expr.Redir{RegisterProtoMin: 1}}
}
