package secrets_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/internal/events"
	"github.com/isthmus-mesh/isthmus/secrets"
)

// counter is an issuer that counts leaves, and fails when asked to.
type counter struct {
	mu     sync.Mutex
	issued map[string]int
	fails  bool
	noted  []string // identities that a keeper reported as changed
	turns  int      // changes of the bundle that it reported
	last   *secrets.Bundle
	looked int // how often it looked at the bundle
	stale  *secrets.Leaf
	bundle *secrets.Bundle
	next   chan struct{}
	amid   map[string]func() // done once, while a method is called
}

// do does what is to happen while a method is called, after it has looked.
func (c *counter) do(method string) {
	c.mu.Lock()
	f := c.amid[method]
	delete(c.amid, method)
	c.mu.Unlock()
	if f != nil {
		f()
	}
}

// then has something happen while a method is called next.
func (c *counter) then(method string, f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.amid[method] = f
}

func (c *counter) note(r secrets.Renewal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.noted = append(c.noted, r.Identities...); r.Bundle {
		c.turns++
		c.last = c.bundle
	}
}

// turned returns how many changes of the bundle were reported.
func (c *counter) turned() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.turns
}

// shown returns the bundle at the last report.
func (c *counter) shown() *secrets.Bundle {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}

// turn makes a leaf outdated, and the bundle another.
func (c *counter) turn(stale *secrets.Leaf) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stale, c.bundle = stale, &secrets.Bundle{Authorities: []byte("another")}
	close(c.next)
	c.next = make(chan struct{})
}

// changed returns the identities that were reported, in order of names.
func (c *counter) changed() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(slices.Values(c.noted))
}

func (c *counter) Issue(identity string, now time.Time) (*secrets.Leaf, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fails {
		return nil, errors.New("the authority is away")
	}
	c.issued[identity]++
	window := secrets.WindowOf(identity, length, now)
	return &secrets.Leaf{Identity: identity, Key: []byte("PRIVATE"), Window: window, NotAfter: window.NotAfter()}, nil
}

func (c *counter) Current(leaf *secrets.Leaf) bool {
	defer c.do("Current")
	c.mu.Lock()
	defer c.mu.Unlock()
	return leaf != c.stale
}

func (c *counter) Bundle() *secrets.Bundle {
	defer c.do("Bundle")
	c.mu.Lock()
	c.looked++
	defer c.mu.Unlock()
	return c.bundle
}

func (c *counter) Changed() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.next
}

func (c *counter) looks() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.looked
}

// made returns how many leaves of an identity were made.
func (c *counter) made(identity string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.issued[identity]
}

func (c *counter) stop(fails bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fails = fails
}

// running runs a keeper in the bubble of a test, and notes the identities that it reports.
func running(t *testing.T) (k *secrets.Keeper, by *counter) {
	t.Helper()
	by = newCounter()
	return keep(t, by, nil), by
}

func newCounter() *counter {
	return &counter{issued: map[string]int{}, bundle: &secrets.Bundle{}, next: make(chan struct{}), amid: map[string]func(){}}
}

// keep runs a keeper until the test ends.
func keep(t *testing.T, by *counter, log *events.Clients) *secrets.Keeper {
	t.Helper()
	k := secrets.NewKeeper(by, log, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		k.Run(ctx, by.note)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return k
}

const (
	length = 12 * time.Hour
	cart   = "spiffe://cluster.local/ns/shop/sa/cart"
	bank   = "spiffe://cluster.local/ns/bank/sa/till"
)

// A leaf is made once for each window, whoever comes and goes meanwhile, and the next one long
// before it expires.
func TestLeafIsMadeOnceForEachWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, by := running(t)
		release := k.Hold(cart)
		first := k.Leaf(cart)
		for range 100 {
			k.Hold(cart)()
		}
		release()
		release = k.Hold(cart)
		if k.Leaf(cart) != first || by.made(cart) != 1 || first.Window != secrets.WindowOf(cart, length, time.Now()) {
			t.Fatalf("%d were made", by.made(cart))
		}
		for day := range 4 {
			before := k.Leaf(cart)
			time.Sleep(time.Until(before.Window.Until))
			synctest.Wait()
			if now := k.Leaf(cart); now == before || by.made(cart) != day+2 || len(by.changed()) != day+1 || time.Until(before.Window.NotAfter()) != length {
				t.Fatalf("%d were made, and reported are %v; the one before is valid for %s more", by.made(cart), by.changed(), time.Until(before.Window.NotAfter()))
			}
		}
		release()
		time.Sleep(length)
		synctest.Wait()
		if k.Leaf(cart) != nil || by.made(cart) != 5 {
			t.Error("a leaf without users is kept")
		}
	})
}

