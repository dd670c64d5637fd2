package kubernetes_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"path"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/kubernetes"
	"github.com/isthmus-mesh/isthmus/source/sourcetest"
)

// faults are ways in which a cluster cannot be read.
var faults = []struct {
	name  string
	fault fault
	last  func(*stream) // how watches end then
}{
	{"it answers 500", rejects(http.StatusInternalServerError, "InternalError"), breaks},
	{"nothing may be read", rejects(http.StatusForbidden, "Forbidden"), ends},
	{"the token is not valid any more", rejects(http.StatusUnauthorized, "Unauthorized"), ends},
	{"every version is too old", func(r *http.Request) (*http.Response, error) {
		if r.URL.Query().Get("resourceVersion") != "" {
			return rejection(http.StatusGone, "Expired"), nil
		}
		return rejection(http.StatusInternalServerError, "InternalError"), nil
	}, expires},
	{"it is overloaded and wants 5 s", func(*http.Request) (*http.Response, error) {
		r := rejection(http.StatusTooManyRequests, "TooManyRequests")
		r.Header.Set("Retry-After", "5")
		return r, nil
	}, ends},
	{"it never answers", func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}, breaks},
	{"it is not there", func(*http.Request) (*http.Response, error) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}, breaks},
	{"what stands before it accepts connections and closes them", closes, ends},
	{"what stands before it accepts connections and resets them", resets, breaks},
	{"watches are answered and end at once", func(r *http.Request) (*http.Response, error) {
		if r.URL.Query().Get("watch") == "" {
			return rejection(http.StatusInternalServerError, "InternalError"), nil
		}
		return body(http.StatusOK, ""), nil
	}, ends},
	{"answers end in the middle", func(*http.Request) (*http.Response, error) {
		response := body(http.StatusOK, `{"type":"ADDED","object":{"metadata":{"na`)
		response.Body = io.NopCloser(io.MultiReader(response.Body, broken{}))
		response.ContentLength = -1
		return response, nil
	}, breaks},
	{"something else answers", func(*http.Request) (*http.Response, error) {
		return body(http.StatusOK, "<html>please log in</html>"), nil
	}, ends},
	{"slices may not be read", only("endpointslices", rejects(http.StatusForbidden, "Forbidden")), ends},
	{"Services are not answered for", only("services", func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}), ends},
}

func rejects(code int, reason string) fault {
	return func(*http.Request) (*http.Response, error) { return rejection(code, reason), nil }
}

func only(resource string, f fault) fault {
	return func(r *http.Request) (*http.Response, error) {
		if path.Base(r.URL.Path) != resource {
			return nil, nil
		}
		return f(r)
	}
}

func closes(*http.Request) (*http.Response, error) { return nil, io.EOF }

func resets(*http.Request) (*http.Response, error) {
	return nil, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
}

// broken is a connection that breaks.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func ends(s *stream) { s.end(io.EOF) }

func breaks(s *stream) {
	s.write([]byte(`{"type":"DELETED","object":{"metadata":{"namespace":"shop","na`))
	s.end(errors.New("connection reset by peer"))
}

func expires(s *stream) {
	s.send("ERROR", status(http.StatusGone, "Expired"))
	s.end(io.EOF)
}

// What every listed source has to pass, with an API server that begins watches with a
// list, and with one that does not.
func TestListed(t *testing.T) {
	t.Parallel()
	names := make([]string, len(faults))
	for i, f := range faults {
		names[i] = f.name
	}
	for name, open := range map[string]func() *registry{
		"streams": func() *registry { return newRegistry(false) }, "lists": func() *registry { return newRegistry(true) },
		"namespaces": func() *registry { return newRegistry(false, "shop", "other") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sourcetest.RunListed(t, sourcetest.Listed{
				Open:   func(testing.TB) sourcetest.Registry { return open() },
				Faults: names, Lag: 4 * time.Minute, Reports: true, Histories: 15,
				Valid: isService,
			})
		})
	}
}

// isService reports whether a host is one of a Service; the others are of ServiceEntries.
func isService(host string) bool { return strings.Trim(host, "ab") == ".example" }

// registry is a cluster, as the suite steers it.
type registry struct {
	api        *apiServer
	slices     map[string]object
	namespaces []string // as the sources have them
	carry      istio.Carry
}

func newRegistry(listOnly bool, namespaces ...string) *registry {
	return &registry{api: newAPIServer(listOnly), slices: map[string]object{}, namespaces: namespaces}
}

