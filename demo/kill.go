package demo

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// kill stops a backend and removes it from the registry. The step ends once the client has
// accepted the removal, makes its calls without the backend, and no longer tries to reach
// it. Calls may fail before the client has accepted, but not after.
func (t *tour) kill(ctx context.Context, s service, name string) (observed, error) {
	before, err := t.control.assignments(ctx, s)
	if err != nil {
		return observed{}, err
	}
	failed, _ := t.ledger.failures()
	address := t.fleet.find(name).instance()
	t.fleet.kill(name)
	t.registry.drop(s, name)
	wrote, err := t.registry.save(s)
	if err != nil {
		return observed{}, err
	}
	if err := await(ctx, func() error { return t.withdrawn(ctx, s, address, before.ACKed) }); err != nil {
		return observed{}, err
	}
	unharmed := t.unharmed()
	meanwhile, _ := t.ledger.failures()
	calls := t.ledger.answers(s.name)
	if err := t.forgotten(ctx, s, name, unharmed); err != nil {
		return observed{}, err
	}
	return observed{t.ledger.sight(s.name, name).active.Sub(wrote), fmt.Sprintf(
		"the last attempt to reach %s;\nuntil the client accepted the removal %d calls failed, of the %d since then none",
		name, meanwhile-failed, t.ledger.answers(s.name)-calls)}, nil
}

// withdrawn returns an error until the client has accepted a load assignment without the
// instance.
func (t *tour) withdrawn(ctx context.Context, s service, i instance, before string) error {
	endpoints, err := t.control.endpoints(ctx, s)
	if err != nil {
		return err
	}
	for _, e := range endpoints {
		if e.Address == i.address && int(e.Port) == i.port {
			return fmt.Errorf("Isthmus still has %s at %s:%d", i.name, i.address, i.port) //nolint:revive,staticcheck // a name
		}
	}
	now, err := t.control.assignments(ctx, s)
	if err == nil && (now.ACKed == before || now.State != "accepted" || now.Pending > 0) {
		err = fmt.Errorf("the client has not ACKed the removal of %s; its load assignments are %q %s", i.name, now.State, now.Reason)
	}
	return err
}

// forgotten waits until a backend has not been tried for a while, during which
// calls go on unharmed.
func (t *tour) forgotten(ctx context.Context, s service, name string, unharmed func() error) error {
	calls := t.ledger.answers(s.name)
	return await(ctx, func() error {
		var err error
		if seen := t.ledger.sight(s.name, name); time.Since(seen.active) < quiet {
			err = fmt.Errorf("the client still tries to reach %s", name)
		} else if t.ledger.answers(s.name) < calls+enough {
			err = fmt.Errorf("fewer calls to %s are answered than expected", s.name)
		}
		return errors.Join(unharmed(), err)
	})
}
