package kubernetes_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/store"
)

// Every kind of the table that is read or can be carried is followed in a cluster. A kind that
// cannot be read keeps its objects, and says how it is turned off.
func TestEachKindOfTheTableIsFollowed(t *testing.T) {
	t.Parallel()
	specs := map[string]object{
		"ServiceEntry":  {"hosts": []any{"a.example"}, "resolution": "NONE", "ports": []any{object{"number": 80, "name": "http"}}},
		"WorkloadEntry": {"address": "10.0.0.1"},
		"WorkloadGroup": {"template": object{"ports": object{"http": 80}}},
		"Sidecar":       {"egress": []any{object{"hosts": []any{"./*"}}}},
		"TrafficSplit":  {"service": "reviews", "backends": []any{object{"service": "reviews-v2", "weight": 1}}},
	}
	followed := append(istio.Understood(), istio.Carry{istio.Everything}.Definitions()...)
	for _, namespaces := range [][]string{nil, {"shop"}} {
		synctest.Test(t, func(t *testing.T) {
			r, stored := newRegistry(false, namespaces...), store.NewMemory(store.Config{})
			r.carry = istio.Carry{istio.Everything}
			write := func(d istio.Definition, name string) {
				r.api.write(d.Resource(), map[string]object{name: {"spec": specs[d.Name]}})
			}
			for _, d := range followed {
				write(d, "first")
			}
			s, stop := supervised(t, r, stored)
			mustHold(t, s.Status(), stored, followed, "first")
			for _, d := range followed {
				write(d, "second")
			}
			pass(time.Second)
			mustHold(t, s.Status(), stored, followed, "second")

			for _, d := range followed {
				r.api.fail(only(d.Resource(), rejects(http.StatusForbidden, "Forbidden")), ends)
				pass(40 * time.Second)
				status := s.Status()
				mustHold(t, status, stored, followed, "second")
				if len(status.Rejected) == 0 || !strings.Contains(status.Rejected[0].Reason, turnedOff(d)) {
					t.Errorf("%s may not be read, and the status says %v", d.Resource(), status.Rejected)
				}
				r.api.fail(nil, ends)
				pass(40 * time.Second)
			}
			for _, d := range followed {
				r.api.write(d.Resource(), nil)
			}
			pass(time.Second)
			if n := len(recordsOf(stored)); n > 0 {
				t.Errorf("%d kinds have records without objects", n)
			}
			stop()
		})
	}
}

func turnedOff(d istio.Definition) string {
	switch {
	case d.IsSMI():
		return ", or set smi: false"
	case d.IsRead():
		return ", or set istio: false"
	}
	return ", or leave " + d.Name + " out of carry"
}

// An absent definition holds up nothing, and a kind that is not named is not asked for.
func TestOnlyNamedKindsAreCarried(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, stored := newRegistry(false), store.NewMemory(store.Config{})
		r.carry = istio.Carry{"DestinationRule"}
		for _, resource := range []string{"destinationrules", "virtualservices"} {
			r.api.write(resource, map[string]object{"a": {"spec": object{}}})
		}
		absent := only("destinationrules", rejects(http.StatusNotFound, "NotFound"))
		r.api.fail(func(q *http.Request) (*http.Response, error) {
			if _, _, resource := asked(q); resource == "virtualservices" {
				t.Error("VirtualServices are asked for")
			}
			return absent(q)
		}, ends)
		s, stop := supervised(t, r, stored)
		if status := s.Status(); status.State != source.StateLive || len(status.Rejected) != 1 {
			t.Errorf("without the definition the source is %s with %v", status.State, status.Rejected)
		}
		r.api.fail(nil, ends)
		pass(40 * time.Second)
		if status := s.Status(); status.Carried["DestinationRule"] != 1 || len(status.Carried) != 1 || len(status.Rejected) > 0 {
			t.Errorf("with the definition there are %v, rejected %v", status.Carried, status.Rejected)
		}
		stop()
	})
}

func mustHold(t *testing.T, status source.Status, in *store.Memory, kinds []istio.Definition, name string) {
	t.Helper()
	has := recordsOf(in)
	for _, d := range kinds {
		if got := has[d.RecordKind()]; len(got) != 1 || got[0] != name {
			t.Errorf("of %s there is %v", d.Name, got)
		}
	}
	if status.State != source.StateLive || len(status.Ignored) > 0 {
		t.Errorf("the source is %s: %s; %v have no effect", status.State, status.Reason, status.Ignored)
	}
}

// recordsOf returns the names of the records of the registry, by kind.
func recordsOf(in *store.Memory) map[model.Kind][]string {
	names := map[model.Kind][]string{}
	for r := range in.List(model.Filter{Source: "k8s"}) {
		if !r.Kind.Reserved() {
			names[r.Kind] = append(names[r.Kind], r.Name)
		}
	}
	return names
}
