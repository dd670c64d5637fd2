package hostile

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"github.com/isthmus-mesh/isthmus/test/testkit/servicecenter"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

const (
	mirrored  = 20 // services of the Service Center
	instances = 3  // of each
)

// center is a second registry beside the files.
type center struct {
	*servicecenter.Server
	ids [mirrored]string
}

// withServiceCenter adds a Service Center that is asked ten times a second.
func withServiceCenter(t *testing.T) setup {
	t.Helper()
	c := &center{Server: servicecenter.Start(t, servicecenter.Config{Prompt: true, KeepAlive: true})}
	for i := range c.ids {
		c.ids[i] = c.Register(servicecenter.Service{App: "shop", Name: fmt.Sprintf("mirrored-%02d", i)})
		for n := range instances {
			c.add(i, n)
		}
	}
	source := "- name: center\n  required: true\n  servicecenter: {addresses: [%q], poll: 100ms, timeout: 500ms, namespace: shop}"
	return setup{center: c, sources: fmt.Sprintf(source, c.URL())}
}

func (c *center) add(service, instance int) {
	c.RegisterInstance(c.ids[service], servicecenter.Instance{
		HostName: fmt.Sprint("host-", instance), Endpoints: []string{fmt.Sprintf("rest://10.1.%d.%d:%d", service, instance+1, port)},
	})
}

const json = "application/json"

// lies are what a Service Center answers that is not what it holds.
var lies = []struct {
	name  string
	route servicecenter.Route
	fault servicecenter.Fault
	times int // it misbehaves at least; after errors the program asks less often
}{
	{"an error of its own", servicecenter.Any, servicecenter.FailWith(servicecenter.Internal), 1},
	{"a proxy's error page", servicecenter.Any, servicecenter.Answer(http.StatusBadGateway, "text/html", "<html>bad gateway"), 1},
	{"an error with status 200", servicecenter.Any, servicecenter.Answer(http.StatusOK, json, `{"errorCode":"500003","errorMessage":"no"}`), 1},
	{"no body", servicecenter.Any, servicecenter.Empty(), 1},
	{"no JSON", servicecenter.Any, servicecenter.Garbage(), 1},
	{"half of the list", servicecenter.ListServices, servicecenter.CutOff(100), 1},
	{"half of the instances", servicecenter.BatchFind, servicecenter.CutOff(100), 1},
	{"an empty object", servicecenter.Any, servicecenter.Answer(http.StatusOK, json, `{}`), 1},
	{"an empty list", servicecenter.ListServices, servicecenter.Answer(http.StatusOK, json, `{"services":[]}`), 3},
	{"instances of nothing", servicecenter.BatchFind, servicecenter.Answer(http.StatusOK, json, `{"services":{"updated":[]}}`), 3},
	{"everything late", servicecenter.Any, servicecenter.Late(400 * time.Millisecond), 1},
	{"nothing at all", servicecenter.Any, servicecenter.Hang(), 1},
}

// faultyRegistry has a registry answer wrongly in every way, one after the
// other, while the other registry goes on. Nothing of it may be taken from the
// good client, and when it is well again its changes arrive.
func faultyRegistry(t *testing.T, r *room) string {
	whole := func(more int) func(*xdsclient.State) bool {
		return func(s *xdsclient.State) bool { return r.center.heldBy(s) == mirrored*instances+more }
	}
	r.good.Await("everything that is mirrored", whole(0))
	asked := r.center.Requests(servicecenter.Any)
	r.beside(t, func(ctx context.Context) error {
		for _, lie := range lies {
			if err := r.center.misbehave(ctx, lie.route, lie.fault, lie.times); err != nil {
				return fmt.Errorf("%s: %w", lie.name, err)
			}
			r.good.Read(func(s *xdsclient.State) {
				if !whole(0)(s) {
					t.Errorf("after %s the good client holds %d endpoints, not %d", lie.name, r.center.heldBy(s), mirrored*instances)
				}
			})
		}
		return nil
	})
	asked = r.center.Requests(servicecenter.Any) - asked
	for i := range mirrored {
		r.center.add(i, instances)
	}
	r.good.Await("what was registered since", whole(mirrored))
	return fmt.Sprintf("%d kinds of wrong answers from one of two registries, to %d requests", len(lies), asked)
}

// misbehave has the registry answer wrongly until it has done so some times.
func (c *center) misbehave(ctx context.Context, route servicecenter.Route, fault servicecenter.Fault, times int) error {
	wrong := make(chan struct{}, 1000)
	c.Inject(route, func(s *servicecenter.Server, w http.ResponseWriter, r *http.Request, next http.Handler) {
		select {
		case wrong <- struct{}{}:
		default:
		}
		fault(s, w, r, next)
	}, 0)
	defer c.Repair()
	for range times {
		select {
		case <-wrong:
		case <-time.After(until.Patience):
			return fmt.Errorf("the registry is not asked")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// heldBy counts the endpoints of the registry that a client holds.
func (c *center) heldBy(s *xdsclient.State) (n int) {
	for i := range c.ids {
		assignment, _ := s.Get(xdsclient.EDS, fmt.Sprintf("outbound|%d||mirrored-%02d", port, i))
		content, _ := assignment.Content.(*endpointv3.ClusterLoadAssignment)
		for _, group := range content.GetEndpoints() {
			n += len(group.GetLbEndpoints())
		}
	}
	return n
}
