package supervise_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/hold"
	"github.com/isthmus-mesh/isthmus/source/supervise"
)

// had is what a baseline has, and what is listed of it.
type had struct {
	name   string
	before int // endpoints
	now    int // of these; -1 if the service is not listed
}

func (h had) there() int { return max(h.now, 0) }
func (h had) lost() int  { return h.before - h.there() }

// compared is a baseline beside a listing.
type compared struct {
	hold     hold.Config
	services []had
	others   int // services that the baseline does not have, each with an endpoint
}

func drawCompared(t *rapid.T) compared {
	c := compared{
		hold: hold.Config{
			Share: rapid.SampledFrom([]float64{0, 0.25, 0.5, 1}).Draw(t, "share"),
			Min:   rapid.SampledFrom([]int{0, 2, 5, 1000}).Draw(t, "min"), For: time.Minute,
		},
		others: rapid.SampledFrom([]int{0, 0, 1, 20}).Draw(t, "others"),
	}
	for i := range rapid.IntRange(1, 5).Draw(t, "services") {
		h := had{name: fmt.Sprintf("s%d", i), before: rapid.IntRange(0, 8).Draw(t, "before")}
		h.now = rapid.SampledFrom([]int{-1, 0, h.before, h.before / 2, h.before}).Draw(t, "now")
		c.services = append(c.services, h)
	}
	return c
}

// held says by the rules as they are written down what is held of the services:
// how many endpoints, and which services as a whole.
func (c compared) held() (endpoints map[string]int, whole []string) {
	endpoints = map[string]int{}
	total, lost, there, listed := 0, 0, 0, 0
	for _, h := range c.services {
		total, lost, there = total+h.before, lost+h.lost(), there+h.there()
		if h.now >= 0 {
			listed++
		}
	}
	missing := lost > 0 || listed < len(c.services)
	everything := listed == 0 || total > 0 && there+c.others == 0
	replaced := total > c.hold.Min && there == 0
	all := c.hold.Share < 1 && (lost > 0 && lost >= c.hold.Min && float64(lost) >= c.hold.Share*float64(total) || everything || replaced)
	for _, h := range c.services {
		emptied := h.lost() == h.before && h.before > c.hold.Min
		if !missing || !all && !emptied {
			continue
		}
		if h.lost() > 0 {
			endpoints[h.name] = h.lost()
		}
		if h.now < 0 {
			whole = append(whole, h.name)
		}
	}
	return endpoints, whole
}

func (c compared) objects() (list []model.Object) {
	for _, h := range c.services {
		if h.now >= 0 {
			list = append(list, service(h.name, h.name, far(h.now)...))
		}
	}
	return append(list, fleet(50, 50+c.others, 1)...)
}

// seen is what the mark of the source says is held of a baseline.
func (b *bridge) seen() (endpoints map[string]int, whole []string) {
	endpoints = map[string]int{}
	for _, drop := range b.decided().Held {
		for _, item := range drop.Items {
			name := item.Name[:len(item.Name)-len(".example.com")]
			if len(item.Endpoints) > 0 {
				endpoints[name] += len(item.Endpoints)
			}
			if item.Whole {
				whole = append(whole, name)
			}
		}
	}
	slices.Sort(whole)
	return endpoints, whole
}

// A baseline is judged by the rules, by whichever comes last of it and the
// listing; whatever is listed applies; and what is held ends with the third equal
// listing that comes late enough, or at an operator's word, and not before.
func TestBaselinesAreJudgedByTheRules(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := drawCompared(rt)
		early, released := rapid.Bool().Draw(rt, "early"), rapid.Bool().Draw(rt, "released")
		var wrong string
		synctest.Test(t, func(t *testing.T) { wrong = c.play(t, early, released) })
		if wrong != "" {
			rt.Fatalf("%+v: %s", c, wrong)
		}
	})
}

func (c compared) play(t *testing.T, early, released bool) (wrong string) {
	t.Helper()
	b := connectWith(t, newLedger(), supervise.Config{Hold: c.hold})
	var baseline []source.BaselineObject
	for _, h := range c.services {
		baseline = append(baseline, kept(h.name, h.before))
	}
	expect := func(when string, endpoints map[string]int, whole []string) {
		gotEndpoints, gotWhole := b.seen()
		if diff := cmp.Diff(endpoints, gotEndpoints) + cmp.Diff(whole, gotWhole); diff != "" && wrong == "" {
			wrong = fmt.Sprintf("%s what is held (-want +got):\n%s", when, diff)
		}
		if got := countOf(c.objects()); b.Status().Services+b.Status().Endpoints != got && wrong == "" {
			wrong = fmt.Sprintf("%s %+v is stored of what is listed", when, b.Status())
		}
	}
	if early {
		b.offer(baseline...)
	}
	b.list(c.objects()...)
	if !early {
		b.offer(baseline...)
	}
	endpoints, whole := c.held()
	expect("at first", endpoints, whole)
	if released {
		want := 0
		for _, n := range endpoints {
			want += n
		}
		if n, err := b.Release(t.Context()); n != want || err != nil {
			wrong = fmt.Sprintf("released %d (%v), want %d", n, err, want)
		}
		expect("after the release", map[string]int{}, nil)
		return wrong
	}
	for range 2 {
		time.Sleep(25 * time.Second)
		b.list(c.objects()...)
		expect("before its time", endpoints, whole)
	}
	time.Sleep(10 * time.Second)
	b.list(c.objects()...)
	expect("in the end", map[string]int{}, nil)
	if wrong == "" && b.Status().State != source.StateLive {
		wrong = "not live: " + b.Status().Reason
	}
	return wrong
}

// What a listing has of what is held is never held any more, in whatever order
// things come back, and a baseline of which all is back holds nothing.
func TestWhatIsListedIsNotHeldOfABaseline(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		before := rapid.IntRange(1, 30).Draw(rt, "before")
		steps := rapid.SliceOfN(rapid.IntRange(0, before), 1, 6).Draw(rt, "listed")
		var wrong string
		synctest.Test(t, func(t *testing.T) {
			b := connectWith(t, newLedger(), supervise.Config{})
			b.offer(kept("a", before))
			most := 0
			for i, n := range append(steps, before) {
				most = max(most, n)
				b.list(service("a", "f", far(n)...))
				for _, drop := range b.decided().Held {
					for _, item := range drop.Items {
						if len(item.Endpoints) > before-most || item.Kind == model.KindService && item.Whole {
							wrong = fmt.Sprintf("after listing %d of %v: %+v", i, steps, item)
						}
					}
				}
			}
			b.keeps(0, 0)
		})
		if wrong != "" {
			rt.Fatal(wrong)
		}
	})
}
