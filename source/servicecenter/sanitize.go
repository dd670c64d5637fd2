package servicecenter

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

// Limits of names, by DNS and Kubernetes.
const (
	longestLabel = 63
	longestHost  = 253
)

// sanitizeHost turns any text into a valid host name for DNS, Istio and Kubernetes:
// lower-case letters, digits and dashes, in parts. A truncated name ends in a hash of
// the whole.
func sanitizeHost(text string) string {
	var parts []string
	for part := range strings.SplitSeq(strings.ToLower(text), ".") {
		if part = sanitizeLabel(part); part != "" {
			parts = append(parts, part)
		}
	}
	if len(parts) == 0 {
		return "x-" + shortHash(text)
	}
	host := strings.Join(parts, ".")
	// A name that ends in a number would be taken for an address.
	if _, err := strconv.ParseUint(parts[len(parts)-1], 10, 64); err == nil && len(parts) > 1 {
		host = sanitizeLabel(strings.Join(parts, "-"))
	}
	if len(host) > longestHost {
		host = withHash(host, text, longestHost)
	}
	return host
}

// sanitizeLabel turns any text into one part of a host name; empty if no character is left.
func sanitizeLabel(text string) string {
	sanitized := strings.Trim(strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || '0' <= r && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(text)), "-")
	if len(sanitized) > longestLabel {
		return withHash(sanitized, text, longestLabel)
	}
	return sanitized
}

// sanitizeNamespace turns any text into the name of a namespace.
func sanitizeNamespace(text string) string {
	if sanitized := sanitizeLabel(text); sanitized != "" {
		return sanitized
	}
	return "x-" + shortHash(text)
}

// withHash truncates a name to a length. The name then ends in a hash of its
// original, in the same part.
func withHash(name, of string, length int) string {
	suffix := "-" + shortHash(of)
	if keep := length - len(suffix); len(name) > keep {
		name = name[:keep]
	}
	return strings.TrimRight(name, "-.") + suffix
}

// partHost adds a hash to a host name so that it differs from others. The hash is in
// the first part, so that domains stay as they are.
func partHost(host, of string) string {
	first, domain, more := strings.Cut(host, ".")
	first = withHash(first, of, longestLabel)
	if !more {
		return first
	}
	if parted := first + "." + domain; len(parted) <= longestHost {
		return parted
	}
	return withHash(host, of, longestHost)
}

func partNamespace(namespace, of string) string { return withHash(namespace, of, longestLabel) }

// shortHash has eight digits: enough to distinguish the names of one registry.
func shortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:4])
}

// sanitizeWord turns any text into the value of a label, without punctuation at its ends.
func sanitizeWord(text string) string {
	sanitized := strings.Map(func(r rune) rune {
		if isWordByte(r) {
			return r
		}
		return '-'
	}, text)
	return strings.Trim(sanitized[:min(len(sanitized), longestLabel)], "-_.")
}

func isWordByte(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-' || r == '_' || r == '.'
}
