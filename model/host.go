package model

import "strings"

// HostWithin reports whether a host matches one of the patterns. A name matches itself,
// "*.example.com" matches all names below it, at any depth and patterns included, and "*"
// matches all. Case is ignored.
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
