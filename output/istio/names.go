package istio

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// What marks an object as ours. All of it is API: see docs/reference/istio.md.
const (
	labelManagedBy = "app.kubernetes.io/managed-by"
	managedBy      = "isthmus"
	labelInstance  = "isthmus.io/instance"

	annotationSources = "isthmus.io/sources" // whose records the object is made of
	annotationService = "isthmus.io/service" // the host, for the objects of a service

	fieldManager = "isthmus"
)

// Kind is a kind of object that is written.
type Kind string

// The kinds.
const (
	ServiceEntry Kind = "ServiceEntry"
	Sidecar      Kind = "Sidecar"
)

const (
	group   = "networking.istio.io"
	version = "v1"
)

// resource is the kind's name in paths.
func (k Kind) resource() string {
	if k == Sidecar {
		return "sidecars"
	}
	return "serviceentries"
}

// Key names what is brought to its desired state as one: all objects of a
// service, or the one of a scope.
type Key struct {
	Kind      Kind
	Namespace string
	Name      string // the host, or the name of the scope's object
}

func (k Key) String() string { return string(k.Kind) + " " + k.Namespace + "/" + k.Name }

// longestName leaves room for the suffix of a part.
const longestName = 200

// objectName returns the name of the first object of a host: the host itself if
// Kubernetes takes it for a name, else one made of it that no other host has.
func objectName(host string) string {
	if len(host) <= longestName && isName(host) {
		return host
	}
	var b strings.Builder
	for _, c := range []byte(strings.ToLower(host)) {
		switch {
		case isAlphanumeric(c), c == '.' && b.Len() > 0, c == '-' && b.Len() > 0:
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
	return objectName(host) + "-" + digest(host+"\x00"+part)
}

// isNamedAfter reports whether an object may be one of a host's, by its name.
func isNamedAfter(name, host string) bool {
	rest, ok := strings.CutPrefix(name, objectName(host))
	return ok && (rest == "" || rest[0] == '-')
}

// digest is short and, for all practical purposes, unique.
func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:6])
}

// isName reports whether Kubernetes takes s as the name of an object.
func isName(s string) bool {
	if s == "" || len(s) > 253 {
		return false
	}
	for part := range strings.SplitSeq(s, ".") {
		if part == "" || part[0] == '-' || part[len(part)-1] == '-' {
			return false
		}
		for _, c := range []byte(part) {
			if !isAlphanumeric(c) && c != '-' {
				return false
			}
		}
	}
	return true
}

func isAlphanumeric(c byte) bool { return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' }
