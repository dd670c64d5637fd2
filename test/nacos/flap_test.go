package nacos_test

import (
	"fmt"
	"sync"
	"testing"
)

// Whatever comes and goes at speed, each Isthmus ends with what there is, and nothing
// else is disturbed.
func TestFlappingEndsWithWhatThereIs(t *testing.T) {
	t.Parallel()
	n := useShared(t)
	views := look(t, n.readers)
	const steady, host = "steady.DEFAULT-GROUP.public.nacos", "flap.DEFAULT-GROUP.public.nacos"
	n.mustRegister(t, instance{Service: "steady", IP: "10.5.1.1", Port: 80})
	expect(t, views, steady, "10.5.1.1:80")
	calm := undisturbed(t, views, steady)

	const workloads, rounds = 4, 150
	var all sync.WaitGroup
	var want []string
	for w := range workloads {
		instances := newWorkload(t, n)
		flap := order{Service: "flap", Address: fmt.Sprintf("10.5.0.%d", w), Port: 80}
		stays := w%2 == 0
		if stays {
			want = append(want, flap.Address+":80")
		}
		all.Go(func() {
			for round := range rounds {
				flap.Remove = round%2 == 1
				instances.do(flap)
			}
			if flap.Remove = !stays; !stays || rounds%2 == 0 {
				instances.do(flap)
			}
		})
	}
	all.Wait()
	n.lists(t, instance{Service: "flap"}, want...)
	expect(t, views, host, want...)
	calm()
}
