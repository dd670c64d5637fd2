package istio

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/catalog"
)

// trust is whom to believe about what is gone. It is immutable.
//
// The first listing of a source since the start is compared with what the API
// server has of it, for a process that restored nothing has nothing else to
// compare it with. What is listed later is the business of the source's
// supervisor, which knows by then what there was.
type trust struct {
	listed   map[string]bool // sources, since the start
	restored []string        // sources; see [Options]
	drops    []*drop
}

// drop is what the API server has of a source, and its first listing lacks so
// suspiciously that it is not believed yet. It is immutable.
type drop struct {
	source  string
	missing map[Key]lack
	reason  string
	since   time.Time

	listings int       // that lack just this, and from which nothing was left out
	first    time.Time // of them

	equal   int       // listings that lack just this
	alike   time.Time // since when they do
	unread  bool      // the last one left something out
	lasting bool      // it would be confirmed, had they not left something out
}

// why says why it is not believed, and what ends that.
func (d *drop) why() string {
	if d.unread {
		return d.reason + "; no listing confirms it from which something is refused: see isthmus sources"
	}
	return d.reason
}

// lack is what a listing lacks of a key.
type lack struct {
	whole     bool // the service, or the scope, is not there at all
	endpoints map[uint64]bool
}

// left is what of it the newest catalog lacks still.
func (l lack) left(world *world, key Key) lack {
	rest := lack{whole: l.whole && !world.has(key), endpoints: maps.Clone(l.endpoints)}
	for socket := range world.sockets(key) {
		delete(rest.endpoints, socket)
	}
	return rest
}

func (l lack) isNothing() bool { return !l.whole && len(l.endpoints) == 0 }

func (d *drop) endpoints() (n int) {
	for _, l := range d.missing {
		n += len(l.endpoints)
	}
	return n
}

// after is the drop after one more complete listing, which the newest catalog
// has. What is listed again is not missing any more. A listing that lacks as
// much as the one before is equal to it, since nothing new goes missing here.
// One that left out what is there counts for nothing.
func (d *drop) after(world *world, unread bool, now time.Time) *drop {
	next := *d
	next.unread = unread
	next.missing = make(map[Key]lack, len(d.missing))
	same := true
	for key, was := range d.missing {
		rest := was.left(world, key)
		same = same && rest.whole == was.whole && len(rest.endpoints) == len(was.endpoints)
		if !rest.isNothing() {
			next.missing[key] = rest
		}
	}
	if next.equal++; !same {
		next.equal, next.alike = 1, now
	}
	switch {
	case unread && !same:
		next.listings = 0
	case unread:
	case !same || d.listings == 0:
		next.listings, next.first = 1, now
	default:
		next.listings++
	}
	return &next
}

// has reports whether there is such a service, or scope.
func (w *world) has(key Key) bool {
	if key.Kind == Sidecar {
		for scope := range w.Scopes() {
			if scopeKey(scope) == key {
				return true
			}
		}
		return false
	}
	_, ok := w.Service(catalog.ServiceKey{Namespace: key.Namespace, Host: key.Name})
	return ok
}

// sockets returns where a service is served, whether or not that is fit to be
// written, and whose word that is.
func (w *world) sockets(key Key) map[uint64]string {
	service, ok := w.Service(catalog.ServiceKey{Namespace: key.Namespace, Host: key.Name})
	if !ok || key.Kind != ServiceEntry {
		return nil
	}
	found := map[uint64]string{}
	for _, port := range service.Ports {
		for e := range service.Endpoints(port.Number).All() {
			found[socket(e.Address, e.Network, e.Port)] = e.Record.Source
		}
	}
	return found
}

// missed says why an object may not lose what it would lose: its source was not
// expected to lose that much.
func (w *world) missed(key Key, o Observed) wait {
	for _, d := range w.trust.drops {
		lack, ok := d.missing[key]
		if !ok {
			continue
		}
		lack = lack.left(w, key)
		lost := 0
		for _, socket := range o.sockets {
			if lack.endpoints[socket] {
				lost++
			}
		}
		if lost > 0 || lack.whole {
			return wait{d.why(), lost, d.since}
		}
	}
	return wait{}
}

