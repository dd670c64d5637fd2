package world

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"
)

// cache holds the encoded form of every requested subject. A slot has room for one
// revision: the newest that was requested.
type cache struct {
	frame  func(Encoded) [Modes][]byte
	panics *Panics
	seed   maphash.Seed // of the hashes in labels

	mu    sync.RWMutex
	slots map[any]*cached
}

// cached is filled in by the first goroutine that needs it, outside the cache's lock.
type cached struct {
	subject Subject
	once    sync.Once
	// res is the encoded form. Until encoding has ended, and after it failed, res is the last
	// good revision; nil if there was none.
	res  atomic.Pointer[Resource]
	used atomic.Bool // since the last sweep
}

func newCache(frame func(Encoded) [Modes][]byte, panics *Panics) *cache {
	return &cache{frame: frame, panics: panics, seed: maphash.MakeSeed(), slots: map[any]*cached{}}
}

// get returns the encoded form of a subject. If encoding panics, get returns the last good
// form, or nil. The name is for the log.
func (c *cache) get(subject Subject, name string) *Resource {
	slot := subject.Slot()
	c.mu.RLock()
	entry := c.slots[slot]
	c.mu.RUnlock()
	if entry == nil || entry.subject != subject {
		entry = c.replace(slot, subject)
	}
	if !entry.used.Load() { // a write each time would make the processors wait for each other
		entry.used.Store(true)
	}
	entry.once.Do(func() {
		c.panics.Attempt(PanicResource, name, func() { entry.res.Store(c.resource(subject.Encode())) })
	})
	return entry.res.Load()
}

func (c *cache) resource(e Encoded) *Resource {
	r := &Resource{Encoded: e, Heads: c.frame(e), noted: &atomic.Bool{}}
	r.Own = Label{Name: e.Name, Member: MemberOf(e.Name, e.Version), Hash: maphash.String(c.seed, e.Name), Version: e.Version, Made: time.Now()}
	shared := r.Own
	r.Own.Whole, r.Shared = r, &shared
	return r
}

func (c *cache) replace(slot any, subject Subject) *cached {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := c.slots[slot]
	if last != nil && last.subject == subject {
		return last
	}
	entry := &cached{subject: subject}
	if last != nil {
		entry.res.Store(last.res.Load())
	}
	c.slots[slot] = entry
	return entry
}

// forget drops the encodings of removed subjects.
func (c *cache) forget(slots []any) {
	if len(slots) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, slot := range slots {
		delete(c.slots, slot)
	}
}

// sweep drops the encodings that were not used since the last sweep.
func (c *cache) sweep() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for slot, entry := range c.slots {
		if !entry.used.Swap(false) {
			delete(c.slots, slot)
		}
	}
}

func (c *cache) len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.slots)
}
