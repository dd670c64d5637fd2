package identity

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"errors"
	"fmt"
	"slices"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/json"
)

const (
	mostKeys     = 100     // of a set
	mostKeysText = 1 << 20 // bytes of a set
)

// algorithms are the accepted signatures. Each needs a public key, so whoever can verify
// tokens cannot issue them.
func algorithms() []jose.SignatureAlgorithm {
	return []jose.SignatureAlgorithm{
		jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
	}
}

// keySet is the usable public keys of one issuer.
type keySet struct {
	keys  map[string]key
	twice []string // key ids that several keys have, so that none of them is used
}

// key is a public key.
type key struct {
	public    crypto.PublicKey
	algorithm string // the only one that it is for; empty: any that fits
}

// rawKey is the members of a key that go-jose does not keep.
type rawKey struct {
	Kid string   `json:"kid"`
	Ops []string `json:"key_ops"`
}

// parseKeySet reads a JSON Web Key Set. Keys that cannot verify signatures of tokens are
// left out: symmetric and private ones, weak ones, keys for encryption, and keys without
// an id. If an id occurs twice, none of its keys is used.
func parseKeySet(text []byte) (keySet, error) {
	var raw struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(text, &raw); err != nil {
		return keySet{}, errors.New("not a JSON Web Key Set: the JSON is invalid")
	}
	if raw.Keys == nil {
		return keySet{}, errors.New("not a JSON Web Key Set: it has no list of keys")
	}
	if len(raw.Keys) > mostKeys {
		return keySet{}, fmt.Errorf("the set has %d keys; %d is the limit", len(raw.Keys), mostKeys)
	}
	set, seen := keySet{keys: map[string]key{}}, map[string]int{}
	for _, one := range raw.Keys {
		var outer rawKey
		if json.Unmarshal(one, &outer) != nil || outer.Kid == "" {
			continue
		}
		if seen[outer.Kid]++; seen[outer.Kid] == 2 {
			set.twice = append(set.twice, outer.Kid)
		}
		if usable, ok := usableKey(one, outer.Ops); ok {
			set.keys[outer.Kid] = usable
		}
	}
	for _, id := range set.twice {
		delete(set.keys, id)
	}
	return set, nil
}

func usableKey(text []byte, operations []string) (key, bool) {
	var parsed jose.JSONWebKey
	if parsed.UnmarshalJSON(text) != nil || !parsed.Valid() || !parsed.IsPublic() || parsed.Use != "" && parsed.Use != "sig" {
		return key{}, false
	}
	if operations != nil && !slices.Contains(operations, "verify") {
		return key{}, false
	}
	one := key{parsed.Key, parsed.Algorithm}
	for _, algorithm := range algorithms() {
		if one.fits(algorithm) == nil {
			return one, true
		}
	}
	return key{}, false
}

const (
	leastRSA = 2048 // bits
	mostRSA  = 8192 // beyond it each signature costs much to verify
)

// fits returns why the key cannot verify signatures of an algorithm.
func (k key) fits(algorithm jose.SignatureAlgorithm) error {
	if k.algorithm != "" && k.algorithm != string(algorithm) {
		return fmt.Errorf("the key is for %s, and not for %s", clip(k.algorithm), algorithm)
	}
	ok := false
	switch public := k.public.(type) {
	case *rsa.PublicKey:
		bits := public.N.BitLen()
		ok = isRSA(algorithm) && bits >= leastRSA && bits <= mostRSA
	case *ecdsa.PublicKey:
		curve := curveOf(algorithm)
		ok = curve != nil && public.Curve == curve
	case ed25519.PublicKey:
		ok = algorithm == jose.EdDSA
	}
	if !ok {
		return fmt.Errorf("the key is of another type or size than %s needs", algorithm)
	}
	return nil
}

func isRSA(algorithm jose.SignatureAlgorithm) bool {
	return slices.Contains([]jose.SignatureAlgorithm{jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512}, algorithm)
}

func curveOf(algorithm jose.SignatureAlgorithm) elliptic.Curve {
	switch algorithm { //nolint:exhaustive // the others have no curve
	case jose.ES256:
		return elliptic.P256()
	case jose.ES384:
		return elliptic.P384()
	case jose.ES512:
		return elliptic.P521()
	default:
		return nil
	}
}

// readKeySet reads a set from a file.
func readKeySet(path string) (keySet, error) {
	return watchedKeys(path).parsed(parseKeySet)
}
