package mcp

import (
	"context"
	"crypto/x509"
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/isthmus-mesh/isthmus/internal/certs"
	"github.com/isthmus-mesh/isthmus/internal/loopback"
	"github.com/isthmus-mesh/isthmus/internal/spiffe"
)

// identity is who is at the other end of a connection, as far as that does not depend
// on what it says about itself.
type identity struct {
	name    string // its SPIFFE identity; empty if nothing is proven
	from    string // its address and port
	address string // empty on this machine
	chain   []*x509.Certificate
}

// key is what streams are counted by.
func (who identity) key() string {
	if who.name != "" {
		return who.name
	}
	return who.address
}

// identify reads what a connection proves. Where sinks have to prove who they are,
// only those of the root namespace may read: what they get is the configuration of
// the whole mesh, which no workload may see.
func (s *Server) identify(ctx context.Context) (identity, error) {
	var who identity
	other, ok := peer.FromContext(ctx)
	if !ok {
		return who, nil
	}
	who.address, who.from = loopback.Remote(other.Addr), other.Addr.String()
	info, ok := other.AuthInfo.(credentials.TLSInfo)
	if !ok || len(info.State.VerifiedChains) == 0 {
		return who, nil
	}
	who.chain = info.State.PeerCertificates
	id, namespace, err := spiffe.Read(who.chain[0])
	switch {
	case err != nil:
	case len(s.config.TrustDomains) > 0 && !slices.Contains(s.config.TrustDomains, id.TrustDomain().Name()):
		err = fmt.Errorf("the trust domain %q is not among those served here", id.TrustDomain().Name())
	case namespace != s.config.RootNamespace:
		err = fmt.Errorf("%s is not of the namespace %q, and only control planes there may read the configuration of the mesh", id, s.config.RootNamespace)
	}
	if err != nil {
		return who, s.rejected.record(notWho, grpcstatus.Errorf(codes.PermissionDenied, "client certificate: %v", err))
	}
	who.name = id.String()
	return who, nil
}

// watched are the streams whose sinks have shown a certificate.
type watched struct {
	mu      sync.Mutex
	streams map[*watch]struct{}
}

// watch is one of them.
type watch struct {
	chain []*x509.Certificate
	end   func(error)
	under *x509.CertPool // the authorities and the time for which the chain was verified
	until time.Time
}

func newWatched() *watched { return &watched{streams: map[*watch]struct{}{}} }

// enter has a stream ended, with the reason, when its certificate holds no longer.
func (all *watched) enter(who identity, end func(error)) (leave func()) {
	if who.chain == nil {
		return func() {}
	}
	w := &watch{chain: who.chain, end: end}
	all.mu.Lock()
	defer all.mu.Unlock()
	all.streams[w] = struct{}{}
	return func() {
		all.mu.Lock()
		defer all.mu.Unlock()
		delete(all.streams, w)
	}
}

func (all *watched) list() (list []*watch) {
	all.mu.Lock()
	defer all.mu.Unlock()
	for w := range all.streams {
		list = append(list, w)
	}
	return list
}

// guard ends streams whose certificates hold no longer. It returns when stop is closed.
func (s *Server) guard(stop <-chan struct{}) {
	tick := time.NewTicker(s.limits.Recheck)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case now := <-tick.C:
			authorities := s.config.ClientCAs()
			for _, w := range s.watched.list() {
				s.check(w, authorities, now)
			}
		}
	}
}

func (s *Server) check(w *watch, authorities *x509.CertPool, now time.Time) {
	if w.under == authorities && now.Before(w.until) {
		return
	}
	until, err := certs.Holds(w.chain, authorities, now)
	if err != nil {
		w.end(s.rejected.record(untrusted, grpcstatus.Errorf(codes.Unauthenticated,
			"the client certificate does not hold any more: %v; connect again with a new one", err)))
		return
	}
	w.under, w.until = authorities, until
}
