package simulation

import (
	"errors"
	"testing"

	"istio.io/istio/pilot/pkg/simulation"
)

// expectation is a call and what becomes of it. Fields of a result that are empty are
// not looked at.
type expectation struct {
	name string
	call simulation.Call
	want simulation.Result
	// differs is what becomes of it with Isthmus, if that is something else; why says
	// the reason.
	differs *simulation.Result
	why     string
}

// run makes the calls on both sides. Where Isthmus does not differ on purpose, a call
// also meets the same listener, chain, route and cluster on both.
func (w world) run(t *testing.T, expectations []expectation) {
	t.Helper()
	var istio, isthmus *simulation.Simulation
	t.Run("istio", func(t *testing.T) {
		istio = w.istio(t)
		istio.RunExpectations(expected(expectations, func(e expectation) simulation.Result { return e.want }))
	})
	t.Run("isthmus", func(t *testing.T) {
		isthmus = w.isthmus(t)
		isthmus.RunExpectations(expected(expectations, func(e expectation) simulation.Result {
			if e.differs != nil {
				return *e.differs
			}
			return e.want
		}))
	})
	if t.Failed() {
		return
	}
	for _, e := range expectations {
		theirs, ours := outcomeOf(istio, e.call), outcomeOf(isthmus, e.call)
		switch {
		case e.differs == nil && ours != theirs:
			t.Errorf("%s: Istio: %+v, Isthmus: %+v", e.name, theirs, ours)
		case e.differs != nil && ours == theirs:
			t.Errorf("%s: there is no difference any more: %+v", e.name, ours)
		}
	}
}

func expected(list []expectation, of func(expectation) simulation.Result) (calls []simulation.Expect) {
	for _, e := range list {
		calls = append(calls, simulation.Expect{Name: e.name, Call: e.call, Result: of(e)})
	}
	return calls
}

// outcome is all that the model finds out about a call.
type outcome struct{ err, listener, chain, routes, host, route, cluster string }

func outcomeOf(sim *simulation.Simulation, call simulation.Call) outcome {
	r := sim.Run(call)
	return outcome{
		err: text(r.Error), listener: r.ListenerMatched, chain: r.FilterChainMatched, routes: r.RouteConfigMatched,
		host: r.VirtualHostMatched, route: r.RouteMatched, cluster: r.ClusterMatched,
	}
}

func text(err error) string {
	if errors.Is(err, nil) {
		return ""
	}
	return err.Error()
}

// to is the result of a call that reaches a cluster.
func to(cluster string) simulation.Result { return simulation.Result{ClusterMatched: cluster} }

// through is the same with the listener that it comes through.
func through(listener, cluster string) simulation.Result {
	return simulation.Result{ListenerMatched: listener, ClusterMatched: cluster}
}

const (
	passthrough = "PassthroughCluster"
	blackHole   = "BlackHoleCluster"
)
