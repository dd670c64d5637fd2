package netns

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// Redirect has TCP connections that begin in this namespace and go to an IPv4 address
// arrive at a port of loopback instead, but for those that come from another address.
// It is what Istio's rules for iptables do with the connections to a workload.
func Redirect(to netip.Addr, port uint16, unlessFrom netip.Addr) error {
	match := address(source, expr.CmpOpNeq, unlessFrom)
	return redirect("output-"+to.String(), unix.IPPROTO_TCP, append(match, address(destination, expr.CmpOpEq, to)...), port)
}

// RedirectDatagrams has UDP datagrams that begin in this namespace and go to a port of
// whatever IPv4 address arrive at another port of loopback instead. It is what Istio's
// rules do with lookups of names.
func RedirectDatagrams(to, port uint16) error {
	const destinationPort = 2 // in the header of UDP
	return redirect(fmt.Sprintf("datagrams-%d", to), unix.IPPROTO_UDP, []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: destinationPort, Len: 2},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binary.BigEndian.AppendUint16(nil, to)},
	}, port)
}

const source, destination = 12, 16 // in the header of IPv4

// redirect adds a rule for what begins in this namespace.
func redirect(name string, protocol byte, match []expr.Any, port uint16) error {
	connection, err := nftables.New()
	if err != nil {
		return fmt.Errorf("speaking with the firewall of the namespace: %w", err)
	}
	table := connection.AddTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: "test"})
	chain := connection.AddChain(&nftables.Chain{
		Name: name, Table: table, Type: nftables.ChainTypeNAT,
		Hooknum: nftables.ChainHookOutput, Priority: nftables.ChainPriorityNATDest,
	})
	rule := []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{protocol}},
	}
	connection.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: append(append(rule, match...),
		&expr.Immediate{Register: 1, Data: binary.BigEndian.AppendUint16(nil, port)},
		&expr.Redir{RegisterProtoMin: 1},
	)})
	if err := connection.Flush(); err != nil {
		return fmt.Errorf("redirecting as %s: %w", name, err)
	}
	return nil
}

// address compares one of the addresses of a packet.
func address(offset uint32, op expr.CmpOp, with netip.Addr) []expr.Any {
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: 4},
		&expr.Cmp{Op: op, Register: 1, Data: with.AsSlice()},
	}
}
