// Package sanitize turns any text into names that DNS, Istio and Kubernetes accept. Its
// functions are pure: equal texts give equal names.
package sanitize

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

// Limits of names, by DNS and Kubernetes.
const (
	LongestLabel = 63
	LongestHost  = 253
)

// Host turns any text into a valid host name for DNS, Istio and Kubernetes:
// lower-case letters, digits and dashes, in parts. A truncated name ends in a hash of
// the whole.
func Host(text string) string {
	var parts []string
	for part := range strings.SplitSeq(strings.ToLower(text), ".") {
		if part = Label(part); part != "" {
			parts = append(parts, part)
		}
	}
	if len(parts) == 0 {
		return "x-" + Hash(text)
	}
	host := strings.Join(parts, ".")
	// A name that ends in a number would be taken for an address.
	if _, err := strconv.ParseUint(parts[len(parts)-1], 10, 64); err == nil && len(parts) > 1 {
		host = Label(strings.Join(parts, "-"))
	}
	if len(host) > LongestHost {
		host = WithHash(host, text, LongestHost)
	}
	return host
}

// Label turns any text into one part of a host name; empty if no character is left.
func Label(text string) string {
	sanitized := strings.Trim(strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || '0' <= r && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(text)), "-")
	if len(sanitized) > LongestLabel {
		return WithHash(sanitized, text, LongestLabel)
	}
	return sanitized
}

// Namespace turns any text into the name of a namespace.
func Namespace(text string) string {
	if sanitized := Label(text); sanitized != "" {
		return sanitized
	}
	return "x-" + Hash(text)
}

// WithHash truncates a name to a length. The name then ends in a hash of its
// original, in the same part.
func WithHash(name, of string, length int) string {
	suffix := "-" + Hash(of)
	if keep := length - len(suffix); len(name) > keep {
		name = name[:keep]
	}
	return strings.TrimRight(name, "-.") + suffix
}

// DistinctHost adds a hash to a host name so that it differs from others. The hash is in
// the first part, so that domains stay as they are.
func DistinctHost(host, of string) string {
	first, domain, more := strings.Cut(host, ".")
	first = WithHash(first, of, LongestLabel)
	if !more {
		return first
	}
	if parted := first + "." + domain; len(parted) <= LongestHost {
		return parted
	}
	return WithHash(host, of, LongestHost)
}

// DistinctNamespace adds a hash to a namespace so that it differs from others.
func DistinctNamespace(namespace, of string) string { return WithHash(namespace, of, LongestLabel) }

// Hash has eight digits: enough to distinguish the names of one registry.
func Hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:4])
}

// Word turns any text into the value of a label, without punctuation at its ends.
func Word(text string) string {
	sanitized := strings.Map(func(r rune) rune {
		if isWordByte(r) {
			return r
		}
		return '-'
	}, text)
	return strings.Trim(sanitized[:min(len(sanitized), LongestLabel)], "-_.")
}

func isWordByte(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-' || r == '_' || r == '.'
}
