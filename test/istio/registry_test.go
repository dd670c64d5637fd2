package istio_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/testkit/servicecenter"
)

// registry is a Service Center, and what the test has registered there.
type registry struct {
	*servicecenter.Server
	t         *testing.T
	ids       map[string]string            // of services, by name
	instances map[string]map[string]string // their ids, by service and address
}

// startRegistry starts an empty registry. Those who are registered live until
// they are removed.
func startRegistry(t *testing.T) *registry {
	t.Helper()
	return &registry{
		Server: servicecenter.Start(t, servicecenter.Config{Prompt: true, KeepAlive: true}),
		t:      t,
		ids:    map[string]string{}, instances: map[string]map[string]string{},
	}
}

// Add registers instances of a service at addresses with a port.
func (r *registry) Add(service string, addresses ...string) { r.add(service, addresses, "grpc://%s") }

// add registers instances at addresses, each with some endpoints. Clients see all of them
// at once, and the service not before: what they see in between would be written as well.
func (r *registry) add(service string, addresses []string, endpoints ...string) {
	r.Stall()
	defer r.Resume()
	if r.ids[service] == "" {
		r.ids[service] = r.Register(servicecenter.Service{App: "shop", Name: service})
		r.instances[service] = map[string]string{}
	}
	for _, address := range addresses {
		one := servicecenter.Instance{HostName: "host"}
		for _, endpoint := range endpoints {
			one.Endpoints = append(one.Endpoints, fmt.Sprintf(endpoint, address))
		}
		r.instances[service][address] = r.RegisterInstance(r.ids[service], one)
	}
}

// Remove removes instances of a service.
func (r *registry) Remove(service string, addresses ...string) {
	for _, address := range addresses {
		r.UnregisterInstance(r.ids[service], r.instances[service][address])
		delete(r.instances[service], address)
	}
}

// Drop removes a service with its instances.
func (r *registry) Drop(service string) {
	r.Unregister(r.ids[service])
	delete(r.ids, service)
	delete(r.instances, service)
}

// Uses has a service look up another, as clients of the registry do, and waits
// until that is known there.
func (r *registry) Uses(consumer, provider string) {
	r.t.Helper()
	request, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet,
		r.URL()+"/v4/default/registry/instances?appId=shop&serviceName="+provider+"&version=0%2B", http.NoBody)
	if err != nil {
		r.t.Fatal(err)
	}
	request.Header.Set("X-ConsumerId", r.ids[consumer])
	request.Close = true
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		r.t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		r.t.Fatal(answer.Status)
	}
}

// Services are the addresses of the instances, by service.
func (r *registry) Services() map[string][]string {
	services := map[string][]string{}
	for service, instances := range r.instances {
		services[service] = slices.Sorted(maps.Keys(instances))
	}
	return services
}

// AddMany registers services with two instances each, at which nobody listens.
func (r *registry) AddMany(prefix string, count int) {
	for i := range count {
		r.Add(fmt.Sprintf("%s-%d", prefix, i), fmt.Sprintf("10.1.%d.%d:80", i/200, i%200+1), fmt.Sprintf("10.2.%d.%d:80", i/200, i%200+1))
	}
}

// AwaitRequests waits until there were more requests, which may have failed.
func (r *registry) AwaitRequests(more int) {
	r.t.Helper()
	enough := r.Requests(servicecenter.Any) + more
	await(r.t, "more requests to the registry", func() error {
		if got := r.Requests(servicecenter.Any); got < enough {
			return fmt.Errorf("there were %d, wanted %d", got, enough)
		}
		return nil
	})
}
