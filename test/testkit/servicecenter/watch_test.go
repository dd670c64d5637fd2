package servicecenter_test

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/isthmus-mesh/isthmus/test/testkit/servicecenter"
)

func TestWatcherIsNotifiedOfWhatItsConsumerLookedUp(t *testing.T) {
	t.Parallel()
	inBubble(t, servicecenter.Config{}, func(t *testing.T, p *peer) {
		consumer, cart, other := p.shop("consumer"), p.shop("cart"), p.shop("other")
		w := p.watch(t, consumer)
		p.find(t, "cart", consumer, "")
		p.instance(cart, "early")
		p.instance(other, "unasked")
		time.Sleep(time.Second)
		expect(t, w, "CREATE early")
		p.SetStatus(cart, "early", "DOWN")
		time.Sleep(time.Second)
		expect(t, w, "UPDATE early")
		p.UnregisterInstance(cart, "early")
		time.Sleep(2 * time.Second)
		expect(t, w)
		time.Sleep(time.Second)
		expect(t, w, "DELETE early")
	})
}

func TestChangesBeforeTheRuleIsKnownAreMissed(t *testing.T) {
	t.Parallel()
	inBubble(t, servicecenter.Config{RuleDelay: time.Second}, func(t *testing.T, p *peer) {
		consumer, cart := p.shop("consumer"), p.shop("cart")
		w := p.watch(t, consumer)
		p.find(t, "cart", consumer, "")
		p.instance(cart, "missed")
		time.Sleep(time.Second)
		p.instance(cart, "seen")
		time.Sleep(time.Second)
		expect(t, w, "CREATE seen")
	})
}

func TestAnUnknownConsumerIsNotifiedAndCutOff(t *testing.T) {
	t.Parallel()
	inBubble(t, servicecenter.Config{}, func(t *testing.T, p *peer) {
		w := p.watch(t, "nobody")
		expect(t, w, "service does not exist")
		<-w.ended
	})
}

func TestAFullQueueIsThrownAway(t *testing.T) {
	t.Parallel()
	inBubble(t, servicecenter.Config{Prompt: true}, func(t *testing.T, p *peer) {
		consumer, cart := p.shop("consumer"), p.shop("cart")
		w := p.watch(t, consumer)
		p.find(t, "cart", consumer, "")
		time.Sleep(time.Second)
		release := p.HoldEvents()
		p.instance(cart, "0")
		synctest.Wait() // that one is out of the queue
		for n := range 5001 {
			p.instance(cart, strconv.Itoa(n+1))
		}
		release()
		expect(t, w, "CREATE 0", "CREATE 5001")
	})
}

func TestEventsMayBeOff(t *testing.T) {
	t.Parallel()
	inBubble(t, servicecenter.Config{Prompt: true, NoEvents: true}, func(t *testing.T, p *peer) {
		consumer, cart := p.shop("consumer"), p.shop("cart")
		w := p.watch(t, consumer)
		p.find(t, "cart", consumer, "")
		time.Sleep(time.Second)
		p.instance(cart, "unheard")
		expect(t, w)
		if got := p.find(t, "cart", "", "").ids; !cmp.Equal(got, []string{"unheard"}) {
			t.Errorf("found %v", got)
		}
	})
}

func TestWatchesCanBeDropped(t *testing.T) {
	t.Parallel()
	inBubble(t, servicecenter.Config{}, func(t *testing.T, p *peer) {
		consumer := p.shop("consumer")
		w := p.watch(t, consumer)
		synctest.Wait()
		if n := p.Watchers(); n != 1 {
			t.Errorf("%d watchers", n)
		}
		p.Emit(servicecenter.Event{Action: servicecenter.Expire, Key: &servicecenter.Key{App: "shop", Name: "cart"}})
		expect(t, w, `{"action":"EXPIRE","key":{"appId":"shop","serviceName":"cart"}}`)
		p.DropWatchers()
		<-w.ended
		synctest.Wait()
		if n := p.Watchers(); n != 0 {
			t.Errorf("%d watchers are left", n)
		}
	})
}

// TestAWatchLastsWhileItsConsumerExists shows the pings: they keep a watch, and
// stop when the consumer is gone, which in time ends the watch.
func TestAWatchLastsWhileItsConsumerExists(t *testing.T) {
	t.Parallel()
	inBubble(t, servicecenter.Config{}, func(t *testing.T, p *peer) {
		consumer := p.shop("consumer")
		w := p.watch(t, consumer)
		time.Sleep(time.Hour)
		if w.isOver() {
			t.Fatal("it ended")
		}
		p.Unregister(consumer)
		gone := time.Now()
		<-w.ended
		if after := time.Since(gone); after > 2*time.Minute {
			t.Errorf("it ended %s after its consumer", after)
		}
	})
}

func expect(t *testing.T, w *watch, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, w.take()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestCloseEndsTheWatches(t *testing.T) {
	t.Parallel()
	inBubble(t, servicecenter.Config{}, func(t *testing.T, p *peer) {
		w := p.watch(t, p.shop("consumer"))
		if w.isOver() {
			t.Fatal("it ended")
		}
		p.Close()
		if !w.isOver() {
			t.Error("it goes on without its server")
		}
	})
}
