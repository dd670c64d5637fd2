package supervise_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/supervise"
)

// What another system keeps of a source, which does not list it, counts as held
// here: what is lost besides is no small loss.
func TestWhatIsKeptElsewhereCountsAsHeld(t *testing.T) {
	for name, c := range map[string]struct {
		elsewhere           int
		before, after       int // services of five endpoints
		endpoints, heldThen int
	}{
		"nothing elsewhere":        {0, 2, 1, 5, 0},
		"few elsewhere":            {4, 2, 1, 5, 0},
		"enough elsewhere":         {5, 2, 1, 10, 6},
		"much elsewhere":           {95, 2, 1, 10, 6},
		"less than half of all":    {19, 20, 12, 60, 0},
		"half of all":              {20, 20, 12, 100, 48},
		"more than half is stored": {1, 20, 10, 100, 60},
	} {
		t.Run(name, func(t *testing.T) {
			supervised(t, func(b *bridge) {
				b.list(fleet(0, c.before, 5)...)
				b.lacks(c.elsewhere)
				b.list(fleet(0, c.after, 5)...)
				b.standing(c.endpoints, c.heldThen)
			})
		})
	}
}

// lacks has another system keep a service of so many endpoints, from 10.9.0.0 on.
func (b *bridge) lacks(endpoints int) {
	b.t.Helper()
	if endpoints > 0 {
		b.offer(kept("far", endpoints))
	}
}

func (b *bridge) offer(objects ...source.BaselineObject) {
	b.t.Helper()
	if err := b.Offer(b.t.Context(), source.Baseline{Name: "elsewhere", Source: "reg", Where: "there", Objects: objects}); err != nil {
		b.t.Error(err)
	}
}

func kept(name string, endpoints int) source.BaselineObject {
	o := source.BaselineObject{Kind: model.KindService, Namespace: "ns", Name: name + ".example.com", Object: "Thing ns/" + name}
	for _, address := range far(endpoints) {
		o.Endpoints = append(o.Endpoints, source.Socket(address, "", 0))
	}
	return o
}

// shard is one of the objects that a large service is divided into: they are shown
// under one name.
func shard(name string, from, to int) source.BaselineObject {
	o := kept(name, to)
	o.Endpoints = o.Endpoints[from:]
	return o
}

func far(n int) (addresses []string) {
	for i := range n {
		addresses = append(addresses, fmt.Sprintf("10.9.0.%d", i))
	}
	return addresses
}

// decided returns what the mark of the source says of what others have.
func (b *bridge) decided() model.Judgement {
	b.t.Helper()
	for rec := range b.store.List(model.Filter{Kind: model.KindSource}) {
		mark, _ := rec.Spec.(model.SourceMark)
		j, _ := mark.Judgements.Of("elsewhere")
		return j
	}
	return model.Judgement{}
}

// keeps checks how many endpoints are held elsewhere, and for how many causes.
func (b *bridge) keeps(endpoints, causes int) {
	b.t.Helper()
	j, n := b.decided(), 0
	for _, drop := range j.Held {
		for _, item := range drop.Items {
			n += len(item.Endpoints)
		}
	}
	if n != endpoints || len(j.Held) != causes {
		b.t.Errorf("%d endpoints are held elsewhere for %d causes, want %d for %d: %+v", n, len(j.Held), endpoints, causes, j)
	}
}

// What has been missing for long, and is not gone only because something is
// rejected, says nothing about what is lost now. The source is asked all the same.
func TestWhatIsKeptElsewhereForLongIsNotSuspected(t *testing.T) {
	supervised(t, func(b *bridge) {
		broken := model.Listing{Objects: fleet(0, 2, 5), Rejected: []model.Rejection{{Ref: ref(model.KindService, "new"), Reason: "broken"}}}
		b.replace(broken)
		b.lacks(95)
		for range 4 {
			b.replace(broken)
			time.Sleep(30 * time.Second)
		}
		b.replace(broken)
		b.keeps(95, 1)
		b.list(fleet(0, 1, 5)...)
		b.standing(5, 0)
		start := time.Now()
		time.Sleep(45 * time.Second)
		if asked := b.registry.asked(start); !slices.Contains(asked, 30*time.Second) {
			t.Errorf("asked to list after %v", asked)
		}
	})
}

func TestSourceIsAskedWhileItsEndpointsAreKeptElsewhere(t *testing.T) {
	supervised(t, func(b *bridge) {
		b.registry.answer(model.Listing{Objects: fleet(0, 1, 5)})
		b.list(fleet(0, 1, 5)...)
		start := time.Now()
		time.Sleep(10 * time.Second)
		b.lacks(95)
		b.keeps(95, 1)
		time.Sleep(2 * time.Hour)
		b.keeps(0, 0)
		want := []time.Duration{40 * time.Second, 70 * time.Second}
		if diff := cmp.Diff(want, b.registry.asked(start)); diff != "" {
			t.Errorf("asked to list (-want +got):\n%s", diff)
		}
	})
}

