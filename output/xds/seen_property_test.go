package xds_test

import (
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"github.com/google/go-cmp/cmp"
	"github.com/spiffe/go-spiffe/v2/spiffeid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/authority"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// caller is a client in plain values. Its evidence is made of them. The resources that it may
// see are decided without tokens, certificates and streams.
type caller struct {
	node, declares string
	delta          bool
	certificates   []string // identities in its certificate; nil without one
	account        string   // of its token, as NAMESPACE/ACCOUNT; empty without one
	flaw           string   // of its token
	lives          time.Duration
	asks           []string // names of secrets
}

// Flaws of tokens.
const (
	expired   = "expired"
	distant   = "for another address"
	forged    = "with another signature"
	plainText = "no token"
)

// seen is the resources of one client, while its stream goes on.
type seen struct {
	Served   bool
	Clusters []string
	Secrets  map[string]string // by name: the identity in a certificate; ROOTCA for authorities
}

// scene is some clients, and the events after they have connected.
type scene struct {
	callers []caller
	revoked string // an identity; empty: none
	of      int    // the caller with a revoked token; -1: none
	passes  time.Duration
}

// accounts are of the trust domain of the authority. Workloads of the desk see less than its
// namespace has, by a scope.
var accounts = []string{"shop/cart", "shop/till", "bank/till", "desk/cart"}

var hostsOf = map[string][]string{"shop": {"own.example", probe}, "bank": {"vault.example", probe}, "desk": {probe}}

func idOf(domain, account string) string {
	namespace, name, _ := strings.Cut(account, "/")
	return "spiffe://" + domain + "/ns/" + namespace + "/sa/" + name
}

func drawCaller(t *rapid.T) (c caller) {
	account := rapid.SampledFrom(accounts).Draw(t, "account")
	usually := func(label, usual string, others ...string) string {
		if rapid.IntRange(0, 5).Draw(t, label+" is usual") > 0 {
			return usual
		}
		return rapid.SampledFrom(others).Draw(t, label)
	}
	c.node = rapid.SampledFrom([]string{"web-1", "web-2"}).Draw(t, "node")
	namespace, _, _ := strings.Cut(account, "/")
	c.declares = usually("declares", rapid.SampledFrom([]string{"", namespace}).Draw(t, "its own"), "shop", "bank", "desk")
	c.delta = rapid.Bool().Draw(t, "delta")
	by := rapid.SampledFrom([]string{"token", "certificate", "both", "nothing"}).Draw(t, "by")
	if by == "certificate" || by == "both" {
		domain := usually("domain", "cluster.local", "partner.example")
		c.certificates = []string{idOf(domain, usually("in the certificate", account, accounts...))}
		if usually("URIs", "one", "two") == "two" {
			c.certificates = append(c.certificates, idOf(domain, "bank/till"))
		}
	}
	if by == "token" || by == "both" {
		c.account, c.flaw = account, usually("flaw", "", expired, distant, forged, plainText)
		c.lives = rapid.SampledFrom([]time.Duration{time.Minute, time.Hour}).Draw(t, "lives")
	}
	names := []string{"default", "ROOTCA", "nonsense", "file:/etc/passwd", idOf("partner.example", account)}
	for _, one := range accounts {
		names = append(names, idOf("cluster.local", one))
	}
	c.asks = rapid.SliceOfNDistinct(rapid.SampledFrom(names), 1, len(names), rapid.ID).Draw(t, "asks")
	return c
}

func drawScene(t *rapid.T) scene {
	s := scene{callers: rapid.SliceOfN(rapid.Custom(drawCaller), 1, 3).Draw(t, "callers"), of: -1}
	switch rapid.IntRange(0, 2).Draw(t, "revoked is") {
	case 1:
		s.revoked = idOf("cluster.local", rapid.SampledFrom(accounts).Draw(t, "revoked"))
	case 2:
		if n := rapid.IntRange(0, len(s.callers)-1).Draw(t, "revoked token"); s.callers[n].account != "" && s.callers[n].flaw == "" {
			s.of = n
		}
	}
	s.passes = rapid.SampledFrom([]time.Duration{2 * time.Second, 3 * time.Minute}).Draw(t, "passes")
	return s
}

// proves is the identity that a caller proves; empty if it is to be rejected.
func (c caller) proves() string {
	proven := ""
	switch len(c.certificates) {
	case 0:
	case 1:
		proven = c.certificates[0]
	default:
		return ""
	}
	if c.account == "" {
		return proven
	}
	token := idOf("cluster.local", c.account)
	if c.flaw != "" || proven != "" && proven != token {
		return ""
	}
	return token
}

// sees is the outcome for a caller by a slow and obvious evaluation.
func (c caller) sees() seen {
	id := c.proves()
	if id == "" {
		return seen{}
	}
	namespace := strings.Split(id, "/")[4]
	if c.declares != "" && c.declares != namespace {
		return seen{}
	}
	s := seen{true, slices.Sorted(slices.Values(clustersOf(hostsOf[namespace]...))), map[string]string{}}
	for _, name := range c.asks {
		switch {
		case name == "ROOTCA":
			s.Secrets[name] = name
		case strings.HasPrefix(id, "spiffe://cluster.local/") && (name == "default" || name == id):
			s.Secrets[name] = id
		}
	}
	return s
}

// expected is the outcomes for all callers, before and after.
func (s scene) expected() (list []seen) {
	for _, c := range s.callers {
		list = append(list, c.sees())
	}
	for i, c := range s.callers {
		after := list[i]
		over := c.proves() == s.revoked || i == s.of || c.account != "" && s.passes > c.lives+time.Minute
		if over {
			after = seen{}
		}
		list = append(list, after)
	}
	return list
}

// Whatever clients prove, declare and ask for, and whatever is revoked: a stream sees its
// identity's own secrets and its namespace's own services, for as long as it is proven, and two
// clients with one node id do not notice each other.
func TestStreamSeesWhatItsIdentityMay(t *testing.T) {
	var served, rejected, ended int
	rapid.Check(t, func(rt *rapid.T) {
		s := drawScene(rt)
		var got []seen
		synctest.Test(t, func(t *testing.T) { got = play(t, s) })
		want := s.expected()
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Fatalf("%+v:\nmissing -, more than expected +:\n%s", s, diff)
		}
		for i, before := range want[:len(s.callers)] {
			switch after := want[len(s.callers)+i]; {
			case !before.Served:
				rejected++
			case after.Served:
				served++
			default:
				ended++
			}
		}
	})
	if served == 0 || rejected == 0 || ended == 0 {
		t.Errorf("%d streams went on, %d were rejected and %d ended", served, rejected, ended)
	}
}

