package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// enough is how many more answers show that an instance still answers.
	enough = 10
	// quiet is the time without an attempt after which a backend counts as forgotten. It is
	// many times the pause between two attempts of gRPC.
	quiet = 500 * time.Millisecond
)

// steps returns the tour. Each step begins with the state that the previous one left.
func (t *tour) steps() []step {
	cart, payments, reviews := services[0], services[1], services[2]
	w := t.registry.words()
	steps := []step{
		{
			"all six instances answer",
			"Isthmus " + w.read + ", and gRPC asks it where the services are.\n" +
				"Watch: every instance takes its share of the calls.",
			t.everybody,
		},
		{
			"add an instance",
			fmt.Sprintf(w.add, reviews.name+"-3", reviews.name) + "\n" +
				"Watch: it gets a third of the calls, and none fails.",
			func(ctx context.Context) (observed, error) { return t.add(ctx, reviews) },
		},
		{
			"kill an instance",
			fmt.Sprintf(w.remove, payments.name+"-2", payments.name) + "\n" +
				fmt.Sprintf("Watch: %s-1 takes all calls, and soon the client does not even try to reach %[1]s-2.", payments.name),
			func(ctx context.Context) (observed, error) { return t.kill(ctx, payments, payments.name+"-2") },
		},
		{
			w.spoilTitle,
			fmt.Sprintf(w.spoil, cart.name+"-3", cart.name) + "\n" +
				"Watch: " + w.rejection + ": everybody else still answers.",
			func(ctx context.Context) (observed, error) { return t.spoil(ctx, cart) },
		},
		{
			w.fixTitle,
			fmt.Sprintf(w.fix, cart.name+"-3", cart.name) + "\n" +
				fmt.Sprintf("Watch: nothing is rejected any more, and %s-3 gets its share.", cart.name),
			func(ctx context.Context) (observed, error) { return t.fix(ctx, cart) },
		},
	}
	if t.second != nil {
		steps = append(steps, t.secondSteps()...)
		if t.envoyProgram != "" {
			steps = append(steps, t.envoyStep())
		}
	}
	return steps
}

func (t *tour) everybody(ctx context.Context) (observed, error) {
	unharmed := func() error { // from the first call on
		if n, last := t.ledger.failures(); n > 0 {
			return hopelessError{fmt.Errorf("%d calls failed, the last one: %s", n, last)}
		}
		return nil
	}
	latest := t.begun
	err := await(ctx, func() error {
		var silent []string
		for _, b := range t.fleet.running {
			seen := t.ledger.sight(serviceOf(b), b.name)
			if seen.answers == 0 {
				silent = append(silent, b.name)
			} else if seen.first.After(latest) {
				latest = seen.first
			}
		}
		return errors.Join(unharmed(), missing("no answer from", silent))
	})
	return observed{latest.Sub(t.begun), "an answer from each of the six, counted from the start; no call failed"}, err
}

func (t *tour) add(ctx context.Context, s service) (observed, error) {
	unharmed := t.unharmed()
	b, err := t.enlist(ctx, s, 3)
	if err != nil {
		return observed{}, err
	}
	t.registry.put(s, b.instance())
	wrote, err := t.registry.save(s)
	if err != nil {
		return observed{}, err
	}
	first, err := t.firstAnswer(ctx, s, b.name, unharmed)
	return observed{first.Sub(wrote), fmt.Sprintf("the first answer from %s; no call failed", b.name)}, err
}

// firstAnswer waits for a backend to take part, and returns when it began to.
func (t *tour) firstAnswer(ctx context.Context, s service, backend string, unharmed func() error) (time.Time, error) {
	err := await(ctx, func() error {
		if t.ledger.sight(s.name, backend).answers < enough {
			return errors.Join(unharmed(), missing("not enough answers from", []string{backend}))
		}
		return unharmed()
	})
	return t.ledger.sight(s.name, backend).first, err
}

// spoil adds an instance, but with a port that cannot be.
func (t *tour) spoil(ctx context.Context, s service) (observed, error) {
	unharmed := t.unharmed()
	b, err := t.enlist(ctx, s, 3)
	if err != nil {
		return observed{}, err
	}
	typo := b.instance()
	typo.port += 100_000
	t.registry.put(s, typo)
	wrote, err := t.registry.save(s)
	if err != nil {
		return observed{}, err
	}
	where := t.registry.where(s, typo, t.registry.instances[s.name])
	if err := await(ctx, func() error { return errors.Join(unharmed(), t.rejected(ctx, where)) }); err != nil {
		return observed{}, err
	}
	rejected := time.Now()
	if err := t.stillAnswering(ctx, b, unharmed); err != nil {
		return observed{}, err
	}
	return observed{rejected.Sub(wrote), fmt.Sprintf("%s is rejected;\nsince then each of the others has answered %d more calls, and none failed",
		where, enough)}, nil
}

// rejected waits until the source shows a rejected object at a place.
func (t *tour) rejected(ctx context.Context, where string) error {
	source, err := t.control.source(ctx)
	if err != nil {
		return err
	}
	var places []string
	for _, r := range source.Rejected {
		places = append(places, r.Where)
	}
	if !slices.Contains(places, where) {
		return fmt.Errorf("the source rejects [%s], not %s", strings.Join(places, " "), where)
	}
	return nil
}

// stillAnswering waits until all backends have answered some more, except one that must not
// have.
func (t *tour) stillAnswering(ctx context.Context, but *backend, unharmed func() error) error {
	before := map[string]int{}
	for _, b := range t.fleet.running {
		before[b.name] = t.ledger.sight(serviceOf(b), b.name).answers
	}
	return await(ctx, func() error {
		var silent []string
		for _, b := range t.fleet.running {
			seen := t.ledger.sight(serviceOf(b), b.name)
			if b != but && seen.answers < before[b.name]+enough {
				silent = append(silent, b.name)
			}
			if b == but && seen.answers > 0 {
				return hopelessError{fmt.Errorf("%s answers, although it was rejected", b.name)}
			}
		}
		return errors.Join(unharmed(), missing("fewer answers than expected from", silent))
	})
}

func (t *tour) fix(ctx context.Context, s service) (observed, error) {
	unharmed := t.unharmed()
	b := t.fleet.running[len(t.fleet.running)-1] // the one with the mistyped port
	t.registry.put(s, b.instance())
	wrote, err := t.registry.save(s)
	if err != nil {
		return observed{}, err
	}
	first, err := t.firstAnswer(ctx, s, b.name, unharmed)
	if err != nil {
		return observed{}, err
	}
	err = await(ctx, func() error {
		source, err := t.control.source(ctx)
		if err == nil && len(source.Rejected) > 0 {
			err = fmt.Errorf("the source still rejects %s", source.Rejected[0].Where)
		}
		return errors.Join(unharmed(), err)
	})
	return observed{first.Sub(wrote), fmt.Sprintf("the first answer from %s; nothing is rejected, no call failed", b.name)}, err
}

func missing(what string, names []string) error {
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("%s %s", what, strings.Join(names, ", "))
}

// serviceOf is the service of a backend, which is named after it.
func serviceOf(b *backend) string { return b.name[:strings.LastIndexByte(b.name, '-')] }
