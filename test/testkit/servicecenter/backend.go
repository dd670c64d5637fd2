package servicecenter

import (
	"crypto/rand"
	"encoding/hex"
	"maps"
	"strconv"
	"sync"
	"time"
)

// backend is the shared state of the replicas: the registered data, as in etcd. Its mutex
// guards all fields here and all fields of each replica; no goroutine does I/O or waits
// while holding it.
type backend struct {
	config Config

	mu       sync.Mutex
	closed   bool
	revision int64
	truth    *shelf
	leases   map[instanceID]*time.Timer
	rules    map[serviceID]map[name]bool // by consumer: the providers that it has looked up
	accounts accounts
	replicas []*Server
	timers   map[*time.Timer]bool // timers of single events, to be stopped at the end
}

// instanceID is where an instance is found.
type instanceID struct {
	service serviceID
	id      string
}

func newBackend(c Config) *backend {
	return &backend{
		config:   c,
		truth:    newShelf(),
		leases:   map[instanceID]*time.Timer{},
		rules:    map[serviceID]map[name]bool{},
		accounts: newAccounts(),
		timers:   map[*time.Timer]bool{},
	}
}

func now() string { return strconv.FormatInt(time.Now().Unix(), 10) }

// after calls f with the lock held, unless the backend is closed before.
func (b *backend) after(d time.Duration, f func()) *time.Timer {
	var t *time.Timer
	t = time.AfterFunc(d, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.timers, t)
		if !b.closed {
			f()
		}
	})
	b.timers[t] = true
	return t
}

// next is the revision of a write.
func (b *backend) next() int64 {
	b.revision++
	return b.revision
}

// putService stores a service and shows it to the replicas.
func (b *backend) putService(at serviceID, s *Service) {
	b.next()
	b.truth.putService(at, s)
	for _, r := range b.replicas {
		r.see(func() { r.cache.putService(at, s) })
	}
}

// dropService removes a service with its instances, and the rules in which it
// is the consumer. The replicas lose sight of the service before they learn of
// its instances, which is why no watcher does.
func (b *backend) dropService(at serviceID) {
	for id := range maps.Clone(b.truth.instances[at]) {
		b.dropInstance(instanceID{at, id})
	}
	b.next()
	b.truth.dropService(at)
	for _, r := range b.replicas {
		r.see(func() { r.cache.dropService(at) })
	}
	b.after(b.config.ruleDelay(), b.cleanRules)
}

// putInstance stores an instance; its lease begins, or goes on, by itself.
func (b *backend) putInstance(at serviceID, i *Instance) {
	h := held{i, b.next()}
	b.truth.putInstance(at, h)
	b.spread(change{Create, at, h})
}

func (b *backend) dropInstance(at instanceID) {
	h, ok := b.truth.instances[at.service][at.id]
	if !ok {
		return
	}
	if t := b.leases[at]; t != nil {
		t.Stop()
		delete(b.timers, t)
		delete(b.leases, at)
	}
	b.next()
	b.truth.dropInstance(at.service, at.id)
	b.spread(change{Delete, at.service, h})
}

func (b *backend) spread(c change) {
	for _, r := range b.replicas {
		r.see(func() { r.pipeline.take(c) })
	}
}

// renew begins the lease of an instance anew. It is false if there is no such
// instance.
func (b *backend) renew(at instanceID) bool {
	h, ok := b.truth.instances[at.service][at.id]
	if !ok {
		return false
	}
	if b.config.KeepAlive {
		return true
	}
	if t := b.leases[at]; t != nil {
		t.Stop()
		delete(b.timers, t)
	}
	ttl := time.Duration(h.HealthCheck.Interval*(h.HealthCheck.Times+1)) * time.Second
	b.leases[at] = b.after(ttl, func() {
		delete(b.leases, at)
		b.dropInstance(at)
	})
	return true
}

// learn records, some time later, that a consumer depends on a provider.
func (b *backend) learn(consumer serviceID, provider name) {
	if b.rules[consumer][provider] {
		return
	}
	b.after(b.config.ruleDelay(), func() {
		if _, ok := b.truth.services[consumer]; !ok || len(b.truth.names[provider]) == 0 {
			return
		}
		if b.rules[consumer] == nil {
			b.rules[consumer] = map[name]bool{}
		}
		b.rules[consumer][provider] = true
	})
}

// cleanRules drops the rules with a removed consumer or provider.
func (b *backend) cleanRules() {
	for consumer, providers := range b.rules {
		maps.DeleteFunc(providers, func(n name, _ bool) bool { return len(b.truth.names[n]) == 0 })
		if b.truth.services[consumer] == nil || len(providers) == 0 {
			delete(b.rules, consumer)
		}
	}
}

// consumers returns the consumers that depend on a provider.
func (b *backend) consumers(provider name) []serviceID {
	var all []serviceID
	for consumer, providers := range b.rules {
		if providers[provider] && b.truth.services[consumer] != nil {
			all = append(all, consumer)
		}
	}
	return all
}

func newInstanceID() string {
	var random [16]byte
	_, _ = rand.Read(random[:]) // never fails
	return hex.EncodeToString(random[:])
}
