package names

import (
	"strconv"
	"strings"
	"unicode"
)

// IsSNI reports whether handshakes to a host name it. Envoy rejects a listener with a wildcard that
// is not a whole label.
func IsSNI(host string) bool { return !strings.ContainsRune(strings.TrimPrefix(host, "*."), '*') }

// Parts of the server names in TLS of the mesh, outbound_.PORT_.SUBSET_.HOST. Gateways
// between networks have clusters of these names.
const (
	MeshPrefix    = "outbound_."
	MeshSeparator = "_."
)

// Mesh returns the server name of a port, or of a subset of it. A host with a wildcard has
// none, and neither has one that would not be parsed as written: Envoys convert server names
// to lower case.
func Mesh(host string, port uint32, subset string) (name string, ok bool) {
	name = MeshPrefix + strconv.FormatUint(uint64(port), 10) + MeshSeparator + strings.ToLower(subset) + MeshSeparator + host
	if !IsSNI(host) || strings.HasPrefix(host, "*") || strings.Contains(subset, MeshSeparator) ||
		!IsServerName(name) {
		return "", false
	}
	return name, true
}

// ParseMesh parses a name of [Mesh].
func ParseMesh(name string) (host string, port uint32, subset string, ok bool) {
	rest, ours := strings.CutPrefix(name, MeshPrefix)
	digits, rest, first := strings.Cut(rest, MeshSeparator)
	subset, host, second := strings.Cut(rest, MeshSeparator)
	if !ours || !first || !second || host == "" {
		return "", 0, "", false
	}
	port, ok = ParsePort(digits)
	return host, port, subset, ok
}

// LongestServerName is the longest server name that Envoy accepts.
const LongestServerName = 255

// IsServerName reports whether Envoy accepts the length and characters of a server name.
func IsServerName(name string) bool {
	return len(name) <= LongestServerName && !HasBlanks(name)
}

// HasBlanks reports whether a name contains a space or a control character.
func HasBlanks(name string) bool {
	return strings.ContainsFunc(name, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) })
}
