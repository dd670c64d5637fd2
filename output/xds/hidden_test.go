package xds_test

import (
	"fmt"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

const secret = "secret.example"

// What a client may not see is as if it did not exist: two clients ask for the
// same name, where it is not exported to them and where there is no such thing,
// and receive the same bytes, through everything that happens to it.
func TestWhatMayNotBeSeenIsAsIfItWereNotThere(t *testing.T) {
	names := map[string][]string{
		cds: {clusterOf(secret), clusterOf(probe)}, eds: {clusterOf(secret), clusterOf(probe)},
		lds: {secret + ":80", probe + ":80"}, rds: {clusterOf(secret), clusterOf(probe)},
	}
	for _, agent := range []string{"envoy", "gRPC Go", nodeAgent} {
		for typeURL, asked := range names {
			for _, method := range []string{adsSotw, adsDelta} {
				t.Run(agent+" "+typeURL+" "+method, func(t *testing.T) {
					absent := receive(t, agent, method, typeURL, asked, false)
					if diff := cmp.Diff(absent, receive(t, agent, method, typeURL, asked, true)); diff != "" {
						t.Errorf("it can be distinguished from what does not exist: %s", diff)
					}
				})
			}
		}
	}
}

// receive returns every message of a stream that asks for names, and for more,
// while the secret comes, changes and goes.
func receive(t *testing.T, agent, method, typeURL string, names []string, exists bool) [][]byte {
	t.Helper()
	var marks []string
	for i := range 8 {
		marks = append(marks, fmt.Sprintf("mark-%d.example", i))
	}
	r := newProbed(t, marks...)
	hidden := only(service("bank", secret), ".")
	change := func(address string) {
		switch {
		case !exists:
		case address == "":
			r.remove(hidden, endpoint("bank", secret, "one", ""))
		default:
			r.put(hidden, endpoint("bank", secret, "one", address))
		}
		r.dispatched()
	}
	l := &listener{raw: openRaw(t, r.dial(), method), delta: method == adsDelta, agent: agent, typeURL: typeURL, asked: map[string][]string{}}
	change("10.0.0.1")
	l.ask(typeURL, names[0])
	l.settle()
	change("10.0.0.2")
	l.ask(typeURL, names...)
	l.settle()
	change("")
	l.settle()
	change("10.0.0.3")
	if typeURL != eds { // it has no wildcard of its own accord, and marks would add to it
		l.ask(typeURL, append(names, "*")...)
	}
	l.settle()
	return l.received
}

// listener writes down what it receives of a type.
type listener struct {
	raw      raw
	delta    bool
	agent    string
	typeURL  string
	marks    []string
	asked    map[string][]string
	received [][]byte
}

func (l *listener) ask(typeURL string, names ...string) {
	node := xdsclient.Node("client", "shop", l.agent)
	l.asked[typeURL] = names
	if l.delta {
		l.raw.say(&discoveryv3.DeltaDiscoveryRequest{Node: node, TypeUrl: typeURL, ResourceNamesSubscribe: names})
		return
	}
	l.raw.say(&discoveryv3.DiscoveryRequest{Node: node, TypeUrl: typeURL, ResourceNames: names})
}

// settle returns when all that was due has been received: something of another
// type has been asked for since, and has come.
func (l *listener) settle() {
	mark := eds
	if l.typeURL == eds {
		mark = cds
	}
	for range 2 { // with the first, what was due may come after it
		l.marks = append(l.marks, clusterOf(fmt.Sprintf("mark-%d.example", len(l.marks))))
		l.ask(mark, l.marks...)
		for l.receive() != mark {
		}
	}
}

// receive takes in one response and accepts it.
func (l *listener) receive() (typeURL string) {
	var m proto.Message
	if l.delta {
		r := l.raw.delta()
		typeURL, m = r.GetTypeUrl(), r
		l.raw.say(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: typeURL, ResponseNonce: r.GetNonce()})
		r.Nonce = "" // it counts all responses, the marks' too
	} else {
		r := l.raw.sotw()
		typeURL, m = r.GetTypeUrl(), r
		l.raw.say(&discoveryv3.DiscoveryRequest{TypeUrl: typeURL, ResourceNames: l.asked[typeURL], ResponseNonce: r.GetNonce(), VersionInfo: r.GetVersionInfo()})
		r.Nonce = ""
	}
	if typeURL == l.typeURL {
		text, _ := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		l.received = append(l.received, text)
	}
	return typeURL
}
