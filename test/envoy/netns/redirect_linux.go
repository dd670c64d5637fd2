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
	connection, err := nftables.New()
	if err != nil {
		return fmt.Errorf("speaking with the firewall of the namespace: %w", err)
	}
	table := connection.AddTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: "test"})
	chain := connection.AddChain(&nftables.Chain{
		Name: "output-" + to.String(), Table: table, Type: nftables.ChainTypeNAT,
		Hooknum: nftables.ChainHookOutput, Priority: nftables.ChainPriorityNATDest,
	})
	const source, destination = 12, 16 // in the header of IPv4
	rule := []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{unix.IPPROTO_TCP}},
	}
	rule = append(rule, address(source, expr.CmpOpNeq, unlessFrom)...)
	rule = append(rule, address(destination, expr.CmpOpEq, to)...)
	connection.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: append(rule,
		&expr.Immediate{Register: 1, Data: binary.BigEndian.AppendUint16(nil, port)},
		&expr.Redir{RegisterProtoMin: 1},
	)})
	if err := connection.Flush(); err != nil {
		return fmt.Errorf("redirecting connections to %s: %w", to, err)
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
