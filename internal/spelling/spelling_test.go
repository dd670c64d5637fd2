package spelling_test

import (
	"strings"
	"testing"

	"github.com/isthmus-mesh/isthmus/internal/spelling"
)

func TestNearest(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 1000)
	for _, c := range []struct {
		name, known, want string
	}{
		{"nam", "namespace name", "name"},
		{"lgo", "admin log store", "log"},
		{"sotre", "source store", "store"},
		{"datadir", "dataDir", "dataDir"},
		{"target_port", "number targetPort", "targetPort"},
		{"host", "addresses hosts", "hosts"},
		{"storage", "sources store", "store"},
		{"token", "listen tokenFile", "tokenFile"},
		{"host", "hold hostlist", "hostlist"},
		{"minimum", "for min share", "min"},
		{"ports", "port portNames", "port"},
		{"htp", "http", "http"},
		{"hots", "costs", ""},   // the first letter differs, and one more
		{"ttl", "tls", ""},      // two of three letters differ
		{"to", "tokenFile", ""}, // too short to begin a name
		{"grpc", "xds mcp istio", ""},
		{"", "a b", ""},
		{"a", "", ""},
		{long, long + "b", ""},
		{"first", "firsts firste", "firsts"},
	} {
		if got := spelling.Nearest(c.name, strings.Fields(c.known)); got != c.want {
			t.Errorf("%q among %q means %q, want %q", c.name, c.known, got, c.want)
		}
	}
}
