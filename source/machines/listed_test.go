package machines_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/machines"
	"github.com/isthmus-mesh/isthmus/source/sourcetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// faults are what a reader may answer with.
var faults = []struct {
	name string
	err  error
}{
	{"it fails", errors.New("out of order")},
	{"it wants a pause", &machines.Throttled{After: 45 * time.Second, Err: errors.New("too many requests")}},
	{"it wants a pause of no length", &machines.Throttled{Err: errors.New("too many requests")}},
	{"it never answers", nil},
}

const never = 3

// What every listed source has to pass, of a cloud that has nothing but what any has: so
// small is one more.
func TestListed(t *testing.T) {
	t.Parallel()
	names := make([]string, len(faults))
	for i, f := range faults {
		names[i] = f.name
	}
	sourcetest.RunListed(t, sourcetest.Listed{Open: open, Faults: names, Lag: 3 * time.Minute, Histories: 40})
}

// cloud has sets of machines, by name, and objects that define services on them.
type cloud struct {
	mu      sync.Mutex // guards the rest
	sets    map[string][]machines.Machine
	objects machines.Objects
	fault   int // none if negative
}

func open(testing.TB) sourcetest.Registry {
	return &cloud{sets: map[string][]machines.Machine{"always": nil}, fault: -1}
}

var ports = []machines.Port{{Number: 80, Name: "http", Protocol: "HTTP", TargetPort: 8080}}

// Open implements [sourcetest.Registry].
func (c *cloud) Open(source.Env) source.Source {
	return machines.New(c, machines.Options{
		Services: []machines.Service{{Host: "always.example", Namespace: "default", Ports: ports, Resources: []string{"always"}}},
		Objects: func(context.Context) machines.Objects {
			c.mu.Lock()
			defer c.mu.Unlock()
			// What defines services would be a part that can be read, while nothing is asked of
			// the cloud. The suite fails all of a registry.
			if c.fault >= 0 {
				return machines.Objects{Place: "objects", Err: errors.New("out of order")}
			}
			return c.objects
		},
		Poll: 20 * time.Second, Round: 10 * time.Second,
	})
}

// Groups implements [machines.Cloud].
func (c *cloud) Groups(s machines.Service) (groups []machines.Group, err error) {
	for _, name := range s.Resources {
		groups = append(groups, machines.Group{Scope: "account", Resource: name})
	}
	return groups, nil
}

// Round implements [machines.Cloud].
func (c *cloud) Round() machines.Reader { return c }

// Read implements [machines.Reader].
func (c *cloud) Read(ctx context.Context, g machines.Group) ([]machines.Machine, error) {
	c.mu.Lock()
	list, is := c.sets[g.Resource]
	fault := c.fault
	c.mu.Unlock()
	switch {
	case fault == never:
		<-ctx.Done()
		return nil, ctx.Err()
	case fault >= 0:
		return nil, faults[fault].err
	case !is:
		return nil, machines.ErrGone
	}
	return list, nil
}

// Set implements [sourcetest.Registry].
func (c *cloud) Set(services sourcetest.Services) {
	sets, objects := map[string][]machines.Machine{"always": nil}, machines.Objects{Place: "objects"}
	for host, service := range services.Sorted() {
		if service.Bad {
			objects.Rejected = append(objects.Rejected, model.Rejection{
				Ref: model.Ref{Kind: model.KindService, Key: model.Key{Namespace: "shop", Name: host}}, Place: "objects", Object: host, Reason: "it is bad",
			})
			continue
		}
		objects.Definitions = append(objects.Definitions, machines.Definition{
			Service: machines.Service{Host: host, Namespace: "shop", Ports: ports, Resources: []string{host}}, Name: host, Place: "objects", Where: host,
		})
		for _, e := range service.Endpoints {
			sets[host] = append(sets[host], machines.Machine{ID: e.Addr().String(), Address: e.Addr(), State: machines.Serving})
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sets, c.objects = sets, objects
}

// Fail implements [sourcetest.Registry].
func (c *cloud) Fail(way int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fault = way
}

// Restore implements [sourcetest.Registry].
func (c *cloud) Restore() { c.Fail(-1) }

// Close implements [sourcetest.Registry].
func (c *cloud) Close() {}