// Open implements [sourcetest.Registry].
func (r *registry) Open(env source.Env) source.Source {
	c := kubernetes.Kind().New().(*kubernetes.Config) //nolint:forcetypeassert // the kind's own
	c.Domain, c.Namespaces, c.Carry = "example", r.namespaces, r.carry
	s := kubernetes.New(*c, env)
	s.Reach(&rest.Config{Host: "http://api.test", Transport: r.api})
	return &short{s}
}

// Set implements [sourcetest.Registry].
func (r *registry) Set(services sourcetest.Services) {
	objects := map[string]map[string]object{"services": {}, "endpointslices": {}, "serviceentries": {}}
	for host, service := range services.Sorted() {
		name := strings.TrimSuffix(host, ".example")
		if !isService(host) {
			objects["serviceentries"][name] = entryOf(host, service)
			continue
		}
		objects["services"][name] = object{"spec": object{"clusterIP": "10.96.0.1", "ports": []any{object{"name": "http", "port": 80}}}}
		for n, endpoints := range slicesOf(service) {
			objects["endpointslices"][fmt.Sprint(name, "-", n)] = object{
				"metadata": object{"labels": object{"kubernetes.io/service-name": name}}, "addressType": "IPv4",
				"ports": []any{object{"name": "http", "port": 8080}}, "endpoints": endpoints,
			}
		}
	}
	// A Service comes after its slices, and goes before them.
	both := maps.Clone(r.slices)
	maps.Copy(both, objects["endpointslices"])
	r.slices = objects["endpointslices"]
	r.api.write("endpointslices", both)
	r.api.write("services", objects["services"])
	r.api.write("endpointslices", r.slices)
	r.api.write("serviceentries", objects["serviceentries"])
}

// slicesOf are the endpoints of each slice. An address stands in one slice all along.
func slicesOf(service sourcetest.Service) map[int][]any {
	all := map[int][]any{}
	for _, e := range service.Endpoints {
		n := int(e.Addr().As4()[3]) % 3
		all[n] = append(all[n], object{"addresses": []any{e.Addr().String()}})
	}
	return all
}

// entryOf is a ServiceEntry. A bad one has a port that cannot be.
func entryOf(host string, service sourcetest.Service) object {
	var endpoints []any
	for _, e := range service.Endpoints {
		endpoints = append(endpoints, object{"address": e.Addr().String(), "ports": object{"http": e.Port()}})
	}
	number := 80
	if service.Bad {
		number = 0
	}
	return object{"spec": object{
		"hosts": []any{host}, "resolution": "STATIC", "ports": []any{object{"number": number, "name": "http", "protocol": "HTTP"}}, "endpoints": endpoints,
	}}
}

// Fail implements [sourcetest.Registry].
func (r *registry) Fail(way int) { r.api.fail(faults[way].fault, faults[way].last) }

// Restore implements [sourcetest.Registry]. Nothing can be resumed: what is missing was
// not reported.
func (r *registry) Restore() {
	r.api.compact()
	r.api.fail(nil, ends)
}

// Disconnect implements [sourcetest.Disconnecter].
func (r *registry) Disconnect() { r.api.fail(r.api.failing(), breaks) }

// Close implements [sourcetest.Registry].
func (r *registry) Close() {}

// short is a source of which the hosts of Services are short, as the suite has them.
type short struct{ source.Source }

// Run implements [source.Source].
func (s *short) Run(ctx context.Context, sink source.Sink) error {
	return s.Source.Run(ctx, &shortSink{sink})
}

type shortSink struct{ source.Sink }

// Replace implements [source.Sink].
func (s *shortSink) Replace(ctx context.Context, l model.Listing) error {
	l.Objects = shortened(l.Objects)
	return s.Sink.Replace(ctx, l)
}

// Change implements [source.Sink].
func (s *shortSink) Change(ctx context.Context, c model.Change) error {
	c.Upserts = shortened(c.Upserts)
	return s.Sink.Change(ctx, c)
}

func shortened(objects []model.Object) []model.Object {
	objects = slices.Clone(objects)
	for i := range objects {
		service, is := objects[i].Record.Spec.(model.Service)
		if !is || service.Hosts.Len() != 1 {
			continue
		}
		for host := range service.Hosts.All() {
			service.Hosts = model.ListOf(strings.Replace(host, ".shop.svc.", ".", 1))
		}
		objects[i].Record.Spec = service
	}
	return objects
}
