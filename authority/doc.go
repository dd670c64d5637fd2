// Package authority is the built-in certificate authority: a folder with the root of a trust
// domain, the issuing certificates below it, a key that signs tokens, the list of issued tokens, and
// the revocations. It makes the folder, issues tokens, revokes tokens and accounts, and signs
// certificates. The key of the root signs issuing certificates alone, and may be elsewhere.
//
// It has no server and verifies no client: package identity verifies tokens by the public
// keys that it writes. Private keys are in no error and in no text that it returns.
//
// A [Folder] and an [Authority] do not change once they are read, and may be shared between
// goroutines. Several processes may use one folder at a time: each change takes the lock of
// the folder, and replaces a file by a rename, so that readers need no lock.
package authority
