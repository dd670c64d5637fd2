package names

// The secrets of a client's own identity, as Istio names them.
const (
	OwnCertificate = "default"
	Authorities    = "ROOTCA"
)
