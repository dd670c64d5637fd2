package machines

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/wait"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
)

// Options selects the services to read, and the pace.
type Options struct {
	// Services are the services of the configuration.
	Services []Service
	// Objects reads the objects that define further services; nil if there are none.
	Objects func(ctx context.Context) Objects
	// Poll is the pause between two rounds, give or take a tenth. Least is the
	// shortest pause, when a round is requested sooner.
	Poll, Least time.Duration
	// Round bounds the duration of a round.
	Round time.Duration
	// Stored yields the stored records of the source; nil if they cannot be read.
	Stored func() iter.Seq[model.Record]
}

// Objects are the definitions that objects of a cluster contain.
type Objects struct {
	Definitions []Definition
	// Rejected are the objects that are invalid.
	Rejected []model.Rejection
	// Place is the place of all records of the objects.
	Place string
	// Err is why the objects cannot be read now. The objects read before still count,
	// and the stored records of the place stay.
	Err error
	// Absent says that there are no such objects, or that reading them is forbidden.
	// The status shows Err, and the other services are listed all the same.
	Absent bool
}

// Source mirrors services on machines of one cloud.
type Source struct {
	cloud   Cloud
	options Options

	objects Objects
	defined bool // objects were read, or are absent
	mirror  mirror
	pauses  map[string]pause   // scopes without requests for now
	listed  []located          // services of the last listing for which a group could be read
	partial map[model.Ref]bool // services listed without groups that were never read
}

// pause is the end of a pause, and its reason.
type pause struct {
	until  time.Time
	reason error
}

var _ source.Source = (*Source)(nil)

// New returns a source of a cloud.
func New(cloud Cloud, o Options) *Source {
	return &Source{cloud: cloud, options: o, mirror: mirror{}, pauses: map[string]pause{}, partial: map[model.Ref]bool{}}
}

// Run implements [source.Source].
func (s *Source) Run(ctx context.Context, sink source.Sink) error {
	for {
		listing, failing := s.round(ctx)
		if listing != nil {
			if err := sink.Replace(ctx, *listing); err != nil {
				return err
			}
		}
		if failing != nil {
			return failing
		}
		if !s.rest(ctx, sink.Relist()) {
			return context.Cause(ctx)
		}
	}
}

// rest waits for the next round, and reports whether ctx is still alive. The cloud
// counts all requests, also the ones for a relist: a round comes no sooner than
// Options.Least allows.
func (s *Source) rest(ctx context.Context, relist <-chan time.Time) bool {
	least := time.Now().Add(s.options.Least)
	// Cases: the end; the next round; the supervisor requests a relist.
	select {
	case <-ctx.Done():
		return false
	case <-time.After(spread(s.options.Poll)):
		return true
	case <-relist:
		return wait.Sleep(ctx, time.Until(least))
	}
}

// spread varies a duration by up to a tenth, so that processes started together do
// not stay in step.
func spread(d time.Duration) time.Duration {
	return d + time.Duration((rand.Float64()-0.5)/5*float64(d)) //nolint:gosec // nobody gains by guessing it
}

// round reads all groups that may be read, and lists everything. During a pause a
// listing comes with the error if services were defined anew: it has the known
// machines.
func (s *Source) round(ctx context.Context) (*model.Listing, error) {
	services, rejected := s.define(ctx)
	paused := func() time.Duration { return s.pauseOf(groupsOf(services), time.Now()) }
	for rest := paused(); rest > 0; rest = paused() {
		if !wait.Sleep(ctx, min(rest, spread(s.options.Poll))) {
			return nil, context.Cause(ctx)
		}
		services, rejected = s.define(ctx)
		if s.listed != nil && paused() > 0 && !reflect.DeepEqual(services, s.listed) {
			return s.list(services, rejected), s.failing()
		}
	}
	s.read(ctx, share(services, func(g Group) time.Time { return s.mirror.of(g).asked }, perRound))
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	if err := s.failing(); err != nil {
		return nil, err
	}
	s.listed = services
	return s.list(services, rejected), nil
}

