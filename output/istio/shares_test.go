package istio

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/catalog/split"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/istio/object"
	"github.com/isthmus-mesh/isthmus/output/istio/translate"
	"github.com/isthmus-mesh/isthmus/test/testkit/kubeapi"
	"github.com/isthmus-mesh/isthmus/test/testkit/shop"
)

const rules = "networking.istio.io/v1/namespaces/shop/destinationrules/"

// divide sets the splits: by host, whether clients use near endpoints first.
func (r *registry) divide(splits map[string]bool) {
	order := catalog.Order{Sources: r.names, Splits: map[catalog.ServiceKey]*split.Split{}}
	for host, nearFirst := range splits {
		order.Splits[catalog.ServiceKey{Namespace: "shop", Host: host}] = &split.Split{
			Backends: []model.Backend{{Source: "sc", Weight: 90}, {Source: "east", Weight: 10}}, NearFirst: nearFirst,
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	change := r.builder.Arrange(order)
	change.Committed = time.Now()
	for _, w := range r.readers {
		w.Publish(r.builder.Snapshot(), change, r.complete())
	}
}

// shared is a registry of two sources that have hosts, the first of which is divided.
func shared(t *testing.T, hosts ...string) (*kubeapi.Server, *registry) {
	t.Helper()
	r := newRegistry("sc", "east")
	for _, host := range hosts {
		r.say(shop.Service("sc", host), shop.Instance("sc", host, "10.0.0.1"), shop.Service("east", host), shop.Instance("east", host, "10.0.1.1"))
	}
	r.divide(map[string]bool{hosts[0]: false})
	r.listed("sc", "east")
	return newAPI(t), r
}

// asRules writes shares as rules.
func asRules(c *Config, o *Options) {
	c.Shares, o.RootNamespace = translate.SharesAsRules, "istio-system"
}

// balanced is the specification of the rule for a host.
func balanced(host string, nearFirst bool) kubeapi.Object {
	balancer := kubeapi.Object{"simple": "ROUND_ROBIN"}
	if !nearFirst {
		balancer["localityLbSetting"] = kubeapi.Object{"enabled": false}
	}
	return kubeapi.Object{"host": host, "trafficPolicy": kubeapi.Object{"loadBalancer": balancer}}
}

// wantsRule waits until the rule for a host has a specification; nil means that there is no
// rule.
func wantsRule(t *testing.T, api *kubeapi.Server, host string, spec kubeapi.Object) {
	t.Helper()
	await(t, "the rule for "+host, func() error {
		got, _ := api.Get(rules + host)["spec"].(kubeapi.Object)
		if diff := cmp.Diff(spec, got); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
}

// putRule stores a rule of another owner.
func putRule(api *kubeapi.Server, namespace, name string, spec kubeapi.Object) {
	api.Put(ruleIn(namespace, name), kubeapi.Object{
		"apiVersion": "networking.istio.io/v1", "kind": "DestinationRule", "metadata": kubeapi.Object{"name": name, "namespace": namespace}, "spec": spec,
	})
}

func ruleIn(namespace, name string) string {
	return strings.Replace(rules, "/shop/", "/"+namespace+"/", 1) + name
}

// leavesOut waits until the parts that are not written are those, each with a part of the
// reason.
func leavesOut(t *testing.T, w *running, want map[string]string) {
	t.Helper()
	await(t, fmt.Sprint("to be left out: ", want), func() error {
		left := w.Status().LeftOut
		for _, o := range left {
			if reason, known := want[o.String()]; !known || !strings.Contains(o.Invalid, reason) {
				return fmt.Errorf("%s is left out: %s", o, o.Invalid)
			}
		}
		if len(left) != len(want) {
			return fmt.Errorf("left out are %v", left)
		}
		return nil
	})
}

// A host with a split has a rule with which Istio obeys the shares, for as long as it has
// the split, and no other host has one.
func TestSharesBecomeRules(t *testing.T) {
	t.Parallel()
	api, r := shared(t, "a.example", "b.example")
	w := start(t, api, r, asRules)
	wantsRule(t, api, "a.example", balanced("a.example", false))
	settled(t, w)
	labels := object.Marks("test")
	meta, _ := api.Get(rules + "a.example")["metadata"].(kubeapi.Object)
	for name, value := range labels {
		if got := meta["labels"].(kubeapi.Object)[name]; got != value { //nolint:forcetypeassert // it would fail, too
			t.Errorf("the label %s is %v", name, got)
		}
	}
	annotations := kubeapi.Object{object.AnnotationSources: "sc,east", object.AnnotationService: "a.example"}
	if diff := cmp.Diff(annotations, meta["annotations"]); diff != "" {
		t.Error(diff)
	}
	before := writesTo(api, rules)
	r.say(shop.InstanceOf("east", "a.example", model.Endpoint{Address: "10.0.1.2"}))
	wants(t, api, "a.example", "10.0.0.1 10.0.1.1 10.0.1.2")
	settled(t, w)
	if after := writesTo(api, rules); !slices.Equal(before, after) {
		t.Errorf("an endpoint that comes changes rules: %v", after[len(before):])
	}

	r.divide(map[string]bool{"a.example": true})
	wantsRule(t, api, "a.example", balanced("a.example", true))
	exported, _ := shop.Service("sc", "a.example").(model.Upsert)
	spec, _ := exported.Record.Spec.(model.Service)
	spec.ExportTo = model.ListOf(".")
	exported.Record.Spec = spec
	r.say(exported)
	own := balanced("a.example", true)
	own["exportTo"] = []any{"."}
	wantsRule(t, api, "a.example", own)

	r.divide(map[string]bool{"b.example": false})
	wantsRule(t, api, "a.example", nil)
	wantsRule(t, api, "b.example", balanced("b.example", false))
	r.say(shop.NoService("sc", "b.example"), shop.NoInstance("sc", "b.example", "10.0.0.1"), shop.NoService("east", "b.example"), shop.NoInstance("east", "b.example", "10.0.1.1"))
	wantsRule(t, api, "b.example", nil)
	settled(t, w)
	leavesOut(t, w, nil)
}

// writesTo lists the writes to paths that begin so.
func writesTo(api *kubeapi.Server, path string) []string {
	return slices.DeleteFunc(api.Writes(), func(write string) bool { return !strings.Contains(write, path) })
}

// No rule is written of a host that a rule cannot be of alone.
func TestSharesWithoutARuleAreShown(t *testing.T) {
	t.Parallel()
	api, r := shared(t, "*.a.example", "short")
	r.divide(map[string]bool{"*.a.example": false, "short": false})
	w := start(t, api, r, asRules)
	leavesOut(t, w, map[string]string{
		"DestinationRule shop/*.a.example": "a wildcard is for other hosts", "DestinationRule shop/short": "a host without a dot",
	})
	settled(t, w)
	if writes := writesTo(api, "/destinationrules/"); len(writes) > 0 {
		t.Error(writes)
	}
}

// A rule that somebody else has for the host is left alone, and none is written beside it.
func TestRulesOfOthersAreNotFoughtOver(t *testing.T) {
	t.Parallel()
	const host = "reviews.shop.svc.example"
	tls := func(host string) kubeapi.Object {
		return kubeapi.Object{"host": host, "trafficPolicy": kubeapi.Object{"tls": kubeapi.Object{"mode": "SIMPLE"}}}
	}
	for name, test := range map[string]struct {
		namespace string
		spec      kubeapi.Object
		written   bool // ours
		silent    bool
	}{
		"the host":                       {namespace: "shop", spec: tls(host)},
		"its short form":                 {namespace: "shop", spec: tls("reviews")},
		"a wildcard":                     {namespace: "shop", spec: tls("*.svc.example")},
		"the root namespace":             {namespace: "istio-system", spec: tls("*")},
		"exact shares":                   {namespace: "shop", spec: balanced(host, false), silent: true},
		"another host":                   {namespace: "shop", spec: tls("reviews.shop.example"), written: true},
		"a client's namespace":           {namespace: "web", spec: tls(host), written: true},
		"a short host in the root":       {namespace: "istio-system", spec: tls("reviews"), written: true},
		"a wildcard of longer hosts":     {namespace: "shop", spec: tls("*.reviews.shop.svc.example"), written: true},
		"a host that only begins so":     {namespace: "shop", spec: tls("review"), written: true},
		"a rule without a host at all":   {namespace: "shop", spec: kubeapi.Object{}, written: true},
		"exact, in a client's namespace": {namespace: "web", spec: balanced(host, false), written: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api, r := shared(t, host)
			putRule(api, test.namespace, "theirs", test.spec)
			w := start(t, api, r, asRules)
			wants(t, api, host, "10.0.0.1 10.0.1.1")
			settled(t, w)
			ours := balanced(host, false)
			switch {
			case test.written:
				wantsRule(t, api, host, ours)
				leavesOut(t, w, nil)
				return
			case test.silent:
				leavesOut(t, w, nil)
			default:
				leavesOut(t, w, map[string]string{"DestinationRule shop/" + host: "DestinationRule " + test.namespace + "/theirs of another owner is for this host"})
			}
			wantsRule(t, api, host, nil)
			api.Delete(ruleIn(test.namespace, "theirs"))
			wantsRule(t, api, host, ours)
			leavesOut(t, w, nil)
			putRule(api, test.namespace, "theirs", test.spec)
			wantsRule(t, api, host, nil)
			settled(t, w)
			if got, _ := api.Get(ruleIn(test.namespace, "theirs"))["spec"].(kubeapi.Object); !cmp.Equal(got, test.spec) {
				t.Errorf("the rule of another owner is %v", got)
			}
			await(t, "one object of ours", func() error {
				if n := w.Status().Objects; n != 1 {
					return fmt.Errorf("there are %d", n)
				}
				return nil
			})
			if n := w.Status().Drift; n > 0 {
				t.Errorf("%d objects were restored", n)
			}
		})
	}
}

// A rule of another owner that has the name is shown as an object in the way, and may be
// handed over by its labels.
func TestRuleOfTheNameIsInTheWay(t *testing.T) {
	t.Parallel()
	api, r := shared(t, "a.example")
	putRule(api, "shop", "a.example", kubeapi.Object{"host": "other.example"})
	w := start(t, api, r, asRules)
	fails(t, w, "DestinationRule shop/a.example", "it lacks the labels of this Isthmus")
	wantsRule(t, api, "a.example", kubeapi.Object{"host": "other.example"})
	ours := api.Get(rules + "a.example")
	meta, _ := ours["metadata"].(kubeapi.Object)
	meta["labels"] = object.Marks("test")
	api.Put(rules+"a.example", ours)
	wantsRule(t, api, "a.example", balanced("a.example", false))
	settled(t, w)
}

// Nothing is written before the rules of others are known.
func TestRulesOfOthersAreListedFirst(t *testing.T) {
	t.Parallel()
	api, r := shared(t, "a.example")
	putRule(api, "shop", "theirs", kubeapi.Object{"host": "a.example"})
	listed := make(chan struct{})
	api.Before(func(verb, path string) {
		if verb == http.MethodGet && strings.HasSuffix(path, "/destinationrules") {
			<-listed
		}
	})
	release := sync.OnceFunc(func() { close(listed) })
	w := start(t, api, r, asRules)
	t.Cleanup(release) // before the writer is stopped
	await(t, "the writer to wait for rules", func() error {
		if waiting := w.Status().Waiting; !slices.Contains(waiting, "the API server's listing of destinationrules") {
			return fmt.Errorf("it waits for %v", waiting)
		}
		return nil
	})
	if writes := api.Writes(); len(writes) > 0 {
		t.Error(writes)
	}
	release()
	wants(t, api, "a.example", "10.0.0.1 10.0.1.1")
	settled(t, w)
	if writes := writesTo(api, "/destinationrules/"); len(writes) > 0 {
		t.Error(writes)
	}
}

// A service that each cluster has for itself is not written, and has no rule.
func TestSharesOfClusterLocalServicesHaveNoRule(t *testing.T) {
	t.Parallel()
	api, r := shared(t, "a.example", "b.example")
	local, _ := shop.Service("sc", "a.example").(model.Upsert)
	spec, _ := local.Record.Spec.(model.Service)
	spec.Traffic.ClusterLocal = true
	local.Record.Spec = spec
	r.say(local)
	w := start(t, api, r, asRules)
	wants(t, api, "b.example", "10.0.0.1 10.0.1.1")
	settled(t, w)
	if writes := writesTo(api, "a.example"); len(writes) > 0 {
		t.Error(writes)
	}
}

// A change by another writer is undone.
func TestChangedRuleIsRestored(t *testing.T) {
	t.Parallel()
	api, r := shared(t, "a.example")
	w := start(t, api, r, asRules)
	wantsRule(t, api, "a.example", balanced("a.example", false))
	settled(t, w)
	changed := api.Get(rules + "a.example")
	changed["spec"] = kubeapi.Object{"host": "a.example", "trafficPolicy": kubeapi.Object{"tls": kubeapi.Object{"mode": "SIMPLE"}}}
	api.Put(rules+"a.example", changed)
	wantsRule(t, api, "a.example", balanced("a.example", false))
	settled(t, w)
	api.Delete(rules + "a.example")
	wantsRule(t, api, "a.example", balanced("a.example", false))
	await(t, "both to be counted", func() error {
		if n := w.Status().Drift; n != 2 {
			return fmt.Errorf("%d were", n)
		}
		return nil
	})
}

// A rule of an earlier run stays until all of its sources have been listed, and goes at once
// if rules are not written any more.
func TestRuleOfAnEarlierRun(t *testing.T) {
	t.Parallel()
	api, r := shared(t, "a.example")
	w := start(t, api, r, asRules)
	wantsRule(t, api, "a.example", balanced("a.example", false))
	settled(t, w)
	w.stop()

	later := newRegistry("sc", "east")
	w = start(t, api, later, func(c *Config, o *Options) { asRules(c, o); o.Sources = later.sources })
	later.listed("sc")
	await(t, "the rule to be held", func() error {
		for _, h := range w.Status().Held {
			if h.Kind == object.DestinationRule && strings.Contains(h.Reason, "east") {
				return nil
			}
		}
		return fmt.Errorf("held are %v", w.Status().Held)
	})
	wantsRule(t, api, "a.example", balanced("a.example", false))
	w.stop()

	dry, err := newWriter(quick(), Options{Instance: "test"}, &rest.Config{Host: api.URL()})
	if err != nil {
		t.Fatal(err)
	}
	dry.Publish(later.snapshot(), catalog.Change{}, false)
	actions, _, err := dry.Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	said := "delete DestinationRule shop/a.example: outputs.istio.shares is weights"
	if got := fmt.Sprint(actions[0].Verb, " ", actions[0].Ref, ": ", actions[0].Reason); got != said {
		t.Errorf("the dry run says %q", got)
	}
	start(t, api, later, func(_ *Config, o *Options) { o.Sources = later.sources })
	wantsRule(t, api, "a.example", nil)
	if api.Get(entries+"a.example") == nil {
		t.Error("the service went before its source was listed")
	}
}