// A run that fails takes nothing of that back.
func TestSourceIsAskedInItsNextRun(t *testing.T) {
	supervised(t, func(b *bridge) {
		b.list(fleet(0, 1, 5)...)
		b.lacks(95)
		b.fail("broken")
		time.Sleep(time.Minute)
		b.list(fleet(0, 1, 5)...)
		start := time.Now()
		time.Sleep(45 * time.Second)
		if diff := cmp.Diff([]time.Duration{30 * time.Second}, slices.DeleteFunc(b.registry.asked(start), func(d time.Duration) bool { return d < 0 })); diff != "" {
			t.Errorf("asked to list (-want +got):\n%s", diff)
		}
	})
}

// Nor do other settings, for which the source is run by another supervisor.
func TestSuccessorKnowsWhatIsKeptElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger()
		before := connectWith(t, l, supervise.Config{})
		before.list(fleet(0, 1, 5)...)
		before.lacks(95)
		b := connectWith(t, l, supervise.Config{})
		if err := b.Succeed(t.Context(), before.Supervisor); err != nil {
			t.Fatal(err)
		}
		b.list(fleet(0, 1, 5)...)
		b.list()
		b.standing(5, 6)
	})
}

func TestReleaseLetsGoOfWhatIsKeptElsewhere(t *testing.T) {
	supervised(t, func(b *bridge) {
		b.list(fleet(0, 2, 5)...)
		b.lacks(3)
		b.list()
		b.standing(10, 12)
		b.keeps(3, 1)
		for _, want := range []int{15, 0} {
			if released, err := b.Release(b.t.Context()); err != nil || released != want {
				t.Errorf("released %d (%v), want %d", released, err, want)
			}
			b.keeps(0, 0)
		}
		b.standing(0, 0)
	})
}

// What others have is judged by the first listing, whichever comes first, and as
// what the store has is: by the same rules, against what was there.
func TestWhatOthersHaveIsJudgedByTheFirstListing(t *testing.T) {
	for name, c := range map[string]struct {
		has       []source.BaselineObject
		lists     []model.Object
		endpoints int // held
		causes    int
	}{
		"most of it is there":  {[]source.BaselineObject{kept("a", 40)}, []model.Object{service("a", "f", far(21)...)}, 0, 0},
		"half of it is":        {[]source.BaselineObject{kept("a", 40)}, []model.Object{service("a", "f", far(20)...)}, 20, 1},
		"as many others are":   {[]source.BaselineObject{kept("a", 40)}, []model.Object{service("a", "f", append(crowd(20), far(20)...)...)}, 0, 0},
		"only others are":      {[]source.BaselineObject{kept("a", 40)}, []model.Object{service("a", "f", crowd(40)...)}, 40, 1},
		"everything is gone":   {[]source.BaselineObject{kept("a", 2)}, nil, 2, 1},
		"few are":              {[]source.BaselineObject{kept("a", 9), kept("b", 9)}, []model.Object{service("a", "f", far(9)...)}, 0, 0},
		"a service is emptied": {[]source.BaselineObject{kept("a", 40), kept("b", 12)}, []model.Object{service("a", "f", far(40)...)}, 12, 1},
		"two services are": {
			[]source.BaselineObject{kept("a", 60), kept("b", 12), kept("c", 13)},
			[]model.Object{service("a", "f", far(60)...), service("c", "f")},
			25, 2,
		},
		"most of two objects is": {
			[]source.BaselineObject{shard("a", 0, 20), shard("a", 20, 40)}, []model.Object{service("a", "f", append(far(10), far(31)[20:]...)...)}, 0, 0,
		},
		"half of two objects is": {
			[]source.BaselineObject{shard("a", 0, 20), shard("a", 20, 40)}, []model.Object{service("a", "f", append(far(10), far(30)[20:]...)...)}, 20, 1,
		},
		"a lone one is another": {[]source.BaselineObject{kept("a", 1)}, []model.Object{service("a", "f", "10.1.1.1")}, 0, 0},
	} {
		for order, early := range map[string]bool{"before": true, "after": false} {
			t.Run(name+" "+order, func(t *testing.T) {
				supervised(t, func(b *bridge) {
					if early {
						b.offer(c.has...)
						if len(b.decided().With) > 0 {
							t.Error("it was judged without a listing")
						}
					}
					b.list(c.lists...)
					if !early {
						b.offer(c.has...)
					}
					b.keeps(c.endpoints, c.causes)
					if diff := cmp.Diff([]string{"reg"}, b.decided().With); diff != "" {
						t.Errorf("judged with (-want +got):\n%s", diff)
					}
				})
			})
		}
	}
}

