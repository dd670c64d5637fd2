package servicecenter_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/file"
	"github.com/isthmus-mesh/isthmus/source/servicecenter"
	"github.com/isthmus-mesh/isthmus/source/servicecenter/registry"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// drawn is what a registry may hold at worst: names that are hardly names,
// instances that say nonsense, and much that clashes.
func drawn(t *rapid.T) []servicecenter.Registered {
	name := rapid.OneOf(
		rapid.SampledFrom([]string{"a", "A", "a_b", "a-b", "a.b", "A_B", "1", "10.0.0.1", "_", "a.1", "-a-", "x-e444e5de", "a..b"}),
		rapid.StringMatching(`[A-Za-z0-9_.\-]{1,130}`), rapid.StringN(1, 12, 40),
	)
	keys := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) servicecenter.Registered {
		return servicecenter.Registered{
			Environment: rapid.SampledFrom([]string{"", "production", "testing"}).Draw(t, "environment"),
			App:         rapid.SampledFrom([]string{"shop", "Shop", "other_app"}).Draw(t, "app"),
			Service:     name.Draw(t, "service"),
		}
	}), 1, 12, func(r servicecenter.Registered) [3]string { return [3]string{r.Environment, r.App, r.Service} })
	services := keys.Draw(t, "services")
	for i := range services {
		services[i].Instances = drawInstances(t)
		services[i].Before = drawBefore(t)
	}
	return services
}

var schemes = []string{"rest", "highway", "grpc", "http", "https", "dubbo", "h2c", "REST", ""}

func drawInstances(t *rapid.T) []registry.Instance {
	endpoint := rapid.OneOf(rapid.Custom(func(t *rapid.T) string {
		scheme := rapid.SampledFrom(schemes).Draw(t, "scheme")
		host := rapid.SampledFrom([]string{"10.0.0.1", "10.0.0.2", "[fd00::5]", "[::ffff:10.0.0.1]", "name.local", "0.0.0.0", ""}).Draw(t, "host")
		port := rapid.IntRange(0, 5).Draw(t, "port")
		query := rapid.SampledFrom([]string{"", "?sslEnabled=true", "?protocol=http2", "?sslEnabled=false&x=%zz", "?sslenabled=TRUE"}).Draw(t, "query")
		return fmt.Sprintf("%s://%s:%d/%s", scheme, host, port, query)
	}), rapid.String())
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) registry.Instance {
		word := rapid.StringN(0, 5, 80)
		return registry.Instance{
			ID:         rapid.SampledFrom([]string{"1", "2", "3", "4", "", "a/b", "a b", "ü"}).Draw(t, "id"),
			Endpoints:  rapid.SliceOfN(endpoint, 0, 4).Draw(t, "endpoints"),
			HostName:   word.Draw(t, "hostName"),
			Version:    word.Draw(t, "version"),
			Status:     rapid.SampledFrom([]string{"UP", "DOWN", "TESTING", "OUTOFSERVICE", "", "?"}).Draw(t, "status"),
			Properties: rapid.MapOfN(rapid.OneOf(word, rapid.SampledFrom([]string{"weight", "a/b", "istio.io/x"})), word, 0, 3).Draw(t, "properties"),
		}
	}), 0, 5).Draw(t, "instances")
}

func drawBefore(t *rapid.T) model.Service {
	numbers := rapid.SliceOfNDistinct(rapid.Uint32Range(1, 8), 0, 4, rapid.ID).Draw(t, "ports before")
	ports := make([]model.Port, len(numbers))
	for i, n := range numbers {
		ports[i] = model.Port{Number: n, Name: fmt.Sprintf("http-%d", n), Protocol: "HTTP"}
	}
	return model.Service{Ports: model.ListOf(ports...)}
}

