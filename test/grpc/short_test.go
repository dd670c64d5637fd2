package grpc_test

import (
	"testing"

	"github.com/isthmus-mesh/isthmus/test/grpc/clients"
)

// TestShortNamesAreDialled has clients of the namespace shop dial a service of Kubernetes by its
// short names, as they may with istiod, before it exists and after.
func TestShortNamesAreDialled(t *testing.T) {
	each(t, func(t *testing.T, impl clients.Implementation) {
		const host = "reviews.shop.svc.cluster.local"
		short := []string{"reviews:80", "reviews.shop:80", "reviews.shop.svc:80"}
		b := startBackends(t, "one", "two")
		isthmus := newIsthmus(t)
		isthmus.Write(ratings, b[1])
		isthmus.Start()
		client := dial(t, impl, isthmus, append(short, ratings+":80")...)
		client.AwaitAnswers(ratings+":80", "two")
		isthmus.Write(host, b[0])
		for _, name := range short {
			client.AwaitAnswers(name, "one")
		}
	})
}