// An object that is divided counts with all its parts, in one baseline or in several,
// and each of them once.
func TestPartsOfAnObjectCountOnceEach(t *testing.T) {
	parts := []source.BaselineObject{shard("a", 0, 20), shard("a", 20, 40)}
	for name, offers := range map[string][][]source.BaselineObject{
		"together":        {parts},
		"apart":           {parts[:1], parts[1:]},
		"apart and again": {parts[:1], parts[1:], parts, parts[:1]},
	} {
		t.Run(name, func(t *testing.T) {
			for lost, held := range map[int]int{39: 0, 40: 40} { // of 79, of which less than half may go, and of 80
				supervised(t, func(b *bridge) {
					b.list(service("a", "f", far(40)...))
					for _, offered := range offers {
						b.offer(offered...)
					}
					var others []source.BaselineObject
					for i := range lost {
						others = append(others, kept(fmt.Sprint("b", i), 1))
					}
					b.offer(others...)
					b.keeps(held, min(held, 1))
				})
			}
		})
	}
}

// What is back is not held any more, wherever its absence was noticed, and the rest
// goes after its time.
func TestWhatOthersHaveAndIsBackIsNotHeld(t *testing.T) {
	supervised(t, func(b *bridge) {
		b.list()
		b.offer(kept("a", 150))
		b.keeps(150, 1)
		b.list(service("a", "f", far(149)...))
		b.keeps(1, 1)
		time.Sleep(time.Minute)
		b.keeps(1, 1)
		b.list(service("a", "f", far(149)...))
		b.keeps(0, 0)
	})
}

// Two clusters may have the same addresses: the loss of one does not hide behind the other. What was
// written without a network is there in any.
func TestNetworksOfBaselinesAreTheirOwn(t *testing.T) {
	in := func(networks ...string) (o model.Object) {
		o = service("a", "f")
		for _, network := range networks {
			for _, e := range service("a", "f", far(50)...).Owned {
				spec, _ := e.Spec.(model.Endpoint)
				spec.Network, e.Name = network, e.Name+network
				e.Spec = spec
				o.Owned = append(o.Owned, e)
			}
		}
		return o
	}
	written := func(networks ...string) source.BaselineObject {
		o := kept("a", 0)
		for _, network := range networks {
			for _, address := range far(50) {
				o.Endpoints = append(o.Endpoints, source.Socket(address, network, 0))
			}
		}
		return o
	}
	for name, test := range map[string]struct {
		written source.BaselineObject
		listed  model.Object
		held    int
	}{
		"one of two is gone":     {written("east", "west"), in("east"), 50},
		"both are there":         {written("east", "west"), in("west", "east"), 0},
		"a network is given now": {written(""), in("east"), 0},
		"none was written":       {written(""), in(""), 0},
	} {
		t.Run(name, func(t *testing.T) {
			supervised(t, func(b *bridge) {
				b.offer(test.written)
				b.list(test.listed)
				b.keeps(test.held, min(test.held, 1))
			})
		})
	}
}

// Nothing that a listing has is ever held, everything is held that was there if
// nothing is, and it does not matter in which order what others have is offered,
// be it before the listing or after it.
func TestOrderOfBaselinesDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var objects []source.BaselineObject
		var lists []model.Object
		listed := map[string]int{}
		for i := range rapid.IntRange(1, 5).Draw(rt, "objects") {
			name := fmt.Sprintf("s%d", i)
			had := rapid.IntRange(0, 30).Draw(rt, "had")
			objects = append(objects, kept(name, had))
			if has := rapid.IntRange(-1, had).Draw(rt, "has"); has >= 0 {
				lists = append(lists, service(name, "f"+name, far(has)...))
				listed[name+".example.com"] = has
			}
		}
		if rapid.IntRange(0, 3).Draw(rt, "nothing") == 0 {
			lists, listed = nil, map[string]int{}
		}
		offered := rapid.Permutation(objects).Draw(rt, "offered")
		early := rapid.Bool().Draw(rt, "early")
		outcome := func(offered []source.BaselineObject, early bool) (held []model.HeldItem) {
			synctest.Test(t, func(t *testing.T) {
				b := connectWith(t, newLedger(), supervise.Config{})
				if early {
					b.offer(offered...)
				}
				b.list(lists...)
				if !early {
					b.offer(offered...)
				}
				for _, drop := range b.decided().Held {
					held = append(held, drop.Items...)
				}
			})
			slices.SortFunc(held, func(a, b model.HeldItem) int { return strings.Compare(a.Name, b.Name) })
			return held
		}
		held := outcome(objects, true)
		if diff := cmp.Diff(held, outcome(offered, early)); diff != "" {
			rt.Fatalf("what is held differs:\n%s", diff)
		}
		for _, item := range held {
			has, there := listed[item.Name]
			if item.Whole && there {
				rt.Fatalf("%s is held, and listed", item.Name)
			}
			for _, address := range far(has) {
				if slices.Contains(item.Endpoints, source.Socket(address, "", 0)) {
					rt.Fatalf("%s of %s is held, and listed", address, item.Name)
				}
			}
		}
		if len(lists) == 0 && len(held) != len(objects) {
			rt.Fatalf("%d objects are held of %d, all of which are gone", len(held), len(objects))
		}
	})
}
