package xds

import (
	"log/slog"
	"slices"
	"strconv"
	"sync"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/isthmus-mesh/isthmus/output/streams"
	"github.com/isthmus-mesh/isthmus/output/xds/wire"
	"github.com/isthmus-mesh/isthmus/push"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// types finds the engine's types for the requests of a stream. All versions of a type of
// configuration are one type, so a client is answered under the version that it requests. The
// receiving goroutine owns the fields without a lock.
type types struct {
	server *streams.Server
	engine *push.Engine
	log    *slog.Logger
	only   world.Type // or every
	offer  *Offer
	denied error // why the client may not read configuration; nil if it may

	versions map[string]world.Type // types of configuration by the client's name
	logged   map[string]struct{}   // requested types that are not served

	mu       sync.Mutex
	urls     map[world.Type]string // the client's name of a type of configuration
	admitted []world.Type          // admitted types, which are not served
	ended    bool                  // the admitted types are released
}

func newTypes(server *streams.Server, engine *push.Engine, log *slog.Logger, only world.Type, offer *Offer, denied error) *types {
	return &types{
		server: server, engine: engine, log: log, only: only, offer: offer, denied: denied,
		versions: map[string]world.Type{}, logged: map[string]struct{}{}, urls: map[world.Type]string{},
	}
}

// find returns the type of a request; known is false if it is not served. asked are the
// requested types of the stream.
func (ts *types) find(typeURL string, asked map[world.Type]*asked) (t world.Type, known bool, err error) {
	switch {
	case ts.only != every && typeURL != "" && typeURL != ts.engine.TypeName(ts.only):
		return 0, false, grpcstatus.Errorf(codes.InvalidArgument, "this method serves %s only; ask for %q on another, or on an aggregated stream",
			ts.engine.TypeName(ts.only), streams.Cut(typeURL, streams.ShownBytes))
	case ts.only != every:
		return ts.only, true, nil
	case typeURL == "":
		return 0, false, grpcstatus.Error(codes.InvalidArgument, "a request on an aggregated stream must carry type_url")
	case wire.IsConfiguration(typeURL):
		t, known, err = ts.configuration(typeURL, asked)
	default:
		t, known = ts.engine.Type(typeURL)
	}
	if err == nil && !known && ts.logs(typeURL) {
		ts.log.Debug("client asks for a type that is not served", "type", streams.Cut(typeURL, streams.ShownBytes))
	}
	return t, known, err
}

// known returns the type that a request for a name is for, if an earlier request or the engine
// determines it.
func (ts *types) known(typeURL string) (t world.Type, known bool) {
	if ts.only != every {
		return ts.only, true
	}
	if t, known := ts.versions[typeURL]; known {
		return t, true
	}
	return ts.engine.Type(typeURL)
}

// configuration finds a type of configuration. An unserved type is answered empty, as a
// control plane waits for an answer to each of its types.
func (ts *types) configuration(typeURL string, asked map[world.Type]*asked) (t world.Type, known bool, err error) {
	if t, known := ts.versions[typeURL]; known {
		return t, true, nil
	}
	if ts.denied != nil {
		if len(asked) == 0 {
			return 0, false, ts.server.Reject(streams.NotWho, ts.denied)
		}
		if ts.logs(typeURL) { // a proxy's stream, perhaps, whose other types must continue
			ts.log.Warn("request for an unknown type rejected", "type", streams.Cut(typeURL, streams.ShownBytes), "err", grpcstatus.Convert(ts.denied).Message())
		}
		return 0, false, nil
	}
	t, known = ts.engine.Type(typeURL)
	if !known || asked[t] != nil {
		if t, known, err = ts.otherVersion(typeURL, asked); err != nil {
			return 0, false, ts.server.Reject(streams.TooMuch, err)
		}
	}
	if !known || !slices.Contains(ts.offer.Types, ts.engine.TypeName(t)) {
		t, known = ts.admit(typeURL, asked)
	}
	if !known {
		return 0, false, nil
	}
	if ts.offer.Demand != nil {
		ts.offer.Demand()
	}
	ts.versions[typeURL] = t
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.urls[t] = typeURL
	return t, true, nil
}

// otherVersion finds the type of the same group and kind in another version, which the
// stream does not ask for yet.
func (ts *types) otherVersion(typeURL string, asked map[world.Type]*asked) (t world.Type, known bool, err error) {
	for _, name := range ts.offer.Types {
		if !wire.SameKind(name, typeURL) {
			continue
		}
		t, _ = ts.engine.Type(name)
		if asked[t] == nil {
			return t, true, nil
		}
		err = grpcstatus.Errorf(codes.InvalidArgument, "the stream asks for one kind under too many versions, %s is the last; all versions are one, so ask for a single one", typeURL)
	}
	return t, false, err
}

const (
	// longestType bounds the name of a type that is admitted on a client's request.
	longestType = 256
	// mostUnserved bounds the unserved types that are admitted under their own names, because
	// metrics have these names as labels. They are removed some time after the last stream that
	// asks for them.
	mostUnserved = 64
	// mostLogged bounds the logged unknown types of a stream.
	mostLogged = 8
)

// admit adds an unserved type to the engine. Past the bound it uses a type with another name,
// so that one client cannot exhaust the types for others.
func (ts *types) admit(typeURL string, asked map[world.Type]*asked) (t world.Type, known bool) {
	if len(typeURL) > longestType {
		return 0, false
	}
	if t, known := ts.engine.Admit(world.TypeSpec{Name: typeURL, Whole: true}, mostUnserved); known {
		ts.uses(t)
		return t, true
	}
	for i := range push.MaxTypes {
		t, known := ts.engine.Admit(world.TypeSpec{Name: "unserved/" + strconv.Itoa(i), Whole: true}, mostUnserved+push.MaxTypes)
		if known && asked[t] != nil {
			ts.engine.Release(t)
			continue
		}
		if known {
			ts.uses(t)
		}
		return t, known
	}
	return 0, false
}

// uses records an admitted type, to be released when the stream ends.
func (ts *types) uses(t world.Type) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.ended {
		ts.engine.Release(t)
		return
	}
	ts.admitted = append(ts.admitted, t)
}

// release releases the admitted types when the stream ends. The subscriber is closed by then.
// A request may still be in progress, since its goroutine outlives the stream.
func (ts *types) release() {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.ended = true
	for _, t := range ts.admitted {
		ts.engine.Release(t)
	}
}

// url returns the client's name of a type.
func (ts *types) url(t world.Type) string {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if url, own := ts.urls[t]; own {
		return url
	}
	return ts.engine.TypeName(t)
}

// logs reports whether a type is worth a log line: it is new, and there were not many.
func (ts *types) logs(typeURL string) bool {
	typeURL = streams.Cut(typeURL, streams.ShownBytes)
	if _, logged := ts.logged[typeURL]; logged || len(ts.logged) >= mostLogged {
		return false
	}
	ts.logged[typeURL] = struct{}{}
	return true
}
