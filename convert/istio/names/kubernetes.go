package names

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
)

// Kubernetes' own functions judge metadata, so that the rules are an API server's. The
// error texts are our own, because Kubernetes' texts name regular expressions.

// IsObjectName reports whether Kubernetes accepts s as the name of an object.
func IsObjectName(s string) bool { return len(content.IsDNS1123Subdomain(s)) == 0 }

// IsNamespace reports whether Kubernetes accepts s as the name of a namespace.
func IsNamespace(s string) bool { return len(content.IsDNS1123Label(s)) == 0 }

// IsLabelValue reports whether Kubernetes accepts s as the value of a label.
func IsLabelValue(s string) bool { return len(content.IsLabelValue(s)) == 0 }

// CheckLabelKey returns the fault of the key of a label, or of an annotation in lower case;
// nil if it is valid.
func CheckLabelKey(s string) error {
	if len(content.IsLabelKey(s)) == 0 {
		return nil
	}
	return wrongKey(s)
}

// wrongKey describes the fault of an invalid key.
func wrongKey(s string) error {
	prefix, name, found := strings.Cut(s, "/")
	switch {
	case !found:
		name = s
	case !IsObjectName(prefix):
		return fmt.Errorf("the prefix %q of a key must be a DNS name in lower case", prefix)
	}
	return fmt.Errorf("%q cannot be a key: use 1 to 63 letters, digits, '-', '_' and '.', "+
		"beginning and ending with a letter or digit", name)
}

// CheckLabelValue returns the fault of the value of a label; nil if it is valid.
func CheckLabelValue(s string) error {
	if IsLabelValue(s) {
		return nil
	}
	return fmt.Errorf("%q cannot be a label's value: use at most 63 letters, digits, '-', '_' and '.', "+
		"beginning and ending with a letter or digit", s)
}