// define finds the services and their machines. Services without a valid reference to
// machines are rejected.
func (s *Source) define(ctx context.Context) (services []located, rejected []model.Rejection) {
	if s.options.Objects != nil {
		s.readObjects(ctx)
	}
	services, rejected = s.locate()
	s.mirror.forget(groupsOf(services))
	return services, append(rejected, s.objects.rejections()...)
}

// readObjects reads the objects that define services. If they cannot be read, the
// objects read before count.
func (s *Source) readObjects(ctx context.Context) {
	o := s.options.Objects(ctx)
	if o.Err != nil {
		o.Definitions, o.Rejected = s.objects.Definitions, s.objects.Rejected
	}
	s.objects, s.defined = o, s.defined || o.Err == nil || o.Absent
}

// rejections returns the invalid objects, and the place of all objects if it cannot
// be read.
func (o Objects) rejections() []model.Rejection {
	if o.Err == nil {
		return o.Rejected
	}
	return append(slices.Clone(o.Rejected), model.Rejection{Place: o.Place, Object: o.Place, Where: o.Place, Reason: "cannot be read: " + o.Err.Error()})
}

// failing returns why there is no listing. Either no group can be read, or the
// objects cannot be read and no stored record could stay instead.
func (s *Source) failing() error {
	err := s.mirror.failing()
	if s.objects.Err != nil && !s.objects.Absent && (err != nil || len(s.mirror) == 0 || !s.defined && !s.hasStored()) {
		return errors.Join(s.objects.Err, err)
	}
	return err
}

// hasStored reports whether an earlier listing, of this process or an earlier one, is
// stored.
func (s *Source) hasStored() bool {
	if s.options.Stored == nil {
		return false
	}
	for range s.options.Stored() {
		return true
	}
	return false
}

// locate finds the machines of services. Services with invalid references are
// rejected.
func (s *Source) locate() (services []located, rejected []model.Rejection) {
	enter := func(d Definition, namespace string) {
		groups, err := s.cloud.Groups(d.Service)
		if err != nil {
			rejected = append(rejected, model.Rejection{
				Ref: d.Ref(), Place: d.Place, Object: "Service " + d.Namespace + "/" + d.Host, Where: d.Where, Reason: err.Error(),
			})
			return
		}
		services = append(services, located{d, namespace, groups})
	}
	for _, d := range Configured(s.options.Services) {
		enter(d, "")
	}
	for _, d := range s.objects.Definitions {
		enter(d, d.Namespace)
	}
	return services, rejected
}

func groupsOf(services []located) (all []Group) {
	for _, s := range services {
		all = append(all, s.groups...)
	}
	slices.SortFunc(all, Group.Compare)
	return slices.Compact(all)
}

// pauseOf returns the wait until a scope may be read.
func (s *Source) pauseOf(groups []Group, now time.Time) time.Duration {
	soonest := time.Duration(0)
	for i, g := range groups {
		rest := max(s.pauses[g.Scope].until.Sub(now), 0)
		if i == 0 || rest < soonest {
			soonest = rest
		}
	}
	return soonest
}

// perRound is the number of groups of one scope that a round reads for objects. The
// number bounds the objects' share of the requests that a cloud allows.
const perRound = 200

