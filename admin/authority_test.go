package admin

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/isthmus-mesh/isthmus/authority"
)

// The ends of the authority's certificates are findings well before, and metrics.
func TestTheEndsOfTheAuthorityAreSeen(t *testing.T) {
	t.Parallel()
	domain, err := authority.TrustDomain("cluster.local")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "ca")
	own, err := authority.Create(dir, domain, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	const day = 24 * time.Hour
	end := own.Issuing().NotAfter
	for left, want := range map[time.Duration]struct {
		severity Severity
		text     string
	}{
		31 * day: {},
		29 * day: {SeverityWarning, "the issuing certificate expires at " + end.UTC().Format(time.RFC3339)},
		6 * day:  {SeverityError, "the issuing certificate expires at "},
		-day:     {SeverityError, "the issuing certificate has expired"},
	} {
		list := authorityFindings(own.Issuer(time.Hour), end.Add(-left))
		if want.text == "" && len(list) != 0 {
			t.Errorf("%s before the end: %+v", left, list)
		}
		if want.text != "" && (len(list) != 1 || list[0].Severity != want.severity || !strings.Contains(list[0].Problem, want.text) || !strings.HasPrefix(list[0].Next, "isthmus ca issuer --dir ")) {
			t.Errorf("%s before the end: %+v", left, list)
		}
	}
	ends := func(own *authority.Authority) map[string]float64 {
		r, got := prometheus.NewRegistry(), map[string]float64{}
		r.MustRegister(measures{Parts{Authority: own.Issuer(time.Hour)}})
		families, err := r.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				got[f.GetName()+" "+m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
			}
		}
		return got
	}
	const name = "isthmus_authority_expiry_timestamp_seconds "
	if got := ends(own); len(got) != 2 || got[name+"root"] != float64(own.Root().NotAfter.Unix()) || got[name+"issuer"] != float64(end.Unix()) {
		t.Errorf("metrics: %v", got)
	}
	if err := os.Remove(filepath.Join(dir, "issuer.pem")); err != nil {
		t.Fatal(err)
	}
	if own, err = authority.Open(dir); err != nil {
		t.Fatal(err)
	}
	list := authorityFindings(own.Issuer(time.Hour), time.Now())
	if len(list) != 1 || list[0].Severity != SeverityNotice || !strings.Contains(list[0].Problem, "the root signs certificates directly") || !strings.HasPrefix(list[0].Next, "isthmus ca issuer --dir ") {
		t.Errorf("a folder of an earlier version: %+v", list)
	}
	if got := ends(own); len(got) != 1 {
		t.Errorf("metrics of a folder of an earlier version: %v", got)
	}
}
