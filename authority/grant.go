package authority

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/spiffe"
)

// The bounds of a token.
const (
	DefaultTTL  = 720 * time.Hour
	shortestTTL = time.Minute
	longestTTL  = 8760 * time.Hour
	// mostAddresses keeps a token small enough for the header of a request.
	mostAddresses = 64
)

// Grant describes a token to issue: the account that it proves, the blocks of addresses from
// which it is accepted, and its time to live. Without blocks it is accepted from anywhere.
type Grant struct {
	Namespace, Account string
	Addresses          []string
	TTL                time.Duration
}

// Invalid is the error of a value that the authority does not accept. Reason also says how
// to fix it.
type Invalid struct{ Field, Reason string }

// Error implements [error].
func (i *Invalid) Error() string { return i.Field + ": " + i.Reason }

// Check returns the errors of all fields.
func (g Grant) Check() []*Invalid {
	_, found := g.blocks()
	found = append(CheckAccount(g.Namespace, g.Account), found...)
	if g.TTL < shortestTTL || g.TTL > longestTTL {
		found = append(found, &Invalid{"ttl", fmt.Sprintf("%s is out of range; use from 1m to %dh, such as 720h", g.TTL, longestTTL/time.Hour)})
	}
	return found
}

// blocks returns the blocks of addresses, sorted and each once.
func (g Grant) blocks() (blocks []netip.Prefix, found []*Invalid) {
	for _, text := range g.Addresses {
		block, reason := parseBlock(text)
		if reason != "" {
			found = append(found, &Invalid{"address", reason})
			continue
		}
		blocks = append(blocks, block)
	}
	slices.SortFunc(blocks, netip.Prefix.Compare)
	if blocks = slices.Compact(blocks); len(blocks) > mostAddresses {
		found = append(found, &Invalid{"address", fmt.Sprintf("%d blocks; use at most %d, and wider ones", len(blocks), mostAddresses)})
	}
	return blocks, found
}

// parseBlock parses a block of addresses, or an address. It returns the reason if that fails.
func parseBlock(text string) (block netip.Prefix, reason string) {
	block, err := netip.ParsePrefix(text)
	if addr, addrErr := netip.ParseAddr(text); addrErr == nil && addr.Zone() == "" {
		block, err = netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	switch {
	case err != nil:
		return block, fmt.Sprintf("%q is not a block of addresses; use one such as 10.0.0.0/24 or 10.0.0.7", text)
	case block.Addr().Is4In6():
		return block, fmt.Sprintf("%q is an IPv4 address in IPv6 form; write it as IPv4", text)
	case block.Masked() != block:
		return block, fmt.Sprintf("%q has bits beyond its length; use %s", text, block.Masked())
	default:
		return block, ""
	}
}

// CheckAccount returns the errors of the names of an account.
func CheckAccount(namespace, account string) (found []*Invalid) {
	switch {
	case namespace == "":
		found = append(found, &Invalid{"namespace", "missing; give the namespace of the account, such as shop"})
	case !spiffe.IsNamespace(namespace):
		found = append(found, &Invalid{"namespace", fmt.Sprintf("%q is not %s", namespace, spiffe.NamespaceForm)})
	}
	switch {
	case account == "":
		found = append(found, &Invalid{"account", "missing; give the service account of the workload, such as web"})
	case !spiffe.IsAccount(account):
		found = append(found, &Invalid{"account", fmt.Sprintf("%q is not %s", account, spiffe.AccountForm)})
	}
	return found
}

func joined(found []*Invalid) error {
	var list []error
	for _, one := range found {
		list = append(list, one)
	}
	return errors.Join(list...)
}