func convert(t interface{ Fatal(...any) }, c servicecenter.Config, services []servicecenter.Registered, now time.Time) model.Listing {
	l, err := servicecenter.Convert(c, services, now)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// The same registry gives the same records, in whatever order it is read.
func TestConversionDoesNotDependOnOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		services := drawn(t)
		want := dump(convert(t, servicecenter.Config{}, services, noon))
		shuffled := rapid.Permutation(services).Draw(t, "order")
		for i := range shuffled {
			shuffled[i].Instances = rapid.Permutation(shuffled[i].Instances).Draw(t, "instances")
		}
		if diff := cmp.Diff(want, dump(convert(t, servicecenter.Config{}, shuffled, noon))); diff != "" {
			t.Fatal(diff)
		}
	})
}

// Every service has a name of its own or is rejected, and if the templates tell
// services apart, none is rejected.
func TestNamesAreNeverShared(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		services := drawn(t)
		apart := rapid.Bool().Draw(t, "apart")
		config := servicecenter.Config{}
		if apart {
			config = servicecenter.Config{Host: "{{.Service}}!{{.App}}!{{.Environment}}", Namespace: "{{.App}}"}
			services = slices.DeleteFunc(services, func(r servicecenter.Registered) bool {
				return strings.ContainsAny(r.Service, "!") || strings.TrimSpace(r.Service) != r.Service
			})
		}
		l := convert(t, config, services, noon)
		taken := map[model.Key]string{}
		for _, o := range l.Objects {
			if other := taken[o.Record.Key]; other != "" {
				t.Fatalf("%s is %s and %s", o.Record.Key, other, o.Record.Place)
			}
			taken[o.Record.Key] = o.Record.Place
		}
		rejected := 0
		for _, r := range l.Rejected {
			if strings.HasPrefix(r.Object, "service ") {
				rejected++
			}
		}
		if len(taken)+rejected != len(services) || apart && rejected > 0 {
			t.Fatalf("%d services, %d named, %d rejected: %v", len(services), len(taken), rejected, l.Rejected)
		}
	})
}

// An endpoint serves what its instance listens on, and nothing else; and its
// ports are those of the service.
func TestEndpointsServeWhatTheyListenOn(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		services := drawn(t)
		for _, o := range convert(t, servicecenter.Config{}, services, noon).Objects {
			service := o.Record.Spec.(model.Service)
			at := slices.IndexFunc(services, func(r servicecenter.Registered) bool {
				return "default/"+r.Environment+"/"+r.App+"/"+r.Service == o.Record.Place
			})
			texts := ""
			for _, i := range services[at].Instances {
				texts += strings.Join(i.Endpoints, " ") + " "
			}
			for _, rec := range o.Owned {
				e := rec.Spec.(model.Endpoint)
				if !e.Exact || e.Ports.Len() == 0 {
					t.Fatalf("%s is not exact: %v", rec.Name, e)
				}
				for name, number := range e.Ports.All() {
					if !slices.ContainsFunc(service.Ports.Slice(), func(p model.Port) bool { return p.Name == name && p.Number == number }) {
						t.Fatalf("the service has no port %s", name)
					}
					if !strings.Contains(texts, fmt.Sprintf(":%d", number)) && number != 80 && number != 443 {
						t.Fatalf("nobody listens on %d: %s", number, texts)
					}
				}
			}
		}
	})
}

// A port that was known stays for the grace, and for as long as nothing else is
// known; then it goes. What is read back of a record is what it was made of.
func TestPortsStay(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := servicecenter.Registered{App: "shop", Service: "cart", Instances: drawInstances(t), Before: drawBefore(t)}
		config := servicecenter.Config{PortGrace: time.Minute}
		numbers := func(s model.Service) (all []uint32) {
			for p := range s.Ports.All() {
				all = append(all, p.Number)
			}
			return all
		}
		at := func(now time.Time) model.Service {
			o := convert(t, config, []servicecenter.Registered{r}, now).Objects[0]
			r.Before = o.Record.Spec.(model.Service)
			return r.Before
		}
		before := numbers(r.Before)
		first := at(noon)
		if again := at(noon.Add(59 * time.Second)); !again.EqualSpec(first) {
			t.Fatalf("within the grace %v became %v", first, again)
		}
		for _, n := range before {
			if !slices.Contains(numbers(first), n) {
				t.Fatalf("port %d of %v is gone from %v", n, before, numbers(first))
			}
		}
		after := at(noon.Add(time.Minute))
		if idle, _ := after.Annotations.Get("isthmus.io/idle-ports"); idle != "" && strings.Count(idle, "=") != after.Ports.Len() {
			t.Fatalf("%s are kept beside ports in use: %v", idle, numbers(after))
		}
	})
}

