package admin

import (
	"crypto/x509"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/isthmus-mesh/isthmus/authority"
	"github.com/isthmus-mesh/isthmus/internal/certs"
	"github.com/isthmus-mesh/isthmus/output"
)

// served is an output that has clients.
type served struct {
	name string // as in the configuration
	*output.Clients
}

// served lists the outputs that have clients, at the time of a request.
func (p Parts) served() (list []served) {
	for name, r := range p.outputs() {
		if r.Clients != nil {
			list = append(list, served{name, r.Clients})
		}
	}
	return list
}

func (p Parts) outputs() func(func(string, output.Report) bool) {
	if p.Outputs == nil {
		return func(func(string, output.Report) bool) {}
	}
	return p.Outputs
}

// measures makes metrics of the outputs' own measurements. Their names are known only at a
// scrape, so they are not described beforehand.
type measures struct{ parts Parts }

// Describe implements [prometheus.Collector].
func (measures) Describe(chan<- *prometheus.Desc) {}

// Collect implements [prometheus.Collector].
func (m measures) Collect(ch chan<- prometheus.Metric) {
	for name, r := range m.parts.outputs() {
		for _, metric := range r.Metrics {
			ch <- constant(metric)
		}
		certificateMetrics(ch, name, r.Certificates)
	}
	certificateMetrics(ch, "admin", m.parts.Access.Certificates)
	authorityMetrics(ch, m.parts.Authority)
}

var (
	certificateStale = desc("certificate_stale", "Whether the certificate files cannot be used as they are now, and those before are in use.", "output")
	certificateUntil = desc("certificate_expiry_timestamp_seconds", "When the certificate in use expires.", "output")
	authorityUntil   = desc("authority_expiry_timestamp_seconds", "When a certificate of the authority expires.", "certificate")
)

// certificateMetrics sends the metrics of a listener's certificate. The files are read for
// that: files that became unusable must be seen before the certificate in use expires.
func certificateMetrics(ch chan<- prometheus.Metric, listener string, k *certs.Keeper) {
	if k == nil {
		return
	}
	stale := 0.0
	if k.Err() != nil {
		stale = 1
	}
	ch <- prometheus.MustNewConstMetric(certificateStale, prometheus.GaugeValue, stale, listener)
	ch <- prometheus.MustNewConstMetric(certificateUntil, prometheus.GaugeValue, float64(k.Expires().Unix()), listener)
}

// authorityMetrics sends the ends of the authority's certificates.
func authorityMetrics(ch chan<- prometheus.Metric, issuer *authority.Issuer) {
	if issuer == nil {
		return
	}
	own := issuer.Authority()
	send := func(of string, c *x509.Certificate) {
		ch <- prometheus.MustNewConstMetric(authorityUntil, prometheus.GaugeValue, float64(c.NotAfter.Unix()), of)
	}
	send("root", own.Root())
	if issuing := own.Issuing(); issuing != nil {
		send("issuer", issuing)
	}
}

func constant(m output.Metric) prometheus.Metric {
	var names, values []string
	for _, l := range m.Labels {
		names, values = append(names, l.Name), append(values, l.Value)
	}
	kind := prometheus.GaugeValue
	if m.Counter {
		kind = prometheus.CounterValue
	}
	return prometheus.MustNewConstMetric(prometheus.NewDesc(m.Name, m.Help, names, nil), kind, m.Value, values...)
}
