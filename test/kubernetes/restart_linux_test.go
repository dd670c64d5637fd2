package kubernetes_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
	"github.com/isthmus-mesh/isthmus/test/rig/process"
	"github.com/isthmus-mesh/isthmus/test/testkit/probe"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

const restartedService = "outbound|80||web.shop.svc.cluster.local"

// Isthmus ends, asked to or killed, and the API server with it. Isthmus alone starts
// again: who connects then has the last known good, and who was connected loses nothing.
// When the API server is back, what changes there is followed.
func TestRestartWhileTheAPIServerIsAway(t *testing.T) {
	if t.Parallel(); separately(t) {
		return
	}
	w := newRestarts(t)
	w.slice("10.77.4.1")
	w.isthmus.start()
	callers := []*caller{w.connect("early")}
	callers[0].mustBeAnsweredBy("10.77.4.1")
	callers[0].forget()
	for n, end := range []func(){w.terminate, w.isthmus.Kill} {
		was, next := fmt.Sprintf("10.77.4.%d", n+1), fmt.Sprintf("10.77.4.%d", n+2)
		w.awaitSaved()
		end()
		w.cluster.API.Kill()
		w.isthmus.start()
		late := w.connect(fmt.Sprintf("late-%d", n))
		late.mustBeAnsweredBy(was)
		late.forget()
		callers = append(callers, late)
		for _, c := range callers {
			c.mustBeAnsweredBy(was)
		}
		w.awaitSource("stale")
		if err := w.cluster.API.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.awaitSource("live")
		w.slice(was, next)
		for _, c := range callers {
			c.mustBeAnsweredBy(was, next)
		}
		w.slice(next)
		for _, c := range callers {
			c.mustBeAnsweredBy(next)
		}
	}
	for _, c := range callers {
		c.mustNotHaveFailed()
	}
}

// restarts is a cluster with one service, and an Isthmus that remembers it.
type restarts struct {
	t       *testing.T
	cluster *cluster.Cluster
	client  *cluster.Client
	isthmus *isthmus
}

func newRestarts(t *testing.T) *restarts {
	t.Helper()
	c := own(t)
	w := &restarts{t: t, cluster: c, client: connect(t, c)}
	if err := w.client.Namespace(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	if err := w.client.Apply(t.Context(), services, object(t, webService, "shop")); err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		address := fmt.Sprintf("10.77.4.%d", n+1)
		listen(t, address, address+":8080")
	}
	at, err := process.FreeAddress() // to which Envoys return
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	w.isthmus = newIsthmus(t, dir, fmt.Sprintf(`
sources: [{name: here, kubernetes: {kubeconfig: %s}}]
outputs: {xds: {listen: %q}}
store: {dataDir: %q}
admin: {listen: "127.0.0.1:0"}`, kubeconfig(t, c.API, cluster.Admin), at, filepath.Join(dir, "data")))
	return w
}

// slice writes the endpoints of the service.
func (w *restarts) slice(addresses ...string) {
	w.t.Helper()
	o := object(w.t, webSlice, "shop")
	var endpoints []any
	for _, a := range addresses {
		endpoints = append(endpoints, map[string]any{"addresses": []any{a}})
	}
	o.Object["endpoints"] = endpoints
	if err := w.client.Apply(w.t.Context(), slicesOf, o); err != nil {
		w.t.Fatal(err)
	}
}

func (w *restarts) connect(workload string) *caller {
	w.t.Helper()
	p := connectEnvoy(w.t, w.isthmus, proxy.Config{Delta: true, Workload: workload})
	return keepCalling(w.t, p, restartedService)
}

func (w *restarts) terminate() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), until.Patience)
	defer cancel()
	if err := w.isthmus.Terminate(ctx); err != nil {
		w.t.Fatal(err)
	}
}

// awaitSaved waits until everything is on disk.
func (w *restarts) awaitSaved() {
	w.t.Helper()
	await(w.t, "everything on disk", func() error {
		page := probe.Get("http://" + w.isthmus.admin + "/metrics")
		if page == nil {
			return errors.New("there are no metrics")
		}
		m := probe.ParseMetrics(w.t, page)
		if is, saved := m.Sum("isthmus_store_revision"), m.Sum("isthmus_store_saved_revision"); is == 0 || saved != is {
			return fmt.Errorf("of %v, %v is saved", is, saved)
		}
		return nil
	})
}

func (w *restarts) awaitSource(state string) {
	w.t.Helper()
	await(w.t, "the source is "+state, func() error {
		var sources []struct{ Name, State, Reason string }
		if err := ask(w.t.Context(), w.isthmus, "/api/v1/sources", &sources); err != nil {
			return err
		}
		if len(sources) != 1 || sources[0].State != state {
			return fmt.Errorf("there are %+v", sources)
		}
		return nil
	})
}
