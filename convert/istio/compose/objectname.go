package compose

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/isthmus-mesh/isthmus/convert/istio/names"
)

// longestName leaves room for the suffix of a part.
const longestName = 200

// NameOf returns the name of the first object of a host: the host itself if Kubernetes
// accepts it, otherwise a derived name that no other host has.
func NameOf(host string) string {
	if len(host) <= longestName && names.IsObjectName(host) {
		return host
	}
	var b strings.Builder
	for _, c := range []byte(strings.ToLower(host)) {
		switch {
		case names.IsAlphanumeric(c), c == '.' && b.Len() > 0, c == '-' && b.Len() > 0:
			b.WriteByte(c)
		case b.Len() > 0:
			b.WriteByte('-')
		}
	}
	name := b.String()
	name = strings.Trim(name[:min(len(name), longestName)], "-.")
	for strings.Contains(name, "..") || strings.Contains(name, ".-") || strings.Contains(name, "-.") {
		name = strings.NewReplacer("..", ".", ".-", ".", "-.", ".").Replace(name)
	}
	if name == "" {
		name = "host"
	}
	return name + "-" + digest(host)
}

// partName returns the name of another object of a host.
func partName(host, part string) string {
	return NameOf(host) + "-" + digest(host+"\x00"+part)
}

// NamedAfter returns a function that reports whether a name may be of a host's object.
func NamedAfter(host string) func(name string) bool {
	first := NameOf(host)
	return func(name string) bool {
		rest, ok := strings.CutPrefix(name, first)
		return ok && (rest == "" || rest[0] == '-')
	}
}

// digest returns a short and, for all practical purposes, unique hash.
func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:6])
}

// longDigest is for names of which a service may have a hundred thousand.
func longDigest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:8])
}
