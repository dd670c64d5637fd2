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

// Access is the access rules of the admin API, as docs/reference/admin.md describes them.
type Access struct {
	// AllowedHosts are names, with a port or without, by which requests may call this server,
	// beside the names of loopback and the request's destination address.
	AllowedHosts []string
	// TLS, if set, secures every connection, and Certificates is the keeper of the listener's
	// files, for metrics.
	TLS          *tls.Config
	Certificates *certs.Keeper
	// Token, if set, reads the current token that requests must bear. An error rejects all
	// requests.
	Token func() (string, error)
	// Insecure admits requests from beyond loopback without TLS.
	Insecure bool
}

// open are the paths that need no token. A listener beyond loopback answers them for any
// client: the kubelet and Prometheus ask by the address of a pod. A verbose /readyz is not
// among them there, as it names sources with the errors of registries.
var open = []string{"/livez", "/readyz", "/metrics"}

// guard rejects requests before any other handler sees them. Forwarding headers count for
// nothing: the connection counts.
type guard struct {
	Access
	exposed func() bool // the listener can be reached from beyond loopback
	next    http.Handler
	// log logs why all requests are rejected, once for each reason.
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

// checks returns the checks that a request has to pass.
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

// isVerbose reports whether a request asks for details of each part.
func isVerbose(r *http.Request) bool { return r.URL.Query().Has("verbose") }

// checkConnection rejects insecure requests from other machines.
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

// operator describes the sender of an admitted request, for events: a token has no name, and
// forwarding headers count for nothing.
func (a *Access) operator(r *http.Request) string {
	from := "at a socket of this machine"
	if peer, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		from = "at " + peer.Addr().Unmap().String()
	}
	if a.Token != nil {
		return "an operator with the admin token, " + from + ","
	}
	return "an operator " + from
}

func onlyHere(missing string) error {
	return fmt.Errorf("beyond loopback only %s are answered: for the rest set %s, or admin.insecure: true if the network is trusted; "+
		"or ask from where Isthmus runs, such as by kubectl exec or kubectl port-forward", strings.Join(open, ", "), missing)
}

// isLocal reports whether both ends of a connection are on loopback, even if the listener
// has other addresses.
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

// checkHost rejects a request for a name that anybody can own. A page in an operator's
// browser can let the name of its own site resolve to this address, and would then be of
// the same origin.
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
	return fmt.Errorf("host %q is not allowed: use localhost, 127.0.0.1 or [::1], or add the name to admin.allowedHosts", r.Host)
}

// splitHost splits a host with or without a port, and normalizes the name.
func splitHost(hostport string) (host, port string) {
	host, port, err := net.SplitHostPort(hostport)
	if err != nil {
		host, port = strings.TrimSuffix(strings.TrimPrefix(hostport, "["), "]"), ""
	}
	return strings.ToLower(strings.TrimSuffix(host, ".")), port
}

// isOwnAddress reports whether a host is the exact destination address of the connection.
// No name is involved, so no attacker can have redirected one.
func isOwnAddress(r *http.Request, host string) bool {
	own, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	addr, err := netip.ParseAddr(host)
	return ok && err == nil && own.AddrPort().Addr().Unmap() == addr.Unmap()
}

// checkToken compares tokens in constant time.
func (g *guard) checkToken(r *http.Request) error {
	if g.Token == nil {
		return nil
	}
	want, err := g.Token()
	g.report(err)
	if err != nil {
		return errors.New("admin.tokenFile is unusable, so all requests are denied: fix the file; the log of Isthmus has the reason")
	}
	scheme, shown, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	a, b := sha256.Sum256([]byte(want)), sha256.Sum256([]byte(strings.TrimSpace(shown)))
	if subtle.ConstantTimeCompare(a[:], b[:]) != 1 || !strings.EqualFold(scheme, "Bearer") {
		return errors.New("the admin API needs the token of admin.tokenFile, as the header Authorization: Bearer TOKEN; " +
			"commands take the file with --token-file or ISTHMUS_ADMIN_TOKEN_FILE")
	}
	return nil
}

// report logs why the token cannot be read, if the reason is new.
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

// onlyJSON admits requests that declare a JSON body. No HTML form can send one.
func onlyJSON(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
		if err != nil || kind != "application/json" {
			http.Error(w, fmt.Sprintf("the content type %q is not application/json: send the header Content-Type: application/json, or use 'isthmus sources'",
				r.Header.Get("Content-Type")), http.StatusUnsupportedMediaType)
			return
		}
		next(w, r)
	}
}
