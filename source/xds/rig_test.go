package xds_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	mcpapi "istio.io/api/mcp/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/isthmus-mesh/isthmus/internal/budget"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/supervise"
	"github.com/isthmus-mesh/isthmus/source/xds"
	"github.com/isthmus-mesh/isthmus/store"
)

// rig is a peer and what mirrors it, in a time of its own.
type rig struct {
	memory *budget.Budget // nil for any
	*testing.T
	*peer
	*supervise.Supervisor
	store *store.Memory
	stop  func()
}

// bubble runs a test against a peer.
func bubble(t *testing.T, m manner, test func(r *rig)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{T: t, peer: newPeer(m), store: store.NewMemory(store.Config{})}
		defer synctest.Wait()
		defer r.close()
		test(r)
		if r.stop != nil {
			r.stop()
		}
	})
}

// variants runs a test in both variants of the protocol.
func variants(t *testing.T, test func(r *rig)) {
	t.Parallel()
	t.Run("delta", func(t *testing.T) { bubble(t, manner{}, test) })
	t.Run("state of the world", func(t *testing.T) { bubble(t, manner{noDelta: true}, test) })
}

// mirror runs a source named "other", until the test ends or stops it, and waits for
// what it does first.
func (r *rig) mirror(types ...string) {
	r.Helper()
	r.begin(types...)
	r.pass(settles)
}

// begin is mirror without waiting.
func (r *rig) begin(types ...string) {
	r.Helper()
	c := &xds.Config{Address: "127.0.0.1:15010", Types: types}
	if err := c.Validate(); err != nil {
		r.Fatal(err)
	}
	src := xds.New(*c, source.Env{
		Instance: "one", Self: "here", Name: "other", Memory: r.memory,
		Stored: func() iter.Seq[model.Record] { return r.store.List(model.Filter{Source: "other"}) },
	})
	src.DialWith(r.dial)
	r.Supervisor = supervise.New("other", src, r.store, supervise.Config{Kind: "xds", MaxBackoff: 5 * time.Second})
	ctx, cancel := context.WithCancel(r.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Supervisor.Run(ctx) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			r.Error(err)
		}
	})
}

// settles is what a source takes for its first listing of a delta server that marks nothing.
const settles = 6 * time.Second

// pass lets time go by.
func (r *rig) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// wants checks what is stored, one line for each service with its endpoints, and for
// each record of another kind.
func (r *rig) wants(lines ...string) {
	r.Helper()
	slices.Sort(lines)
	if got := r.stored(); got != strings.Join(lines, "\n") {
		r.Errorf("stored:\n%s\n\nwant:\n%s", got, strings.Join(lines, "\n"))
	}
}

func (r *rig) stored() string {
	var holds model.Holds
	endpoints := map[model.Ref]string{}
	for rec := range r.store.List(model.Filter{Source: "other"}) {
		holds.Add(rec)
		if e, is := rec.Spec.(model.Endpoint); is {
			endpoints[rec.Owner] += " " + e.Address
		}
	}
	var all []string
	for rec := range r.store.List(model.Filter{Source: "other"}) {
		if rec.Kind.Reserved() || rec.Owner != (model.Ref{}) {
			continue
		}
		text := fmt.Sprintf("%s %s/%s", rec.Kind, rec.Namespace, rec.Name)
		if rec.Kind == model.KindService {
			text = rec.Namespace + "/" + rec.Name + endpoints[rec.Ref]
		}
		if _, held := holds.Of(rec.Ref, rec.Owner); held {
			text += " (held)"
		}
		if rec.Status.Stale != "" {
			text += " (stale)"
		}
		all = append(all, text)
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// is checks the state of the source.
func (r *rig) is(state source.State, reason string) {
	r.Helper()
	if s := r.Status(); s.State != state || !strings.Contains(s.Reason, reason) {
		r.Errorf("the source is %s: %s; want %s: %s", s.State, s.Reason, state, reason)
	}
}

// rejects checks what stands rejected: a part of the object and of the reason of each.
func (r *rig) rejects(want ...string) {
	r.Helper()
	var got []string
	for _, f := range r.Status().Rejected {
		got = append(got, f.Object+" | "+f.Where+" | "+f.Field+": "+f.Reason)
	}
	ok := len(got) == len(want)
	for _, w := range want {
		ok = ok && slices.ContainsFunc(got, func(g string) bool {
			return !slices.ContainsFunc(strings.Split(w, " … "), func(part string) bool { return !strings.Contains(g, part) })
		})
	}
	if !ok {
		r.Errorf("rejected:\n%s\n\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// nacks are the reasons that the peer was given.
func (r *rig) nacks() (list []string) {
	for _, q := range r.seen() {
		if q.nack != "" {
			list = append(list, q.nack)
		}
	}
	return list
}

// serve has the peer hold a ServiceEntry with endpoints.
func (r *rig) serve(name string, addresses ...string) {
	r.put("ServiceEntry", name, service(name, addresses...))
}

// service is a ServiceEntry of the host of its name.
func service(name string, addresses ...string) *anypb.Any {
	_, host, _ := strings.Cut(name, "/")
	spec := &networking.ServiceEntry{
		Hosts: []string{host + ".example"}, Resolution: networking.ServiceEntry_STATIC,
		Ports: []*networking.ServicePort{{Number: 80, Name: "http", Protocol: "HTTP"}},
	}
	for _, a := range addresses {
		spec.Endpoints = append(spec.Endpoints, &networking.WorkloadEntry{Address: a})
	}
	return wrap(name, spec)
}

func wrap(name string, spec proto.Message) *anypb.Any {
	return encode(&mcpapi.Resource{Metadata: &mcpapi.Metadata{Name: name}, Body: encode(spec)})
}
