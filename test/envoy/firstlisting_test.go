package envoy_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	mcpapi "istio.io/api/mcp/v1alpha1"

	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// ofRegistry is how many services a registry has. Those of the folder are one more.
const ofRegistry = 20

// late is how long a registry keeps its services back. Other collections that are missing
// are waited for for 5 s.
const late = 12 * time.Second

// An Isthmus that has nothing on disk restarts while its required registry sends all other
// collections, and its services late. An Envoy keeps every cluster, and no call fails.
func TestServicesThatAreLateAfterARestartTakeNoClusters(t *testing.T) {
	inEachMode(t, func(t *testing.T, delta bool) {
		s := openWithRegistry(t, delta)
		send, asked := s.registry.KeepBack(), s.registry.Asked()
		s.restart()
		await(t, "Isthmus to request services", func() error {
			if s.registry.Asked() == asked {
				return errors.New("there is no request")
			}
			return nil
		})
		<-time.After(late)
		s.awaitAttempt()
		send()
		s.mustFollow()
	})
}

// An Isthmus that has nothing on disk restarts while its required registry sends more than
// the memory allows. An Envoy keeps every cluster until the registry sends less.
func TestServicesThatAreNACKedAfterARestartTakeNoClusters(t *testing.T) {
	inEachMode(t, func(t *testing.T, delta bool) {
		s := openWithRegistry(t, delta)
		all := s.resources()
		for i := range 18_000 { // as many as one message may have, and more than may be kept
			all = append(all, carried(t, fmt.Sprintf("too-many-%d.example.com", i)))
		}
		s.isthmus.Kill()
		s.registry.Publish(all...)
		s.restart()
		await(t, "the source to say why", func() error { return s.isSource("listing", serviceEntries+" was NACKed") })
		if s.registry.NACKed() == 0 {
			t.Error("the registry has received no NACK")
		}
		s.awaitAttempt()
		s.registry.Publish(s.resources()...)
		s.mustFollow()
	})
}

// registryMesh is a mesh with a registry that is required, and an Envoy under load.
type registryMesh struct {
	*store
	isthmus  *isthmus
	registry *registry
	backend  *backend
	more     int // services beside those of the beginning
}

// openWithRegistry waits until the Envoy has all clusters, and begins calls of all services.
func openWithRegistry(t *testing.T, delta bool) *registryMesh {
	t.Helper()
	m := newMesh(t)
	s := &registryMesh{store: &store{mesh: m}, registry: startRegistry(t), backend: startBackend(t, "registered", "registered")}
	for n := range ofRegistry {
		s.book.add(s.backend.Name, clusterName(s.host(n), 80))
	}
	s.registry.Publish(s.resources()...)
	m.Sources = fmt.Sprintf("- {name: registry, localAddresses: allow, mcp: {address: %q}}", s.registry.Address)
	s.isthmus = newIsthmus(t, "isthmus", m, "")
	s.isthmus.Env = append(s.isthmus.Env, "GOMEMLIMIT=64MiB")
	m.Isthmuses = []*isthmus{s.isthmus}
	s.isthmus.Serve()
	s.proxy = m.Connect(delta)
	s.awaitClusters(ofRegistry + 1)
	s.load = startLoad(t, &s.book, s.proxy, 20*time.Millisecond)
	return s
}

func (s *registryMesh) host(n int) string { return fmt.Sprintf("registered-%d.example.com", n) }

// resources are all services of the registry.
func (s *registryMesh) resources() (all []*mcpapi.Resource) {
	for n := range ofRegistry + s.more {
		all = append(all, carried(s.T, s.host(n), s.backend.endpoint("http")))
	}
	return all
}

// restart kills the Isthmus and starts it with nothing on disk, and waits until it answers.
func (s *registryMesh) restart() {
	s.Helper()
	s.isthmus.Kill()
	s.isthmus.Forget()
	ctx, cancel := context.WithTimeout(s.Context(), until.Patience)
	defer cancel()
	if err := s.isthmus.Start(ctx, func(context.Context) error {
		_, err := s.isthmus.clients()
		return err
	}); err != nil {
		s.Fatal(err)
	}
}

// awaitAttempt waits until the Envoy has asked for resources once more. It has all clusters
// until then.
func (s *registryMesh) awaitAttempt() {
	s.Helper()
	const requests = "cluster.xds.upstream_rq_total"
	count := func() (uint64, error) {
		stats, err := s.proxy.Stats(s.Context(), "^"+requests+"$")
		if _, found := stats[requests]; err == nil && !found {
			err = fmt.Errorf("there is no %s", requests)
		}
		return stats[requests], err
	}
	before, err := count()
	if err != nil {
		s.Fatal(err)
	}
	await(s, "an attempt of the Envoy", func() error {
		if err := s.hasClusters(ofRegistry + 1); err != nil {
			s.Fatal(err)
		}
		if now, err := count(); err != nil || now == before {
			return cmp.Or(err, fmt.Errorf("it has made %d", now))
		}
		return nil
	})
}

// isSource checks the state of the registry, as the Isthmus shows it.
func (s *registryMesh) isSource(state, reason string) error {
	var sources []struct{ Name, State, Reason string }
	if err := s.isthmus.ask("/api/v1/sources", &sources); err != nil {
		return err
	}
	for _, is := range sources {
		if is.Name == "registry" && is.State == state && strings.Contains(is.Reason, reason) {
			return nil
		}
	}
	return fmt.Errorf("sources: %+v", sources)
}

// mustFollow adds a service, and waits until the Envoy has it: whatever was to be sent before
// has been sent. The Envoy has removed nothing since it was started, and no call has failed.
func (s *registryMesh) mustFollow() {
	s.Helper()
	await(s, "the source to be live", func() error { return s.isSource("live", "") })
	s.more++
	s.registry.Publish(s.resources()...)
	s.awaitClusters(ofRegistry + s.more + 1)
	if n := s.replaced(); n != 0 {
		s.Errorf("the Envoy has changed or removed %d clusters", n)
	}
	s.MustBeSettled()
	s.load.MustNotHaveFailed()
}

// awaitClusters waits until the Envoy has so many.
func (s *registryMesh) awaitClusters(count int) {
	s.Helper()
	await(s, fmt.Sprintf("%d clusters", count), func() error { return s.hasClusters(count) })
}

// hasClusters checks how many clusters of services the Envoy has, each with its endpoints.
func (s *registryMesh) hasClusters(count int) error {
	all, err := s.proxy.Clusters(s.Context())
	if err != nil {
		return err
	}
	clusters := ofServices(all)
	if len(clusters) != count {
		return fmt.Errorf("the Envoy has %d clusters, not %d", len(clusters), count)
	}
	for name, c := range clusters {
		if len(c.Endpoints) == 0 {
			return fmt.Errorf("%s has no endpoints", name)
		}
	}
	return nil
}
