package files_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/secrets/files"
)

// Pairs that may not be used are named with their file and the next step. No text has a key.
func TestUnusablePairsAreNamed(t *testing.T) {
	t.Parallel()
	ca, other := newAuthority(t), newAuthority(t)
	good := ca.issue(cart)
	_, edKey, _ := ed25519.GenerateKey(rand.Reader)
	shortKey, _ := rsa.GenerateKey(rand.Reader, 1024)
	oldCurve, _ := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	locked := pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: []byte("x")})
	with := func(change func(*x509.Certificate)) written { return ca.issue(cart, change) }
	uri := func(text string) *url.URL { u, _ := url.Parse(text); return u }
	for name, test := range map[string]struct {
		pair       written
		file, want string
	}{
		"key of another":        {written{good.cert, ca.issue(cart).key, good.authorities}, "tls.key", "does not belong to the certificate"},
		"no certificate":        {written{nil, good.key, good.authorities}, "tls.crt", "no certificate in PEM form"},
		"key as certificate":    {written{good.key, good.key, good.authorities}, "tls.crt", "no certificate in PEM form"},
		"no key":                {written{good.cert, nil, good.authorities}, "tls.key", "no private key in PEM form"},
		"key with a password":   {written{good.cert, locked, good.authorities}, "tls.key", "no private key in PEM form"},
		"cut key":               {written{good.cert, good.key[:len(good.key)/2], good.authorities}, "tls.key", "no private key in PEM form"},
		"cut certificate":       {written{good.cert[:len(good.cert)/2], good.key, good.authorities}, "tls.crt", "ends within a certificate"},
		"cut authorities":       {written{good.cert, good.key, append(bytes.Clone(good.authorities), other.issue(cart).authorities[:100]...)}, "ca.crt", "ends within a certificate"},
		"no authorities":        {written{good.cert, good.key, nil}, "ca.crt", "no certificate in PEM form"},
		"other authorities":     {written{good.cert, good.key, encode(other.cert)}, "tls.crt", "does not lead to its authorities"},
		"leaf as authority":     {written{good.cert, good.key, append(bytes.Clone(good.authorities), good.cert...)}, "ca.crt", "certificate 2 is not that of an authority"},
		"invalid certificate":   {written{pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")}), good.key, good.authorities}, "tls.crt", "cannot be read"},
		"too many":              {written{good.cert, good.key, bytes.Repeat(good.authorities, 101)}, "ca.crt", "more than 100 certificates"},
		"too large":             {written{good.cert, good.key, bytes.Repeat([]byte{'\n'}, 1<<20+1)}, "ca.crt", "larger than 1048576 bytes"},
		"expired":               {with(func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Second) }), "tls.crt", "and not now"},
		"not valid yet":         {with(func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Minute) }), "tls.crt", "and not now"},
		"no URI":                {with(func(c *x509.Certificate) { c.URIs = nil }), "tls.crt", "0 URIs"},
		"two URIs":              {with(func(c *x509.Certificate) { c.URIs = append(c.URIs, uri(till)) }), "tls.crt", "2 URIs"},
		"no workload":           {ca.issue("spiffe://cluster.local/cart"), "tls.crt", "not of the form"},
		"another trust domain":  {ca.issue("spiffe://other/ns/shop/sa/cart"), "tls.crt", "not of the trust domain cluster.local"},
		"authority":             {with(func(c *x509.Certificate) { c.IsCA = true }), "tls.crt", "that of an authority"},
		"no digital signature":  {with(func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageKeyEncipherment }), "tls.crt", "lacks the key usage digital signature"},
		"may sign certificates": {with(func(c *x509.Certificate) { c.KeyUsage |= x509.KeyUsageCRLSign }), "tls.crt", "may sign certificates"},
		"for servers alone":     {with(func(c *x509.Certificate) { c.ExtKeyUsage = c.ExtKeyUsage[:1] }), "tls.crt", "lacks the extended usage clientAuth"},
		"for clients alone":     {with(func(c *x509.Certificate) { c.ExtKeyUsage = c.ExtKeyUsage[1:] }), "tls.crt", "lacks the extended usage serverAuth"},
		"Ed25519":               {ca.issueFor(edKey, cart), "tls.crt", "keys of this kind (Ed25519) are rejected by Envoy"},
		"short RSA":             {ca.issueFor(shortKey, cart), "tls.crt", "keys of this kind (RSA) are rejected by Envoy"},
		"P-224":                 {ca.issueFor(oldCurve, cart), "tls.crt", "keys of this kind (ECDSA) are rejected by Envoy"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			test.pair.write(t, filepath.Join(dir, "cart"), mounted)
			i, log := open(t, dir)
			mustSay(t, i, log, filepath.Join(dir, "cart", test.file)+": ", test.want)
			if serves(t, i, cart) != nil || len(i.Bundle().Authorities) > 0 {
				t.Error("it is served")
			}
			err := files.Check(dir, domain)
			if err == nil || !strings.Contains(err.Error(), "dir: "+i.Problems()[0].Reason) {
				t.Errorf("checked: %v", err)
			}
			for line := range strings.SplitSeq(string(test.pair.key), "\n") {
				if len(line) > 10 && !strings.HasPrefix(line, "-") && strings.Contains(log.String()+err.Error(), line) {
					t.Errorf("the key is in %v, or in\n%s", err, log)
				}
			}
		})
	}
}

