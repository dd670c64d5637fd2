package output

import "github.com/isthmus-mesh/isthmus/internal/certs"

// Certificates are the metrics of what a listener shows. The files are looked at
// with each of them, for those that cannot be read anew have to be seen before
// the ones in use expire.
func Certificates(listener string, k *certs.Keeper) []Metric {
	labels := []Label{{Name: "output", Value: listener}}
	stale := 0.0
	if k.Err() != nil {
		stale = 1
	}
	return []Metric{
		{
			Name: "isthmus_certificate_stale", Help: "Whether the certificate files cannot be used as they are now, and those before are in use.",
			Labels: labels, Value: stale,
		},
		{
			Name: "isthmus_certificate_expiry_timestamp_seconds", Help: "When the certificate in use expires.",
			Labels: labels, Value: float64(k.Expires().Unix()),
		},
	}
}
