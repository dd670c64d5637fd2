package netns

import (
	"fmt"
	"net/netip"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
)

// RedirectWithin has TCP connections that begin in this namespace and go to an address
// of a block arrive at a port of loopback instead, but for those that come from another
// address, if there is one. All addresses of an IPv6 block lead to loopback then, as those
// of 127.0.0.0/8 do anyway.
// It is what Istio's rules for iptables do with the connections of a workload, and to it.
func RedirectWithin(block netip.Prefix, port uint16, unlessFrom netip.Addr) error {
	family, from := nftables.TableFamilyIPv4, uint32(source)
	if block.Addr().Is6() {
		family, from = nftables.TableFamilyIPv6, 8
		if err := routeHere(block); err != nil {
			return fmt.Errorf("having %s be reached: %w", block, err)
		}
	}
	connection, err := nftables.New()
	if err != nil {
		return fmt.Errorf("speaking with the firewall of the namespace: %w", err)
	}
	table := connection.AddTable(&nftables.Table{Family: family, Name: "within"})
	chain := connection.AddChain(&nftables.Chain{
		Name: fmt.Sprintf("output-%d", port), Table: table, Type: nftables.ChainTypeNAT, Hooknum: nftables.ChainHookOutput, Priority: nftables.ChainPriorityNATDest,
	})
	rule := append(tcp(), within(block)...)
	if unlessFrom.IsValid() {
		rule = append(rule,
			&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: from, Len: uint32(unlessFrom.BitLen() / 8)},
			&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: unlessFrom.AsSlice()})
	}
	connection.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: append(rule, redirectHere(port)...)})
	if err := connection.Flush(); err != nil {
		return fmt.Errorf("redirecting connections to %s: %w", block, err)
	}
	return nil
}