// While the issuer fails the leaf before stays, and the next one comes when it is back.
func TestLeafStaysWhileTheIssuerFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, by := running(t)
		defer k.Hold(cart)()
		before := k.Leaf(cart)
		by.stop(true)
		defer k.Hold(bank)()
		time.Sleep(length + time.Minute)
		synctest.Wait()
		if k.Leaf(cart) != before || k.Leaf(bank) != nil || len(by.changed()) > 0 {
			t.Fatalf("reported as changed: %v", by.changed())
		}
		by.stop(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		if !slices.Equal(by.changed(), []string{bank, cart}) || k.Leaf(cart) == before || k.Leaf(bank) == nil {
			t.Errorf("reported as changed: %v", by.changed())
		}
	})
}

// An issuer that fails for long is logged once, and again with another failure.
func TestLastingFailureIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		by := &counter{issued: map[string]int{}, bundle: &secrets.Bundle{}, next: make(chan struct{}), fails: true}
		var log strings.Builder
		k := secrets.NewKeeper(by, nil, slog.New(slog.NewTextHandler(&log, nil)))
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			k.Run(ctx, by.note)
		}()
		defer k.Hold(cart)()
		for _, fails := range []bool{true, false, true} {
			by.stop(fails)
			time.Sleep(length + time.Hour)
		}
		cancel()
		<-ended
		if n := strings.Count(log.String(), "the authority is away"); n != 2 {
			t.Errorf("logged %d times", n)
		}
	})
}

// When the issuer says so, the bundle is reported, and leaves that may not stay are made anew at
// once. Others wait for the ends of their windows.
func TestOutdatedLeafIsMadeAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, by := running(t)
		defer k.Hold(cart)()
		defer k.Hold(bank)()
		synctest.Wait()
		ofCart, ofBank := k.Leaf(cart), k.Leaf(bank)
		by.turn(ofCart)
		synctest.Wait()
		if k.Leaf(cart) == ofCart || k.Leaf(bank) != ofBank || !slices.Equal(by.changed(), []string{cart}) || by.turns != 1 {
			t.Fatalf("reported as changed: %v, and %d bundles", by.changed(), by.turns)
		}
		by.turn(nil)
		synctest.Wait()
		if k.Leaf(bank) != ofBank || len(by.changed()) != 1 || by.turns != 2 {
			t.Errorf("reported as changed: %v, and %d bundles", by.changed(), by.turns)
		}
	})
}

// A suspended or corrected machine goes on at another time of day, of which no timer tells. So the
// keeper looks at least once a minute, and windows have the time of day alone.
func TestKeeperLooksAtTheTimeOfDay(t *testing.T) {
	if w := secrets.WindowOf(cart, length, time.Now()); w != (secrets.Window{From: w.From.Round(0), Until: w.Until.Round(0)}) {
		t.Errorf("the window %v is measured by the clock of timers", w)
	}
	synctest.Test(t, func(t *testing.T) {
		k, by := running(t)
		defer k.Hold(cart)()
		synctest.Wait()
		before := by.looks()
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := by.looks() - before; n < 60 || n > 61 || by.made(cart) > 2 {
			t.Errorf("it looked %d times in an hour, and made %d certificates", n, by.made(cart))
		}
	})
}

// A change while the keeper looks at the change before is not missed, nor one that comes together
// with a client.
func TestNoChangeIsMissed(t *testing.T) {
	for range 20 { // which of two events is seen first is random
		synctest.Test(t, func(t *testing.T) {
			k, by := running(t)
			defer k.Hold(cart)()
			synctest.Wait()
			for name, provoke := range map[string]func(change func()){
				"while leaves are looked at":    func(change func()) { by.then("Current", change); by.turn(nil) },
				"while the bundle is looked at": func(change func()) { by.then("Bundle", change); by.turn(nil) },
				"together with a client": func(change func()) {
					by.then("Bundle", func() { change(); by.stop(true); k.Hold(bank)(); by.stop(false) })
					by.turn(nil)
				},
			} {
				before, bundles := k.Leaf(cart), by.turned()
				provoke(func() { by.turn(before) })
				synctest.Wait()
				if k.Leaf(cart) == before {
					t.Fatalf("%s: the outdated leaf stays", name)
				}
				if by.turned() == bundles || by.shown() != k.Bundle() {
					t.Fatalf("%s: the last bundle was not reported", name)
				}
			}
		})
	}
}

