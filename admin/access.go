package admin

import (
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/isthmus-mesh/isthmus/internal/certs"
	"github.com/isthmus-mesh/isthmus/internal/loopback"
)

// Access says who may ask, as docs/reference/admin.md describes it.
type Access struct {
	// AllowedHosts are names, with a port or without, by which requests may call
	// this server, beside those of loopback and the address they were sent to.
	AllowedHosts []string
	// TLS, if set, is what every connection begins with, and Certificates has what
	// it shows, to be measured.
	TLS          *tls.Config
	Certificates *certs.Keeper
	// Token, if set, reads what requests have to bear as it is now. An error
	// turns everybody away.
	Token func() (string, error)
	// Insecure lets requests from beyond loopback in without TLS.
	Insecure bool
}

// open are the paths that need no token, and that a listener beyond loopback
// answers to anyone: the kubelet and Prometheus ask by the address of a pod. A verbose
// /readyz is not among them there, as it names sources with the errors of registries.
var open = []string{"/livez", "/readyz", "/metrics"}

// guard turns requests away before anything else looks at them. Whatever they
// say of who forwarded them counts for nothing: the connection counts.
type guard struct {
	Access
	exposed func() bool // the listener can be reached from beyond loopback
	next    http.Handler
	// log tells why nobody can be let in, once for each reason.
	log func(err error)

	mu   sync.Mutex
	last string
}

// ServeHTTP implements [http.Handler].
func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for _, check := range g.checks(r) {
		if err := check(r); err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
	}
	g.next.ServeHTTP(w, r)
}

// checks are what a request has to pass.
func (g *guard) checks(r *http.Request) []func(*http.Request) error {
	switch isOpen, exposed := slices.Contains(open, r.URL.Path), g.exposed(); {
	case isOpen && exposed && !isVerbose(r):
		return nil
	case isOpen && !exposed:
		return []func(*http.Request) error{g.checkHost}
	default:
		return []func(*http.Request) error{g.checkConnection, g.checkHost, g.checkToken}
	}
}

// isVerbose reports whether a request wants details of each part.
func isVerbose(r *http.Request) bool { return r.URL.Query().Has("verbose") }

// checkConnection keeps to those on this machine what is not secured.
func (g *guard) checkConnection(r *http.Request) error {
	switch {
	case g.Insecure, isLocal(r):
		return nil
	case g.TLS == nil && g.Token == nil:
		return onlyHere("admin.tls and admin.tokenFile")
	case g.TLS == nil:
		return onlyHere("admin.tls beside admin.tokenFile")
	case g.Token == nil:
		return onlyHere("admin.tokenFile beside admin.tls")
	default:
		return nil
	}
}

func onlyHere(missing string) error {
	return fmt.Errorf("beyond loopback only %s are answered: for the rest set %s, or admin.insecure: true if the network is trusted; "+
		"or ask from where Isthmus runs, such as by kubectl exec or kubectl port-forward", strings.Join(open, ", "), missing)
}

// isLocal reports whether both ends of a connection are on loopback, whatever
// else the listener can be reached by.
func isLocal(r *http.Request) bool {
	own, known := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !known {
		return false
	}
	if _, tcp := own.(*net.TCPAddr); !tcp {
		return true // a socket of this machine
	}
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && peer.Addr().Unmap().IsLoopback() && loopback.IsAddr(own)
}

// checkHost turns away who asks for a name that anybody can have: a page in an
// operator's browser can have the name of its own site lead here, and would
// then be of the same origin.
func (g *guard) checkHost(r *http.Request) error {
	host, port := splitHost(r.Host)
	if loopback.IsHost(host) || isOwnAddress(r, host) {
		return nil
	}
	for _, allowed := range g.AllowedHosts {
		name, only := splitHost(allowed)
		if name == host && (only == "" || only == port) {
			return nil
		}
	}
	return fmt.Errorf("the host %q is not one this admin API is asked by: use localhost, 127.0.0.1 or [::1], or add the name to admin.allowedHosts", r.Host)
}

// splitHost takes apart a host with or without a port, and makes names
// comparable.
func splitHost(hostport string) (host, port string) {
	host, port, err := net.SplitHostPort(hostport)
	if err != nil {
		host, port = strings.TrimSuffix(strings.TrimPrefix(hostport, "["), "]"), ""
	}
	return strings.ToLower(strings.TrimSuffix(host, ".")), port
}

// isOwnAddress reports whether a host is the very address that the connection
// was made to. No name leads there, so nobody can have made one do so.
func isOwnAddress(r *http.Request, host string) bool {
	own, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	addr, err := netip.ParseAddr(host)
	return ok && err == nil && own.AddrPort().Addr().Unmap() == addr.Unmap()
}

// checkToken compares in a time that tells nothing of the token.
func (g *guard) checkToken(r *http.Request) error {
	if g.Token == nil {
		return nil
	}
	want, err := g.Token()
	g.report(err)
	if err != nil {
		return errors.New("admin.tokenFile cannot be used as it is now, so nobody is let in: fix the file; the log of Isthmus says what is wrong with it")
	}
	scheme, shown, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	a, b := sha256.Sum256([]byte(want)), sha256.Sum256([]byte(strings.TrimSpace(shown)))
	if subtle.ConstantTimeCompare(a[:], b[:]) != 1 || !strings.EqualFold(scheme, "Bearer") {
		return errors.New("the admin API needs the token of admin.tokenFile, as the header Authorization: Bearer TOKEN; " +
			"commands take the file with --token-file or ISTHMUS_ADMIN_TOKEN_FILE")
	}
	return nil
}

// report logs why the token cannot be read, when that is new.
func (g *guard) report(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	g.mu.Lock()
	fresh := text != g.last
	g.last = text
	g.mu.Unlock()
	if fresh && err != nil {
		g.log(err)
	}
}

// onlyJSON lets those requests pass that say they bring JSON, which no form of
// a page can.
func onlyJSON(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
		if err != nil || kind != "application/json" {
			http.Error(w, fmt.Sprintf("the content type %q is not application/json: send the header Content-Type: application/json, or use 'isthmus sources release NAME'",
				r.Header.Get("Content-Type")), http.StatusUnsupportedMediaType)
			return
		}
		next(w, r)
	}
}
