// Package certs provides a listener's certificate, key and client CA with the current
// content of their files, so that they can be rotated under load.
//
// The files are read at each handshake and parsed when their content changed. There is no
// watch and no background goroutine. It makes no difference whether a file was overwritten,
// replaced by a rename, or swapped through Kubernetes' symbolic links. A handshake that
// begins after a rotation uses the new files. Three small files cost less than the
// handshake does.
//
// A certificate without files is issued by an [Issuer], is in memory alone, and is renewed at
// the first handshake after half of its validity.
//
// Unusable files, such as a certificate whose key is yet to be written, change nothing: the
// last valid files stay in use, and [Keeper.Err] returns the reason. Open connections keep
// the certificates that they were opened with. Their server checks [Keeper.ClientCAs] from
// time to time, and ends connections with certificates that are no longer valid.
//
// A [Keeper] may be used from any goroutine.
package certs
