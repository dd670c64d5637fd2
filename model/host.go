package model

import "strings"

// Name returns the form of a host in which hosts are compared, as DNS compares them: in lower
// case, and without the dot of the root. Two hosts are one if their names are equal. Letters
// beyond ASCII stay: DNS has none.
func Name(host string) string {
	if n := len(host) - 1; n > 0 && host[n] == '.' && host[n-1] != '.' {
		host = host[:n]
	}
	for i := range len(host) {
		if isUpper(host[i]) {
			return lowered(host)
		}
	}
	return host
}

func lowered(host string) string {
	text := []byte(host)
	for i, c := range text {
		if isUpper(c) {
			text[i] = c + 'a' - 'A'
		}
	}
	return string(text)
}

func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }

// HostWithin reports whether a host matches one of the patterns. A name matches itself,
// "*.example.com" matches all names below it, at any depth and patterns included, and "*"
// matches all. Hosts are compared by [Name].
func HostWithin(host string, patterns List[string]) bool {
	host = Name(host)
	for pattern := range patterns.All() {
		pattern = Name(pattern)
		below, wild := strings.CutPrefix(pattern, "*")
		if host == pattern || wild && strings.HasSuffix(host, below) {
			return true
		}
	}
	return false
}
