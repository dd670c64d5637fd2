package app

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"iter"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/internal/certs"
	"github.com/isthmus-mesh/isthmus/output/envoy"
	"github.com/isthmus-mesh/isthmus/output/xds"
	"github.com/isthmus-mesh/isthmus/push"
)

// offerXDS makes the server of the output xds.
func (a *App) offerXDS(c *config.Config, version string, metrics *prometheus.Registry) error {
	if c.Outputs.XDS == nil {
		return nil
	}
	log := a.log.With("output", "xds")
	for _, warning := range c.Outputs.XDS.Warnings() {
		log.Warn("the listener is exposed", "warning", warning)
	}
	keeper, err := c.Outputs.XDS.Certificates(log)
	if err != nil {
		return fmt.Errorf("outputs.xds.%w", err)
	}
	var shown *tls.Config
	var authorities func() *x509.CertPool
	if keeper != nil {
		shown = keeper.TLS()
		if c.Outputs.XDS.TLS.ClientCAFile != "" {
			authorities = keeper.ClientCAs
		}
		measureCertificates(metrics, "xds", keeper)
	}
	a.xds = xds.New(a.engine, xds.Options{
		Kinds: xds.Kinds{Envoy: envoy.KindEnvoy, GRPC: envoy.KindGRPC},
		Name:  fmt.Sprintf("isthmus/%s %s", version, c.Instance),
		TLS:   shown, ClientCAs: authorities, TrustDomains: c.Outputs.XDS.TLS.TrustDomains, MaxConnectionAge: c.Outputs.XDS.MaxConnectionAge,
		Log: a.log,
	})
	measureCauses(metrics, "streams_rejected", "Streams and connections that were not served, or not any longer.", a.xds.Rejected)
	measureCauses(metrics, "requests_delayed", "Requests that had to wait because their stream says too much.", a.xds.Delayed)
	return nil
}

// debounceOf is how long changes of a type wait; nil if there is no output xds.
func debounceOf(c *config.Config) func(typeURL string, m push.Mode) push.Debounce {
	if c.Outputs.XDS == nil {
		return nil
	}
	return c.Outputs.XDS.Debounce.Of
}

// measureCauses shows a count for each cause.
func measureCauses(metrics *prometheus.Registry, name, help string, counts func() iter.Seq2[string, uint64]) {
	for cause := range counts() {
		metrics.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "isthmus_" + name + "_total", Help: help, ConstLabels: prometheus.Labels{"output": "xds", "cause": cause},
		}, func() float64 {
			for of, n := range counts() {
				if of == cause {
					return float64(n)
				}
			}
			return 0
		}))
	}
}

// measureCertificates shows certificates that cannot be read anew before those
// in use have expired. The files are looked at with each scrape.
func measureCertificates(metrics *prometheus.Registry, output string, k *certs.Keeper) {
	gauge := func(name, help string, value func() float64) {
		metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "isthmus_certificate_" + name, Help: help, ConstLabels: prometheus.Labels{"output": output},
		}, value))
	}
	gauge("stale", "Whether the certificate files cannot be used as they are now, and those before are in use.", func() float64 {
		if k.Err() != nil {
			return 1
		}
		return 0
	})
	gauge("expiry_timestamp_seconds", "When the certificate in use expires.", func() float64 { return float64(k.Expires().Unix()) })
}
