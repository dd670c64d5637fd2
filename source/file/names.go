package file

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// isLabel reports whether s is a label of a DNS name (RFC 1123), in any case.
func isLabel(s string) bool {
	if s == "" || len(s) > 63 || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	for i := range len(s) {
		if !isAlphanumeric(s[i]) && s[i] != '-' {
			return false
		}
	}
	return true
}

func isAlphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// isObjectName reports whether Kubernetes takes s as the name of an object:
// parts as of a DNS name, in lower case, but of any length.
func isObjectName(s string) bool {
	if len(s) > 253 || s != strings.ToLower(s) {
		return false
	}
	for part := range strings.SplitSeq(s, ".") {
		if part == "" || part[0] == '-' || part[len(part)-1] == '-' {
			return false
		}
		for i := range len(part) {
			if !isAlphanumeric(part[i]) && part[i] != '-' {
				return false
			}
		}
	}
	return true
}

// isNamespace reports whether Kubernetes takes s as the name of a namespace.
func isNamespace(s string) bool { return isLabel(s) && s == strings.ToLower(s) }

// checkDomain says what is wrong with a DNS name; nil if nothing is. One dot
// may stand at the end.
func checkDomain(s string) error {
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
		if !isLabel(part) {
			return notPart(part)
		}
	}
	return nil
}

func notPart(s string) error {
	return fmt.Errorf("%q is not a part of a DNS name: use letters, digits and hyphens, at most 63", s)
}

// checkHost is checkDomain for names whose first part may begin with an
// asterisk, or is one. As in Istio, a name of a single part may be a number.
func checkHost(s string) error {
	if s == "*" {
		return errors.New("a bare * would claim every host: write the hosts, or *.domain")
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
	case wild && (!isLabel(rest) || len(first) > 63):
		return fmt.Errorf("%q is not a part of a DNS name: follow the asterisk by a dot, or by letters, digits and hyphens", first)
	case !isLabel(rest):
		return notPart(rest)
	case !more:
		return nil
	}
	return checkDomainParts(domain)
}

// checkLabelKey says what is wrong with the key of a label, or of an
// annotation in lower case; nil if nothing is.
func checkLabelKey(s string) error {
	prefix, name, found := strings.Cut(s, "/")
	switch {
	case !found:
		name = s
	case !isObjectName(prefix):
		return fmt.Errorf("the prefix %q of a key must be a DNS name in lower case", prefix)
	}
	return checkLabelName(name)
}

// checkEndpointLabelKey is checkLabelKey for labels of endpoints, whose prefix
// may have any case.
func checkEndpointLabelKey(s string) error {
	if prefix, name, found := strings.Cut(s, "/"); found {
		s = strings.ToLower(prefix) + "/" + name
	}
	return checkLabelKey(s)
}

func checkLabelName(s string) error {
	if !isQualified(s) {
		return fmt.Errorf("%q cannot be a key: use 1 to 63 letters, digits, '-', '_' and '.', "+
			"beginning and ending with a letter or digit", s)
	}
	return nil
}

// checkLabelValue says what is wrong with the value of a label; nil if nothing is.
func checkLabelValue(s string) error {
	if s != "" && !isQualified(s) {
		return fmt.Errorf("%q cannot be a label's value: use at most 63 letters, digits, '-', '_' and '.', "+
			"beginning and ending with a letter or digit", s)
	}
	return nil
}

// checkEndpointLabelValue is checkLabelValue for labels of endpoints, whose
// length Istio leaves open.
func checkEndpointLabelValue(s string) error {
	if s != "" && !isWord(s) {
		return fmt.Errorf("%q cannot be a label's value: use letters, digits, '-', '_' and '.', "+
			"beginning and ending with a letter or digit", s)
	}
	return nil
}

func isQualified(s string) bool { return len(s) <= 63 && isWord(s) }

func isWord(s string) bool {
	if s == "" || !isAlphanumeric(s[0]) || !isAlphanumeric(s[len(s)-1]) {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !isAlphanumeric(c) && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return true
}

// normalAddress writes an IP address in its one canonical form, and leaves
// anything else as it is.
func normalAddress(s string) string {
	if ip, err := netip.ParseAddr(s); err == nil {
		return ip.String()
	}
	if prefix, err := netip.ParsePrefix(s); err == nil {
		return prefix.String()
	}
	return s
}

func isIP(s string) bool {
	_, err := netip.ParseAddr(s)
	return err == nil
}

func isPort(n uint32) bool { return 1 <= n && n <= 65535 }

func isUnix(s string) bool { return strings.HasPrefix(s, unixPrefix) }

const unixPrefix = "unix://"
