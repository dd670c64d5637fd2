package envoy_test

import (
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/authority"
)

// TestChainEndsInEitherRoot has an Envoy call a backend with a certificate of a new root. The Envoy
// trusts either the new root alone, or the one before alone, as if it had been disconnected
// during the rotation.
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

	at := startChained(t, leaf.Chain, leaf.Key)
	hosts := map[string]string{"before.localhost": before, "after.localhost": after}
	for host, file := range hosts {
		m.Envoy += fmt.Sprintf("{host: %s, tls: {mode: SIMPLE, caFile: %q}}, ", host, file)
		m.Folder.write(t, host, service{Spec: serviceSpec{
			Hosts: []string{host}, Resolution: "STATIC", Ports: []port{{Number: 80, Name: "http", Protocol: "HTTP"}}, Endpoints: []endpoint{at},
		}})
	}
	m.Envoy = "hosts: [" + m.Envoy + "]"
	m.Serve("")
	p := m.Connect(true)
	for host := range hosts {
		await(t, "the backend to be verified for "+host, func() error {
			_, err := callCluster(t.Context(), p, clusterName(host, 80))
			return err
		})
	}
}

// startChained starts a backend with a certificate.
func startChained(t *testing.T, chain, key []byte) endpoint {
	t.Helper()
	pair, err := tls.X509KeyPair(chain, key)
	if err != nil {
		t.Fatal(err)
	}
	if len(pair.Certificate) != 2 {
		t.Fatalf("the chain has %d certificates", len(pair.Certificate))
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
