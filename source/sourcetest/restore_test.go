package sourcetest

import (
	"context"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/store"
)

// A store that is restored from an older copy lacks what was stored since. A registry
// that passes on only what changes does not say that again, unless it is listed.
func TestWhatARestoredStoreLacksIsListedAgain(t *testing.T) {
	for name, lost := range map[string]model.Filter{
		"nothing":    {Kind: "none"},
		"a service":  {Source: listed, Namespace: "ns", Prefix: "a.example"},
		"the mark":   {Kind: model.KindSource, Source: listed},
		"endpoints":  {Kind: model.KindEndpoint, Source: listed},
		"everything": {Source: listed},
	} {
		for then, report := range map[string]func(*reporter){
			"and nothing is reported": func(*reporter) {},
			"and an endpoint is reported": func(r *reporter) {
				r.Set(Services{"a.example": {Endpoints: endpointsOf("a.example", 2)}, "b.example": {Endpoints: endpointsOf("b.example", 3)}})
			},
			"and an endpoint is reported later": func(r *reporter) {
				time.Sleep(time.Second)
				r.Set(Services{"a.example": {Endpoints: endpointsOf("a.example", 2)}, "b.example": {Endpoints: endpointsOf("b.example", 3)}})
			},
		} {
			t.Run(name+" "+then, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ctx, end := context.WithCancel(t.Context())
					defer synctest.Wait()
					defer end()
					view, registry := store.NewMemory(store.Config{}), newReporter(true)
					registry.Set(Services{"a.example": {Endpoints: endpointsOf("a.example", 2)}, "b.example": {Endpoints: endpointsOf("b.example", 2)}})
					super := source.NewSupervisor(listed, registry.Open(source.Env{}), view, source.Config{})
					go func() { _ = super.Run(ctx) }()
					time.Sleep(time.Minute)
					restoreWithout(t, view, lost)
					report(registry)
					time.Sleep(time.Minute)
					for host, want := range registry.services {
						records := map[model.Ref]model.Record{}
						for rec := range view.List(model.Filter{Source: listed}) {
							records[rec.Ref] = rec
						}
						if wrong := servedIn(records).difference(host, want); wrong != "" || !marked(records) {
							t.Errorf("%s; marked: %t", wrong, marked(records))
						}
					}
					if st := super.Status(); st.State != source.StateLive || st.Services != 2 {
						t.Errorf("it is %s with %d services: %s", st.State, st.Services, st.Reason)
					}
				})
			})
		}
	}
}

func endpointsOf(host string, n int) (list []netip.AddrPort) {
	for i := range n {
		list = append(list, endpointAt(host, i))
	}
	return list
}

// restoreWithout restores a store from a copy of itself in which some records are lost.
// Its revisions are counted anew.
func restoreWithout(t *testing.T, m *store.Memory, lost model.Filter) {
	t.Helper()
	var all []model.Record
	for r := range m.List(model.Filter{}) {
		if !lost.Matches(r.Ref) {
			r.Revision = uint64(len(all) + 1)
			all = append(all, r)
		}
	}
	if err := m.Restore(uint64(len(all)), slices.Values(all)); err != nil {
		t.Error(err)
	}
}
