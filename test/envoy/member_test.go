package envoy_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"
)

// member is a service with backends that really answer. It has a file of its
// own, and belongs to one goroutine.
type member struct {
	*target
	m    *mesh
	book *book

	host       string
	port       port
	resolution string
	selected   bool // its endpoints are workloads
	absent     bool
	spots      []spot // of which a service of one name has the first only

	started int // backends so far
}

// spot is a backend, as it is written.
type spot struct {
	*backend
	weight   uint32
	locality string
}

// newMember writes a service with backends.
func newMember(m *mesh, b *book, name string, backends int) *member {
	host := name + ".localhost"
	s := &member{m: m, book: b, host: host, resolution: "STATIC", port: port{Number: 80, Name: "http", Protocol: "HTTP"}}
	s.target = b.add(name, clusterName(host, 80))
	for range backends {
		s.spots = append(s.spots, s.start())
	}
	s.publish("begin")
	return s
}

// start starts one more backend.
func (s *member) start() spot {
	s.started++
	return spot{backend: startBackend(s.m, s.Service, fmt.Sprintf("%s-%d", s.Service, s.started))}
}

// objects are what the file of the service says.
func (s *member) objects() []object {
	if s.absent {
		return nil
	}
	entry := service{Name: s.Service, Spec: serviceSpec{Hosts: []string{s.host}, Resolution: s.resolution, Ports: []port{s.port}}}
	if s.resolution == "NONE" {
		return []object{entry}
	}
	var workloads []object
	for _, spot := range s.spots {
		e := spot.endpoint(s.port.Name)
		e.Weight, e.Locality = spot.weight, spot.locality
		if s.selected {
			e.Labels = map[string]string{"app": s.Service}
			workloads = append(workloads, workload{Name: spot.Name, Spec: e})
		} else {
			entry.Spec.Endpoints = append(entry.Spec.Endpoints, e)
		}
	}
	if s.selected {
		entry.Spec.Selector = &selector{Labels: map[string]string{"app": s.Service}}
	}
	return append(workloads, entry)
}

// publish writes the file as the service now is.
func (s *member) publish(what string) {
	s.book.note(s.target, what)
	s.book.change(s.target, func(t *target) { t.Destination = s.spots[0].destination() })
	s.m.Folder.write(s.m, s.Service, s.objects()...)
}

// grow adds a backend.
func (s *member) grow() {
	s.spots = append(s.spots, s.start())
	s.publish("grow")
}

// drop takes backends out of the service. They still run.
func (s *member) drop(from, to int) (gone []spot) {
	gone = slices.Clone(s.spots[from:to])
	s.spots = slices.Delete(s.spots, from, to)
	return gone
}

// pending are things that are done later. They are done at the latest when it
// is closed.
type pending struct {
	left atomic.Int64
	done chan struct{}
}

func newPending() *pending { return &pending{done: make(chan struct{}, 1)} }

// later has something be done some time after begin is called.
func (p *pending) later(d time.Duration, do func()) (begin func()) {
	p.left.Add(1)
	return func() {
		time.AfterFunc(d, func() {
			do()
			if p.left.Add(-1) == 0 {
				select {
				case p.done <- struct{}{}:
				default:
				}
			}
		})
	}
}

// wait waits until nothing is left to be done.
func (p *pending) wait() {
	for p.left.Load() > 0 {
		<-p.done
	}
}
