package azure_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	azfake "github.com/Azure/azure-sdk-for-go/sdk/azcore/fake"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/azure"
	"github.com/isthmus-mesh/isthmus/source/machines"
	"github.com/isthmus-mesh/isthmus/source/sourcetest"
)

// faults are ways in which nothing of Azure can be read.
var faults = []struct {
	name  string
	fault func(r request) answer
}{
	{"it answers 500", func(request) answer { return status(http.StatusInternalServerError, "InternalServerError") }},
	{"it answers 429 and wants 5 s", func(request) answer { return status(http.StatusTooManyRequests, "TooManyRequests", "Retry-After", "5") }},
	{"it answers 429 and wants 20 s", func(request) answer {
		return status(http.StatusTooManyRequests, "TooManyRequests", "Retry-After", "20")
	}},
	{"the second page of each list fails", func(r request) answer {
		if r.page == 1 {
			return status(http.StatusForbidden, "AuthorizationFailed")
		}
		return nil
	}},
	{"no interfaces can be read", func(r request) answer {
		if r.api == "InterfacesClient.NewListVirtualMachineScaleSetNetworkInterfacesPager" {
			return status(http.StatusConflict, "NetworkWatcherBusy")
		}
		return nil
	}},
	{"it never answers", func(request) answer { return hang }},
	{"something else answers", func(request) answer { return body("<html>please log in</html>") }},
	{"it answers with nothing", func(request) answer { return body("{}") }},
}

// What every listed source has to pass. Services are defined by objects, each with a
// scale set of its own.
func TestListed(t *testing.T) {
	t.Parallel()
	names := make([]string, len(faults))
	for i, f := range faults {
		names[i] = f.name
	}
	sourcetest.RunListed(t, sourcetest.Listed{Open: open, Faults: names, Lag: 4 * time.Minute, Histories: 15})
}

// registry is Azure with the objects of a cluster, as the suite steers them.
type registry struct {
	*azureOf
	objects atomic.Pointer[machines.Objects]
	// fault is the index of the fault of the next round, or -1. One round reads all groups at
	// once: a fault that ended in the middle would fail a part of the registry alone.
	fault atomic.Int64
}

func open(testing.TB) sourcetest.Registry {
	r := &registry{azureOf: newAzure()}
	r.sets["always"] = set{} // there is something to be asked for, whatever is served
	r.objects.Store(&machines.Objects{})
	r.Restore()
	return r
}

// Open implements [sourcetest.Registry].
func (r *registry) Open(env source.Env) source.Source {
	return azure.New(azure.Config{
		Cloud: "public", Poll: 30 * time.Second, Timeout: 5 * time.Second, Allow: anything,
		Services: []machines.Service{{Host: "always.example", Namespace: "default", Ports: http8080, Resources: []string{sets + "always"}}},
	}, env, azure.Access{
		Credential: &azfake.TokenCredential{}, Transport: r.azureOf,
		Objects: func(context.Context) machines.Objects {
			// What defines services would be a part that can be read, while nothing is asked of
			// Azure. The suite fails all of a registry.
			way := r.fault.Load()
			if way < 0 {
				r.fails(nil)
				return *r.objects.Load()
			}
			r.fails(faults[way].fault)
			if strings.Contains(faults[way].name, "429") {
				return machines.Objects{Place: "objects", Err: errors.New("out of order")}
			}
			return *r.objects.Load()
		},
	})
}

var http8080 = []machines.Port{{Number: 80, Name: "http", Protocol: "HTTP", TargetPort: 8080}}

// Set implements [sourcetest.Registry].
func (r *registry) Set(services sourcetest.Services) {
	now, scaleSets := &machines.Objects{Place: "objects"}, map[string]set{"always": {}}
	for host, service := range services.Sorted() {
		d := machines.Definition{
			Service: machines.Service{Host: host, Namespace: "shop", Ports: http8080, Resources: []string{sets + host}},
			Name:    host, Place: "objects", Where: host,
		}
		if service.Bad {
			now.Rejected = append(now.Rejected, model.Rejection{
				Ref: model.Ref{Kind: model.KindService, Key: model.Key{Namespace: "shop", Name: host}}, Place: "objects", Object: host, Reason: "it is bad",
			})
			continue
		}
		now.Definitions = append(now.Definitions, d)
		var s set
		for _, e := range service.Endpoints {
			s.members = append(s.members, machine{name: e.Addr().String(), address: e.Addr().String()})
		}
		scaleSets[host] = s
	}
	r.change(func() {
		r.sets = scaleSets
		r.objects.Store(now)
	})
}

// Fail implements [sourcetest.Registry].
func (r *registry) Fail(way int) { r.fault.Store(int64(way)) }

// Restore implements [sourcetest.Registry].
func (r *registry) Restore() { r.fault.Store(-1) }

// Close implements [sourcetest.Registry].
func (r *registry) Close() {}
