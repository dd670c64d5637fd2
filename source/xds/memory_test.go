package xds_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/anypb"
	mcpapi "istio.io/api/mcp/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/isthmus-mesh/isthmus/internal/budget"
	"github.com/isthmus-mesh/isthmus/source"
)

// wide is a ServiceEntry of so many endpoints, which are two bytes each.
func wide(name string, endpoints int) *anypb.Any {
	spec := &networking.ServiceEntry{}
	for range endpoints {
		spec.Endpoints = append(spec.Endpoints, &networking.WorkloadEntry{})
	}
	return wrap(name, spec)
}

// padded is one of so many bytes more.
func padded(name string, size int) *anypb.Any {
	body := service(name, "10.0.0.1")
	var m mcpapi.Resource
	if err := body.UnmarshalTo(&m); err != nil {
		panic(err)
	}
	m.Metadata.Annotations = map[string]string{"a": strings.Repeat("x", size)}
	return encode(&m)
}

// What is held counts with what the records take, which may be many times its text.
// What was stored before stays.
func TestServerThatSaysTooMuchIsStale(t *testing.T) {
	for name, more := range map[string]func(name string) *anypb.Any{
		"fields": func(name string) *anypb.Any { return wide(name, 500) },
		"text":   func(name string) *anypb.Any { return padded(name, 100_000) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, manner{}, func(r *rig) {
				r.memory = budget.New(1 << 20)
				r.serve("shop/cart", "10.0.0.1")
				r.mirror("ServiceEntry")
				for i := range 4 {
					name := "shop/more-" + strconv.Itoa(i)
					r.put("ServiceEntry", name, more(name))
					r.pass(time.Second)
				}
				r.is(source.StateLive, "")
				before := r.stored()
				for i := range 2 {
					name := "shop/most-" + strconv.Itoa(i)
					r.put("ServiceEntry", name, more(name))
					r.pass(10 * time.Millisecond)
				}
				r.is(source.StateStale, "takes more than 1048576 bytes in all")
				if now := r.stored(); !strings.HasPrefix(now, before) {
					r.Errorf("stored:\n%s\n\nbefore:\n%s", now, before)
				}
			})
		})
	}
}

// Several copies of a message are in memory while it is read, so one is a part of what
// a source may have.
func TestMessageThatIsTooLargeIsNotReceived(t *testing.T) {
	variants(t, func(r *rig) {
		r.memory = budget.New(1 << 20)
		r.serve("shop/cart", "10.0.0.1")
		r.put("ServiceEntry", "shop/padded", padded("shop/padded", 200_000))
		r.mirror("ServiceEntry")
		r.is(source.StateLive, "")
		before := r.stored()
		r.put("ServiceEntry", "shop/padded", padded("shop/padded", 300_000))
		r.pass(10 * time.Millisecond)
		r.is(source.StateStale, "a message may have 262144 bytes here")
		if now := r.stored(); now != before {
			r.Errorf("stored:\n%s\n\nbefore:\n%s", now, before)
		}
	})
}
