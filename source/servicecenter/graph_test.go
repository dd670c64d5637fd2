package servicecenter_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/file"
	"github.com/isthmus-mesh/isthmus/source/servicecenter"
	"github.com/isthmus-mesh/isthmus/source/servicecenter/records"
	standin "github.com/isthmus-mesh/isthmus/test/testkit/servicecenter"
)

// uses has a service look up another, as clients of the registry do.
func (r *rig) uses(consumer, app, provider string) {
	r.Helper()
	client := &http.Client{Transport: &http.Transport{DialContext: r.net.dial, DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(r.Context(), http.MethodGet,
		r.URL()+"/v4/default/registry/instances?appId="+app+"&serviceName="+provider+"&version=0%2B", nil)
	if err != nil {
		r.Fatal(err)
	}
	request.Header.Set("X-ConsumerId", consumer)
	answer, err := client.Do(request)
	if err != nil {
		r.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		r.Fatal(answer.Status)
	}
	r.pass(time.Second) // until it has become a rule
}

// graph is what is stored of who uses whom, and of who sees what.
func (m *mirror) graph() string {
	var all []string
	for rec := range m.store.List(model.Filter{Source: m.name}) {
		switch spec := rec.Spec.(type) {
		case model.Consumption:
			text := "consumption " + spec.Consumer.Namespace + "/" + spec.Consumer.Host + ":"
			for p := range spec.Providers.All() {
				text += " " + p.Namespace + "/" + p.Host
			}
			all = append(all, text)
		case model.Scope:
			all = append(all, fmt.Sprintf("scope %s/%s of %v: %s", rec.Namespace, rec.Name, spec.WorkloadSelector.Map(), strings.Join(spec.Hosts.Slice(), " ")))
		}
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

func (m *mirror) wantsGraph(lines ...string) {
	m.Helper()
	if got := m.graph(); got != strings.Join(lines, "\n") {
		m.Errorf("stored:\n%s\n\nwant:\n%s", got, strings.Join(lines, "\n"))
	}
}

// scoped is a configuration that reads the dependencies, and makes scopes of them.
func (r *rig) scoped() servicecenter.Config {
	c := r.config()
	c.Host = "{{.Service}}.sc"
	c.Dependencies.Poll = 30 * time.Second
	c.Scopes = &records.Scopes{
		Namespace: "{{.App}}", WorkloadSelector: map[string]string{"app": "{{.Service}}"}, Hosts: []string{"istio-system/*"},
	}
	return c
}

// S: every service was shown to every sidecar. Here consumers see what they use.
func TestDefectS_ConsumersSeeWhatTheyUse(t *testing.T) {
	bubble(t, prompt, func(r *rig) {
		web, cart, users := r.many("web", 0, 1), r.many("cart", 1, 1), r.many("users", 2, 1)
		r.many("unused", 3, 1)
		r.uses(web, "shop", "cart")
		r.uses(web, "shop", "users")
		m := r.mirror(r.scoped())
		want := []string{
			"consumption istio-system/web.sc: istio-system/cart.sc istio-system/users.sc",
			"scope shop/web.sc of map[app:web]: istio-system/* istio-system/cart.sc istio-system/users.sc",
		}
		m.wantsGraph(want...)

		// It follows, and stays when it cannot be read.
		r.uses(cart, "shop", "users")
		r.Inject(standin.GovernServices, standin.FailWith(standin.Internal), 0)
		r.pass(time.Minute)
		m.wantsGraph(want...)
		m.rejects("dependencies", "500003")
		m.is(source.StateLive, "")
		r.Repair()
		r.Inject(standin.GovernServices, standin.Answer(http.StatusOK, jsonType, `{}`), 0)
		r.pass(time.Minute)
		m.wantsGraph(want...)
		m.rejects("dependencies", `no field "allServicesDetail"`)
		r.Repair()
		r.pass(time.Minute)
		want = []string{
			"consumption istio-system/cart.sc: istio-system/users.sc", want[0],
			"scope shop/cart.sc of map[app:cart]: istio-system/* istio-system/users.sc", want[1],
		}
		m.wantsGraph(want...)
		m.stop()

		// A restart while it cannot be read keeps it, too.
		r.Inject(standin.GovernServices, standin.FailWith(standin.Internal), 0)
		m = r.mirror(r.scoped())
		m.wantsGraph(want...)
		r.Repair()
		r.Unregister(users)
		r.pass(time.Minute)
		m.wantsGraph("consumption istio-system/web.sc: istio-system/cart.sc", "scope shop/web.sc of map[app:web]: istio-system/* istio-system/cart.sc")
	})
}

// Without being asked for, the graph is not read.
func TestGraphIsReadOnDemandOnly(t *testing.T) {
	bubble(t, prompt, func(r *rig) {
		web := r.many("web", 0, 1)
		r.many("cart", 1, 1)
		r.uses(web, "shop", "cart")
		m := r.mirror(r.config())
		r.pass(time.Minute)
		m.wantsGraph()
		if got := r.Requests(standin.GovernServices); got > 0 {
			t.Errorf("%d requests", got)
		}
		c := r.config()
		c.Dependencies.Poll = time.Minute
		m.stop()
		r.mirror(c).wantsGraph("consumption istio-system/web: istio-system/cart")
	})
}

// A watch depends on everything, which is nobody's dependency.
func TestWatchesAreNoConsumers(t *testing.T) {
	bubble(t, prompt, func(r *rig) {
		r.many("cart", 1, 1)
		c := r.scoped()
		c.Watch = true
		m := r.mirror(c)
		r.pass(2 * time.Minute)
		m.wantsGraph()
	})
}

// With the version in a selector, each version sees what that version uses,
// although all versions are one service.
func TestScopesPerVersion(t *testing.T) {
	bubble(t, prompt, func(r *rig) {
		v1, v2 := r.service("", "web", "1.0.0"), r.service("", "web", "2.0.0")
		r.instance(v1, "a", "10.0.0.1:80")
		r.instance(v2, "b", "10.0.0.2:80")
		r.many("cart", 1, 1)
		r.many("users", 2, 1)
		r.uses(v1, "shop", "cart")
		r.uses(v2, "shop", "users")
		c := r.scoped()
		c.Scopes.WorkloadSelector["version"] = "{{.Version}}"
		m := r.mirror(c)
		m.wantsGraph(
			"consumption istio-system/web.sc: istio-system/cart.sc istio-system/users.sc",
			"scope shop/web-1-0-0.sc of map[app:web version:1.0.0]: istio-system/* istio-system/cart.sc",
			"scope shop/web-2-0-0.sc of map[app:web version:2.0.0]: istio-system/* istio-system/users.sc",
		)
		// It follows by version, too.
		r.Unregister(v1)
		r.pass(time.Minute)
		m.wantsGraph(
			"consumption istio-system/web.sc: istio-system/users.sc",
			"scope shop/web-2-0-0.sc of map[app:web version:2.0.0]: istio-system/* istio-system/users.sc",
		)
	})
}

// Consumers of one host in two namespaces, whose workloads live in a third, have
// a scope each.
func TestScopesOfOneHostHaveTheirOwnNames(t *testing.T) {
	bubble(t, prompt, func(r *rig) {
		web := r.service("", "web", "1.0.0")
		other := r.Register(standin.Service{App: "other", Name: "web", Version: "1.0.0"})
		r.many("cart", 1, 1)
		r.Register(standin.Service{App: "other", Name: "users"})
		r.uses(web, "shop", "cart")
		r.uses(other, "other", "users")
		c := r.scoped()
		c.Namespace, c.Scopes.Namespace = "{{.App}}", "vms"
		c.Scopes.WorkloadSelector["app"] = "{{.App}}-{{.Service}}"
		m := r.mirror(c)
		r.rounds(2)
		if got := strings.Count(m.graph(), "scope vms/"); got != 2 {
			t.Errorf("%d scopes:\n%s", got, m.graph())
		}
		m.is(source.StateLive, "")
	})
}

// Who gets no scope is shown, with what it sees and why.
func TestConsumersWithoutScopeAreShown(t *testing.T) {
	bubble(t, prompt, func(r *rig) {
		web, cart := r.many("web", 0, 1), r.many("cart", 1, 1)
		long := r.service("", strings.Repeat("long", 20), "1.0.0")
		r.uses(web, "shop", "cart")
		r.uses(long, "shop", "cart")
		m := r.mirror(r.scoped())
		text := func() (all string) {
			for _, n := range m.Status().Notices {
				all += n.Object + "; " + n.Where + "; " + n.Text + "\n"
			}
			return all
		}
		const sees = ", so it gets no scope: its workloads see every service that is exported to their namespace, unless a Sidecar of yours says otherwise\n"
		name := strings.Repeat("long", 20)
		of := func(service, labels string) string {
			return "consumer default//shop/" + service + "; namespace shop, labels app=" + labels + "; the registry knows of no service that it uses" + sees
		}
		want := of("cart", "cart") + "consumer default//shop/" + name + "; ; scopes.workloadSelector.app gives \"" + name + "\", which is no value of a label" + sees
		if got := text(); got != want {
			t.Errorf("notices:\n%s\nwant:\n%s", got, want)
		}
		r.many("users", 2, 1)
		r.uses(cart, "shop", "users")
		r.pass(time.Minute)
		if got := text(); strings.Contains(got, "shop/cart;") || !strings.Contains(got, of("users", "users")) {
			t.Errorf("notices:\n%s", got)
		}
		m.stop()
		c := r.scoped()
		c.Scopes = nil
		if got := r.mirror(c).Status().Notices; len(got) > 0 {
			t.Errorf("without scopes there are notices: %v", got)
		}
	})
}

// Neither the registry's own service, nor what bridges have registered in order to
// be sent events, is mirrored. An earlier version did mirror the consumers of the
// earlier bridge, so what is stored of them goes.
func TestRegistryItselfAndBridgesAreNotMirrored(t *testing.T) {
	bubble(t, prompt, func(r *rig) {
		r.many("cart", 1, 1)
		bridge := r.service("", "servicecenter-watcher", "0.0.1")
		r.uses(bridge, "shop", "cart")
		r.Register(standin.Service{App: "default", Name: "SERVICE-CENTER"})
		r.Register(standin.Service{App: "shop", Name: "isthmus-watch-two.sc", Properties: map[string]string{"isthmusWatch": "two.sc"}})
		old := model.Record{
			Ref:   model.Ref{Kind: model.KindService, Key: model.Key{Source: "sc", Namespace: "istio-system", Name: "servicecenter-watcher.sc"}},
			Place: "default//shop/servicecenter-watcher", Generation: 1,
			Spec: model.Service{Hosts: model.ListOf("servicecenter-watcher.sc"), Resolution: model.ResolutionStatic, Location: model.MeshInternal},
		}
		if _, err := r.store.Commit(t.Context(), model.Commit{Writes: []model.Write{{Record: old}}}); err != nil {
			t.Fatal(err)
		}
		m := r.mirror(r.scoped())
		r.rounds(4)
		m.wants("cart.sc at default//shop/cart: http-8080", "cart.sc/cart-000 = 10.0.1.1")
		m.wantsGraph()
		want := map[string]int{"the registry itself": 1, "consumer of the earlier bridge": 1, "consumer of a watch": 1}
		if got := m.Status().Ignored; !maps.Equal(got, want) {
			t.Errorf("ignored %v, want %v", got, want)
		}
	})
}

// What becomes a scope is a Sidecar that Istio admits.
func TestScopesAreManifests(t *testing.T) {
	dir := t.TempDir()
	bubble(t, prompt, func(r *rig) {
		web := r.many("Web_1", 0, 1)
		r.many("Cart_1", 1, 1)
		r.uses(web, "shop", "Cart_1")
		r.mirror(r.scoped())
		for rec := range r.store.List(model.Filter{Source: "sc", Kind: model.KindScope}) {
			text, err := json.Marshal(map[string]any{
				"apiVersion": "networking.istio.io/v1", "kind": "Sidecar", "spec": json.RawMessage(rec.Spec.(model.Scope).Content),
				"metadata": map[string]any{"name": rec.Name, "namespace": rec.Namespace},
			})
			if err != nil {
				t.Fatal(err)
			}
			r.write(filepath.Join(dir, rec.Name+".json"), string(text))
		}
	})
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 {
		t.Fatalf("%d scopes, %v", len(files), err)
	}
	sink := &onceSink{}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if err := file.New(file.Config{Path: dir}, slog.New(slog.DiscardHandler)).Run(ctx, sink); !errors.Is(err, errEnough) {
		t.Fatal(err)
	}
	if len(sink.listing.Rejected) > 0 || len(sink.listing.Objects) != 1 {
		t.Fatalf("rejected %v", sink.listing.Rejected)
	}
	want := "istio-system/cart-1.sc"
	if got := sink.listing.Objects[0].Record.Spec.(model.Scope).Hosts; !got.Contains(want) {
		t.Errorf("hosts %v", got.Slice())
	}
}
