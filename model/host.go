package model

import "strings"

// HostWithin reports whether a host is one of those that patterns stand for: a name
// stands for itself, "*.example.com" for all below it, however deep and a pattern
// itself or not, and "*" for all. Letters are the same in either case.
func HostWithin(host string, patterns List[string]) bool {
	host = strings.ToLower(host)
	for pattern := range patterns.All() {
		pattern = strings.ToLower(pattern)
		below, wild := strings.CutPrefix(pattern, "*")
		if host == pattern || wild && strings.HasSuffix(host, below) {
			return true
		}
	}
	return false
}
