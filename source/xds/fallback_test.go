package xds_test

import (
	"io"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/isthmus-mesh/isthmus/source"
)

// streamsOf are the variants of the streams on which something was asked, in order: d
// for delta, s for the state of the world.
func (r *rig) streamsOf() (text string) {
	last := 0
	for _, q := range r.seen() {
		if q.stream == last {
			continue
		}
		if last = q.stream; q.delta {
			text += "d"
		} else {
			text += "s"
		}
	}
	return text
}

// Nacos 3 is such a server: it answers all types but the one that it has.
func TestServerThatFailsInTheDeltaVariantIsReadInTheOther(t *testing.T) {
	for name, fault := range map[string]error{
		"exception":     status.Error(codes.Unknown, "Application error processing RPC"),
		"end of stream": io.EOF,
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, manner{failsDelta: func(int) error { return fault }, versions: []string{"v1alpha3"}}, func(r *rig) {
				r.serve("shop/cart", "10.0.0.1")
				r.mirror()
				r.is(source.StateLive, "")
				r.wants("shop/cart 10.0.0.1")
				if got := r.streamsOf(); got != "dds" {
					r.Errorf("the streams were %s", got)
				}
				r.serve("shop/cart", "10.0.0.2")
				r.pass(time.Second)
				r.wants("shop/cart 10.0.0.2")

				// A new connection costs one delta stream.
				r.cut()
				r.pass(5 * time.Second)
				r.is(source.StateLive, "")
				if got := r.streamsOf(); got != "ddsds" {
					r.Errorf("the streams were %s", got)
				}

				// It has learned the delta variant.
				r.change(func() { r.failsDelta = nil })
				r.cut()
				r.pass(10 * time.Second)
				r.is(source.StateLive, "")
				r.cut()
				r.pass(10 * time.Second)
				if got := r.streamsOf(); got != "ddsdsdd" {
					r.Errorf("the streams were %s", got)
				}
			})
		})
	}
}

// A server that is away, or fails in both variants, is asked for deltas once it is back.
func TestServerThatFailsInBothVariantsKeepsTheDeltaVariant(t *testing.T) {
	bubble(t, manner{}, func(r *rig) {
		r.serve("shop/cart", "10.0.0.1")
		r.fail(status.Error(codes.Unavailable, "not ready"))
		r.mirror()
		r.pass(20 * time.Second)
		r.is(source.StateListing, "not ready")
		r.fail(nil)
		r.pass(20 * time.Second)
		r.is(source.StateLive, "")
		if q := r.seen()[len(r.seen())-1]; !q.delta {
			r.Error("the server is read in the state of the world")
		}
	})
}

// Ends that differ, and the end of a stream on which all was listed, say nothing of the variant.
func TestDeltaStreamsThatEndOtherwiseAreBegunAgain(t *testing.T) {
	ends := map[int]error{
		1: status.Error(codes.Unknown, "one"), 2: status.Error(codes.Internal, "another"), 3: io.EOF,
		5: status.Error(codes.Unknown, "one"), 7: status.Error(codes.Unknown, "one"),
	}
	bubble(t, manner{failsDelta: func(stream int) error { return ends[stream] }, versions: []string{"v1alpha3"}}, func(r *rig) {
		r.serve("shop/cart", "10.0.0.1")
		r.mirror()
		for range 4 {
			r.pass(20 * time.Second)
			r.is(source.StateLive, "")
			r.cut()
		}
		r.pass(20 * time.Second)
		r.is(source.StateLive, "")
		if got := r.streamsOf(); got != "dddddddddd" {
			r.Errorf("the streams were %s", got)
		}
	})
}
