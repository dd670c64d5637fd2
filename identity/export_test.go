package identity

// Fetcher gets the text of a key set, in place of requests to KeysURL.
type Fetcher = fetcher

// Replace has the keys of an issuer come from a fetcher. It is called before Run.
func (v *Verifier) Replace(issuer string, from Fetcher) {
	v.issuers[issuer].keys = newRemoteKeys(from, v.log)
}
