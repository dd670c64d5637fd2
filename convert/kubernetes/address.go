package kubernetes

import (
	"net/netip"
	"strings"
)

// parseAddress reads an IP address as the components of Kubernetes do: numbers of IPv4 may have
// leading zeros and are decimal all the same, and an IPv4-mapped address is IPv4. API servers
// accepted both for years, and still have such objects.
func parseAddress(text string) (ip netip.Addr, ok bool) {
	ip, err := netip.ParseAddr(text)
	if err != nil {
		ip, err = netip.ParseAddr(withoutZeros(text))
	}
	return ip.Unmap(), err == nil && ip.Zone() == ""
}

func withoutZeros(text string) string {
	before, v4, mapped := "", text, strings.LastIndexByte(text, ':')
	if mapped >= 0 {
		before, v4 = text[:mapped+1], text[mapped+1:]
	}
	numbers := strings.Split(v4, ".")
	for i, n := range numbers {
		numbers[i] = strings.TrimLeft(n[:max(len(n)-1, 0)], "0") + n[max(len(n)-1, 0):]
	}
	return before + strings.Join(numbers, ".")
}
