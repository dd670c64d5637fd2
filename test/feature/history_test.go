package feature_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/isthmus-mesh/isthmus/internal/testkit/xdsclient"
)

// TestAnyHistoryEndsWithWhatTheRegistriesSay edits two registries at random.
// Clients that saw all of it, or came and went, end with what newcomers get and
// with what another Isthmus serves that has seen no history: the same resources,
// in the same versions, which the clients' common ledger compares.
func TestAnyHistoryEndsWithWhatTheRegistriesSay(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			h := history{rand.New(rand.NewPCG(seed, 1)), []*registry{newRegistry(t, "first"), newRegistry(t, "second")}}
			first, ledger := start(t, h.registries...), &xdsclient.Ledger{}
			var old []*xdsclient.Client
			for _, namespace := range namespaces {
				old = append(old,
					watchAs(t, first, xdsclient.NewSotW, namespace, ledger),
					watchAs(t, first, xdsclient.NewDelta, namespace, ledger))
			}
			for range 80 {
				h.edit()
				switch some := old[h.chance.IntN(len(old))]; h.chance.IntN(10) {
				case 0:
					first.Settle()
				case 1:
					some.Reconnect(true)
				case 2:
					some.Reconnect(false)
				}
			}
			h.mend()
			first.Settle()
			second := start(t, h.registries...)
			for n, namespace := range namespaces {
				want := watchAs(t, second, xdsclient.NewDelta, namespace, ledger)
				mustAgree(t, want, watchAs(t, first, xdsclient.NewSotW, namespace, ledger), old[2*n], old[2*n+1])
			}
		})
	}
}

var namespaces = []string{"a", "b", ""}

// watchAs opens a client that asks for everything a namespace sees.
func watchAs(t *testing.T, i *isthmus, connect variant, namespace string, ledger *xdsclient.Ledger) *xdsclient.Client {
	t.Helper()
	c := connect(t, channel(t, i), xdsclient.Config{
		Node: xdsclient.Node("envoy", namespace, "envoy"), Follow: xdsclient.FollowClusters, Ledger: ledger, Deadline: patience,
	})
	c.Subscribe(xdsclient.CDS)
	return c
}

// mustAgree waits until all clients hold the same.
func mustAgree(t *testing.T, one *xdsclient.Client, others ...*xdsclient.Client) {
	t.Helper()
	diff := ""
	defer func() {
		if diff != "" {
			t.Log("-one +other:\n" + diff)
		}
	}()
	for n, other := range others {
		other.Await(fmt.Sprintf("client %d to agree", n), func(s *xdsclient.State) bool {
			var want map[string]proto.Message
			one.Read(func(s *xdsclient.State) { want = holdings(s) })
			diff = cmp.Diff(want, holdings(s), protocmp.Transform())
			return diff == ""
		})
	}
}

func holdings(s *xdsclient.State) map[string]proto.Message {
	held := map[string]proto.Message{}
	for _, typeURL := range []string{xdsclient.CDS, xdsclient.EDS} {
		for _, r := range s.Resources(typeURL) {
			held[typeURL+" "+r.Name] = r.Content
		}
	}
	return held
}

// history makes edits at random.
type history struct {
	chance     *rand.Rand
	registries []*registry
}

func (h history) pick(of ...string) string { return of[h.chance.IntN(len(of))] }

func (h history) edit() {
	r := h.registries[h.chance.IntN(len(h.registries))]
	file, other := h.file(), h.file()
	_, err := os.Stat(r.At(file))
	switch n := h.chance.IntN(10); {
	case n < 5 || err != nil:
		r.Write(file, h.documents()...)
	case n == 5:
		r.Overwrite(file, h.documents()[0])
	case n == 6:
		r.Remove(file)
	case n == 7:
		r.Move(file, other)
	case n == 8:
		r.Write(file, append(h.documents(), "kind: [broken")...)
	default:
		r.Write(file, strings.Replace(fmt.Sprint(h.documents()[0]), "spec:", "spec:\n  typo: 1", 1))
	}
}

// mend replaces what may be broken, of which the last good version counts: the
// one thing that depends on what was before.
func (h history) mend() {
	for _, r := range h.registries {
		for _, file := range files {
			if content, err := os.ReadFile(r.At(file)); err == nil && strings.Contains(string(content), "broken") || strings.Contains(string(content), "typo") {
				r.Write(file, h.documents()...)
			}
		}
	}
}

var files = []string{"1.yaml", "2.yaml", "3.yaml", "4.yaml"}

func (h history) file() string { return h.pick(files...) }

func (h history) documents() []any {
	documents := make([]any, 1+h.chance.IntN(3))
	for i := range documents {
		switch h.chance.IntN(8) {
		case 0:
			documents[i] = sidecar{
				Name: h.pick("s", "t"), Namespace: h.pick("a", "b", "istio-system"), Selector: h.pick("", "", "{app: v}"),
				Hosts: h.pick(`["*/*"]`, "[./one.example]", "[b/two.example, shop/*]", `["*/*.example"]`),
			}
			continue
		case 1, 2:
			documents[i] = workload{Name: h.pick("v", "w"), Namespace: h.pick("a", "b"), Spec: h.endpoint(), Healthy: h.pick("", "", "False")}
			continue
		}
		s := service{
			Name: h.pick("x", "u", "z"), Namespace: h.pick("a", "b"), Host: h.pick("one.example", "two.example", "one.example, two.example"),
			Resolution: h.pick("STATIC", "STATIC", "STATIC", "DNS", "NONE"), ExportTo: h.pick("", "", "[.]", "[b]", "['*']"),
			Ports: h.pick("[{number: 80, name: grpc, protocol: GRPC}]", "[{number: 80, name: grpc, protocol: HTTP}, {number: 81, name: web, protocol: HTTP}]"),
		}
		switch {
		case s.Resolution == "NONE":
		case h.chance.IntN(3) == 0:
			s.Selector = h.pick("{app: v}", "{app: w}")
		default:
			s.Endpoints = []string{h.endpoint(), h.endpoint()}[:h.chance.IntN(3)]
		}
		documents[i] = s
	}
	return documents
}

func (h history) endpoint() string {
	return fmt.Sprintf("{address: 10.0.0.%d, ports: {grpc: %d}, labels: {app: %s}, weight: %d, locality: %s}",
		1+h.chance.IntN(3), 80+h.chance.IntN(2), h.pick("v", "w"), 1+h.chance.IntN(2), h.pick("r/z", "q"))
}
