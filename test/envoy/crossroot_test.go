package envoy_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/authority"
)

// TestChainEndsInEitherRoot has an Envoy call a backend with a certificate of a new root. The Envoy
// trusts either the new root alone, or the one before alone, as if it had been disconnected
// during the rotation. It rejects certificates that an issuing key has signed beyond its purpose.
func TestChainEndsInEitherRoot(t *testing.T) {
	t.Parallel()
	m := newMesh(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	dir, now := filepath.Join(m.Dir, "ca"), time.Now()
	domain, err := authority.TrustDomain("cluster.local")
	must(err)
	_, err = authority.Create(dir, domain, now)
	must(err)
	text, err := os.ReadFile(filepath.Join(dir, "root.pem"))
	must(err)
	before := filepath.Join(m.Dir, "before.pem")
	must(os.WriteFile(before, text, 0o600))
	begun, err := authority.BeginRotation(dir, now)
	must(err)
	_, err = authority.MoveSigning(dir, authority.Fingerprint(begun.Other), now)
	must(err)
	own, err := authority.Open(dir)
	must(err)
	leaf, err := own.Issuer(time.Hour).Issue("spiffe://cluster.local/ns/"+shop+"/sa/web", now)
	must(err)
	after := filepath.Join(m.Dir, "after.pem")
	must(os.WriteFile(after, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: begun.Other.Raw}), 0o600))

	if n := bytes.Count(leaf.Chain, []byte("BEGIN")); n != 3 {
		t.Fatalf("the chain has %d certificates", n)
	}
	at := startChained(t, leaf.Chain, leaf.Key)
	hosts := map[string]string{"before.localhost": before, "after.localhost": after}
	ends := map[string]endpoint{"before.localhost": at, "after.localhost": at}
	forged := forge(t, dir)
	for host := range forged {
		hosts[host], ends[host] = after, forged[host]
	}
	for host, file := range hosts {
		m.Envoy += fmt.Sprintf("{host: %s, tls: {mode: SIMPLE, caFile: %q}}, ", host, file)
		m.Folder.write(t, host, service{Spec: serviceSpec{
			Hosts: []string{host}, Resolution: "STATIC", Ports: []port{{Number: 80, Name: "http", Protocol: "HTTP"}}, Endpoints: []endpoint{ends[host]},
		}})
	}
	m.Envoy = "hosts: [" + m.Envoy + "]"
	m.Serve("")
	p := m.Connect(true)
	for host := range hosts {
		valid := forged[host].Address == "" || host == "workload.localhost"
		await(t, "the backend to be judged for "+host, func() error {
			_, err := callCluster(t.Context(), p, clusterName(host, 80))
			if valid {
				return err
			}
			if err == nil {
				t.Fatalf("%s is accepted", host)
			}
			rejected, err := p.Stats(t.Context(), `^cluster\..*`+host+`.*ssl\.fail_verify_error$`)
			for _, n := range rejected {
				if n > 0 {
					return nil
				}
			}
			return fmt.Errorf("no certificate was rejected: %v, %w", rejected, err)
		})
	}
}

// forge starts backends with certificates that a thief of the issuing keys has signed, by their hosts. Only the
// one of workload.localhost keeps to the purpose of its key. Envoy compares a subdomain exactly, unlike Go.
func forge(t *testing.T, dir string) map[string]endpoint {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "issuer.pem"))
	must(err)
	const end = "-----END PRIVATE KEY-----\n"
	ofWorkloads, ofServers, _ := bytes.Cut(text, []byte(end))
	workloads, err := tls.X509KeyPair(ofWorkloads, append(ofWorkloads, end...))
	must(err)
	servers, err := tls.X509KeyPair(ofServers, ofServers)
	must(err)
	identity := func(id string) x509.Certificate {
		uri, err := url.Parse(id)
		must(err)
		return x509.Certificate{URIs: []*url.URL{uri}}
	}
	named := func(change func(*x509.Certificate)) x509.Certificate {
		c := identity("spiffe://cluster.local/ns/" + shop + "/sa/web")
		change(&c)
		return c
	}
	ends := map[string]endpoint{}
	for host, template := range map[string]x509.Certificate{
		"workload.localhost":  named(func(*x509.Certificate) {}),
		"foreign.localhost":   identity("spiffe://other.example/ns/" + shop + "/sa/web"),
		"subdomain.localhost": identity("spiffe://a.cluster.local/ns/" + shop + "/sa/web"),
		"dns.localhost":       named(func(c *x509.Certificate) { c.DNSNames = []string{"dns.localhost"} }),
		"ip.localhost":        named(func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)} }),
		"mail.localhost":      named(func(c *x509.Certificate) { c.EmailAddresses = []string{"web@example.com"} }),
		"listener.localhost":  named(func(*x509.Certificate) {}),
	} {
		thief := workloads
		if host == "listener.localhost" {
			thief = servers
		}
		issuing, err := x509.ParseCertificate(thief.Certificate[0])
		must(err)
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		must(err)
		template.NotBefore, template.NotAfter, template.KeyUsage = issuing.NotBefore, issuing.NotAfter, x509.KeyUsageDigitalSignature
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		der, err := x509.CreateCertificate(rand.Reader, &template, issuing, key.Public(), thief.PrivateKey)
		must(err)
		keyDER, err := x509.MarshalPKCS8PrivateKey(key)
		must(err)
		encode := func(kind string, der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}) }
		ends[host] = startChained(t, append(encode("CERTIFICATE", der), encode("CERTIFICATE", issuing.Raw)...), encode("PRIVATE KEY", keyDER))
	}
	return ends
}

// startChained starts a backend with a certificate.
func startChained(t *testing.T, chain, key []byte) endpoint {
	t.Helper()
	pair, err := tls.X509KeyPair(chain, key)
	if err != nil {
		t.Fatal(err)
	}
	var listen net.ListenConfig
	listener, err := listen.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{ErrorLog: quiet(), Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set(answeredBy, "web") })}
	served := make(chan error, 1)
	go func() {
		served <- server.Serve(tls.NewListener(listener, &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}))
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-served
	})
	return endpoint{Address: "127.0.0.1", Account: "web", Ports: map[string]uint32{"http": uint32(listener.Addr().(*net.TCPAddr).Port)}}
}