// Windows of an identity follow each other without a gap, and contain their time. Windows of
// different identities do not begin together.
func TestWindowsFollowEachOther(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		identity := rapid.StringMatching(`spiffe://[a-z]{1,5}/ns/[a-z]{1,5}/sa/[a-z]{1,5}`).Draw(rt, "identity")
		now := time.Unix(rapid.Int64Range(0, 4e9).Draw(rt, "now"), rapid.Int64Range(0, 999_999_999).Draw(rt, "nanoseconds"))
		w := secrets.WindowOf(identity, length, now)
		if now.Before(w.From) || !now.Before(w.Until) || w.Until.Sub(w.From) != length {
			rt.Fatalf("the window of %s is %v", now, w)
		}
		if next := secrets.WindowOf(identity, length, w.Until); next.From != w.Until {
			rt.Fatalf("behind %v comes %v", w, next)
		}
	})
	begins := map[time.Time]bool{}
	for n := range 1000 {
		begins[secrets.WindowOf(fmt.Sprint(n), length, time.Unix(1e9, 0)).From] = true
	}
	if len(begins) < 990 {
		t.Errorf("1,000 windows begin at %d times", len(begins))
	}
}

// No way of printing a leaf shows its key.
func TestPrintedLeafHasNoKey(t *testing.T) {
	leaf := &secrets.Leaf{Identity: cart, Key: []byte("PRIVATE")}
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		if text := fmt.Sprintf(format, leaf); !strings.Contains(text, cart) || strings.Contains(text, "PRIVATE") || strings.Contains(text, "0x50") {
			t.Errorf("%s prints %s", format, text)
		}
	}
}

// The leaves that are out are known until the last one ends, and are renewed for open streams alone.
// Of each identity one event has the first leaf, and one each reason why none was made.
func TestLeavesThatAreOutAreKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		by, log := newCounter(), events.New()
		k := keep(t, by, log.Of("xds"))
		begun := time.Now()
		release := k.Hold(cart)
		defer k.Hold(bank)()
		k.Hold(bank)()
		window := secrets.WindowOf(cart, length, begun)
		if list := k.All(); len(list) != 2 || list[1] != (secrets.Out{Identity: cart, Window: window, Until: window.NotAfter(), Streams: 1, Last: begun}) || list[0].Streams != 1 {
			t.Errorf("they are %+v", list)
		}
		time.Sleep(length) // into the next window
		release()
		left := time.Now()
		window = secrets.WindowOf(cart, length, left)
		made := by.made(cart)
		time.Sleep(time.Until(window.NotAfter()) - time.Second)
		synctest.Wait()
		if list := k.All(); len(list) != 2 || list[1] != (secrets.Out{Identity: cart, Window: window, Until: window.NotAfter(), Last: left}) {
			t.Errorf("without a stream they are %+v", list)
		}
		if by.made(cart) != made || k.Leaf(cart) != nil {
			t.Errorf("without a stream %d were made after %d", by.made(cart), made)
		}
		time.Sleep(time.Second)
		if list := k.All(); len(list) != 1 || list[0].Identity != bank {
			t.Errorf("at the end they are %+v", list)
		}
		time.Sleep(2 * time.Minute)
		by.stop(true)
		defer k.Hold(cart)()
		time.Sleep(5 * time.Minute)
		var texts []string
		for _, e := range must(log.After(0)) {
			texts = append(texts, e.Text)
		}
		if len(texts) != 3 || !strings.Contains(texts[0], cart+", valid until ") || !strings.Contains(texts[1], bank) || !strings.Contains(texts[2], cart+": the authority is away") {
			t.Errorf("the events are %q", texts)
		}
	})
}

func must(list []events.Event, _, _ uint64) []events.Event { return list }
