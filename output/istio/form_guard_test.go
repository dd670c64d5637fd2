package istio

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/istio/translate"
	"github.com/isthmus-mesh/isthmus/output/istio/write"
	"github.com/isthmus-mesh/isthmus/test/testkit/kubeapi"
	"github.com/isthmus-mesh/isthmus/test/testkit/shop"
)

// inFormWritten has an earlier process write a.example with n endpoints in a form.
func inFormWritten(t *testing.T, f translate.Form, n int) (*kubeapi.Server, *registry) {
	t.Helper()
	api, r := newAPI(t), newRegistry("sc")
	r.say(fleetSays(n)...)
	r.listed("sc")
	w := start(t, api, r, inForm(f))
	endsIn(t, api, w, f, n)
	w.stop()
	return api, r
}

// A process that knows nothing meets a registry that has lost nearly everything. Those
// who are objects of their own stay as others do, whatever form the configuration
// has by now, until the third equal listing.
func TestNearlyEmptyFirstListingTakesNoWorkloadAway(t *testing.T) {
	t.Parallel()
	for _, form := range []translate.Form{translate.WorkloadEntries, translate.Inline} {
		t.Run("to "+string(form), func(t *testing.T) {
			t.Parallel()
			api, r := inFormWritten(t, translate.WorkloadEntries, 40)
			moves := filmed(api)
			for i := 2; i < 40; i++ {
				r.say(shop.NoInstance("sc", "a.example", fmt.Sprintf("10.0.0.%d", i)))
			}
			g := fresh(t, api, r, brief, inForm(form))
			g.Listed("sc")
			g.lacks(38)
			await(t, "what is held to be shown", func() error {
				// One is for all WorkloadEntries. There are more if the earlier process was
				// stopped before the inline objects had gone that it began with.
				held := g.Status().Held
				if !slices.ContainsFunc(held, func(h write.Held) bool { return h.String() == "ServiceEntry shop/a.example" }) {
					return fmt.Errorf("held are %+v", held)
				}
				return nil
			})
			g.list()
			g.lacks(38)
			settled(t, g.running)
			for _, m := range moves.take() {
				if len(m.served) != 40 {
					t.Errorf("served were %d", len(m.served))
				}
			}
			g.list()
			g.lacks(0)
			endsIn(t, api, g.running, form, 2)
			if got := served(api.Everything()); len(got) != 2 {
				t.Errorf("served are %v", got)
			}
		})
	}
}

// Nor does an endpoint go before its source has been listed.
func TestNoWorkloadGoesBeforeItsSourceIsListed(t *testing.T) {
	t.Parallel()
	for _, form := range []translate.Form{translate.WorkloadEntries, translate.Inline, translate.Auto} {
		api, _ := inFormWritten(t, translate.WorkloadEntries, 20)
		before := len(api.Writes())
		unlisted := newRegistry("sc")
		unlisted.say(fleetSays(3)...)
		w := start(t, api, unlisted, func(c *Config, o *Options) {
			inForm(form)(c, o)
			o.Sources = unlisted.sources
		})
		await(t, "what waits to be shown", func() error {
			if held := w.Status().Held; len(held) == 0 {
				return errors.New("nothing is held")
			}
			return nil
		})
		if got := served(api.Everything()); len(got) != 20 {
			t.Errorf("%s: served are %v, after %v", form, got, api.Writes()[before:])
		}
		w.stop()
	}
}

// The dry run shows how a change of the form ends.
func TestPlanShowsTheOtherForm(t *testing.T) {
	t.Parallel()
	for from, test := range map[translate.Form]struct {
		to   translate.Form
		want map[string]int
	}{
		translate.Inline:          {translate.WorkloadEntries, map[string]int{"create WorkloadEntry": 7, "update ServiceEntry": 1, "delete ServiceEntry": 3}},
		translate.WorkloadEntries: {translate.Inline, map[string]int{"delete WorkloadEntry": 7, "update ServiceEntry": 1, "create ServiceEntry": 3}},
	} {
		api, r := inFormWritten(t, from, 7)
		before := len(api.Writes())
		c, o := quick(), Options{Instance: "test"}
		inForm(test.to)(&c, &o)
		w, err := newWriter(c, o, &rest.Config{Host: api.URL()})
		if err != nil {
			t.Fatal(err)
		}
		w.Publish(r.builder.Snapshot(), catalog.Change{}, true)
		actions, _, err := w.Plan(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]int{}
		for _, a := range actions {
			got[fmt.Sprint(a.Verb, " ", a.Kind)]++
		}
		if fmt.Sprint(got) != fmt.Sprint(test.want) {
			t.Errorf("from %s it would %v, want %v", from, got, test.want)
		}
		if writes := api.Writes()[before:]; len(writes) > 0 {
			t.Errorf("it wrote %v", writes)
		}
	}
}

// Who may not look for WorkloadEntries writes endpoints inline all the same, also of a
// service that has some.
func TestWorkloadsThatCannotBeListedHoldUpNothing(t *testing.T) {
	t.Parallel()
	api, r := inFormWritten(t, translate.WorkloadEntries, 4)
	api.Reject(func(_, path string) *kubeapi.Rejection {
		if !strings.Contains(path, "/workloadentries") {
			return nil
		}
		return &kubeapi.Rejection{Code: http.StatusForbidden, Reason: "Forbidden", Message: "no workloadentries"}
	})
	before := len(api.Writes())
	w := start(t, api, r, inForm(translate.Inline))
	await(t, "the endpoints inline", func() error {
		if s := spec(api, "a.example"); s["workloadSelector"] != nil || s["endpoints"] == nil {
			return fmt.Errorf("it is %v", s)
		}
		return nil
	})
	settled(t, w)
	if s := w.Status(); s.Trouble != "" || len(s.Failing) > 0 {
		t.Errorf("%s, %v", s.Trouble, s.Failing)
	}
	if got := served(api.Everything()); len(got) != 4 {
		t.Errorf("served are %v, after %v", got, api.Writes()[before:])
	}
}

// A service grows, and shrinks, and is in both forms meanwhile.
func TestServiceMovesAsItGrowsAndShrinks(t *testing.T) {
	t.Parallel()
	const above = 60
	api, r := newAPI(t), newRegistry("sc")
	r.say(fleetSays(3)...)
	r.listed("sc")
	w := start(t, api, r, func(c *Config, o *Options) {
		inForm(translate.Auto)(c, o)
		c.above = above
	})
	counts(t, api, w, 1, 0)
	var more, less []model.Event
	for i := range above {
		more = append(more, shop.Instance("sc", "a.example", fmt.Sprintf("10.1.%d.%d", i>>8, i&255)))
		less = append(less, shop.NoInstance("sc", "a.example", fmt.Sprintf("10.1.%d.%d", i>>8, i&255)))
	}
	r.say(more...)
	sees(t, w, 1+above+3)
	endsIn(t, api, w, translate.WorkloadEntries, above+3)
	r.say(less[:above/2]...)
	sees(t, w, 1+above/2+3)
	endsIn(t, api, w, translate.WorkloadEntries, above/2+3)
	r.say(less[above/2:]...)
	sees(t, w, 1)
	if got := served(api.Everything()); len(got) != 3 {
		t.Errorf("served are %v", got)
	}
}
