package names

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// IsLabel reports whether s is a label of a DNS name (RFC 1123), in any case. Istio uses it
// for the names of hosts, ports and subsets. Kubernetes accepts lower case only.
func IsLabel(s string) bool {
	if s == "" || len(s) > 63 || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	for i := range len(s) {
		if !IsAlphanumeric(s[i]) && s[i] != '-' {
			return false
		}
	}
	return true
}

// IsAlphanumeric reports whether c is a letter or digit of ASCII.
func IsAlphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// CheckDomain returns the fault of a DNS name; nil if it is valid. One dot may be at the
// end.
func CheckDomain(s string) error {
	if err := checkDomainLength(s); err != nil {
		return err
	}
	return checkDomainParts(s)
}

func checkDomainLength(s string) error {
	if s == "" || len(s) > 255 {
		return errors.New("write a DNS name of 1 to 255 characters")
	}
	return nil
}

func checkDomainParts(s string) error {
	parts := strings.Split(s, ".")
	if last := parts[len(parts)-1]; last == "" {
		parts = parts[:len(parts)-1]
	} else if _, err := strconv.Atoi(last); err == nil {
		return errors.New("the last part of a DNS name cannot be a number: write a name")
	}
	for _, part := range parts {
		if !IsLabel(part) {
			return notPart(part)
		}
	}
	return nil
}

func notPart(s string) error {
	return fmt.Errorf("%q is not a part of a DNS name: use letters, digits and hyphens, at most 63", s)
}

// CheckHost is CheckDomain for names with an optional asterisk at the begin of the first
// part. As in Istio, a name of a single part may be a number.
func CheckHost(s string) error {
	if s == "*" {
		return errors.New("a bare * matches every host: write the hosts, or *.domain")
	}
	if err := checkDomainLength(s); err != nil {
		return err
	}
	first, domain, more := strings.Cut(s, ".")
	rest, wild := strings.CutPrefix(first, "*")
	if wild {
		rest = strings.TrimPrefix(rest, "-")
	}
	switch {
	case first == "*" && more:
	case wild && (!IsLabel(rest) || len(first) > 63):
		return fmt.Errorf("%q is not a part of a DNS name: follow the asterisk by a dot, or by letters, digits and hyphens", first)
	case !IsLabel(rest):
		return notPart(rest)
	case !more:
		return nil
	}
	return checkDomainParts(domain)
}

// The labels of endpoints are validated by Istio's rule, which is weaker than Kubernetes':
// the prefix of a key may have any case, and a value any length. There may be thousands of
// endpoints in an object, so the code uses no regular expressions.

// CheckEndpointLabelKey returns the fault of the key of an endpoint's label; nil if it is
// valid.
func CheckEndpointLabelKey(s string) error {
	if IsEndpointLabelKey(s) {
		return nil
	}
	prefix, name, found := strings.Cut(s, "/")
	if !found {
		return wrongKey(s)
	}
	return wrongKey(strings.ToLower(prefix) + "/" + name)
}

// IsEndpointLabelKey reports whether Istio accepts s as the key of an endpoint's label.
func IsEndpointLabelKey(s string) bool {
	prefix, name, found := strings.Cut(s, "/")
	if !found {
		name = s
	} else if !IsObjectName(strings.ToLower(prefix)) {
		return false
	}
	return len(name) <= 63 && isWord(name)
}

// CheckEndpointLabelValue returns the fault of the value of an endpoint's label; nil if it
// is valid.
func CheckEndpointLabelValue(s string) error {
	if IsEndpointLabelValue(s) {
		return nil
	}
	return fmt.Errorf("%q cannot be a label's value: use letters, digits, '-', '_' and '.', "+
		"beginning and ending with a letter or digit", s)
}

// IsEndpointLabelValue reports whether Istio accepts s as the value of an endpoint's label.
func IsEndpointLabelValue(s string) bool { return s == "" || isWord(s) }

// isWord reports whether s has the form of a label's value, of any length.
func isWord(s string) bool {
	if s == "" || !IsAlphanumeric(s[0]) || !IsAlphanumeric(s[len(s)-1]) {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !IsAlphanumeric(c) && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return true
}

// NormalAddress returns an IP address or block in canonical form, and any other text unchanged. An
// IPv4-mapped address is IPv4.
func NormalAddress(s string) string {
	if ip, err := netip.ParseAddr(s); err == nil {
		return ip.Unmap().String()
	}
	if prefix, err := netip.ParsePrefix(s); err == nil {
		return prefix.String()
	}
	return s
}

// IsIP reports whether s is an IP address.
func IsIP(s string) bool {
	_, err := netip.ParseAddr(s)
	return err == nil
}

// IsPort reports whether n is the number of a port.
func IsPort(n uint32) bool { return 1 <= n && n <= 65535 }

// IsUnix reports whether s is the address of a unix socket.
func IsUnix(s string) bool { return strings.HasPrefix(s, UnixPrefix) }

// UnixPrefix begins the address of a unix socket.
const UnixPrefix = "unix://"
