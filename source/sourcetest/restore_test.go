package sourcetest

import (
	"context"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
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
					outside, registry := NewOutside(), newReporter(true)
					registry.Set(Services{"a.example": {Endpoints: endpointsOf("a.example", 2)}, "b.example": {Endpoints: endpointsOf("b.example", 2)}})
					view := outside.Process(ctx)
					super := source.NewSupervisor(listed, registry.Open(source.Env{}), view, source.Config{})
					go func() { _ = super.Run(ctx) }()
					time.Sleep(time.Minute)
					outside.NewEpochWithout(lost)
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
