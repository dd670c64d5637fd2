package authority_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/isthmus-mesh/isthmus/authority"
)

// BenchmarkIssue makes the certificate of one client, with its key.
func BenchmarkIssue(b *testing.B) {
	a, err := authority.Create(filepath.Join(b.TempDir(), "ca"), spiffeid.RequireTrustDomainFromString("cluster.local"), time.Now())
	if err != nil {
		b.Fatal(err)
	}
	issuer, size, n := a.Issuer(24*time.Hour), 0, 0
	for b.Loop() {
		n++
		leaf, err := issuer.Issue(fmt.Sprintf("spiffe://cluster.local/ns/shop/sa/web-%d", n), time.Now())
		if err != nil {
			b.Fatal(err)
		}
		size = len(leaf.Chain) + len(leaf.Key)
	}
	b.ReportMetric(float64(size), "PEM-B")
}
