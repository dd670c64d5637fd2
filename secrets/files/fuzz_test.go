package files_test

import (
	"bytes"
	"testing"
)

// Whatever is in the files, a pair is served only as a whole, and no text has the key.
func FuzzPair(f *testing.F) {
	good := newAuthority(f).issue(cart)
	f.Add(good.cert, good.key, good.authorities)
	f.Add(good.key, good.cert, good.authorities)
	f.Add(append(bytes.Clone(good.cert), good.key...), good.key, append(bytes.Clone(good.authorities), good.authorities...))
	f.Add([]byte("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"), []byte("-----BEGIN PRIVATE KEY-----"), []byte{})
	f.Fuzz(func(t *testing.T, cert, key, authorities []byte) {
		dir := t.TempDir()
		(written{cert, key, authorities}).write(t, dir, mounted)
		i, log := open(t, dir)
		if served := serves(t, i, cart); served == nil && len(i.Problems()) == 0 {
			return // it is of another identity
		}
		if len(key) > 100 && bytes.Contains([]byte(log.String()), key) {
			t.Errorf("the key is in\n%s", log)
		}
	})
}
