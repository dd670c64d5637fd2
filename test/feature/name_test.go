package feature_test

import (
	"fmt"
	"testing"

	"github.com/isthmus-mesh/isthmus/admin"
)

// Two registries write one host otherwise, and one of them writes a machine three times. It is one
// service, and one machine; and a registry that begins to write it another way is nothing new.
func TestOneNameIsOneThingHoweverItIsWritten(t *testing.T) {
	t.Parallel()
	first, second, b := newRegistry(t, "first"), newRegistry(t, "second"), startBackends(t, "one", "two")
	first.Write("shop.yaml", service{Host: "Reviews.Shop.example.", Name: "reviews", Endpoints: endpoints(b[0])},
		service{Host: "db.example", Resolution: "DNS", Endpoints: []string{"{address: TWO.example}", "{address: two.example.}", "{address: two.example}"}})
	second.Write("shop.yaml", service{Host: "reviews.SHOP.example", Endpoints: endpoints(b[1])})
	isthmus := start(t, first, second)
	client := dial(t, isthmus, reviews+":80", "shop")
	client.AwaitAnswers("one", "two")
	isthmus.AwaitService("db.example", func(s admin.Service) error {
		if s.Endpoints.Total != 1 {
			return fmt.Errorf("it has %d machines", s.Endpoints.Total)
		}
		return nil
	})
	found := isthmus.AwaitService("REVIEWS.shop.example.", whatever)
	if found.Host != reviews || found.Written != "Reviews.Shop.example." || found.Endpoints.Total != 2 {
		t.Errorf("there is %+v", found)
	}

	isthmus.Settle()
	before := isthmus.sent(client)
	first.Write("shop.yaml", service{Host: "reviews.shop.example.", Name: "reviews", Endpoints: endpoints(b[0])})
	isthmus.AwaitService(reviews, func(s admin.Service) error {
		if s.Written != "reviews.shop.example." {
			return fmt.Errorf("it is written %q", s.Written)
		}
		return nil
	})
	isthmus.Settle()
	if after := isthmus.sent(client); after != before {
		t.Errorf("another way to write it was sent:\n%s\nafter\n%s", after, before)
	}
}
