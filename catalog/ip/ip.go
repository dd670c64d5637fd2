// Package ip reads IP addresses as registries write them.
package ip

import (
	"iter"
	"net/netip"
)

// Canonical returns the canonical form of an IP address, and the same string if it is in that form.
func Canonical(written string) (string, bool) {
	ip, err := netip.ParseAddr(written)
	switch {
	case err != nil || ip.Zone() != "":
		return "", false
	case ip.Is4(): // an IPv4 address parses in no other form
		return written, true
	}
	if form := ip.Unmap().String(); form != written {
		return form, true
	}
	return written, true
}

// Single returns the one address of a text in canonical form. ok is false if it is a block of more
// than one address.
func Single(text string) (address string, ok bool) {
	if block, err := netip.ParsePrefix(text); err == nil {
		return block.Addr().String(), block.IsSingleIP()
	}
	ip, err := netip.ParseAddr(text)
	return ip.String(), err == nil && ip.Zone() == ""
}

// Singles yields the single addresses among texts.
func Singles(texts iter.Seq[string]) iter.Seq[string] {
	return func(yield func(string) bool) {
		for text := range texts {
			if address, ok := Single(text); ok && !yield(address) {
				return
			}
		}
	}
}

// Blocks yields the blocks of more than one address among texts.
func Blocks(texts iter.Seq[string]) iter.Seq[netip.Prefix] {
	return func(yield func(netip.Prefix) bool) {
		for text := range texts {
			if block, err := netip.ParsePrefix(text); err == nil && !block.IsSingleIP() && !yield(block.Masked()) {
				return
			}
		}
	}
}

// Connectable reports whether other machines can connect to an address in canonical form.
func Connectable(address string) bool {
	ip, err := netip.ParseAddr(address)
	return err == nil && !ip.IsUnspecified() && !ip.IsLoopback()
}