// guard returns the supervisor of a source, if what it does not list is compared
// with what the API server has of it.
func (w *Writer) guard(source string) Supervisor {
	if w.options.Supervisor == nil || slices.Contains(w.trust.Load().restored, source) || !w.isConfigured(source) {
		return nil
	}
	return w.options.Supervisor(source)
}

func (w *Writer) isConfigured(source string) bool {
	return w.options.Configured == nil || w.options.Configured(source)
}

// census is what the API server has of a source.
type census struct {
	listed  int // endpoints
	serving map[Key]bool
	missing map[Key]lack
	lost    int // endpoints missing
}

// compare compares what the API server has with the first listing of a source,
// and returns the drops that are suspicious. An object of several sources is
// looked at once all of them have been listed, and what it lacks is taken for
// missing from each, for it does not say which of them spoke of an endpoint.
func (w *Writer) compare(world *world, source string, now time.Time) (drops []*drop) {
	known := map[string]*census{}
	of := func(source string) *census {
		if known[source] == nil {
			known[source] = &census{serving: map[Key]bool{}, missing: map[Key]lack{}}
		}
		return known[source]
	}
	unlisted := func(name string) bool { return w.isConfigured(name) && !world.trust.listed[name] }
	for key := range w.view.keys() {
		sockets, whole := world.sockets(key), !world.has(key)
		for _, o := range w.view.of(key) {
			names := o.sources()
			concerned := slices.Contains(names, source) && !slices.ContainsFunc(names, unlisted)
			for _, name := range slices.DeleteFunc(names, func(name string) bool { return w.guard(name) == nil }) {
				of(name).count(key, o, sockets, name)
				if concerned {
					of(name).miss(key, o, sockets, whole)
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if s := w.guard(name); s != nil {
			drops = append(drops, judge(name, s, known[name], now)...)
		}
	}
	return drops
}

// count counts what is listed of an object.
func (c *census) count(key Key, o Observed, sockets map[uint64]string, source string) {
	for _, socket := range o.sockets {
		if sockets[socket] == source {
			c.listed++
			c.serving[key] = true
		}
	}
}

// miss notes what is not listed of an object by anybody.
func (c *census) miss(key Key, o Observed, sockets map[uint64]string, whole bool) {
	l, ok := c.missing[key]
	if !ok {
		l = lack{whole, map[uint64]bool{}}
	}
	for _, socket := range o.sockets {
		if _, there := sockets[socket]; !there && !l.endpoints[socket] {
			l.endpoints[socket] = true
			c.lost++
		}
	}
	if !l.isNothing() {
		c.missing[key] = l
	}
}

// judge applies the source's own rule of what is suspicious.
func judge(source string, s Supervisor, c *census, now time.Time) (drops []*drop) {
	hold, listings := s.Hold(), 1
	if s.Unread() {
		listings = 0
	}
	add := func(missing map[Key]lack, what string) {
		drops = append(drops, &drop{
			source: source, missing: missing, since: now, listings: listings, first: now, equal: 1, alike: now, unread: listings == 0,
			reason: fmt.Sprintf("the first listing of source %s since the start lacks %s; it is kept until %s", source, what, hold.Terms(source)),
		})
	}
	if hold.Suspicious(c.lost, c.lost+c.listed) {
		add(c.missing, fmt.Sprintf("%d of the %d endpoints that are written here", c.lost, c.lost+c.listed))
		return drops
	}
	for _, key := range slices.SortedFunc(maps.Keys(c.missing), func(a, b Key) int { return cmp.Compare(a.String(), b.String()) }) {
		if n := len(c.missing[key].endpoints); !c.serving[key] && hold.SuspiciousAlone(n) {
			add(map[Key]lack{key: c.missing[key]}, fmt.Sprintf("all %d endpoints of %s", n, key))
		}
	}
	return drops
}
