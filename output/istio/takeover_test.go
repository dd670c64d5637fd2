package istio

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/output/istio/object"
	"github.com/isthmus-mesh/isthmus/test/testkit/kubeapi"
	"github.com/isthmus-mesh/isthmus/test/testkit/shop"
)

// specification is what is said of a host in its first object.
func specification(api *kubeapi.Server, host string) any {
	o := api.Get(entries + host)
	if o == nil {
		return "no object"
	}
	return o["spec"]
}

// A port keeps the name that it had when its object was handed over, until somebody
// removes the annotation that says so. Later changes are plain ones.
func TestPortsKeepTheNamesThatTheyWereHandedOverWith(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc")
	const host = "a.example"
	o := handedOver(host)
	o["spec"].(kubeapi.Object)["ports"] = []any{kubeapi.Object{"number": 80, "name": "HTTP-80"}}
	api.Put(entries+host, o)
	r.say(shop.Service("sc", host), shop.Instance("sc", host, "10.0.0.2"))
	r.listed("sc")
	w := start(t, api, r, nil)
	wants(t, api, host, "10.0.0.2")
	settled(t, w)
	if got := fmt.Sprint(specification(api, host)); !strings.Contains(got, "HTTP-80") {
		t.Errorf("it is %s", got)
	}
	before := len(api.Writes())
	r.say(shop.Instance("sc", host, "10.0.0.3"))
	wants(t, api, host, "10.0.0.2 10.0.0.3")
	settled(t, w)
	if writes := api.Writes()[before:]; len(writes) != 1 || !strings.HasPrefix(writes[0], "PATCH") {
		t.Errorf("a change led to %v", writes)
	}
	if got := fmt.Sprint(specification(api, host)); !strings.Contains(got, "HTTP-80") {
		t.Errorf("after a change it is %s", got)
	}
	o = api.Get(entries + host)
	delete(o["metadata"].(kubeapi.Object)["annotations"].(kubeapi.Object), object.AnnotationPorts)
	api.Put(entries+host, o)
	await(t, "the port to have the service's own name", func() error {
		if got := fmt.Sprint(specification(api, host)); strings.Contains(got, "HTTP-80") {
			return fmt.Errorf("it is %s", got)
		}
		return nil
	})
	settled(t, w)
}

// A webhook that does not take what apply would make of an object is no reason
// to give up, but a right that is missing is one.
func TestOnlyWhatIsRejectedForItsContentIsOverwritten(t *testing.T) {
	t.Parallel()
	for text, replaced := range map[string]bool{
		`admission webhook "validation.istio.io" denied the request: port number 80 already defined`: true,
		`serviceentries.networking.istio.io "a.example" is forbidden`:                                false,
	} {
		api, r := newAPI(t), newRegistry("sc")
		const host = "a.example"
		api.Put(entries+host, handedOver(host))
		api.Reject(func(verb, _ string) *kubeapi.Rejection {
			if verb != http.MethodPatch {
				return nil
			}
			return &kubeapi.Rejection{Code: http.StatusForbidden, Reason: "Forbidden", Message: text}
		})
		r.say(shop.Service("sc", host), shop.Instance("sc", host, "10.0.0.2"))
		r.listed("sc")
		w := start(t, api, r, nil)
		if !replaced {
			fails(t, w, "ServiceEntry shop/"+host, text)
			if writes := api.Writes(); len(writes) > 1 || addresses(api, host) != "10.0.0.1" { // the ownership may be taken
				t.Errorf("%s: it was written all the same: %v", text, writes)
			}
			continue
		}
		wants(t, api, host, "10.0.0.2")
		settled(t, w)
	}
}

// An object that somebody changes between two steps of a takeover is
// looked at again. What they have done to it meanwhile decides: without our
// labels it is not ours any more.
func TestTakingOverStopsWhereItIsNotOursAnyMore(t *testing.T) {
	t.Parallel()
	for _, verb := range []string{http.MethodGet, http.MethodPut} {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			api, r := newAPI(t), newRegistry("sc")
			const host = "a.example"
			o := handedOver(host)
			o["spec"].(kubeapi.Object)["ports"] = []any{kubeapi.Object{"number": 80, "name": "HTTP-80"}}
			api.Put(entries+host, o)
			taken := handedOver(host)
			taken["metadata"].(kubeapi.Object)["labels"] = kubeapi.Object{"owner": "somebody"}
			taken["spec"] = o["spec"]
			api.Before(func(method, path string) {
				if method == verb && strings.HasSuffix(path, "/"+host) {
					api.Before(nil)
					api.Put(entries+host, taken)
				}
			})
			r.say(shop.Service("sc", host), shop.Instance("sc", host, "10.0.0.2"))
			r.listed("sc")
			w := start(t, api, r, nil)
			fails(t, w, "ServiceEntry shop/"+host, "hand it over")
			if got := addresses(api, host); got != "10.0.0.1" {
				t.Errorf("written is %s", got)
			}
		})
	}
}

// Whoever has written which valid object of the name, and whatever they own of
// it: what is wanted is reached, and then nothing is written any more.
func TestAnyObjectIsApplied(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		api, r := kubeapi.New(), newRegistry("sc")
		defer api.Close()
		const host = "a.example"
		for range rapid.IntRange(1, 3).Draw(rt, "writes") {
			o := handedOver(host)
			o["spec"] = kubeapi.DrawSpec(rt, host)
			api.Put(entries+host, o)
		}
		r.say(shop.Service("sc", host), shop.Instance("sc", host, "10.0.0.2"))
		r.listed("sc")
		w := start(t, api, r, nil)
		defer w.stop()
		reached := func() {
			await(t, "the object to be as it should be", func() error { // the ports keep their names
				if diff := cmp.Diff(w.wanted(host), specification(api, host)); diff != "" {
					return fmt.Errorf("it is not (-):\n%s", diff)
				}
				return nil
			})
			settled(t, w)
		}
		reached()
		o := api.Get(entries + host)
		o["spec"] = kubeapi.DrawSpec(rt, host)
		api.Put(entries+host, o)
		reached()
		writes := len(api.Writes())
		if writes > 2*3 {
			rt.Errorf("it was written by %v", api.Writes())
		}
		w.review()
		settled(t, w)
		if more := api.Writes()[writes:]; len(more) > 0 {
			rt.Errorf("in order, it was written by %v", more)
		}
	})
}

// wanted is the specification of the only object of a host, as JSON has it.
func (w *running) wanted(host string) any {
	return w.planner.Plan(w.look(), object.Key{Kind: object.ServiceEntry, Namespace: "shop", Name: host}).Objects[0].Whole().SpecMap()
}
