package xds_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"
	mcpapi "istio.io/api/mcp/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/sourcetest"
	"github.com/isthmus-mesh/isthmus/source/xds"
)

// What every listed source has to pass, in either variant of the protocol.
func TestListed(t *testing.T) {
	t.Parallel()
	for name, m := range map[string]manner{
		"delta":              {},
		"delta that repeats": {repeats: true},
		"state of the world": {noDelta: true},
		"silent delta":       {silentDelta: true},
		"older names":        {noDelta: true, versions: []string{"v1alpha3"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sourcetest.RunListed(t, sourcetest.Listed{
				Open: func(testing.TB) sourcetest.Registry { return &server{peer: newPeer(m)} }, Faults: faults,
				Lag: 20 * time.Second, Reports: !m.noDelta && !m.silentDelta, Histories: 15,
			})
		})
	}
}

var faults = []string{"streams end with an error", "it hangs", "it is not there", "its streams end"}

// server is a peer as the suite steers it.
type server struct{ *peer }

// Open implements [sourcetest.Registry].
func (s *server) Open(env source.Env) source.Source {
	src := xds.New(xds.Config{Address: "127.0.0.1:15010"}, env)
	src.DialWith(s.dial)
	src.Ping(10 * time.Second)
	return src
}

// Set implements [sourcetest.Registry].
func (s *server) Set(services sourcetest.Services) {
	s.change(func() {
		s.resources["ServiceEntry"] = map[string]*anypb.Any{}
		for host, service := range services.Sorted() {
			name := "shop/" + strings.TrimSuffix(host, ".example")
			s.set("ServiceEntry", name, entryOf(name, host, service))
		}
	})
}

// entryOf is a ServiceEntry. A bad one has a host that cannot be.
func entryOf(name, host string, service sourcetest.Service) *anypb.Any {
	spec := &networking.ServiceEntry{
		Hosts: []string{host}, Resolution: networking.ServiceEntry_STATIC,
		Ports: []*networking.ServicePort{{Number: 80, Name: "http", Protocol: "HTTP"}},
	}
	for _, e := range service.Endpoints {
		spec.Endpoints = append(spec.Endpoints, &networking.WorkloadEntry{
			Address: e.Addr().String(), Ports: map[string]uint32{"http": uint32(e.Port())},
		})
	}
	if service.Bad {
		spec.Hosts[0] = "under_score"
	}
	return encode(&mcpapi.Resource{Metadata: &mcpapi.Metadata{Name: name}, Body: encode(spec)})
}

// Fail implements [sourcetest.Registry].
func (s *server) Fail(way int) {
	switch way {
	case 0:
		s.fail(status.Error(codes.Unavailable, "not now"))
	case 1:
		s.freeze()
	case 2:
		s.mu.Lock()
		s.away = true
		s.mu.Unlock()
		s.cut()
	default:
		s.fail(errEnd)
	}
}

var errEnd = errors.New("the end")

// Restore implements [sourcetest.Registry].
func (s *server) Restore() {
	s.fail(nil)
	if s.frozen() {
		s.cut()
	}
	s.thaw()
}

// Disconnect implements [sourcetest.Disconnecter].
func (s *server) Disconnect() { s.cut() }

// Close implements [sourcetest.Registry].
func (s *server) Close() { s.close() }
