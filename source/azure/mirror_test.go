package azure_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	azfake "github.com/Azure/azure-sdk-for-go/sdk/azcore/fake"
	"github.com/google/go-cmp/cmp"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/azure"
	"github.com/isthmus-mesh/isthmus/source/hold"
	"github.com/isthmus-mesh/isthmus/source/machines"
	"github.com/isthmus-mesh/isthmus/source/supervise"
	"github.com/isthmus-mesh/isthmus/store"
)

// mirrored is a source that runs, with the store that it fills.
type mirrored struct {
	*testing.T
	store      *store.Memory
	supervisor *supervise.Supervisor
	stop       func()
}

// mirror runs a source in the bubble of a test until stop.
func mirror(t *testing.T, into *store.Memory, a *azureOf, objects func(context.Context) machines.Objects, services ...machines.Service) *mirrored {
	t.Helper()
	return mirrorHolding(t, into, a, objects, hold.Config{}, services...)
}

// mirrorHolding is [mirror] with another rule of what is held, unless it is zero.
func mirrorHolding(t *testing.T, into *store.Memory, a *azureOf, objects func(context.Context) machines.Objects, hold hold.Config, services ...machines.Service) *mirrored {
	t.Helper()
	return mirrorConfigured(t, into, a, anything, objects, hold, services...)
}

// mirrorAllowing is [mirror] with objects that may name some machines only.
func mirrorAllowing(t *testing.T, into *store.Memory, a *azureOf, allow []azure.Allow, objects func(context.Context) machines.Objects, services ...machines.Service) *mirrored {
	t.Helper()
	return mirrorConfigured(t, into, a, allow, objects, hold.Config{}, services...)
}

func mirrorConfigured(t *testing.T, into *store.Memory, a *azureOf, allow []azure.Allow, objects func(context.Context) machines.Objects, hold hold.Config, services ...machines.Service) *mirrored {
	t.Helper()
	settings, _ := azure.Kind().New().(*azure.Config)
	settings.Subscriptions, settings.Services = []string{subscription}, services
	if objects != nil {
		settings.Kubernetes, settings.Allow = &azure.Kubernetes{}, allow
	}
	settings.Credentials.ManagedIdentity = &azure.ManagedIdentity{}
	if err := settings.Validate(); err != nil && len(services) > 0 {
		t.Fatal(err)
	}
	stored := func() iter.Seq[model.Record] { return into.List(model.Filter{Source: "azure"}) }
	src := azure.New(*settings, source.Env{Name: "azure", Stored: stored}, azure.Access{Credential: &azfake.TokenCredential{}, Transport: a, Objects: objects})
	return follow(t, into, src, hold)
}

func follow(t *testing.T, into *store.Memory, src source.Source, hold hold.Config) *mirrored {
	t.Helper()
	m := &mirrored{T: t, store: into, supervisor: supervise.New("azure", src, into, supervise.Config{Kind: "azure", MaxBackoff: azure.Kind().MaxBackoff, Hold: hold})}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = m.supervisor.Run(ctx) })
	m.stop = sync.OnceFunc(func() { cancel(); running.Wait() })
	synctest.Wait()
	return m
}

// inBubble runs a test on a clock of its own, with a source of some services.
func inBubble(t *testing.T, a *azureOf, test func(m *mirrored), services ...machines.Service) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := mirror(t, store.NewMemory(store.Config{}), a, nil, services...)
		defer func() { m.stop() }()
		test(m)
	})
}

// pass has time pass.
func (m *mirrored) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// rounds has so many rounds pass.
func (m *mirrored) rounds(n int) { m.pass(time.Duration(n) * 33 * time.Second) }

// endpoints are those that the store has of a host: the address, and its health.
func (m *mirrored) endpoints(host string) (list []string) {
	for rec := range m.store.List(model.Filter{Source: "azure", Kind: model.KindEndpoint}) {
		if e, is := rec.Spec.(model.Endpoint); is && strings.HasPrefix(rec.Name, host+"/") {
			list = append(list, strings.TrimSpace(e.Address+" "+string(e.Health)))
		}
	}
	slices.Sort(list)
	return list
}

func (m *mirrored) mustHave(host string, want ...string) {
	m.Helper()
	if diff := cmp.Diff(want, m.endpoints(host)); diff != "" {
		m.Fatalf("%s (-want +got):\n%s%s", host, diff, m.describe())
	}
}

func (m *mirrored) mustBe(state source.State, reason ...string) {
	m.Helper()
	s := m.supervisor.Status()
	if s.State != state {
		m.Fatalf("want %s\n%s", state, m.describe())
	}
	for _, part := range reason {
		if !strings.Contains(s.Reason, part) {
			m.Errorf("the reason does not say %q\n%s", part, m.describe())
		}
	}
}

// mustReject expects a rejection of something, whose reason has these parts.
func (m *mirrored) mustReject(object string, parts ...string) {
	m.Helper()
	for _, r := range m.supervisor.Status().Rejected {
		if r.Object != object {
			continue
		}
		for _, part := range parts {
			if !strings.Contains(r.Reason, part) {
				m.Errorf("the reason %q does not say %q", r.Reason, part)
			}
		}
		return
	}
	m.Errorf("%s is not rejected\n%s", object, m.describe())
}

func (m *mirrored) mustNotice(object, part string) {
	m.Helper()
	if !slices.ContainsFunc(m.supervisor.Status().Notices, func(n model.Notice) bool { return n.Object == object && strings.Contains(n.Text, part) }) {
		m.Errorf("there is no notice of %s\n%s", object, m.describe())
	}
}

func (m *mirrored) describe() string {
	s := m.supervisor.Status()
	return fmt.Sprintf("the source is %s: %s\nrejected: %+v\nnotices: %+v", s.State, s.Reason, s.Rejected, s.Notices)
}

// on is a service on some resources.
func on(host string, resources ...string) machines.Service {
	return machines.Service{Host: host, Namespace: "shop", Ports: http8080, Resources: resources}
}

func members(addresses ...string) (list []machine) {
	for _, address := range addresses {
		list = append(list, machine{name: address, address: address})
	}
	return list
}

// lower is a URI as it is shown.
func lower(uri string) string { return strings.ToLower(uri) }
