package demo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/isthmus-mesh/isthmus/admin"
)

// secondSteps are the steps of the tour with two registries.
func (t *tour) secondSteps() []step {
	name := t.second.service.name
	return []step{
		{
			"two registries, one service",
			fmt.Sprintf("Four instances of %s register with a stand-in for Service Center.\n", name) +
				fmt.Sprintf("Watch: %[1]s-1 from the folder and %[1]s-3 to -6 share the calls to one host.", name),
			t.unite,
		},
		{
			"an outage of one registry",
			"The Service Center answers every request with an error, and then recovers.\n" +
				"Watch: its source is stale meanwhile, and the calls to its instances go on.",
			t.outage,
		},
		{
			"half of the endpoints disappear",
			fmt.Sprintf("The Service Center loses %[1]s-5 and %[1]s-6, which still run.\n", name) +
				"Watch: Isthmus holds the two, since a broken registry looks like this, and no call fails.",
			t.halve,
		},
		{
			"release the held endpoints",
			fmt.Sprintf("They are really gone: isthmus sources release %s\n", secondName) +
				"Watch: the client leaves the two, and no call fails.",
			t.release,
		},
	}
}

// unite registers the instances of the second registry.
func (t *tour) unite(ctx context.Context) (observed, error) {
	unharmed, s := t.unharmed(), t.second
	joining := s.waiting.running
	for _, b := range joining {
		s.put(s.service, b.instance())
	}
	t.fleet.running, s.waiting.running = append(t.fleet.running, joining...), nil
	wrote, err := s.save(s.service)
	if err != nil {
		return observed{}, err
	}
	latest := wrote
	for _, b := range joining {
		first, err := t.firstAnswer(ctx, s.service, b.name, unharmed)
		if err != nil {
			return observed{}, err
		}
		if first.After(latest) {
			latest = first
		}
	}
	if err := t.stillAnswering(ctx, nil, unharmed); err != nil {
		return observed{}, err
	}
	return observed{latest.Sub(wrote), fmt.Sprintf("an answer from each of the four, and more from %s-1; no call failed", s.service.name)}, nil
}

// outage makes the second registry fail until the client has made more calls.
func (t *tour) outage(ctx context.Context) (observed, error) {
	unharmed, begun := t.unharmed(), time.Now()
	t.second.center.down.Store(true)
	stale, err := t.reaches(ctx, unharmed, func(s admin.Source) bool { return s.State == "stale" })
	if err != nil {
		return observed{}, err
	}
	if err := t.stillAnswering(ctx, nil, unharmed); err != nil {
		return observed{}, err
	}
	t.second.center.down.Store(false)
	if _, err := t.reaches(ctx, unharmed, func(s admin.Source) bool { return s.State == "live" }); err != nil {
		return observed{}, err
	}
	return observed{stale.Sub(begun), fmt.Sprintf("the source %s was stale, and is live again;\nmeanwhile every instance has answered %d more calls, and none failed", secondName, enough)}, nil
}

// halve removes two instances at once.
func (t *tour) halve(ctx context.Context) (observed, error) {
	unharmed, s := t.unharmed(), t.second
	s.instances[s.service.name] = s.instances[s.service.name][:secondInstances/2]
	wrote, err := s.save(s.service)
	if err != nil {
		return observed{}, err
	}
	const lost = secondInstances - secondInstances/2
	held, err := t.reaches(ctx, unharmed, func(s admin.Source) bool { return s.State == "held" && s.Held >= lost })
	if err != nil {
		return observed{}, err
	}
	if err := t.stillAnswering(ctx, nil, unharmed); err != nil {
		return observed{}, err
	}
	return observed{held.Sub(wrote), fmt.Sprintf("%d endpoints are held;\nsince then every instance, these included, has answered %d more calls", lost, enough)}, nil
}

// release releases the held endpoints, and stops their instances once they are left.
func (t *tour) release(ctx context.Context) (observed, error) {
	unharmed, s := t.unharmed(), t.second
	var gone []*backend
	for _, b := range t.fleet.running {
		if serviceOf(b) == s.service.name && !s.has(s.service, b.name) && !t.registry.has(s.service, b.name) {
			gone = append(gone, b)
		}
	}
	before, err := t.control.assignments(ctx, s.service)
	if err != nil {
		return observed{}, err
	}
	released := time.Now()
	if err := t.control.release(ctx, secondName); err != nil {
		return observed{}, err
	}
	var names []string
	for _, b := range gone {
		if err := await(ctx, func() error { return errors.Join(unharmed(), t.withdrawn(ctx, s.service, b.instance(), before.ACKed)) }); err != nil {
			return observed{}, err
		}
		names = append(names, b.name)
	}
	accepted := time.Now()
	for _, b := range gone {
		if err := t.forgotten(ctx, s.service, b.name, unharmed); err != nil {
			return observed{}, err
		}
	}
	for _, b := range gone {
		t.fleet.kill(b.name)
	}
	return observed{accepted.Sub(released), fmt.Sprintf("the client accepted the removal of %s; no call failed", strings.Join(names, " and "))}, nil
}

// reaches waits until the second source has a state, and returns when it did.
func (t *tour) reaches(ctx context.Context, unharmed func() error, has func(admin.Source) bool) (time.Time, error) {
	err := await(ctx, func() error {
		sources, err := t.control.sources(ctx)
		if err != nil {
			return err
		}
		for _, s := range sources {
			if s.Name == secondName && !has(s) {
				err = fmt.Errorf("the source %s is %s", s.Name, describe(s))
			}
		}
		return errors.Join(unharmed(), err)
	})
	return time.Now(), err
}
