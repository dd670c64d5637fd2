package azure

import (
	"net/netip"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"

	"github.com/isthmus-mesh/isthmus/source/machines"
)

// interfaces indexes the network interfaces of many machines.
type interfaces struct {
	byID, byMachine map[string][]*armnetwork.Interface // in lower case
}

func indexed(list []*armnetwork.Interface) interfaces {
	all := interfaces{map[string][]*armnetwork.Interface{}, map[string][]*armnetwork.Interface{}}
	for _, one := range list {
		if id := strings.ToLower(text(one.ID)); id != "" {
			all.byID[id] = append(all.byID[id], one)
		}
		if p := one.Properties; p != nil && p.VirtualMachine != nil {
			machine := strings.ToLower(text(p.VirtualMachine.ID))
			all.byMachine[machine] = append(all.byMachine[machine], one)
		}
	}
	return all
}

// references are the interfaces that a machine refers to.
type references []*armcompute.NetworkInterfaceReference

func referencesOf(p *armcompute.NetworkProfile) references {
	if p == nil {
		return nil
	}
	return p.NetworkInterfaces
}

// primary returns the URI of the primary interface; empty if none is marked.
func (r references) primary() string {
	for _, one := range r {
		if one != nil && (len(r) == 1 || one.Properties != nil && isTrue(one.Properties.Primary)) {
			return strings.ToLower(text(one.ID))
		}
	}
	return ""
}

// join gives a machine the address of its primary interface.
func (i interfaces) join(m *machines.Machine, uri string, r references) {
	one := i.primaryOf(uri, r)
	if one == nil {
		// The interface was made or removed between the two lists, or may not be
		// read.
		m.Unjoined = len(r) > 0
		return
	}
	m.Address, _ = netip.ParseAddr(addressOf(one))
}

func (i interfaces) primaryOf(uri string, r references) *armnetwork.Interface {
	if found := i.byID[r.primary()]; len(found) > 0 {
		return found[0]
	}
	own := i.byMachine[strings.ToLower(uri)]
	for _, one := range own {
		if len(own) == 1 || isTrue(one.Properties.Primary) {
			return one
		}
	}
	return nil
}

// addressOf returns the private address of the primary configuration. Other addresses
// of an interface belong to other software on the machine.
func addressOf(one *armnetwork.Interface) string {
	if one.Properties == nil {
		return ""
	}
	list := one.Properties.IPConfigurations
	for _, c := range list {
		if c != nil && c.Properties != nil && (len(list) == 1 || isTrue(c.Properties.Primary)) {
			return text(c.Properties.PrivateIPAddress)
		}
	}
	return ""
}

func isTrue(b *bool) bool { return b != nil && *b }
