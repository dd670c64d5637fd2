package xdsclient

import (
	"cmp"
	"maps"
	"slices"
)

// State is what a client holds and has seen. Conditions read it.
type State struct {
	topics map[string]*topic
	clock  int // counts messages, to tell what came first
}

func (s *State) topic(typeURL string) *topic {
	k := s.topics[typeURL]
	if k == nil {
		k = &topic{url: typeURL, held: map[string]Resource{}, received: map[string]int{}, removals: map[string]int{}, when: map[string]int{}}
		k.begin()
		s.topics[typeURL] = k
	}
	return k
}

// Get returns a resource that the client holds.
func (s *State) Get(typeURL, name string) (Resource, bool) {
	r, ok := s.topic(typeURL).held[name]
	return r, ok
}

// Names lists what the client holds of a type.
func (s *State) Names(typeURL string) []string {
	return slices.Sorted(maps.Keys(s.topic(typeURL).held))
}

// Resources lists what the client holds of a type, by name.
func (s *State) Resources(typeURL string) []Resource {
	return slices.SortedFunc(maps.Values(s.topic(typeURL).held), byName)
}

func byName(a, b Resource) int { return cmp.Compare(a.Name, b.Name) }

// Subscribed lists the names of a type that the client asks for; everything is "*".
func (s *State) Subscribed(typeURL string) []string {
	k := s.topic(typeURL)
	names := slices.Sorted(maps.Keys(k.names))
	if k.star {
		names = append(names, "*")
	}
	return names
}

// Responses counts the responses of a type, over all streams.
func (s *State) Responses(typeURL string) int { return s.topic(typeURL).responses }

// Open counts the responses of a type that the client has not answered.
func (s *State) Open(typeURL string) int { return len(s.topic(typeURL).open) }

// Newest is the newest response of a type on this stream: its resources and
// what it removes, by name.
func (s *State) Newest(typeURL string) (resources, removed []string) {
	for _, r := range s.topic(typeURL).newest.resources {
		resources = append(resources, r.Name)
	}
	return resources, s.topic(typeURL).newest.removed
}

// Received counts how often a resource was sent, over all streams.
func (s *State) Received(typeURL, name string) int { return s.topic(typeURL).received[name] }

// Removals counts how often a resource was said to be gone, over all streams.
func (s *State) Removals(typeURL, name string) int { return s.topic(typeURL).removals[name] }

// When tells when a resource was last sent or said to be gone, on a clock of
// messages that all types share; zero if never.
func (s *State) When(typeURL, name string) int { return s.topic(typeURL).when[name] }

// NACKs counts the responses of a type that the client NACKed.
func (s *State) NACKs(typeURL string) int { return s.topic(typeURL).nacks }

// Last reports whether a resource is the newest that was sent of its name on this
// stream, be it NACKed.
func (s *State) Last(r Resource) bool {
	return s.topic(r.Type).check.sent[r.Name] == r.identity()
}

// Suspect reports whether a resource was new in a full set that the client NACKed,
// and the client has accepted none since: a server cannot tell whether that was
// because of it.
func (s *State) Suspect(typeURL, name string) bool { return s.topic(typeURL).check.suspects[name] }

// Unwarmed lists the clusters that were sent anew and wait for a load
// assignment that the client has asked for.
func (s *State) Unwarmed() []string { return sortedKeys(s.topic(EDS).check.owed) }

// response is a message of either variant.
type response struct {
	typeURL, nonce, version string
	controlPlane            string
	resources               []Resource
	removed                 []string
	full                    bool // absence is deletion
	at                      int  // on the state's clock
}

// topic is what a client knows of one type.
type topic struct {
	url  string
	held map[string]Resource
	// acked is the version of the last response accepted, which outlives the stream.
	acked   string
	names   map[string]int // subscribed → since when
	star    bool           // everything is
	starred int            // since when

	responses, nacks   int
	received, removals map[string]int
	when               map[string]int // last of either
	newest             response

	stream
}

// stream is the part of a topic that ends with the stream.
type stream struct {
	asked   bool
	named   bool // it has carried a name, so that emptiness no longer means everything
	nonce   string
	open    []response // not answered yet, oldest first
	settled string     // version of the newest response, if it was accepted
	first   bool       // no response yet
	// leaving are names that may still come although they are no longer asked
	// for; leavingAll is any name.
	leaving    map[string]bool
	leavingAll bool
	check      check
}

// begin starts a new stream.
func (k *topic) begin() {
	if k.names == nil {
		k.names = map[string]int{}
	}
	k.stream = stream{first: true, leaving: map[string]bool{}, check: newCheck()}
}

// covers reports whether the client asks for a name.
func (k *topic) covers(name string) bool {
	_, ok := k.names[name]
	return ok || k.star
}

// coveredSince tells since when, on the state's clock.
func (k *topic) coveredSince(name string) (since int, ok bool) {
	since, ok = k.names[name]
	if k.star && (!ok || k.starred < since) {
		return k.starred, true
	}
	return since, ok
}
