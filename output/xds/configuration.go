package xds

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/isthmus-mesh/isthmus/internal/streams"
	"github.com/isthmus-mesh/isthmus/push"
)

// Types of configuration are the types of MCP-over-xDS, group/version/Kind. Control planes
// read them; all other types are for proxies. Their versions are names of the same type, so
// a client is answered under the version it asks for.

// mostURL bounds the name of a type that is admitted on a client's request.
const mostURL = 256

// isConfiguration reports whether a type is one of configuration.
func isConfiguration(typeURL string) bool {
	parts := strings.Split(typeURL, "/")
	return len(parts) == 3 && !slices.Contains(parts, "") && parts[0] != "type.googleapis.com"
}

// groupKind is a type of configuration without its version.
func groupKind(typeURL string) string {
	parts := strings.Split(typeURL, "/")
	return parts[0] + "/" + parts[2]
}

// configuration finds the type of configuration of a request. An unserved type is answered
// empty, as a control plane waits for an answer to each of its types.
func (s *stream) configuration(typeURL string) (t push.Type, known bool, err error) {
	if t, known := s.versions[typeURL]; known {
		return t, true, nil
	}
	if s.denied != nil {
		if len(s.types) > 0 { // a proxy's stream, perhaps, whose other types must continue
			if s.notes(typeURL) {
				s.log.Warn("a type was not served", "type", streams.Cut(typeURL, streams.ShownBytes), "err", grpcstatus.Convert(s.denied).Message())
			}
			return 0, false, nil
		}
		return 0, false, s.server.Reject(streams.NotWho, s.denied)
	}
	engine := s.server.engine
	t, known = engine.Type(typeURL)
	if _, taken := s.types[t]; !known || taken {
		if t, known, err = s.otherVersion(typeURL); err != nil {
			return 0, false, s.server.Reject(streams.TooMuch, err)
		}
	}
	if !known || !slices.Contains(s.server.config.Configuration, engine.TypeName(t)) {
		t, known = s.nobodys(typeURL)
	}
	if !known {
		return 0, false, nil
	}
	if s.server.config.Demand != nil {
		s.server.config.Demand()
	}
	s.versions[typeURL] = t
	s.mu.Lock()
	defer s.mu.Unlock()
	s.urls[t] = typeURL
	return t, true, nil
}

// otherVersion finds the type of the same group and kind in another version, which the
// stream does not ask for yet.
func (s *stream) otherVersion(typeURL string) (t push.Type, known bool, err error) {
	for _, name := range s.server.config.Configuration {
		if groupKind(name) != groupKind(typeURL) {
			continue
		}
		t, _ = s.server.engine.Type(name)
		if _, asked := s.types[t]; !asked {
			return t, true, nil
		}
		err = grpcstatus.Errorf(codes.InvalidArgument, "the stream asks for one kind under too many versions, %s is the last; all versions are one, so ask for a single one", typeURL)
	}
	return t, false, err
}

// mostNobodys bounds the unserved types that are admitted under their own names, because
// metrics have these names as labels. They are removed some time after the last stream that
// asks for them.
const mostNobodys = 64

// nobodys admits an unserved type. Past the bound it uses a type with another name, so that
// one client cannot exhaust the types for others.
func (s *stream) nobodys(typeURL string) (t push.Type, known bool) {
	if len(typeURL) > mostURL {
		return 0, false
	}
	engine := s.server.engine
	if t, known := engine.Admit(push.TypeSpec{Name: typeURL, Whole: true}, mostNobodys); known {
		s.uses(t)
		return t, true
	}
	for i := range push.MaxTypes {
		t, known := engine.Admit(push.TypeSpec{Name: "unserved/" + strconv.Itoa(i), Whole: true}, mostNobodys+push.MaxTypes)
		if _, asked := s.types[t]; known && asked {
			engine.Release(t)
			continue
		}
		if known {
			s.uses(t)
		}
		return t, known
	}
	return 0, false
}

// uses records an admitted type, to be released when the stream ends.
func (s *stream) uses(t push.Type) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		s.server.engine.Release(t)
		return
	}
	s.admitted = append(s.admitted, t)
}

// end releases the admitted types. The subscriber is closed by then. A request may still be
// in progress, since its goroutine outlives the stream.
func (s *stream) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	for _, t := range s.admitted {
		s.server.engine.Release(t)
	}
}

// url returns the client's name of a type.
func (s *stream) url(t push.Type) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if url, own := s.urls[t]; own {
		return url
	}
	return s.server.engine.TypeName(t)
}

// resumes gives an unknown claim to a control plane that asks for a type. It may hold
// resources, does not declare them when it reconnects, and deletes resources that a first
// state lacks.
func (s *stream) resumes(t push.Type, r push.Request) push.Request {
	if _, asked := s.types[t]; !asked && r.Claim == nil && isConfiguration(s.url(t)) {
		r.Claim = push.Unknown()
	}
	return r
}

// Readers are the clients that may read the types of configuration.
type Readers string

// The allowed readers. A proven client always needs an identity of the root namespace.
const (
	// Root allows these identities; on a listener of this machine alone also clients without
	// proof. It is the default, also spelled empty.
	Root Readers = "root"
	// Any adds clients without proof on every listener.
	Any Readers = "any"
	// Off allows no client.
	Off Readers = "off"
)

func (r Readers) validate() error {
	if r == "" || r == Root || r == Any || r == Off {
		return nil
	}
	return fmt.Errorf("configuration: %q is none; write root, any or off", string(r))
}

// denied returns why a client may not read configuration; nil if it may. A control plane's
// configuration is not for each of its proxies.
func (s *Server) denied(who streams.Identity) error {
	deny := func(format string, args ...any) error {
		return grpcstatus.Errorf(codes.PermissionDenied, format, args...)
	}
	switch readers := s.config.Readers; {
	case readers == Off:
		return deny("configuration is served to no client: outputs.xds.configuration is off")
	case who.Name == "" && s.config.Exposed && readers != Any:
		return deny("configuration needs a client certificate of the namespace %q on a listener beyond loopback; set outputs.xds.tls.clientCAFile, or outputs.xds.configuration: any if the network is trusted",
			s.config.RootNamespace)
	case who.Name != "" && who.Namespace != s.config.RootNamespace:
		return deny("configuration is for identities of the namespace %q, and the certificate is that of %s; give the client one of that namespace, or have it ask for the types of a proxy",
			s.config.RootNamespace, who.Name)
	}
	return nil
}
