// Package identity decides who a client is: its trust domain, namespace and account.
//
// A client proves its identity by a certificate with a SPIFFE URI, by a bearer token (JWT) of
// a configured issuer, or by both, which then agree. The kinds of evidence are a table of
// proofs: each proof is a file and a row of it. Nothing that a client declares about itself
// is a proof, and no proof is a proof of an address. A claim of a token can only narrow.
//
// It opens no listener and serves no stream: the server of a listener collects the
// [Evidence] of a stream, asks [Verifier.Prove], and keeps the stream for as long as
// [Verifier.Keep] lets it. Whether the authorities of a listener vouch for a certificate is
// decided by TLS before that.
//
// The keys of issuers come from files and URLs. [Verifier.Run] refreshes them and follows
// the lists of revocations. A failing issuer costs the clients of that issuer their
// next proof, and other clients nothing. The text of a token is in no error and no log.
//
// A [Verifier] may be used from any goroutine.
package identity