// Whatever the registry holds, what becomes of it is what Istio admits: a
// folder with it as manifests is read without a rejection.
func TestRecordsAreManifests(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		config := servicecenter.Config{
			Host:      rapid.SampledFrom([]string{"{{.Service}}", "{{.Service}}.{{.App}}.mesh"}).Draw(rt, "host"),
			Namespace: "{{.App}}-{{.Environment}}",
			ExportTo:  rapid.SampledFrom([][]string{nil, {"*"}, {"{{.App}}-{{.Environment}}", ".", "{{.App}}", "istio-ingress"}}).Draw(rt, "exportTo"),
		}
		l := convert(rt, config, drawn(rt), noon)
		if err := os.WriteFile(filepath.Join(dir, "all.yaml"), manifests(l), 0o600); err != nil {
			rt.Fatal(err)
		}
		read := firstListing(t.Context(), rt, file.New(file.Config{Path: dir}, slog.New(slog.DiscardHandler)))
		if len(read.Rejected) > 0 || len(read.Objects) != len(l.Objects) {
			rt.Fatalf("%d of %d objects, rejected %v", len(read.Objects), len(l.Objects), read.Rejected)
		}
	})
}

// manifests writes the services of a listing as users write ServiceEntries.
func manifests(l model.Listing) []byte {
	var all []string
	for _, o := range l.Objects {
		service := o.Record.Spec.(model.Service)
		var ports, endpoints []map[string]any
		for p := range service.Ports.All() {
			ports = append(ports, map[string]any{"number": p.Number, "name": p.Name, "protocol": p.Protocol})
		}
		for _, rec := range o.Owned {
			e := rec.Spec.(model.Endpoint)
			endpoints = append(endpoints, map[string]any{"address": e.Address, "ports": e.Ports.Map(), "labels": e.Labels.Map(), "weight": e.Weight})
		}
		spec := map[string]any{"hosts": service.Hosts.Slice(), "location": service.Location, "resolution": service.Resolution}
		if len(ports) > 0 {
			spec["ports"] = ports
		}
		if service.ExportTo.Len() > 0 {
			spec["exportTo"] = service.ExportTo.Slice()
		}
		if len(endpoints) > 0 {
			spec["endpoints"] = endpoints
		}
		text, _ := json.Marshal(map[string]any{
			"apiVersion": "networking.istio.io/v1", "kind": "ServiceEntry", "spec": spec,
			"metadata": map[string]any{"name": o.Record.Name, "namespace": o.Record.Namespace, "annotations": service.Annotations.Map()},
		})
		all = append(all, string(text))
	}
	return []byte(strings.Join(all, "\n---\n"))
}

// firstListing is what a source lists first.
func firstListing(ctx context.Context, t *rapid.T, src source.Source) model.Listing {
	ctx, cancel := context.WithTimeout(ctx, until.Patience)
	defer cancel()
	sink := &onceSink{}
	if err := src.Run(ctx, sink); !errors.Is(err, errEnough) {
		t.Fatal(err)
	}
	return sink.listing
}

var errEnough = errors.New("that is enough")

// onceSink ends the source with its first listing.
type onceSink struct{ listing model.Listing }

func (s *onceSink) Replace(_ context.Context, l model.Listing) error {
	s.listing = l
	return errEnough
}
func (s *onceSink) Change(context.Context, model.Change) error { return errEnough }
func (s *onceSink) Relist() <-chan time.Time                   { return nil }
