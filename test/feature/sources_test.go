package feature_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/isthmus-mesh/isthmus/admin"
)

func TestTwoSourcesUniteOneHost(t *testing.T) {
	t.Parallel()
	first, second := newRegistry(t, "first"), newRegistry(t, "second")
	b := startBackends(t, "one", "shared", "two")
	entry := func(endpoints ...string) service { return service{Host: reviews, Endpoints: endpoints} }
	first.Write("shop.yaml", entry(b[0].Endpoint(), b[1].Endpoint("locality: first", "weight: 7")))
	second.Write("shop.yaml", entry(b[1].Endpoint("locality: second"), b[2].Endpoint()))
	first.Write("stays.yaml", service{Host: ratings, Endpoints: endpoints(b[0])}) // the last one would be held
	isthmus := start(t, first, second)
	client := dial(t, isthmus, reviews+":80", "shop")
	client.AwaitAnswers("one", "shared", "two")
	traffic := client.KeepCalling()

	// Of an endpoint in both the first source gives the attributes.
	found := isthmus.AwaitService(reviews, whatever)
	if fmt.Sprint(found.Sources) != "[first second]" || found.Endpoints.Total != 3 {
		t.Errorf("the admin API shows sources %v with %d endpoints", found.Sources, found.Endpoints.Total)
	}
	if got, want := claims(found, b[1]), "first weight 7, (second weight 0)"; got != want {
		t.Errorf("the shared endpoint is claimed by %s, want %s", got, want)
	}

	// It stays until it is gone from both.
	first.Write("shop.yaml", entry(b[0].Endpoint()))
	isthmus.Settle()
	if got, want := claims(isthmus.AwaitService(reviews, whatever), b[1]), "second weight 0"; got != want {
		t.Errorf("the shared endpoint is claimed by %s, want %s", got, want)
	}
	client.AwaitAnswers("one", "shared", "two")
	second.Write("shop.yaml", entry(b[2].Endpoint()))
	client.AwaitAnswers("one", "two")

	// A source that withdraws the service takes its own endpoints along.
	first.Remove("shop.yaml")
	client.AwaitAnswers("two")
	traffic.MustNotHaveFailed()
}

// claims tells which localities claim a backend; those that do not count stand
// in brackets.
func claims(s admin.Service, b *backend) string {
	var list []string
	for _, e := range s.Instances {
		if e.Port != uint32(b.Addr.Port) {
			continue
		}
		text := fmt.Sprintf("%s weight %d", e.Locality, e.Weight)
		if !e.Counts {
			text = "(" + text + ")"
		}
		list = append(list, text)
	}
	return strings.Join(list, ", ")
}

func TestSourceThatResolvesOtherwiseIsLeftOutVisibly(t *testing.T) {
	t.Parallel()
	first, second := newRegistry(t, "first"), newRegistry(t, "second")
	b := startBackends(t, "one", "two")
	first.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(b[0])})
	first.Write("stays.yaml", service{Host: "stays.shop.example", Endpoints: endpoints(b[0])}) // so that not everything goes, which would be held
	second.Write("shop.yaml", service{Host: reviews, Resolution: "DNS", Endpoints: endpoints(b[1])})
	isthmus := start(t, first, second)
	client := dial(t, isthmus, reviews+":80", "shop")
	client.AwaitAnswers("one")
	traffic := client.KeepCalling()

	found := isthmus.AwaitService(reviews, whatever)
	const why = "its resolution is DNS, that of Service first:shop/reviews is STATIC; nobody is served its endpoints at port 80: give both one resolution, or one of them another host"
	leftOut := slices.ContainsFunc(found.Records, func(c admin.Contributor) bool {
		return c.Record == "Service second:shop/reviews" && c.LeftOut == why
	})
	conflict := slices.ContainsFunc(found.Conflicts, func(c admin.Conflict) bool { return c.Field == "resolution" && c.Reason == why })
	if !leftOut || !conflict || fmt.Sprint(found.Sources) != "[first]" {
		t.Errorf("the admin API shows %+v", found)
	}

	// Its word counts once there is no other.
	first.Remove("shop.yaml")
	client.AwaitAnswers("two")
	isthmus.AwaitService(reviews, func(s admin.Service) error {
		if len(s.Conflicts) > 0 || s.Resolution != "DNS" {
			return fmt.Errorf("it is %+v", s)
		}
		return nil
	})
	traffic.MustNotHaveFailed()
}

func TestSourceOrderDecidesWhoDefinesAService(t *testing.T) {
	t.Parallel()
	first, second := newRegistry(t, "zulu"), newRegistry(t, "alpha")
	b := startBackends(t, "one", "two")
	target := func(b *backend) service {
		return service{
			Host: reviews, Ports: "[{number: 80, name: grpc, protocol: GRPC, targetPort: " + b.Port() + "}]",
			Endpoints: []string{"{address: 127.0.0.1}"},
		}
	}
	second.Write("shop.yaml", target(b[1]))
	isthmus := start(t, first, second)
	client := dial(t, isthmus, reviews+":80", "shop")
	client.AwaitAnswers("two")
	traffic := client.KeepCalling()
	// The one that comes first in the configuration decides, not the older one.
	first.Write("shop.yaml", target(b[0]))
	client.AwaitAnswers("one", "two")
	found := isthmus.AwaitService(reviews, whatever)
	if fmt.Sprint(found.Sources) != "[zulu alpha]" {
		t.Errorf("the admin API shows sources %v", found.Sources)
	}
	traffic.MustNotHaveFailed()
}