// Each file of a pair is needed, and an unreadable one is a problem of its pair alone.
func TestMissingFilesAreNamed(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	for _, name := range mounted {
		dir := t.TempDir()
		good := ca.issue(till)
		good.write(t, filepath.Join(dir, "a"), helper)
		ca.issue(cart).write(t, filepath.Join(dir, "b"), mounted)
		if err := os.Remove(filepath.Join(dir, "b", name)); err != nil {
			t.Fatal(err)
		}
		i, log := open(t, dir)
		mustSay(t, i, log, filepath.Join(dir, "b", name)+": cannot be read")
		mustServe(t, i, till, good)
		if serves(t, i, cart) != nil {
			t.Error("a part of a pair is served")
		}
	}
}

// Both layouts are read, in the folder itself and in folders below it, with certificates between
// and keys of all forms. Files of other names are none of a pair.
func TestPairsAreFoundByTheirNames(t *testing.T) {
	t.Parallel()
	ca, dir := newAuthority(t), t.TempDir()
	between := &authority{t: t, key: newKey(t)}
	between.cert = ca.sign(&x509.Certificate{
		SerialNumber: serial(), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, between.key.Public())
	chained := between.issue(till)
	chained.cert, chained.authorities = append(chained.cert, encode(between.cert)...), encode(ca.cert)
	key := newKey(t)
	sec1 := ca.issueFor(key, cart)
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	sec1.key = pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	const bank = "spiffe://cluster.local/ns/bank/sa/till"
	ofRSA := ca.issueFor(rsaKey, bank)
	sec1.write(t, dir, helper)
	chained.write(t, filepath.Join(dir, "till"), mounted)
	ofRSA.write(t, filepath.Join(dir, "real"), mounted)
	ca.issue(cart).write(t, filepath.Join(dir, ".hidden"), mounted)
	writeFile(t, filepath.Join(dir, "readme"), []byte("x"))
	if err := os.Mkdir(filepath.Join(dir, "empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "real"), filepath.Join(dir, ".real")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(".real", filepath.Join(dir, "linked")); err != nil {
		t.Fatal(err)
	}
	i, _ := open(t, dir)
	mustServe(t, i, cart, sec1)
	mustServe(t, i, bank, ofRSA)
	if leaf, err := i.Issue(till, time.Now()); err != nil || !bytes.Equal(leaf.Chain, chained.cert) {
		t.Errorf("%v: %v", err, i.Problems())
	}
	if len(i.Problems()) > 0 || !bytes.Equal(i.Bundle().Authorities, encode(ca.cert)) {
		t.Errorf("the problems are %v", i.Problems())
	}
}

func TestUnreadableFolderIsAnError(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "missing")
	if _, err := files.Open(missing, domain, nil); err == nil || !strings.Contains(err.Error(), missing+" cannot be read") {
		t.Error(err)
	}
}
