package pushtest

import (
	"strings"
	"sync"
	"testing"

	"github.com/isthmus-mesh/isthmus/push/world"
)

// The suite finds what producers get wrong: each case is a mistake in one that is
// fine otherwise, and costs clients what they should have.
func TestSuiteCatchesFaultyProducers(t *testing.T) {
	account := vault()
	for name, addition := range map[string]Addition{
		"a change that is not listed": faulty(func(u *world.Update) { u.Changed = u.Changed[1:] }),
		"an audience that is too small": faulty(func(u *world.Update) {
			for i := range u.Changed {
				u.Changed[i].Audience = []string{"a"}
			}
		}),
		"subjects that stay equal when they change": wrapped(alike()),
		"a version that is not of the content":      wrapped(func(i *item) world.Subject { return sameVersion{i} }),
		"references that are left out":              wrapped(func(i *item) world.Subject { return silentItem{i} }),
		"audience keys that nobody has": {
			Rows:  []world.TypeSpec{{Name: "secret", Audience: func(world.Client) []string { return []string{"?"} }}},
			Begin: account.Begin, Client: account.Client, Name: account.Name,
		},
	} {
		t.Run(name, func(t *testing.T) {
			const histories = 200
			if said := Find(t, addition, histories); said == "" {
				t.Errorf("it is not found in %d histories", histories)
			} else if !strings.HasPrefix(said, "law 5") {
				t.Errorf("it is found as %.200s", said)
			}
		})
	}
}

// faulty is the mesh with a mistake in what it publishes.
func faulty(spoil func(*world.Update)) Addition {
	a := mesh()
	begin := a.Begin
	a.Begin = func() World {
		w, _ := begin().(*things)
		w.spoil = spoil
		return w
	}
	return a
}

// wrapped is the mesh with a mistake in its subjects.
func wrapped(wrap func(*item) world.Subject) Addition {
	return faulty(func(u *world.Update) {
		s, _ := u.World.(stock)
		u.World = wrappedStock{s, wrap}
	})
}

type wrappedStock struct {
	stock
	wrap func(*item) world.Subject
}

func (w wrappedStock) Find(v world.View, r world.Row, name string) (world.Subject, bool) {
	subject, ok := w.stock.Find(v, r, name)
	i, _ := subject.(*item)
	if !ok || i == nil {
		return nil, false
	}
	return w.wrap(i), true
}

type sameVersion struct{ *item }

func (s sameVersion) Encode() world.Encoded {
	e := s.item.Encode()
	e.Version = world.VersionOf([]byte(e.Name))
	return e
}

type silentItem struct{ i *item }

func (s silentItem) Slot() any             { return s.i.Slot() }
func (s silentItem) Encode() world.Encoded { return s.i.Encode() }

// alike returns subjects that stay equal through all revisions.
func alike() func(*item) world.Subject {
	var mu sync.Mutex
	newest := map[itemSlot]*item{}
	return func(i *item) world.Subject {
		slot := itemSlot{i.place, i.key}
		mu.Lock()
		defer mu.Unlock()
		newest[slot] = i
		return alikeItem{slot, &mu, &newest}
	}
}

type alikeItem struct {
	itemSlot
	mu     *sync.Mutex
	newest *map[itemSlot]*item
}

func (a alikeItem) Slot() any { return a.itemSlot }
func (a alikeItem) Encode() world.Encoded {
	a.mu.Lock()
	defer a.mu.Unlock()
	return (*a.newest)[a.itemSlot].Encode()
}