// share chooses the groups of a round. The configuration's groups are read in each
// round. Of the others, each namespace gets the same share of a scope. Within a
// namespace, the group that was asked for longest ago comes first. A group left out
// keeps its machines.
func share(services []located, asked func(Group) time.Time, most int) []Group {
	chosen := map[Group]bool{}
	waiting := map[string]map[string][]Group{} // by scope and namespace
	for _, s := range services {
		for _, g := range s.groups {
			if s.namespace == "" {
				chosen[g] = true
				continue
			}
			if waiting[g.Scope] == nil {
				waiting[g.Scope] = map[string][]Group{}
			}
			waiting[g.Scope][s.namespace] = append(waiting[g.Scope][s.namespace], g)
		}
	}
	oldest := func(a, b Group) int { return cmp.Or(asked(a).Compare(asked(b)), a.Compare(b)) }
	for _, queues := range waiting {
		var list [][]Group
		for _, queue := range queues {
			slices.SortFunc(queue, oldest)
			list = append(list, slices.Compact(queue))
		}
		slices.SortFunc(list, func(a, b []Group) int { return oldest(a[0], b[0]) })
		takeTurns(list, chosen, most)
	}
	return slices.SortedFunc(maps.Keys(chosen), Group.Compare)
}

// takeTurns chooses from the heads of queues in turn, up to most groups that were not
// chosen before.
func takeTurns(queues [][]Group, chosen map[Group]bool, most int) {
	for len(queues) > 0 {
		for i, queue := range queues {
			for len(queue) > 0 && chosen[queue[0]] {
				queue = queue[1:]
			}
			if len(queue) > 0 {
				if most == 0 {
					return
				}
				most--
				chosen[queue[0]] = true
				queue = queue[1:]
			}
			queues[i] = queue
		}
		queues = slices.DeleteFunc(queues, func(q []Group) bool { return len(q) == 0 })
	}
}

// atOnce is the number of groups that are read at the same time.
const atOnce = 8

// read reads all groups but the groups of paused scopes. The groups read longest ago
// come first: a round that is too long leaves out other groups the next time.
func (s *Source) read(ctx context.Context, groups []Group) {
	ctx, cancel := context.WithTimeout(ctx, s.options.Round)
	defer cancel()
	r := &round{reader: s.cloud.Round(), pauses: s.pauses, free: make(chan struct{}, atOnce)}
	var reading sync.WaitGroup
	oldest := slices.SortedStableFunc(slices.Values(groups), func(a, b Group) int { return s.mirror.of(a).read.Compare(s.mirror.of(b).read) })
	for _, g := range oldest {
		r.free <- struct{}{}
		reading.Go(func() {
			defer func() { <-r.free }()
			r.group(ctx, g)
		})
	}
	reading.Wait()
	if r.panicked != nil {
		panic(r.panicked)
	}
	now := time.Now()
	for _, one := range r.readings {
		s.mirror.of(one.group).enter(one.machines, one.err, now)
	}
}

// round is one reading of all groups, by several goroutines.
type round struct {
	reader Reader
	free   chan struct{}

	mu       sync.Mutex // guards the rest
	pauses   map[string]pause
	readings []reading
	panicked any
}

type reading struct {
	group    Group
	machines []Machine
	err      error
}

// group reads a group. A panic is passed on to the run: the supervisor recovers only
// panics of the run's goroutine.
func (r *round) group(ctx context.Context, g Group) {
	defer func() {
		if p := recover(); p != nil {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.panicked = p
		}
	}()
	one := reading{group: g}
	if one.err = r.paused(g.Scope); one.err == nil {
		one.machines, one.err = r.reader.Read(ctx, g)
		one.err = r.pause(g.Scope, one.err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.readings = append(r.readings, one)
}

// paused returns why a scope is paused; nil if it is not.
func (r *round) paused(scope string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.pauses[scope]; time.Now().Before(p.until) {
		return p.reason
	}
	delete(r.pauses, scope)
	return nil
}

// pause records a pause that a cloud asks for, and adds its end to the error.
func (r *round) pause(scope string, err error) error {
	var t *Throttled
	if !errors.As(err, &t) {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	until := time.Now().Add(t.pause())
	err = fmt.Errorf("%w; next attempt at %s", err, until.UTC().Format(time.RFC3339))
	if until.After(r.pauses[scope].until) {
		r.pauses[scope] = pause{until, err}
	}
	return err
}
