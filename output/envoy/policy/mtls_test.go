package policy

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/isthmus-mesh/isthmus/model"
)

// A port goes before its namespace, and a namespace before the mode of all. Lookups return the
// same pointer each time, and none where nothing takes mutual TLS.
func TestTheNarrowestModeCounts(t *testing.T) {
	s := New()
	s.MTLS = MTLS{
		Mode: PermissiveMTLS, Namespaces: map[string]string{"shop": StrictMTLS, "old": DisableMTLS},
		Ports: []MTLSPort{{"shop", 8080, DisableMTLS}, {"old", 8080, StrictMTLS}, {"new", 9090, PermissiveMTLS}},
	}
	mesh := s.Prepare().Mesh
	for _, test := range []struct {
		namespace string
		port      uint32
		want      Mutual
	}{
		{"any", 1, Permissive}, {"shop", 1, Strict}, {"shop", 8080, Plaintext}, {"old", 1, Plaintext}, {"old", 8080, Strict}, {"new", 1, Permissive}, {"new", 9090, Permissive},
	} {
		if got := mesh.In(test.namespace).Of(test.port); got != test.want {
			t.Errorf("%s, port %d: %d, want %d", test.namespace, test.port, got, test.want)
		}
		if once, again := mesh.In(test.namespace), mesh.In(test.namespace); once != again {
			t.Errorf("the modes of %s are others each time", test.namespace)
		}
	}
	exceptions := map[uint32]Mutual{}
	for _, namespace := range []string{"shop", "new"} {
		maps.Insert(exceptions, mesh.In(namespace).Exceptions())
	}
	if mode, named := exceptions[8080]; len(exceptions) != 1 || !named || mode != Plaintext {
		t.Errorf("the exceptions are %v", exceptions)
	}
	s.MTLS.Namespaces["old"], s.MTLS.Ports = DisableMTLS, nil
	if s.Prepare().Mesh.In("old") != nil {
		t.Error("a namespace in plaintext has modes")
	}
	if mesh := New().Prepare().Mesh; mesh != nil || mesh.In("shop") != nil || mesh.In("shop").Of(80) != Plaintext {
		t.Error("by default something takes mutual TLS")
	}
}

// An endpoint is called by mutual TLS for its label, at a port that takes it.
func TestTheLabelDecidesAboutAnEndpoint(t *testing.T) {
	s := New()
	s.MTLS = MTLS{Mode: StrictMTLS, Ports: []MTLSPort{{"shop", 8080, DisableMTLS}}}
	modes := s.Prepare().Mesh.In("shop")
	label := func(value string) model.Labels { return model.MapOf(map[string]string{mutualLabel: value}) }
	for _, test := range []struct {
		labels model.Labels
		port   uint32
		want   bool
	}{
		{label("istio"), 80, true}, {label("disabled"), 80, false}, {model.Labels{}, 80, false}, {label("istio"), 8080, false}, {label("istio"), 0, false},
	} {
		if got := modes.Reaches(test.labels, test.port); got != test.want {
			t.Errorf("labels %v, port %d: %t", test.labels.Map(), test.port, got)
		}
	}
}

// Wrong modes are rejected with their field. The fields that need an authority are listed.
func TestModesAreChecked(t *testing.T) {
	for want, change := range map[string]func(*MTLS){
		"mtls.mode: ":            func(m *MTLS) { m.Mode = "strict" },
		"mtls.namespaces.shop: ": func(m *MTLS) { m.Namespaces = map[string]string{"shop": ""} },
		"mtls.namespaces: ":      func(m *MTLS) { m.Namespaces = map[string]string{"*": StrictMTLS} },
		"mtls.ports[0].namespace: ": func(m *MTLS) {
			m.Ports = []MTLSPort{{"", 80, StrictMTLS}}
		},
		"mtls.ports[0].mode: ": func(m *MTLS) { m.Ports = []MTLSPort{{"shop", 80, "OFF"}} },
		"mtls.ports[0].port: ": func(m *MTLS) { m.Ports = []MTLSPort{{"shop", InboundPort, StrictMTLS}} },
		"mtls.ports[1].port: ": func(m *MTLS) { m.Ports = []MTLSPort{{"shop", 80, StrictMTLS}, {"shop", 80, DisableMTLS}} },
		"":                     func(m *MTLS) { m.Ports = []MTLSPort{{"shop", 80, StrictMTLS}, {"other", 80, DisableMTLS}} },
	} {
		s := New()
		change(&s.MTLS)
		switch err := s.Validate(); {
		case want == "" && err != nil, want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)):
			t.Errorf("want %q, got %v", want, err)
		}
	}
	s := New()
	if fields := s.NeedAuthority(); fields != nil {
		t.Errorf("by default %v need an authority", fields)
	}
	s.MTLS.Namespaces = map[string]string{"shop": StrictMTLS}
	s.Hosts = []HostPolicy{{Host: "a.example", Policy: Policy{TLS: &UpstreamTLS{Mode: SimpleTLS, CAFile: "/ca.crt"}}}, {Host: "b.example", Policy: Policy{TLS: &UpstreamTLS{Mode: IstioMutualTLS}}}}
	if fields := s.NeedAuthority(); !slices.Equal(fields, []string{"mtls", "hosts[1].tls"}) || s.Validate() != nil {
		t.Errorf("%v need an authority; %v", fields, s.Validate())
	}
}
