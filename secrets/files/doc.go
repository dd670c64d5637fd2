// Package files serves certificates that others write into files, such as cert-manager, SPIRE's
// spiffe-helper, and Kubernetes with its mounted secrets.
//
// An [Issuer] reads a folder and the folders below it. A pair is a certificate with its key and
// its authorities, under the names of a Kubernetes secret or of spiffe-helper. It is the pair of
// the identity in its certificate, wherever it lies.
//
// A pair is used only if its files were unchanged while they were read, the key belongs to the
// certificate, and the certificate is one of a workload of the trust domain that leads to its
// authorities now. Until then the pair before stays in use. So half-written files are never
// served, whatever their order. A missing pair stays until it expires.
//
// One goroutine, that of [Issuer.Run], reads and decides. All other methods return its newest
// decision, do no I/O, and may be called from any goroutine. Keys are in no log and no error.
package files
