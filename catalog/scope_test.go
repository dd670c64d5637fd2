package catalog_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
)

func scopeRecord(source, namespace, name string, selector model.Labels, hosts ...string) model.Record {
	return model.Record{
		Ref:  model.Ref{Kind: model.KindScope, Key: model.Key{Source: source, Namespace: namespace, Name: name}},
		Spec: model.Scope{WorkloadSelector: selector, Hosts: model.ListOf(hosts...)},
	}
}

func label(name, value string) model.Labels { return model.MapOf(map[string]string{name: value}) }

// The most specific scope counts: by label, then of the namespace, then of the
// root namespace; of several the first by source, then by name.
func TestTheMostSpecificScopeCounts(t *testing.T) {
	t.Parallel()
	scopes := []model.Record{
		scopeRecord("z-first", "shop", "b", label("app", "web"), "./*"),
		scopeRecord("a-second", "shop", "a", label("app", "web"), "./*"),
		scopeRecord("z-first", "shop", "c", label("app", "web"), "./*"),
		scopeRecord("a-second", "shop", "general", model.Labels{}, "*/*"),
		scopeRecord("a-second", "root", "default", model.Labels{}, "*/*"),
		scopeRecord("a-second", "root", "special", label("app", "web"), "*/*"),
	}
	b := catalog.NewBuilder([]string{"z-first", "a-second"})
	for _, r := range scopes {
		b.Apply(1, []model.Event{model.Upsert{Record: r}})
	}
	tests := []struct {
		name, namespace string
		labels          model.Labels
		want            string
	}{
		{"by label", "shop", label("app", "web"), "Scope z-first:shop/b"},
		{"other label", "shop", label("app", "db"), "Scope a-second:shop/general"},
		{"no label", "shop", model.Labels{}, "Scope a-second:shop/general"},
		{"other namespace", "other", label("app", "web"), "Scope a-second:root/default"},
		{"no namespace", "", model.Labels{}, "Scope a-second:root/default"},
		{"in the root namespace by label", "root", label("app", "web"), "Scope a-second:root/special"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := b.Snapshot().ScopeOf(test.namespace, test.labels, "root"); got.String() != test.want {
				t.Errorf("scope is %s, want %s", got, test.want)
			}
		})
	}
	if got := catalog.Empty().ScopeOf("shop", model.Labels{}, "root"); got != nil {
		t.Errorf("without scopes there is %s", got)
	}
}

func TestAScopeNarrowsWhatIsSeen(t *testing.T) {
	t.Parallel()
	hosts := map[string][]string{"shop": {"a.example", "b.example"}, "other": {"a.example", "*.wild.example", "x.wild.example"}}
	b := catalog.NewBuilder(nil)
	for namespace, names := range hosts {
		for _, host := range names {
			r := service("one", host, host)
			r.Namespace = namespace
			b.Apply(1, []model.Event{model.Upsert{Record: r}})
		}
	}
	tests := []struct {
		name string
		in   []string // hosts of the scope
		want []string // what a workload of shop sees
	}{
		{"everything", []string{"*/*"}, []string{"other/*.wild.example", "shop/a.example", "shop/b.example", "other/x.wild.example"}},
		{"its own namespace", []string{"./*"}, []string{"shop/a.example", "shop/b.example"}},
		{"another namespace", []string{"other/*"}, []string{"other/*.wild.example", "other/a.example", "other/x.wild.example"}},
		{"one host anywhere", []string{"*/a.example"}, []string{"shop/a.example"}},
		{"one host elsewhere", []string{"other/a.example"}, []string{"other/a.example"}},
		{"hosts by their end", []string{"*/*.wild.example"}, []string{"other/*.wild.example", "other/x.wild.example"}},
		{"an exact host is not a wildcard's", []string{"*/y.wild.example"}, nil},
		{"nothing", []string{"~/*"}, nil},
		{"several entries", []string{"./b.example", "other/a.example"}, []string{"other/a.example", "shop/b.example"}},
		{"no entry", nil, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := catalog.NewBuilder(nil)
			c.Apply(1, []model.Event{model.Upsert{Record: scopeRecord("one", "shop", "s", model.Labels{}, test.in...)}})
			scope := c.Snapshot().ScopeOf("shop", model.Labels{}, "root")
			var got []string
			for s := range b.Snapshot().Visible(catalog.Viewer{Namespace: "shop", Scope: scope}) {
				got = append(got, s.Key.String())
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("sees %v, want %v", got, test.want)
			}
		})
	}
}

// A scope keeps its pointer while it says the same, and a change names exactly
// the namespaces whose scopes changed, whether it came as commits or, after a
// reset, as a snapshot.
func TestScopesChangeExactly(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		draw := rapid.Custom(func(t *rapid.T) model.Record {
			return scopeRecord("one", rapid.SampledFrom([]string{"x", "y"}).Draw(t, "namespace"), rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name"),
				rapid.SampledFrom([]model.Labels{{}, label("app", "web")}).Draw(t, "selector"), rapid.SampledFrom([]string{"./*", "*/*"}).Draw(t, "host"))
		})
		b, now := catalog.NewBuilder(nil), state{}
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			r := draw.Draw(t, "record")
			event := model.Event(model.Upsert{Record: r})
			was, had := now[r.Ref]
			changed := !had || !was.Spec.EqualSpec(r.Spec)
			if had && rapid.Bool().Draw(t, "delete") {
				event, changed = model.Delete{Record: r}, true
			}
			before := scopesSeen(b.Snapshot())
			change := b.Apply(1, []model.Event{event})
			now.take([]model.Event{event})
			if _, named := change.Scopes[r.Namespace]; named != changed || len(change.Scopes) > 1 {
				t.Fatalf("changed %v, and the change names %v", changed, change.Scopes)
			}
			if after := scopesSeen(b.Snapshot()); !changed && !slices.Equal(before, after) {
				t.Fatal("nothing changed, and the scopes are others")
			}
			if rebuilt := build(nil, now); !slices.Equal(named(scopesSeen(rebuilt)), named(scopesSeen(b.Snapshot()))) {
				t.Fatalf("rebuilt %v, kept up %v", named(scopesSeen(rebuilt)), named(scopesSeen(b.Snapshot())))
			}
		}
	})
}

// scopesSeen are the scopes of some workloads.
func scopesSeen(s *catalog.Snapshot) []*catalog.Scope {
	var seen []*catalog.Scope
	for _, namespace := range []string{"x", "y", "z"} {
		for _, labels := range []model.Labels{{}, label("app", "web")} {
			seen = append(seen, s.ScopeOf(namespace, labels, "y"))
		}
	}
	return seen
}

func named(scopes []*catalog.Scope) []string {
	var list []string
	for _, s := range scopes {
		if s == nil {
			list = append(list, "-")
			continue
		}
		list = append(list, s.String())
	}
	return list
}

// What a scope narrows to can be read again, as it was written.
func TestScopesAreShown(t *testing.T) {
	record := model.Record{Ref: ref(model.KindScope, "first", "cart"), Revision: 1, Spec: model.Scope{
		WorkloadSelector: model.MapOf(map[string]string{"app": "cart"}), Hosts: model.ListOf("./*", "*/*.example", "~/*"),
	}}
	b := catalog.NewBuilder(nil)
	b.Apply(1, upserts(record))
	for scope := range b.Snapshot().Scopes() {
		if got := slices.Collect(scope.Hosts()); scope.Record != record.Ref || !slices.Equal(got, []string{"./*", "*/*.example", "~/*"}) {
			t.Errorf("%s shows %v", scope, got)
		}
		return
	}
	t.Error("no scope is shown")
}
