package istio

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
)

// Metadata is judged by Kubernetes' own functions: what they take, an API server
// takes. Their words name regular expressions, so the words are ours.

// IsObjectName reports whether Kubernetes takes s as the name of an object.
func IsObjectName(s string) bool { return len(content.IsDNS1123Subdomain(s)) == 0 }

// IsNamespace reports whether Kubernetes takes s as the name of a namespace.
func IsNamespace(s string) bool { return len(content.IsDNS1123Label(s)) == 0 }

// IsLabelValue reports whether Kubernetes takes s as the value of a label.
func IsLabelValue(s string) bool { return len(content.IsLabelValue(s)) == 0 }

// checkLabelKey says what is wrong with the key of a label, or of an annotation
// in lower case; nil if nothing is.
func checkLabelKey(s string) error {
	if len(content.IsLabelKey(s)) == 0 {
		return nil
	}
	return wrongKey(s)
}

// wrongKey says what is wrong with a key that is invalid.
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

// checkLabelValue says what is wrong with the value of a label; nil if nothing is.
func checkLabelValue(s string) error {
	if IsLabelValue(s) {
		return nil
	}
	return fmt.Errorf("%q cannot be a label's value: use at most 63 letters, digits, '-', '_' and '.', "+
		"beginning and ending with a letter or digit", s)
}
