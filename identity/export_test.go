package identity

import "context"

// Fetcher gets the text of a key set, in place of requests to KeysURL.
type Fetcher func(ctx context.Context) ([]byte, error)

func (f Fetcher) fetch(ctx context.Context) ([]byte, error) { return f(ctx) }

// Replace has the keys of an issuer come from a fetcher. It is called before Run.
func (v *Verifier) Replace(issuer string, from Fetcher) {
	v.issuers[issuer].keys = newRemoteKeys(from, v.log)
}