// play connects the callers of a scene, and returns the resources that each sees before and after.
func play(t *testing.T, s scene) (list []seen) {
	t.Helper()
	here := &net.TCPAddr{IP: net.IPv4(10, 1, 2, 3), Port: 1}
	r := newVouchedWith(t, setup{memory: true, from: func() net.Addr { return here }}, 24*time.Hour)
	r.put(only(service("bank", "vault.example"), "."), only(service("desk", "drawer.example"), "."), scope("desk", "default", "", "*/"+probe))
	clients, ids := make([]*xdsclient.Client, len(s.callers)), make([]string, len(s.callers))
	for i, c := range s.callers {
		clients[i], ids[i] = r.call(c)
		clients[i].Subscribe(cds)
		clients[i].Subscribe(sds, c.asks...)
	}
	synctest.Wait()
	all := func() {
		for _, c := range clients {
			list = append(list, look(t, c))
		}
	}
	all()
	var err error
	switch {
	case s.of >= 0:
		_, err = r.own.RevokeToken(ids[s.of], time.Now())
	case s.revoked != "":
		_, err = r.own.RevokeAccount(spiffeid.RequireFromString(s.revoked), time.Now())
	}
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(s.passes)
	synctest.Wait()
	all()
	return list
}

// call connects a caller, and returns the id of its token.
func (r vouched) call(c caller) (client *xdsclient.Client, id string) {
	r.t.Helper()
	config := r.ca.Client()
	if c.certificates != nil {
		config = r.ca.Client(r.ca.Issue("client", c.certificates...))
	}
	options := []grpc.DialOption{grpc.WithTransportCredentials(credentials.NewTLS(config))}
	if c.account != "" {
		text, token := r.evidence(c)
		id = token
		options = append(options, grpc.WithPerRPCCredentials(bearer(text)))
	}
	with := xdsclient.Config{Node: xdsclient.Node(c.node, c.declares, "envoy"), Deadline: until.Patience}
	if c.delta {
		return xdsclient.NewDelta(r.t, r.dial(options...), with), id
	}
	return xdsclient.NewSotW(r.t, r.dial(options...), with), id
}

// evidence makes a caller's token.
func (r vouched) evidence(c caller) (text, id string) {
	r.t.Helper()
	namespace, name, _ := strings.Cut(c.account, "/")
	grant, now := authority.Grant{Namespace: namespace, Account: name, TTL: c.lives}, time.Now()
	switch c.flaw {
	case expired:
		now = now.Add(-2 * time.Hour)
	case distant:
		grant.Addresses = []string{"192.0.2.0/24"}
	case plainText:
		return "nonsense", ""
	}
	text, entry, err := r.own.Issue(grant, now)
	if err != nil {
		r.t.Fatalf("token: %v", err)
	}
	if c.flaw == forged {
		text = text[:len(text)-4] + map[bool]string{true: "AAAA", false: "BBBB"}[!strings.HasSuffix(text, "AAAA")]
	}
	return text, entry.ID
}

// look returns the resources that a client sees, if it is served.
func look(t *testing.T, c *xdsclient.Client) (s seen) {
	t.Helper()
	if !c.IsConnected() {
		return s
	}
	c.Read(func(state *xdsclient.State) {
		s = seen{true, state.Names(cds), map[string]string{}}
		for _, r := range state.Resources(sds) {
			if s.Secrets[r.Name] = r.Name; r.Content.(*tlsv3.Secret).GetTlsCertificate() != nil {
				s.Secrets[r.Name] = leafIn(t, r.Content).URIs[0].String()
			}
		}
	})
	return s
}
