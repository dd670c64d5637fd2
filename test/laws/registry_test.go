package laws_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/wait"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
)

// mode is how a registry can be reached.
type mode int

const (
	up     mode = iota
	down        // reading fails
	broken      // reading panics
	stuck       // reading waits and waits
)

// fault is what is wrong with an object.
type fault int

const (
	sound    fault = iota
	rejected       // its source finds it bad
	poisoned       // its source does not, but it is
)

// registry says what a history makes it say, to everybody who reads it.
type registry struct {
	mu      sync.Mutex
	objects map[model.Ref]model.Object
	faults  map[model.Ref]fault
	mode    mode
	since   time.Time     // of the mode
	late    time.Duration // how long what it says takes to arrive
	passing int           // readings that are on their way
	notices []notice
	changed chan struct{} // closed, and replaced, when something changed
}

// notice is what a registry tells those who follow it: its objects one by one,
// or that they should list.
type notice struct{ change *model.Change }

func newRegistry(late time.Duration) *registry {
	return &registry{
		late: late, since: time.Now(), objects: map[model.Ref]model.Object{}, faults: map[model.Ref]fault{}, changed: make(chan struct{}),
	}
}

// turn changes how a registry can be reached.
func (r *registry) turn(m mode, more ...notice) {
	r.become(func() { r.mode, r.since = m, time.Now() }, more...)
}

// become changes a registry, and queues notices of it.
func (r *registry) become(change func(), more ...notice) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
	r.notices = append(r.notices, more...)
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *registry) refs() []model.Ref {
	return slices.SortedFunc(maps.Keys(r.objects), model.Ref.Compare)
}

// reading is what a registry says of some objects, for the source and plainly.
func (r *registry) reading(refs []model.Ref) ([]model.Object, []model.Rejection, said) {
	var objects []model.Object
	var rejections []model.Rejection
	plainly := said{rejected: map[model.Ref]bool{}}
	for _, ref := range refs {
		o := placed(r.objects[ref])
		fault := r.faults[ref]
		if isEcho(o) { // what is bad of it is for its own registry to say
			plainly.deleted = append(plainly.deleted, ref)
			continue
		}
		switch fault {
		case sound:
			objects, plainly.objects = append(objects, o), append(plainly.objects, o)
			continue
		case rejected:
			rejections = append(rejections, model.Rejection{Ref: ref, Reason: "it is bad"})
		case poisoned:
			o.Owned = append(slices.Clone(o.Owned), model.Record{Ref: model.Ref{Kind: model.KindEndpoint, Key: model.Key{Name: "stray"}}, Spec: model.Endpoint{}})
			objects = append(objects, o)
		}
		plainly.rejected[ref] = true
	}
	return objects, rejections, plainly
}

// listing is everything a registry says.
func (r *registry) listing() (model.Listing, said) {
	objects, rejections, plainly := r.reading(r.refs())
	plainly.whole = true
	listing := model.Listing{Objects: objects, Rejected: rejections}
	for _, ref := range plainly.deleted {
		listing.Removed = append(listing.Removed, placeOf(ref))
	}
	return listing, plainly
}

// report is what a registry says of some objects, and that others are gone.
func (r *registry) report(refs, gone []model.Ref) *model.Change {
	objects, rejections, plainly := r.reading(refs)
	return &model.Change{Upserts: objects, Rejected: rejections, Deletes: slices.Concat(gone, plainly.deleted)}
}

// plainly is what a change says.
func plainly(c model.Change) said {
	s := said{rejected: map[model.Ref]bool{}, deleted: c.Deletes}
	for _, o := range c.Upserts {
		if n := len(o.Owned); n > 0 && o.Owned[n-1].Name == "stray" {
			s.rejected[o.Record.Ref] = true
		} else {
			s.objects = append(s.objects, o)
		}
	}
	for _, f := range c.Rejected {
		s.rejected[f.Ref] = true
	}
	s.plainlyOwned(c)
	return s
}

// reader is a source that reads a registry. What the supervisor has taken it
// tells to took, of which there is one at a time.
type reader struct {
	*registry
	took func(store func() error, s said) error
}

var _ source.Source = reader{}

// Run implements [source.Source]. It waits for the end, something new in the
// registry, and being asked to list again.
func (r reader) Run(ctx context.Context, sink source.Sink) error {
	for received, list := -1, true; ; {
		r.mu.Lock()
		changed, mode, fresh := r.changed, r.mode, []notice(nil)
		listing, plain := r.listing()
		if received >= 0 {
			fresh = r.notices[received:]
		}
		if mode == up {
			received = len(r.notices)
		}
		r.mu.Unlock()
		switch mode {
		case down:
			return errors.New("the registry is down")
		case broken:
			panic("the registry is broken")
		case stuck:
		case up:
			list = list || slices.Contains(fresh, notice{})
			if err := r.pass(ctx, sink, list, listing, plain, fresh); err != nil {
				return err
			}
			list = false
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		case <-sink.Relist():
			list = true
		}
	}
}

// travel takes as long as a reading takes to arrive. It reports false if ctx ends before.
func (r reader) travel(ctx context.Context) bool {
	count := func(by int) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.passing += by
	}
	count(+1)
	defer count(-1)
	return wait.Sleep(ctx, r.late)
}

// isOnItsWay reports whether something that it said has not arrived yet.
func (r *registry) isOnItsWay() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.passing > 0
}

func (r reader) pass(ctx context.Context, sink source.Sink, list bool, listing model.Listing, plain said, fresh []notice) error {
	if r.late > 0 && (list || len(fresh) > 0) && !r.travel(ctx) {
		return ctx.Err()
	}
	if list { // which has all that changed
		return r.took(func() error { return sink.Replace(ctx, listing) }, plain)
	}
	for _, n := range fresh {
		if err := r.took(func() error { return sink.Change(ctx, *n.change) }, plainly(*n.change)); err != nil {
			return err
		}
	}
	return nil
}
