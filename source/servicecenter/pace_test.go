package servicecenter_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/servicecenter"
	standin "github.com/isthmus-mesh/isthmus/test/testkit/servicecenter"
)

// slowSink takes its time to take what is read.
type slowSink struct{ source.Sink }

func (slowSink) Replace(context.Context, model.Listing) error {
	time.Sleep(time.Minute)
	return nil
}

func (slowSink) Relist() <-chan time.Time { return nil }

// What is done with an answer is no burden of the registry's: however long it
// takes, the next round comes when it is due.
func TestOwnWorkDelaysNoRound(t *testing.T) {
	bubble(t, standin.Config{Prompt: true, KeepAlive: true}, func(r *rig) {
		r.many("cart", 0, 1) // an empty registry is asked once more before it counts as empty
		src := servicecenter.New(servicecenter.WithDefaults(r.config()), servicecenter.Options{})
		src.DialWith(r.net.dial)
		ctx, cancel := context.WithCancel(r.Context())
		ended := make(chan error, 1)
		go func() { ended <- src.Run(ctx, slowSink{}) }()
		r.pass(time.Minute)
		synctest.Wait()
		before := r.Requests(standin.ListServices)
		r.rounds(1)
		if got := r.Requests(standin.ListServices) - before; got != 1 {
			r.Errorf("%d lists in the time of a round, after a minute of own work", got)
		}
		cancel()
		<-ended
	})
}

// Nothing goes unnoticed for long just because everything had to be found. A
// registry that is slow when hardly anything has changed is left alone for
// longer nevertheless.
func TestTheFirstRoundDelaysTheNextOneLittle(t *testing.T) {
	bubble(t, prompt, func(r *rig) {
		id := r.many("cart", 0, 1)
		r.Inject(standin.BatchFind, standin.Late(4*time.Second), 1)
		m := r.mirror(r.config())
		r.pass(4 * time.Second)
		m.is(source.StateLive, "")
		r.instance(id, "late", "10.0.0.2:8080")
		r.Inject(standin.ListServices, standin.Late(3*time.Second), 0)
		r.pass(5*time.Second*11/10 + 3*time.Second)
		if !strings.Contains(m.stored(), "10.0.0.2") {
			r.Errorf("not noticed after 8.5 s:\n%s", m.stored())
		}
		before := r.Requests(standin.ListServices)
		r.pass(time.Minute)
		if got := r.Requests(standin.ListServices) - before; got > 5 {
			r.Errorf("%d lists of 3 s each in a minute", got)
		}
	})
}
