package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/isthmus-mesh/isthmus/admin"
	"github.com/isthmus-mesh/isthmus/config"
)

// Names and addresses that services of several namespaces ask for are followed from owner to
// owner.
func TestDifferenceFollowsOwners(t *testing.T) {
	t.Parallel()
	on := func(host, namespace, from, address string) admin.Service {
		return admin.Service{Host: host, Namespace: namespace, Sources: []string{from}, Addresses: []string{address}}
	}
	services := []admin.Service{
		on("api.example", "a", "first", "10.0.0.1"), on("API.example", "b", "second", "10.0.0.1"),
		on("web.b.svc.cluster.local", "a", "first", "10.0.0.2"), on("web.b.svc.cluster.local", "b", "second", "10.0.0.3"),
	}
	first, second := config.Source{Name: "first", Kind: "file"}, config.Source{Name: "second", Kind: "file"}
	owns, yields, confined, other := second, first, first, first
	owns.Owns.Hosts = []string{"*.example"}
	yields.Only.Hosts = []string{"api.example", "*.local"}
	confined.Only.Namespaces = []string{"b"}
	other.Kind = "mcp"
	for name, test := range map[string]struct {
		wanted []config.Source
		want   []string
	}{
		"the same": {[]config.Source{first, second}, nil},
		"another order": {[]config.Source{second, first}, []string{
			"taken address 10.0.0.1 a/api.example of first b/api.example of second", "taken host api.example a/api.example of first b/api.example of second",
		}},
		"owns": {[]config.Source{first, owns}, []string{"taken host api.example a/api.example of first b/api.example of second"}},
		"it gives up addresses": {[]config.Source{yields, second}, []string{
			"taken address 10.0.0.1 a/api.example of first b/api.example of second",
		}},
		"it is confined": {[]config.Source{confined, second}, []string{
			"removed service api.example first ", "removed service web.b.svc.cluster.local first ",
			"taken address 10.0.0.1 a/api.example of first b/api.example of second", "taken host api.example a/api.example of first b/api.example of second",
		}},
		"another kind": {[]config.Source{other, second}, []string{"removed source first first "}},
	} {
		now := admin.Config{Listen: map[string]string{"admin.listen": ""}}
		for _, s := range []config.Source{first, second} {
			now.Sources = append(now.Sources, admin.ConfigSource{Name: s.Name, Kind: s.Kind})
		}
		var got []string
		for _, one := range differenceOf(now, services, &config.Config{Sources: test.wanted}).Changes {
			if one.Reason == "" {
				t.Errorf("%s: there is no reason for %+v", name, one)
			}
			got = append(got, strings.Join([]string{one.Change, one.Kind, one.Name, one.From, one.To}, " "))
		}
		slices.Sort(got)
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: the differences are\n%s\nnot\n%s", name, strings.Join(got, "\n"), strings.Join(test.want, "\n"))
		}
	}
}

// An address that another source has added to a service is followed by the place of that source.
func TestDifferenceFollowsAnAddressOfALaterSource(t *testing.T) {
	t.Parallel()
	services := []admin.Service{
		{Host: "db.example", Namespace: "a", Sources: []string{"first", "second"}, Addresses: []string{"10.0.0.8", "10.0.0.9"}, AddressesOf: map[string]string{"10.0.0.9": "second"}},
		{Host: "other.example", Namespace: "c", Sources: []string{"third"}, Addresses: []string{"10.0.0.8", "10.0.0.9"}},
	}
	now, sources := admin.Config{Listen: map[string]string{"admin.listen": ""}}, []config.Source{}
	for _, name := range []string{"first", "second", "third"} {
		now.Sources = append(now.Sources, admin.ConfigSource{Name: name, Kind: "file"})
		sources = append(sources, config.Source{Name: name, Kind: "file"})
	}
	for name, test := range map[string]struct {
		wanted []config.Source
		want   []string
	}{
		"the same":           {sources, nil},
		"second comes last":  {[]config.Source{sources[0], sources[2], sources[1]}, []string{"taken address 10.0.0.9"}},
		"second leaves":      {[]config.Source{sources[0], sources[2]}, []string{"removed part db.example", "taken address 10.0.0.9"}},
		"first leaves":       {sources[1:], []string{"taken definition db.example"}},
		"third comes before": {[]config.Source{sources[2], sources[0], sources[1]}, []string{"taken address 10.0.0.8", "taken address 10.0.0.9"}},
	} {
		var got []string
		for _, one := range differenceOf(now, services, &config.Config{Sources: test.wanted}).Changes {
			if one.Kind != "source" {
				got = append(got, strings.Join([]string{one.Change, one.Kind, one.Name}, " "))
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: the differences are\n%s\nnot\n%s", name, strings.Join(got, "\n"), strings.Join(test.want, "\n"))
		}
	}
}
