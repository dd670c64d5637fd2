package names

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"pgregory.net/rapid"
)

// What is judged without regular expressions, for speed, is judged as Kubernetes
// does, but for what Istio does otherwise: labels of DNS names in any case, and
// values of labels of any length.
func TestNamesAreJudgedAsKubernetesDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(
			rapid.StringOfN(rapid.RuneFrom([]rune("aZ09-._/ é\n")), 0, 4, -1),
			rapid.StringMatching(`[a-zA-Z0-9][-a-zA-Z0-9]{60,64}[a-zA-Z0-9]`),
			rapid.String(),
		).Draw(t, "text")
		if label := len(content.IsDNS1123Label(lowered(s))) == 0; IsLabel(s) != label {
			t.Errorf("IsLabel(%q) is %t, and Kubernetes says %t", s, !label, label)
		}
		if len(s) > content.LabelValueMaxLength {
			return
		}
		if value := IsLabelValue(s); IsEndpointLabelValue(s) != value {
			t.Errorf("IsEndpointLabelValue(%q) is %t, and Kubernetes says %t", s, !value, value)
		}
		if key := len(content.IsLabelKey(s)) == 0; key && !IsEndpointLabelKey(s) {
			t.Errorf("IsEndpointLabelKey(%q) is false, and Kubernetes takes it", s)
		}
	})
}

// lowered is a text with its ASCII letters in lower case, and nothing else changed:
// there are other letters whose lower case is one of ASCII's.
func lowered(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}
