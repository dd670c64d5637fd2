package certs_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/certs"
	"github.com/isthmus-mesh/isthmus/test/testkit/authority"
)

// folder is a place with the three files in it.
type folder struct {
	t   *testing.T
	dir string
}

func newFolder(t *testing.T, pair authority.Pair, clientCA []byte) folder {
	t.Helper()
	f := folder{t, t.TempDir()}
	f.write(pair, clientCA)
	return f
}

func (f folder) write(pair authority.Pair, clientCA []byte) {
	f.t.Helper()
	for name, text := range map[string][]byte{"tls.crt": pair.Cert, "tls.key": pair.Key, "ca.crt": clientCA} {
		if err := os.WriteFile(filepath.Join(f.dir, name), text, 0o600); err != nil {
			f.t.Fatal(err)
		}
	}
}

func (f folder) files() certs.Files {
	at := func(name string) string { return filepath.Join(f.dir, name) }
	return certs.Files{CertFile: at("tls.crt"), KeyFile: at("tls.key"), ClientCAFile: at("ca.crt")}
}

func keep(t *testing.T, f certs.Files) (*certs.Keeper, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	k, err := certs.New(f, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return k, &log
}

// handshake runs one over a pipe, and returns the name on the server's
// certificate and what either side has to complain about.
func handshake(t *testing.T, server, client *tls.Config) (string, error) {
	t.Helper()
	ours, theirs := net.Pipe()
	defer ours.Close()
	defer theirs.Close()
	s, c := tls.Server(ours, server), tls.Client(theirs, client)
	var serverErr error
	var both sync.WaitGroup
	both.Go(func() {
		if serverErr = s.HandshakeContext(context.Background()); serverErr != nil {
			ours.Close()
			return
		}
		_, serverErr = s.Write([]byte("."))
	})
	clientErr := c.HandshakeContext(context.Background())
	if clientErr == nil {
		_, clientErr = c.Read(make([]byte, 1)) // a rejection of TLS 1.3 comes after the handshake
	}
	both.Wait()
	if err := errors.Join(serverErr, clientErr); err != nil {
		return "", err
	}
	return c.ConnectionState().PeerCertificates[0].Subject.CommonName, nil
}

func TestRotationIsUsedByTheNextHandshake(t *testing.T) {
	ca := authority.New(t, "ca")
	f := newFolder(t, ca.Issue("first"), ca.PEM)
	k, log := keep(t, f.files())
	config, client := k.TLS(), ca.Client(ca.Issue("client"))
	for _, name := range []string{"first", "second", "third"} {
		f.write(ca.Issue(name), ca.PEM)
		if got, err := handshake(t, config, client); err != nil || got != name {
			t.Errorf("met %q, %v; want %q", got, err, name)
		}
	}
	if err := k.Err(); err != nil || strings.Contains(log.String(), "level=ERROR") {
		t.Errorf("%v, and the log says %s", err, log)
	}
	if k.Expires().IsZero() {
		t.Error("the certificate has no end")
	}
}

func TestClientsMustShowACertificateOfTheAuthority(t *testing.T) {
	ca, other := authority.New(t, "ca"), authority.New(t, "other")
	f := newFolder(t, ca.Issue("server"), ca.PEM)
	k, _ := keep(t, f.files())
	if _, err := handshake(t, k.TLS(), ca.Client()); err == nil {
		t.Error("a client without a certificate was let in")
	}
	unknown := ca.Client(other.Issue("unknown"))
	if _, err := handshake(t, k.TLS(), unknown); err == nil {
		t.Error("a client of an unknown authority was let in")
	}
	f.write(ca.Issue("server"), append(ca.PEM, other.PEM...))
	if _, err := handshake(t, k.TLS(), unknown); err != nil {
		t.Errorf("with both authorities: %v", err)
	}
	f.write(ca.Issue("server"), ca.PEM)
	if _, err := handshake(t, k.TLS(), unknown); err == nil {
		t.Error("an authority that was taken out still counts")
	}
}

// Authorities of a trust domain vouch for that one alone, and the others for none of these: for each
// handshake, and for the connections that are open.
func TestAuthoritiesVouchForTheirTrustDomain(t *testing.T) {
	const inOwn, inPartner, inOther = "spiffe://cluster.local/ns/istio-system/sa/a", "spiffe://partner.example/ns/shop/sa/a", "spiffe://other.example/ns/shop/sa/a"
	own, partner := authority.New(t, "own"), authority.New(t, "partner")
	f := newFolder(t, own.Issue("server"), own.PEM)
	files := f.files()
	files.Domains = map[string]string{"partner.example": filepath.Join(t.TempDir(), "partner.crt")}
	write := func(pem []byte) {
		if err := os.WriteFile(files.Domains["partner.example"], pem, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(partner.PEM)
	k, _ := keep(t, files)
	first := k.ClientCAs()
	for _, c := range []struct {
		by  *authority.Authority
		id  string
		may bool
	}{
		{own, inOwn, true},
		{own, inOther, true},
		{own, inPartner, false},
		{partner, inPartner, true},
		{partner, inOwn, false},
		{partner, inOther, false},
	} {
		shown := c.by.Issue("client", c.id)
		if _, err := handshake(t, k.TLS(), own.Client(shown)); (err == nil) != c.may {
			t.Errorf("the handshake of %s: %v", c.id, err)
		}
		block, _ := pem.Decode(shown.Cert)
		leaf, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := k.ClientCAs().Hold([]*x509.Certificate{leaf}, time.Now()); (err == nil) != c.may {
			t.Errorf("the open connection of %s: %v", c.id, err)
		}
	}
	if k.ClientCAs() != first {
		t.Error("the authorities are others, though their files stayed the same")
	}
	write(own.PEM)
	if _, err := handshake(t, k.TLS(), own.Client(partner.Issue("client", inPartner))); err == nil || k.ClientCAs() == first {
		t.Errorf("after the authorities of the trust domain were replaced: %v", err)
	}
	// A broken file keeps its last content, and no other file from being read.
	for _, spoil := range []func(){func() { write([]byte("garbage")) }, func() { _ = os.Remove(files.Domains["partner.example"]) }} {
		spoil()
		f.write(own.Issue("renewed"), own.PEM)
		name, err := handshake(t, k.TLS(), own.Client(own.Issue("client", inPartner)))
		if err != nil || name != "renewed" || k.Err() == nil {
			t.Errorf("with a broken file: %q, %v, and the keeper reports %v", name, err, k.Err())
		}
		f.write(own.Issue("server"), own.PEM)
	}
	write(partner.PEM)
	if _, err := handshake(t, k.TLS(), own.Client(partner.Issue("client", inPartner))); err != nil || k.Err() != nil {
		t.Errorf("with the file again: %v, %v", err, k.Err())
	}
	files.ClientCAFile, files.Domains = "", map[string]string{"partner.example": "none"}
	if _, err := certs.New(files, nil); err != nil {
		t.Errorf("without client certificates: %v", err)
	}
}

func TestOldVersionsOfTLSAreRejected(t *testing.T) {
	ca := authority.New(t, "ca")
	f := newFolder(t, ca.Issue("server"), ca.PEM)
	k, _ := keep(t, f.files())
	client := ca.Client(ca.Issue("client"))
	client.MinVersion, client.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	if _, err := handshake(t, k.TLS(), client); err == nil {
		t.Error("TLS 1.1 was accepted")
	}
}

func TestBrokenFilesKeepTheOldAndAreLoggedOnce(t *testing.T) {
	ca := authority.New(t, "ca")
	f := newFolder(t, ca.Issue("good"), ca.PEM)
	k, log := keep(t, f.files())
	config, client := k.TLS(), ca.Client(ca.Issue("client"))
	half := ca.Issue("new")
	tests := []struct {
		name, field string
		spoil       func()
	}{
		{"garbage", "certFile", func() { f.write(authority.Pair{Cert: []byte("?"), Key: []byte("?")}, ca.PEM) }},
		{"a key of another", "keyFile", func() { f.write(authority.Pair{Cert: half.Cert, Key: ca.Issue("x").Key}, ca.PEM) }},
		{"no authority", "clientCAFile", func() { f.write(half, []byte("none")) }},
		{"no file", "certFile", func() { _ = os.Remove(filepath.Join(f.dir, "tls.crt")) }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			log.Reset()
			test.spoil()
			for range 3 {
				if got, err := handshake(t, config, client); err != nil || got != "good" {
					t.Errorf("met %q, %v", got, err)
				}
			}
			if err := k.Err(); err == nil || !strings.HasPrefix(err.Error(), test.field+": ") {
				t.Errorf("it says %v", err)
			}
			if n := strings.Count(log.String(), "level=ERROR"); n != 1 {
				t.Errorf("it was logged %d times: %s", n, log)
			}
		})
	}
	f.write(half, ca.PEM)
	if got, err := handshake(t, config, client); err != nil || got != "new" || k.Err() != nil {
		t.Errorf("fixed, met %q, %v, %v", got, err, k.Err())
	}
}

// Kubernetes swaps a link to the folder that all links in a volume go through.
func TestSwappedLinksAreFollowed(t *testing.T) {
	ca := authority.New(t, "ca")
	older, newer := newFolder(t, ca.Issue("older"), ca.PEM), newFolder(t, ca.Issue("newer"), ca.PEM)
	volume := folder{t, t.TempDir()}
	link := func(target, name string) {
		if err := os.Symlink(target, filepath.Join(volume.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	link(older.dir, "..data")
	for _, name := range []string{"tls.crt", "tls.key", "ca.crt"} {
		link(filepath.Join("..data", name), name)
	}
	k, _ := keep(t, volume.files())
	link(newer.dir, "..next")
	if err := os.Rename(filepath.Join(volume.dir, "..next"), filepath.Join(volume.dir, "..data")); err != nil {
		t.Fatal(err)
	}
	if got, err := handshake(t, k.TLS(), ca.Client(ca.Issue("client"))); err != nil || got != "newer" {
		t.Errorf("met %q, %v", got, err)
	}
}

func TestStartNeedsGoodFiles(t *testing.T) {
	_, err := certs.New(certs.Files{CertFile: filepath.Join(t.TempDir(), "none"), KeyFile: "none"}, nil)
	var at *certs.FileError
	if !errors.As(err, &at) || at.Field != "certFile" {
		t.Errorf("got %v", err)
	}
}

// Another pointer says that the set of authorities is another one, and
// only of another set.
func TestAuthoritiesStayTheSameUntilTheyChange(t *testing.T) {
	ca, other := authority.New(t, "ca"), authority.New(t, "other")
	f := newFolder(t, ca.Issue("server"), ca.PEM)
	k, _ := keep(t, f.files())
	first := k.ClientCAs()
	f.write(ca.Issue("renewed"), ca.PEM)
	if k.ClientCAs() != first {
		t.Error("another certificate of the server made other authorities")
	}
	f.write(ca.Issue("server"), []byte("none"))
	if k.ClientCAs() != first {
		t.Error("a file that cannot be used made other authorities")
	}
	f.write(ca.Issue("server"), other.PEM)
	if k.ClientCAs() == first {
		t.Error("another authority was not noticed")
	}
}
