package envoy_test

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"time"
)

// Kinds of services, by what an Envoy knows them apart by.
const (
	byAuthority = "HTTP"
	byAddress   = "TCP"
	byHandshake = "TLS"
	byContent   = "" // its port has no protocol, and requests come to its address
)

// offer is how a service is called.
type offer struct {
	Kind, Host         string
	Number             uint32
	Address, AddressV6 string
}

// at is its address of a family.
func (o offer) at(ipv4 bool) string {
	if ipv4 {
		return o.Address
	}
	return o.AddressV6
}

// stormService is a service that is called through Envoys all the time. What is
// written of it belongs to one goroutine, what callers know of it to all.
type stormService struct {
	m     *mesh
	name  string
	index uint32 // of it among all
	offer
	port        port
	more        []port // beside the one that is called
	backends    []*stormBackend
	resolution  string // STATIC if it is empty
	folder      *folder
	certificate *tls.Certificate

	mu      sync.Mutex
	known   offer
	changes int // of what callers know; if even, every call has to be answered
	log     []string
}

// stormBackend is a server that says whose it is.
type stormBackend struct {
	endpoint endpoint
	port     uint32
	stop     func()
}

// stormCall is what a caller knows when it begins.
type stormCall struct {
	offer
	changes int
}

func (o *stormService) call() (c stormCall, due bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return stormCall{o.known, o.changes}, o.changes%2 == 0
}

// still reports whether a call had to be answered all along, and what was done meanwhile.
func (o *stormService) still(c stormCall) (bool, []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.changes == c.changes, slices.Clone(o.log)
}

// otherwise makes a change after which the service is called in another way, or is gone
// for a while. Meanwhile no call has to be answered.
func (o *stormService) otherwise(change func()) {
	o.mu.Lock()
	o.changes++
	o.mu.Unlock()
	change()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.changes++
	o.known = o.offer
}

// object is what its file says. A backend serves every port: an edge leads to the lowest of
// the ports that fit, which need not be the one that the others call.
func (o *stormService) object() service {
	s := service{Name: o.name, Spec: serviceSpec{
		Hosts: []string{o.Host}, Resolution: cmp.Or(o.resolution, "STATIC"), Addresses: []string{o.Address, o.AddressV6},
		Ports: append([]port{o.port}, o.more...),
	}}
	s.Spec.Ports[0].Number = o.Number
	for _, b := range o.backends {
		e := b.endpoint
		e.Ports = map[string]uint32{}
		for _, p := range s.Spec.Ports {
			e.Ports[p.Name] = b.port
		}
		s.Spec.Endpoints = append(s.Spec.Endpoints, e)
	}
	return s
}

func (o *stormService) publish(what string) {
	o.note(what)
	o.folder.write(o.m, o.name, o.object())
}

// note keeps the last things that were done to the service.
func (o *stormService) note(what string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.log = append(o.log, time.Now().Format("15:04:05.000 ")+what)
	o.log = o.log[max(0, len(o.log)-8):]
}

// grow starts one more backend.
func (o *stormService) grow() {
	if o.Kind != byAuthority && o.Kind != byContent {
		o.backends = append(o.backends, startNaming(o.m.T, o.name, o.certificate))
		return
	}
	b := startBackend(o.m, o.name, fmt.Sprint(o.name, "-", len(o.backends)))
	o.backends = append(o.backends, &stormBackend{endpoint{Address: b.Address}, b.Port, b.Stop})
}

// startNaming serves connections that ask with a line, with the name of the service.
func startNaming(t *testing.T, name string, certificate *tls.Certificate) *stormBackend {
	t.Helper()
	listener := listen(t, "127.0.0.1", 0)
	at := listener.Addr().(*net.TCPAddr)
	if certificate != nil {
		listener = tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{*certificate}})
	}
	var served sync.WaitGroup
	served.Go(func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			served.Go(func() { answerLine(connection, name) })
		}
	})
	stop := sync.OnceFunc(func() { _ = listener.Close(); served.Wait() })
	t.Cleanup(stop)
	return &stormBackend{endpoint{Address: at.IP.String()}, uint32(at.Port), stop}
}
