package envoy_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/testkit/authority"
)

// shownBy is the header in which a secured backend says who it is.
const shownBy = "shown-by"

// startSecured starts a backend that shows a certificate, and demands one of the same
// authority.
func startSecured(t *testing.T, a *authority.Authority, identity string) endpoint {
	t.Helper()
	shown := a.Issue("backend", identity)
	pair, err := tls.X509KeyPair(shown.Cert, shown.Key)
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: x509.NewCertPool(),
	}
	config.ClientCAs.AppendCertsFromPEM(a.PEM)
	var listen net.ListenConfig
	listener, err := listen.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{ErrorLog: quiet(), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(answeredBy, r.TLS.PeerCertificates[0].URIs[0].String())
		w.Header().Set(shownBy, identity)
	})}
	server.SetKeepAlivesEnabled(false) // each call shakes hands anew
	served := make(chan error, 1)
	go func() { served <- server.Serve(tls.NewListener(listener, config)) }()
	t.Cleanup(func() {
		_ = server.Close()
		<-served
	})
	return endpoint{Address: "127.0.0.1", Ports: map[string]uint32{"http": uint32(listener.Addr().(*net.TCPAddr).Port)}}
}

// TestConnectionsAreSecuredByFiles has an Envoy call a backend by mutual TLS. It takes
// nobody for the backend but who has an account of the service's endpoints, and follows
// its files when they are replaced as those of a mounted Secret are. The backend wants TLS 1.3,
// with which Envoys do not call unless they are allowed to.
func TestConnectionsAreSecuredByFiles(t *testing.T) {
	inEachMode(t, func(t *testing.T, delta bool) {
		m := newMesh(t)
		ca, stranger := authority.New(t, "ca"), authority.New(t, "stranger")
		own := newIdentity(t, filepath.Join(m.Dir, "files"), proxyIdentity)
		own.issue(ca)
		own.replace(ca)
		for _, name := range []string{"tls.crt", "tls.key", "ca.crt"} {
			own.must(os.Symlink(filepath.Join("now", name), filepath.Join(own.path, name)))
		}
		m.Envoy = fmt.Sprintf("hosts: [{host: tls.localhost, tls: {mode: MUTUAL, certificateFile: %[1]q, keyFile: %[2]q, caFile: %[3]q}}]",
			filepath.Join(own.path, "tls.crt"), filepath.Join(own.path, "tls.key"), filepath.Join(own.path, "ca.crt"))
		at := startSecured(t, ca, "spiffe://cluster.local/ns/"+shop+"/sa/web")
		publish := func(account string) {
			at.Account = account
			m.Folder.write(t, "tls", service{Spec: serviceSpec{
				Hosts: []string{"tls.localhost"}, Resolution: "STATIC", Ports: []port{{Number: 80, Name: "http", Protocol: "HTTP"}},
				Endpoints: []endpoint{at},
			}})
		}
		publish("web")
		m.Serve("")
		p := m.Connect(delta)
		call := func() error {
			by, err := callCluster(t.Context(), p, clusterName("tls.localhost", 80))
			if err == nil && by != proxyIdentity {
				err = fmt.Errorf("the backend was shown %s", by)
			}
			return err
		}
		fails := func() error {
			if call() == nil {
				return fmt.Errorf("it is answered")
			}
			return nil
		}
		await(t, "the backend to answer", call)
		publish("other")
		await(t, "a backend with the wrong account to be turned away", fails)
		publish("web")
		await(t, "the backend to answer again", call)
		own.replace(stranger)
		await(t, "a backend of another authority to be turned away", fails)
		own.replace(ca)
		await(t, "the backend to answer with the files of before", call)
		m.MustBeSettled()
		if err := p.Deprecated(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// quiet drops what a server says of handshakes that fail on purpose.
func quiet() *log.Logger { return log.New(io.Discard, "", 0) }
