// Package ip reads addresses as registries write them.
package ip

import (
	"iter"
	"net/netip"
	"strings"

	"github.com/isthmus-mesh/isthmus/model"
)

// Canonical returns the canonical form of an IP address, and the same string if it is in that form.
// As in the kernel, an IPv4-mapped IPv6 address is IPv4.
func Canonical(written string) (string, bool) {
	ip, err := netip.ParseAddr(written)
	switch {
	case err != nil || ip.Zone() != "":
		return "", false
	case ip.Is4(): // an IPv4 address parses in no other form
		return written, true
	}
	var room [48]byte
	if form := ip.Unmap().AppendTo(room[:0]); string(form) != written {
		return string(form), true
	}
	return written, true
}

// Form returns an IP address in canonical form, and any other text as it is.
func Form(text string) string {
	if form, ok := Canonical(text); ok {
		return form
	}
	return text
}

// Forms returns the form of each text.
func Forms(texts model.List[string]) model.List[string] {
	for text := range texts.All() {
		if Form(text) == text {
			continue
		}
		all := texts.Slice()
		for i, other := range all {
			all[i] = Form(other)
		}
		return model.ListOf(all...)
	}
	return texts // nearly always
}

// Listed returns the addresses and blocks of a service in canonical form. An unspecified address,
// 0.0.0.0 or ::, is none.
func Listed(texts model.List[string]) model.List[string] {
	var list []string
	same := true
	for text := range texts.All() {
		form, ok := Single(text)
		if block, err := netip.ParsePrefix(text); err == nil && !block.IsSingleIP() {
			form, ok = unmapped(block).Masked().String(), true
		}
		if !ok {
			form = text // what a registry may not write is shown as it is
		}
		if at, err := netip.ParseAddr(form); err == nil && at.IsUnspecified() {
			same = false
			continue
		}
		list, same = append(list, form), same && form == text
	}
	if same {
		return texts // nearly always
	}
	return model.ListOf(list...)
}

// Unaddressed begins the [Place] of an endpoint without an address. No address begins like that.
const Unaddressed = "@"

// Place returns the text by which addresses of endpoints in the [Form] are compared. A client is
// given a name as it came: a final dot keeps a resolver from its search domains.
func Place(address string) string {
	if strings.HasPrefix(address, "unix:") || strings.HasPrefix(address, Unaddressed) {
		return address
	}
	return model.Name(address)
}

// Single returns the one address of a text in canonical form. ok is false if it is a block of more
// than one address.
func Single(text string) (address string, ok bool) {
	if block, err := netip.ParsePrefix(text); err == nil {
		return block.Addr().Unmap().String(), block.IsSingleIP()
	}
	return Canonical(text)
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
			if block, err := netip.ParsePrefix(text); err == nil && !block.IsSingleIP() && !yield(unmapped(block).Masked()) {
				return
			}
		}
	}
}

// unmapped returns a block of IPv4-mapped IPv6 addresses as a block of IPv4.
func unmapped(block netip.Prefix) netip.Prefix {
	const mapped = 96 // bits before the IPv4 address
	if block.Addr().Is4In6() && block.Bits() >= mapped {
		return netip.PrefixFrom(block.Addr().Unmap(), block.Bits()-mapped)
	}
	return block
}

// Connectable reports whether other machines can connect to an address in canonical form.
func Connectable(address string) bool {
	ip, err := netip.ParseAddr(address)
	return err == nil && !ip.IsUnspecified() && !ip.IsLoopback()
}
